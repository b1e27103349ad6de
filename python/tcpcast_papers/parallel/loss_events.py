"""Loss events counted from lost packets, as in the paper, and compared with loss indications.

In the paper a lost packet starts an event; packets lost less than an RTT later belong to it. The
metrics count loss indications of the sender: a fast recovery or a sequence of timeouts, with any
number of lost packets. The two differ if losses are frequent: a second loss an RTT later, during
the repair of the first, is a separate event, but belongs to the same indication. The same holds
for a retransmission that is lost after a timeout.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from tcpcast_papers import drawing
from tcpcast_papers.parallel import curves, figures
from tcpcast_papers.parallel.figures import DROP_TAIL, RANDOM_30
from tcpcast_papers.parallel.predictions import (
    ALGORITHM_1,
    ALGORITHM_2,
    PFTK,
    errors,
    mean_absolute_error,
)
from tcpcast_papers.parallel.runs import TRACE_WARMUP_CYCLES, measured
from tcpcast_papers.reproduction import Row, Section

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray
    from tcpcast.answer import Answer

    from tcpcast_papers.parallel.points import Point
    from tcpcast_papers.parallel.runs import Measured, Runs, SampleSizes

    Floats = NDArray[np.float64]
    Pair = tuple[Measured, Measured]

SETTINGS = (RANDOM_30, DROP_TAIL)
MODELS = (ALGORITHM_1, PFTK, ALGORITHM_2)

LONGEST_WARMUP_PKTS = 550_000
"""Maximum packets of a trace, including those that are not counted."""
FEWEST_LOSSES = 50


def points(setting: str, sample_sizes: SampleSizes) -> list[Point]:
    """Return the points to trace: those with enough losses for the length of a trace."""
    return [
        point
        for point in figures.points(setting, sample_sizes)
        if TRACE_WARMUP_CYCLES * point.cycle_s * point.rate_pps <= LONGEST_WARMUP_PKTS
        and point.losses_per_packet * sample_sizes.traced_packets >= FEWEST_LOSSES
    ]


def request(runs: Runs) -> None:
    """Request traces of all points at 30 ms that can be traced."""
    for setting in SETTINGS:
        runs.request(points(setting, runs.sample_sizes), traced=both_counts)


def events(times_s: Floats, gap_s: float) -> int:
    """Count losses that occur at least ``gap_s`` after the last counted one.

    Parameters
    ----------
    times_s
        Times of packet losses, increasing, ``[losses]``.
    gap_s
        The RTT.
    """
    count, index = 0, 0
    while index < len(times_s):
        count += 1
        index = max(index + 1, int(np.searchsorted(times_s, times_s[index] + gap_s)))
    return count


def by_lost_packets(point: Point, result: Answer) -> Measured:
    """Return the measurements of a traced run, with p and p_e counted from lost packets."""
    seen = measured(point, result)
    marks = result.tables["sequences"]
    kept = marks["time_s"] >= (result.warmup_s or 0.0)
    times, flows, kinds = (marks[name][kept] for name in ("time_s", "flow", "event"))
    lost = kinds == "dropped"
    sent = int(((kinds == "sent") | (kinds == "retransmitted")).sum())
    each = sum(
        events(np.sort(times[lost & (flows == flow)]), seen.rtt_s) for flow in range(point.flows)
    )
    together = events(np.sort(times[lost]), seen.rtt_s)
    return replace(seen, p=each / sent, p_e=together / sent)


def both_counts(point: Point, result: Answer) -> Pair:
    """Return the measurements of a traced run, by loss indications and by lost packets."""
    return measured(point, result), by_lost_packets(point, result)


def sections(runs: Runs, folder: Path) -> list[Section]:
    """Return p and p_e by both counts, and the models' errors with the paper's count."""
    result = Section(
        "Sections III and IV. Loss events counted from lost packets", ("loss", "over", "of")
    )
    figure, panels = drawing.panels(len(MODELS), len(SETTINGS), width=4.6, height=3.8)
    for index, setting in enumerate(SETTINGS):
        chosen = points(setting, runs.sample_sizes)
        pairs = [pair for point in chosen for pair in runs.traces(point)]
        for over, group in _groups(setting, pairs):
            result.rows += _measures((setting, over), group) + _errors((setting, over), group)
        row = panels[index * len(MODELS) : (index + 1) * len(MODELS)]
        once = pairs[:: runs.sample_sizes.traces]
        curves.draw_ratios(row, MODELS, [paper for _, paper in once])
        row[0].set_ylabel(f"model / simulation, {setting.partition(',')[0]}")
    result.figures.append(drawing.Plot(figure, folder / "loss-events.png"))
    result.remarks = [
        "In the paper a lost packet starts a loss event; others lost within an RTT belong to it. "
        "All other sections use loss indications of the sender, as PFTK does: a "
        "fast recovery, or a sequence of timeouts. With frequent loss the paper's count is higher: "
        "a packet is lost during the repair of another, or a retransmission is lost after a "
        "timeout.",
        "These rows are from shorter runs with a record of every packet; for queues, only from "
        "points with enough losses. Rates, RTT and T are from the same run.",
    ]
    return [result]


def _groups(setting: str, pairs: list[Pair]) -> list[tuple[str, list[Pair]]]:
    groups = [("all points", pairs)]
    if setting == DROP_TAIL:
        bins = pairwise(figures.LOSS_BINS)
        groups += [(f"p {100 * a:g} to {100 * b:g} %", _between(pairs, a, b)) for a, b in bins]
    else:
        for loss in dict.fromkeys(own.point.loss for own, _ in pairs):
            groups.append((f"loss {100 * loss:g} %", [p for p in pairs if p[0].point.loss == loss]))
    return [(over, group) for over, group in groups if group]


def _between(pairs: list[Pair], low: float, high: float) -> list[Pair]:
    return [pair for pair in pairs if low <= pair[0].p < high]


def _measures(where: tuple[str, str], pairs: list[Pair]) -> list[Row]:
    rows = []
    for name in ("p", "p_e"):
        result = [(getattr(own, name), getattr(paper, name)) for own, paper in pairs]
        shares = np.array([100 * paper / own for own, paper in result if own > 0])
        if shares.size:
            note = f"{shares.min():.0f} to {shares.max():.0f} %"
            label = (*where, f"{name} by lost packets / by indications")
            rows.append(Row(label, "%", None, float(shares.mean()), note=note))
    return rows


def _errors(where: tuple[str, str], pairs: list[Pair]) -> list[Row]:
    rows = []
    for model in MODELS:
        own, paper = (
            100 * mean_absolute_error(model, [pair[index] for pair in pairs]) for index in (0, 1)
        )
        signed = 100 * errors(model, [pair[1] for pair in pairs])
        note = f"{np.nanmean(signed):+.1f} % on average; by indications |error| {own:.1f} %"
        label = (*where, f"mean |error| of {model.model}, by lost packets")
        rows.append(Row(label, "%", None, paper, note=note))
    return rows
