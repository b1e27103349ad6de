"""Variations of unspecified choices of the paper: receivers, timers, recovery."""

from __future__ import annotations

from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from tcpcast_papers.parallel.loss_events import (
    INDICATIONS_COLUMN,
    measured_two_ways,
    request_measurements,
)
from tcpcast_papers.parallel.points import NS2_DEFAULTS, OpenChoice, Point
from tcpcast_papers.parallel.predictions import (
    ALGORITHM_1,
    ALGORITHM_2,
    EQUATION_48,
    PFTK,
    PFTK_CUMULATIVE_LOSS,
    relative_rate_errors,
)
from tcpcast_papers.reproduction import Row, Section

if TYPE_CHECKING:
    from pathlib import Path

    from tcpcast_papers.parallel.predictions import Prediction
    from tcpcast_papers.parallel.runs import Runs, SampleSizes

CHOICES = (
    NS2_DEFAULTS,
    OpenChoice("delayed acks, b = 2", packets_per_ack=2),
    OpenChoice("minimum timeout 1 s (RFC 6298)", (("min_rto", "1s"),)),
    OpenChoice("no limited transmit", (("limited_transmit", False),)),
    OpenChoice("each retransmission restarts the timer", (("rules.recovery", "newreno"),)),
    OpenChoice("Reno", (("rules.recovery", "reno"),)),
)
MODELS = (ALGORITHM_1, PFTK, ALGORITHM_2, EQUATION_48, PFTK_CUMULATIVE_LOSS)
LOSSES = (0.001, 0.01, 0.05, 0.1)


TIMEOUTS_MS = (70, 100, 120, 150, 200, 300, 500, 1000)
"""Minimum timeouts of the range over T."""


def points_of_open_choice(choice: OpenChoice, sample_sizes: SampleSizes) -> list[Point]:
    """Return the points for a choice: some of those with random loss and 30 ms."""
    return [
        Point(n, loss=loss, choice=choice) for n in sample_sizes.varied_flows for loss in LOSSES
    ]


def timeout_points(timeout_ms: int, sample_sizes: SampleSizes) -> list[Point]:
    """Return the points of Figure 16 with the highest loss, and a minimum timeout."""
    name = f"minimum timeout {timeout_ms} ms"
    choice = OpenChoice(name, (("min_rto", f"{timeout_ms}ms"),))
    return [Point(n, loss=LOSSES[-1], choice=choice) for n in sample_sizes.varied_flows]


def request(runs: Runs) -> None:
    """Request the points of every choice and of the range over T."""
    sizes = runs.sample_sizes
    for choice in CHOICES:
        request_measurements(runs, points_of_open_choice(choice, sizes))
    for timeout_ms in TIMEOUTS_MS:
        request_measurements(runs, timeout_points(timeout_ms, sizes))


def _min_timeout_section(runs: Runs, _: Path) -> Section:
    result = runs.section(
        f"Figure 16 at {100 * LOSSES[-1]:g} %. The range over T",
        ("T", "minimum timeout", "model"),
        others=(INDICATIONS_COLUMN,),
    )
    for timeout_ms in TIMEOUTS_MS:
        points = timeout_points(timeout_ms, runs.sample_sizes)
        pairs = measured_two_ways(runs, points)
        rtts = fmean(pair.by_losses.t0_s / pair.by_losses.rtt_s for pair in pairs)
        for model in (ALGORITHM_1, PFTK):
            label = (f"{rtts:.1f} RTT", f"{timeout_ms} ms", model.model)
            result.rows += runs.row(label, _error_row, runs, label, model, points)
    result.remarks = [
        "The paper does not state its minimum timeout, and at the highest loss, the models depend "
        f"on T. The rows contain the simulations of Figure 16 with {100 * LOSSES[-1]:g} % loss for "
        "several values of T; the notes contain the mean error with sign.",
    ]
    return result


def _error_row(
    runs: Runs,
    label: tuple[str, ...],
    model: Prediction,
    points: list[Point],
    *,
    by_loss: bool = False,
) -> Row:
    own, other = (
        100 * relative_rate_errors(model, seen)
        for seen in zip(*measured_two_ways(runs, points), strict=True)
    )
    note = f"{own.mean():+.0f} % on average"
    if by_loss:
        losses = np.array([point.loss for point in points])
        means = (own[losses == loss].mean() for loss in dict.fromkeys(losses.tolist()))
        note = f"by loss {', '.join(f'{mean:+.0f}' for mean in means)} %"
    others = (float(np.abs(other).mean()),)
    return Row(label, "%", None, float(np.abs(own).mean()), note=note, others=others)


def _choices_section(runs: Runs, _: Path) -> Section:
    result = runs.section(
        "Section III. What the paper leaves open",
        ("chosen", "model", "fed with"),
        others=(INDICATIONS_COLUMN,),
    )
    for choice in CHOICES:
        points = points_of_open_choice(choice, runs.sample_sizes)
        for model in MODELS:
            label = (choice.name, model.model, model.measure)
            compute = partial(_error_row, runs, label, model, points, by_loss=True)
            result.rows += runs.row(label, compute)
    tried = ", ".join(f"{100 * loss:g}" for loss in LOSSES)
    flows = ", ".join(str(n) for n in runs.sample_sizes.varied_flows)
    result.remarks = [
        "The paper states that it used ns-2, but not which TCP. The figures use the defaults of "
        "Agent/TCP/Newreno and of the plain sink in ns-2 of the time: an ack for every packet (b = "
        "1), limited transmit, a minimum timeout of 200 ms, a clock of 10 ms, packets of 1000 B, "
        "and a retransmission timer that partial acks do not restart. The packet size agrees with "
        "section III-B, which gives the transmission time of a packet at 1 Mbit/s as 26.7 % of 30 "
        "ms. The window is unlimited, as the paper's rates require. The shared link has RED, which "
        "drops no packets, because the flows use at most half of this link. A drop-tail queue "
        "holds the packets of 64 ms.",
        f"The values are mean absolute errors with random loss and 30 ms for n = {flows}; the "
        f"notes give the mean error at {tried} %.",
    ]
    return result


SECTIONS = (_choices_section, _min_timeout_section)
