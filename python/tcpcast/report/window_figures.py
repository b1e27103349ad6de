"""Congestion windows and rates over a whole run: every change, or what is in each of many spans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.report.chart import (
    CALCULATED,
    OBSERVED,
    SIZE,
    Axis,
    Band,
    Chart,
    Panel,
    Series,
    fitted_window_axis,
    line_style,
    scenario_chart,
)
from tcpcast.report.quantity import scale_of_unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tcpcast.answer import Answer
    from tcpcast.report.chart import Drawable
    from tcpcast.scenario import Scenario

    Floats = NDArray[np.float64]

MOST_CHANGES = 800
"""More changes than these would run together: the range of each span is drawn instead."""

SPANS = 400
RATE_SPANS = 80
_MAX_FLOWS = 6


@dataclass(frozen=True, slots=True)
class Ranges:
    """The lowest, the highest and the last window in each of equal spans.

    ``edges_s`` are one more than the spans; a span without a change has the window before it, and
    those before the first change have none (NaN).
    """

    edges_s: Floats
    low: Floats
    high: Floats
    last: Floats


def ranges(time_s: NDArray[Any], window_pkts: NDArray[Any], start_s: float, end_s: float) -> Ranges:
    """Return what a window does in each of :data:`SPANS` spans.

    Parameters
    ----------
    time_s, window_pkts
        Changes in order of time, at least one, ``[changes]``; a window holds until the next one.
    start_s, end_s
        Where the first span begins and the last one ends.
    """
    edges = np.linspace(start_s, end_s, SPANS + 1)
    window = np.asarray(window_pkts, dtype=np.float64)
    # The changes before an edge: the last one of them holds there.
    before = np.searchsorted(time_s, edges[:-1], side="right")
    until = np.searchsorted(time_s, edges[1:], side="right")
    known = until > 0
    held = np.where(before > 0, before - 1, 0)[known]
    found = [np.full(SPANS, np.nan) for _ in range(3)]
    bounds = np.stack([held, until[known]], axis=1)
    for place, (first, beyond) in zip(np.flatnonzero(known), bounds, strict=True):
        of_span = window[first:beyond]
        found[0][place], found[1][place] = of_span.min(), of_span.max()
        found[2][place] = of_span[-1]
    return Ranges(edges, *found)


def rates(
    time_s: NDArray[Any], sequence: NDArray[Any], start_s: float, end_s: float
) -> tuple[Floats, Floats]:
    """Return the ends of :data:`RATE_SPANS` spans, and the packets sent per second in each.

    Parameters
    ----------
    time_s, sequence
        When a flow sent which packet for the first time, in order of time; not every packet need be
        there, since numbers count on. Where one is smaller a new connection begins.
    start_s, end_s
        Where the first span begins and the last one ends.
    """
    edges = np.linspace(start_s, end_s, RATE_SPANS + 1)
    steps = np.diff(np.asarray(sequence, dtype=np.float64))
    sent = np.cumsum(np.append(1.0, np.where(steps > 0, steps, 1.0)))
    until = np.append(0.0, sent)[np.searchsorted(time_s, edges[1:], side="right")]
    return edges, np.diff(np.append(0.0, until)) / np.diff(edges)


def windows_chart(answers: Sequence[Answer], scenario: Scenario) -> Chart:
    """Return a panel for each of the first traced flows: window and threshold."""
    answer = answers[0]
    table = answer.tables["windows"]
    traced = np.unique(table["flow"])
    flows = traced[:_MAX_FLOWS]
    start, end = float(np.min(table["time_s"])), float(np.max(table["time_s"]))
    some = f", {len(flows)} of {len(traced)} flows" if len(traced) > len(flows) else ""
    x = Axis("time (s)", start, max(end, start + 1e-9))
    panels = []
    for flow in flows:
        time, window, threshold = (
            table[name][table["flow"] == flow].astype(float)
            for name in ("time_s", "cwnd_pkts", "ssthresh_pkts")
        )
        threshold[~np.isfinite(threshold)] = np.nan
        # A threshold that nothing has lowered yet may be endless: the window decides the axis.
        y = fitted_window_axis(f"flow {int(flow)}\npackets", window, np.median(window))
        panels.append(Panel(_window_series(time, window, threshold, (start, end)), x, y))
    return Chart(
        title=f"{scenario.name}: congestion windows{some} ({answer.engine})",
        panels=panels,
        size=(SIZE[0], 1.2 + 1.6 * len(flows)),
        share="x",
        legend="above",
    )


def _window_series(
    time: Floats, window: Floats, threshold: Floats, span: tuple[float, float]
) -> list[Drawable]:
    thin = {"color": CALCULATED[0], "linewidth": 1}
    if len(time) <= MOST_CHANGES:
        steps = {"drawstyle": "steps-post"}
        line = {"color": OBSERVED[0], "linewidth": 1.2}
        return [
            Series(time, threshold, "ssthresh", thin | steps),
            Series(time, window, "window", line | steps),
        ]
    held, found = ranges(time, threshold, *span), ranges(time, window, *span)
    length = found.edges_s[1] - found.edges_s[0]
    label = f"window, lowest to highest of each {length:.2g} s"
    line = {"color": OBSERVED[0], "linewidth": 0.6}
    return [
        Series(held.edges_s, held.last, "ssthresh", thin),
        Band(found.edges_s, found.low, found.high, label, {"color": OBSERVED[2], "alpha": 0.6}),
        Series(found.edges_s, found.last, "at its end", line),
    ]


def rates_chart(answers: Sequence[Answer], scenario: Scenario) -> Chart:
    """Return the rates of traced flows over the whole run, without retransmissions."""
    answer = answers[0]
    table = answer.tables["sequences"]
    new = table["event"] == "sent"
    start, end = float(np.min(table["time_s"])), float(np.max(table["time_s"]))
    ends = np.cumsum([group.count for group in scenario.populations])
    found = {}
    for flow in np.unique(table["flow"][new])[:_MAX_FLOWS].tolist():
        rows = new & (table["flow"] == flow)
        columns = table["time_s"][rows], table["sequence"][rows]
        edges, rate = rates(*columns, start, max(end, start + 1e-9))
        group = scenario.populations[int(np.searchsorted(ends, flow, "right"))]
        found[flow] = edges, 8 * group.payload_bytes * rate
    scale = scale_of_unit("bit/s", max(float(rate.max()) for _, rate in found.values()))
    series = [
        Series(edges, rate / scale.factor, f"flow {flow}", line_style(at) | {"linewidth": 1.2})
        for at, (flow, (edges, rate)) in enumerate(found.items())
    ]
    y = Axis(f"payload sent for the first time ({scale.unit})", 0)
    title = f"rate of new data ({answer.engine})"
    return scenario_chart(scenario, title, Axis("time (s)"), y, series)
