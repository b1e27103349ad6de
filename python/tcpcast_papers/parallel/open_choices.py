"""Variations of unspecified choices of the paper: receivers, timers, recovery."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpcast_papers.parallel.points import AS_NS2, Choice, Point
from tcpcast_papers.parallel.predictions import (
    ALGORITHM_1,
    ALGORITHM_2,
    EQUATION_48,
    PFTK,
    PFTK_MISFED,
    errors,
)
from tcpcast_papers.reproduction import Row, Section

if TYPE_CHECKING:
    from pathlib import Path

    from tcpcast_papers.parallel.runs import Runs, SampleSizes

CHOICES = (
    AS_NS2,
    Choice("delayed acks, b = 2", packets_per_ack=2),
    Choice("minimum timeout 1 s (RFC 6298)", (("min_rto", "1s"),)),
    Choice("no limited transmit", (("limited_transmit", False),)),
    Choice("each retransmission restarts the timer", (("rules.recovery", "newreno"),)),
    Choice("Reno", (("rules.recovery", "reno"),)),
)
MODELS = (ALGORITHM_1, PFTK, ALGORITHM_2, EQUATION_48, PFTK_MISFED)
LOSSES = (0.001, 0.01, 0.05, 0.1)


def points(choice: Choice, sample_sizes: SampleSizes) -> list[Point]:
    """Return the points for a choice: some of those with random loss and 30 ms."""
    return [
        Point(n, loss=loss, choice=choice) for n in sample_sizes.varied_flows for loss in LOSSES
    ]


def request(runs: Runs) -> None:
    """Request the points of every choice."""
    for choice in CHOICES:
        runs.request(points(choice, runs.sample_sizes))


def sections(runs: Runs, _: Path) -> list[Section]:
    """Return each model's mean absolute error for each choice."""
    result = Section("Section III. What the paper leaves open", ("chosen", "model", "fed with"))
    for choice in CHOICES:
        seen = [runs[point] for point in points(choice, runs.sample_sizes)]
        for model in MODELS:
            each = 100 * errors(model, seen)
            losses = np.array([point.point.loss for point in seen])
            by_loss = ", ".join(
                f"{each[losses == loss].mean():+.0f}" for loss in dict.fromkeys(losses.tolist())
            )
            label = (choice.name, model.model, model.measure)
            own = float(np.abs(each).mean())
            result.rows.append(Row(label, "%", None, own, note=f"by loss {by_loss} %"))
    tried = ", ".join(f"{100 * loss:g}" for loss in LOSSES)
    flows = ", ".join(str(n) for n in runs.sample_sizes.varied_flows)
    result.remarks = [
        "The paper states that it used ns-2, but not the TCP. The choices are the defaults of "
        "Agent/TCP/Newreno and of the plain sink in ns-2 of the time: every packet is "
        "acknowledged (b = 1), limited transmit, a minimum timeout of 200 ms and a clock of 10 ms, "
        "packets of 1000 B (the 26.7 % of 30 ms at 1 Mbit/s in section III-B are the 8 ms of one "
        "packet), and a timer that partial acks do not restart. The window is unlimited, as the "
        "paper's rates require. Only the shared link has RED, which drops nothing: the flows use "
        "at most half of this link, and less of the access links. A drop-tail queue holds 64 ms of "
        "its link.",
        f"Mean absolute errors at random loss, 30 ms, n = {flows}; the notes give the mean error "
        f"at {tried} %.",
    ]
    return [result]
