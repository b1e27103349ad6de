"""Figures of congestion windows and rates over a run: all changes, or ranges per time span."""

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

MAX_CHANGES = 800
"""If there are more changes, the range in each time span is drawn instead of each change."""

SPANS = 400
RATE_SPANS = 80
_MAX_FLOWS = 6


@dataclass(frozen=True, slots=True)
class Ranges:
    """The minimum, maximum and last window in each of several equal spans.

    ``edges_s`` has shape ``[spans + 1]``. A span without a change has the previous window; spans
    before the first change are NaN.
    """

    edges_s: Floats
    low: Floats
    high: Floats
    last: Floats


def ranges(time_s: NDArray[Any], window_pkts: NDArray[Any], start_s: float, end_s: float) -> Ranges:
    """Return the range of a window in each of :data:`SPANS` spans.

    Parameters
    ----------
    time_s, window_pkts
        At least one change, in order of time, ``[changes]``; a window is valid until the next one.
    start_s, end_s
        Start of the first span and end of the last span.
    """
    edges = np.linspace(start_s, end_s, SPANS + 1)
    window = np.asarray(window_pkts, dtype=np.float64)
    # Number of changes before each edge; the last of them is valid at the edge.
    before = np.searchsorted(time_s, edges[:-1], side="right")
    until = np.searchsorted(time_s, edges[1:], side="right")
    known = until > 0
    held = np.where(before > 0, before - 1, 0)[known]
    low, high, final = (np.full(SPANS, np.nan) for _ in range(3))
    bounds = np.stack([held, until[known]], axis=1)
    for span, (first, end) in zip(np.flatnonzero(known), bounds, strict=True):
        of_span = window[first:end]
        low[span], high[span], final[span] = of_span.min(), of_span.max(), of_span[-1]
    return Ranges(edges, low, high, final)


def rates(
    time_s: NDArray[Any], sequence: NDArray[Any], start_s: float, end_s: float
) -> tuple[Floats, Floats]:
    """Return the edges of :data:`RATE_SPANS` spans, and the packets sent per second in each.

    Parameters
    ----------
    time_s, sequence
        Time and number of new packets of a flow, in order of time. Packets may be missing, because
        numbers are consecutive. A smaller number indicates a new connection.
    start_s, end_s
        Start of the first span and end of the last span.
    """
    edges = np.linspace(start_s, end_s, RATE_SPANS + 1)
    steps = np.diff(np.asarray(sequence, dtype=np.float64))
    sent = np.cumsum(np.append(1.0, np.where(steps > 0, steps, 1.0)))
    until = np.append(0.0, sent)[np.searchsorted(time_s, edges[1:], side="right")]
    return edges, np.diff(np.append(0.0, until)) / np.diff(edges)


def windows_chart(answers: Sequence[Answer], scenario: Scenario) -> Chart:
    """Return one panel with window and threshold for each of the first traced flows."""
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
        # The initial threshold may be infinite, so the window determines the axis.
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
    if len(time) <= MAX_CHANGES:
        steps = {"drawstyle": "steps-post"}
        line = {"color": OBSERVED[0], "linewidth": 1.2}
        return [
            Series(time, threshold, "ssthresh", thin | steps),
            Series(time, window, "window", line | steps),
        ]
    thresholds, windows = ranges(time, threshold, *span), ranges(time, window, *span)
    length = windows.edges_s[1] - windows.edges_s[0]
    label = f"window, minimum to maximum per {length:.2g} s"
    line, area = {"color": OBSERVED[0], "linewidth": 0.6}, {"color": OBSERVED[2], "alpha": 0.6}
    return [
        Series(thresholds.edges_s, thresholds.last, "ssthresh", thin),
        Band(windows.edges_s, windows.low, windows.high, label, area),
        Series(windows.edges_s, windows.last, "last window", line),
    ]


def rates_chart(answers: Sequence[Answer], scenario: Scenario) -> Chart:
    """Return the rates of new data of traced flows over the run."""
    answer = answers[0]
    table = answer.tables["sequences"]
    new = table["event"] == "sent"
    start, end = float(np.min(table["time_s"])), float(np.max(table["time_s"]))
    ends = np.cumsum([group.count for group in scenario.populations])
    by_flow = {}
    for flow in np.unique(table["flow"][new])[:_MAX_FLOWS].tolist():
        rows = new & (table["flow"] == flow)
        columns = table["time_s"][rows], table["sequence"][rows]
        edges, rate = rates(*columns, start, max(end, start + 1e-9))
        group = scenario.populations[int(np.searchsorted(ends, flow, "right"))]
        by_flow[flow] = edges, 8 * group.payload_bytes * rate
    scale = scale_of_unit("bit/s", max(float(rate.max()) for _, rate in by_flow.values()))
    series = [
        Series(edges, rate / scale.factor, f"flow {flow}", line_style(i) | {"linewidth": 1.2})
        for i, (flow, (edges, rate)) in enumerate(by_flow.items())
    ]
    y = Axis(f"new payload ({scale.unit})", 0)
    title = f"rate of new data ({answer.engine})"
    return scenario_chart(scenario, title, Axis("time (s)"), y, series)
