"""Loss events counted from lost packets, as in the paper, and loss indications of the senders.

In the paper a lost packet starts a loss event; packets lost less than an RTT later belong to the
same event. The metrics count loss indications of the sender: a fast recovery or a sequence of
timeouts, with any number of lost packets. The counts differ if losses are frequent: a packet that
is lost an RTT later, during the repair of the first, starts another event, but belongs to the same
indication. The same applies to a retransmission that is lost after a timeout.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tcpcast_papers import drawing
from tcpcast_papers.parallel import plots
from tcpcast_papers.parallel.predictions import ALGORITHM_1, ALGORITHM_2, PFTK
from tcpcast_papers.parallel.runs import TRACE_WARMUP_CYCLES, make_measured_point
from tcpcast_papers.parallel.settings import DROP_TAIL, RANDOM_30, points_of_setup
from tcpcast_papers.reproduction import Row, Section

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from numpy.typing import NDArray
    from tcpcast.answer import Answer

    from tcpcast_papers.parallel.points import Point
    from tcpcast_papers.parallel.runs import Measured, Runs, SampleSizes

    Floats = NDArray[np.float64]

SETTINGS = (RANDOM_30, DROP_TAIL)
MODELS = (ALGORITHM_1, PFTK, ALGORITHM_2)

LOSS_BINS = (0.0, 0.001, 0.01, 0.05, 1.0)
"""Bins of p for set-ups in which p is a result."""

INDICATIONS_COLUMN = "by indications"
"""Column with values for the loss indications of the senders."""

MAX_WARMUP_PKTS = 550_000
"""Maximum packets of a trace, including those that are not counted."""
MIN_LOSSES = 50


class MeasuredTwoWays(NamedTuple):
    """Measurements of a point, with p and p_e counted from lost packets and from indications."""

    by_losses: Measured
    by_indications: Measured


def is_traced(point: Point, sample_sizes: SampleSizes) -> bool:
    """Return whether a trace of this length has enough losses."""
    return (
        TRACE_WARMUP_CYCLES * point.cycle_s * point.rate_pps <= MAX_WARMUP_PKTS
        and point.losses_per_packet * sample_sizes.traced_packets >= MIN_LOSSES
    )


def request_measurements(runs: Runs, chosen: Iterable[Point]) -> None:
    """Request points, and traces of those with enough losses."""
    every = list(chosen)
    runs.request(every)
    traced = [point for point in every if is_traced(point, runs.sample_sizes)]
    runs.request(traced, traced=measured_trace_two_ways)


def measured_two_ways(runs: Runs, chosen: Iterable[Point]) -> list[MeasuredTwoWays]:
    """Return the measurements of points, with the loss events of their traces.

    The traces give the events per lost packet, p / p_r and p_e / p_r; the longer runs give p_r. A
    point without a trace has so few losses that each loss is one event. Its loss indications are
    used.
    """
    return [_measured_two_ways(runs, point) for point in chosen]


def _measured_two_ways(runs: Runs, point: Point) -> MeasuredTwoWays:
    seen = runs[point]
    if not is_traced(point, runs.sample_sizes):
        return MeasuredTwoWays(seen, seen)
    traces = [lost for lost, _ in runs.traces(point)]
    lost = sum(trace.p_r for trace in traces)
    if not lost:
        return MeasuredTwoWays(seen, seen)
    p, p_e = (
        seen.p_r * sum(getattr(trace, name) for trace in traces) / lost for name in ("p", "p_e")
    )
    return MeasuredTwoWays(replace(seen, p=p, p_e=p_e), seen)


def count_loss_events(times_s: Floats, gap_s: float) -> int:
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


def measured_by_lost_packets(point: Point, result: Answer) -> Measured:
    """Return the measurements of a traced run, with p and p_e counted from lost packets."""
    seen = make_measured_point(point, result)
    marks = result.tables["sequences"]
    kept = marks["time_s"] >= (result.warmup_s or 0.0)
    times, flows, kinds = (marks[name][kept] for name in ("time_s", "flow", "event"))
    lost = kinds == "dropped"
    sent = int(((kinds == "sent") | (kinds == "retransmitted")).sum())
    each = sum(
        count_loss_events(np.sort(times[lost & (flows == flow)]), seen.rtt_s)
        for flow in range(point.flows)
    )
    together = count_loss_events(np.sort(times[lost]), seen.rtt_s)
    return replace(seen, p=each / sent, p_e=together / sent, p_r=int(lost.sum()) / sent)


def measured_trace_two_ways(point: Point, result: Answer) -> MeasuredTwoWays:
    """Return the measurements of a traced run, by lost packets and by loss indications."""
    return MeasuredTwoWays(
        measured_by_lost_packets(point, result), make_measured_point(point, result)
    )


@dataclass(frozen=True, slots=True)
class Group:
    """Points of a set-up with a common name, and limits of p.

    Parameters
    ----------
    name
        Points in words.
    points
        The points.
    low, high
        Lowest p, and the p above the highest.
    """

    name: str
    points: tuple[Point, ...]
    low: float = 0.0
    high: float = math.inf

    def pairs(self, runs: Runs) -> list[MeasuredTwoWays]:
        """Return the measurements of the points within the limits."""
        pairs = measured_two_ways(runs, self.points)
        return [pair for pair in pairs if self.low <= pair.by_losses.p < self.high]


def all_points_and_losses(points: list[Point]) -> list[Group]:
    """Return all points, then those with each random loss, or bins of p."""
    whole = Group("all points", tuple(points))
    if all(point.loss for point in points):
        return [whole] + [
            Group(f"loss {100 * loss:g} %", tuple(p for p in points if p.loss == loss))
            for loss in dict.fromkeys(point.loss for point in points)
        ]
    return [whole] + [
        Group(f"p from {100 * low:g} to {100 * high:g} %", whole.points, low, high)
        for low, high in pairwise(LOSS_BINS)
    ]


def _section(runs: Runs, folder: Path) -> Section:
    result = runs.section(
        "Sections III and IV. Loss events counted from lost packets", ("loss", "over", "of")
    )
    points = {setting: points_of_setup(setting, runs.sample_sizes) for setting in SETTINGS}
    for setting, every in points.items():
        for group, name in product(all_points_and_losses(every), ("p", "p_e")):
            label = (setting, group.name, f"{name} by lost packets / by indications")
            result.rows += runs.row(label, _ratio_row, runs, label, group, name)
    figure, panels = drawing.create_panels(len(MODELS), len(SETTINGS), width=4.6, height=3.8)
    for index, (setting, every) in enumerate(points.items()):
        pairs = measured_two_ways(runs, every)
        row = panels[index * len(MODELS) : (index + 1) * len(MODELS)]
        plots.draw_ratios(row, MODELS, [pair.by_indications for pair in pairs])
        row[0].set_ylabel(f"model / simulation, {setting.partition(',')[0]}")
    result.figures.append(drawing.Plot(figure, folder / "loss-events.png"))
    result.remarks = [
        "In the paper a lost packet starts a loss event, and packets lost less than an RTT later "
        "belong to the same event. The figures above use this count, from traces of every packet. "
        "PFTK and the column *by indications* count loss indications of the sender: fast "
        "recoveries and sequences of timeouts. With frequent loss the paper's count is higher, for "
        "example if a packet is lost during the recovery of another packet, or if a retransmission "
        "is lost after a timeout.",
        "The models in this figure use loss indications. Simulations of a queue with few losses "
        "have no trace; each of their losses is one event and one indication.",
    ]
    return result


def _ratio_row(runs: Runs, label: tuple[str, ...], group: Group, name: str) -> Row | None:
    """Return the mean of p or p_e by lost packets / by indications; None without losses."""
    values = [
        (getattr(pair.by_losses, name), getattr(pair.by_indications, name))
        for pair in group.pairs(runs)
    ]
    shares = np.array([100 * lost / own for lost, own in values if own > 0])
    if not shares.size:
        return None
    note = f"{shares.min():.0f} to {shares.max():.0f} %"
    return Row(label, "%", None, float(shares.mean()), note=note)


SECTIONS = (_section,)
