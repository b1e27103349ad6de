"""Figures of congestion windows and rates over a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.report.chart import (
    FIGURE_SIZE_IN,
    Axis,
    Band,
    Chart,
    Panel,
    Series,
    one_panel_chart,
    scenario_subtitle,
    window_axis,
)
from tcpcast.report.figure_titles import engine_label, finding_title, flow_names, run_title
from tcpcast.report.palette import CALCULATED, OBSERVED, class_styles, line_style
from tcpcast.report.quantity import scale_for_unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tcpcast.answer import Answer
    from tcpcast.report.chart import Drawable
    from tcpcast.scenario import Scenario

    Floats = NDArray[np.float64]

MAX_DRAWN_CHANGES = 800
"""Number of changes of a window above which only its range per time span is drawn."""

WINDOW_SPANS = 400
RATE_SPANS = 80
_MAX_FLOWS = 6


@dataclass(frozen=True, slots=True)
class WindowRanges:
    """The minimum, maximum and last window in each of several equal time spans.

    ``edges_s`` has shape ``[spans + 1]``. A span without a change has the previous window; spans
    before the first change are NaN.
    """

    edges_s: Floats
    low: Floats
    high: Floats
    last: Floats


def window_ranges(
    time_s: NDArray[Any], window_pkts: NDArray[Any], start_s: float, end_s: float
) -> WindowRanges:
    """Return the range of a window in each of :data:`WINDOW_SPANS` spans.

    Parameters
    ----------
    time_s, window_pkts
        At least one change, in order of time, ``[changes]``; a window is valid until the next one.
    start_s, end_s
        Start of the first span and end of the last span.
    """
    edges = np.linspace(start_s, end_s, WINDOW_SPANS + 1)
    window = np.asarray(window_pkts, dtype=np.float64)
    # Number of changes before each edge; the window of the last change applies at the edge.
    before = np.searchsorted(time_s, edges[:-1], side="right")
    until = np.searchsorted(time_s, edges[1:], side="right")
    known = until > 0
    held = np.where(before > 0, before - 1, 0)[known]
    low, high, final = (np.full(WINDOW_SPANS, np.nan) for _ in range(3))
    bounds = np.stack([held, until[known]], axis=1)
    for span, (first, end) in zip(np.flatnonzero(known), bounds, strict=True):
        of_span = window[first:end]
        low[span], high[span], final[span] = of_span.min(), of_span.max(), of_span[-1]
    return WindowRanges(edges, low, high, final)


def send_rates(
    time_s: NDArray[Any], sequence: NDArray[Any], start_s: float, end_s: float
) -> tuple[Floats, Floats]:
    """Return the edges of :data:`RATE_SPANS` spans, and the packets sent per second in each.

    Parameters
    ----------
    time_s, sequence
        Send time and sequence number of new packets of a flow, in order of time. Some packets may
        be missing: numbers are consecutive, so that they give the count. A smaller number indicates
        a new connection.
    start_s, end_s
        Start of the first span and end of the last span.
    """
    edges = np.linspace(start_s, end_s, RATE_SPANS + 1)
    steps = np.diff(np.asarray(sequence, dtype=np.float64))
    sent = np.cumsum(np.append(1.0, np.where(steps > 0, steps, 1.0)))
    until = np.append(0.0, sent)[np.searchsorted(time_s, edges[1:], side="right")]
    return edges, np.diff(np.append(0.0, until)) / np.diff(edges)


def windows_chart(answers: Sequence[Answer], scenario: Scenario) -> Chart:
    """Return one panel with cwnd and ssthresh for each of the first traced flows."""
    answer = answers[0]
    table = answer.tables["windows"]
    traced = np.unique(table["flow"])
    flows = traced[:_MAX_FLOWS]
    start, end = float(np.min(table["time_s"])), float(np.max(table["time_s"]))
    some = f"; {len(flows)} of {len(traced)} traced flows" if len(traced) > len(flows) else ""
    x = Axis("time (s)", start, max(end, start + 1e-9))
    top = np.concatenate([table["cwnd_pkts"][table["flow"] == flow] for flow in flows])
    typical = min(float(np.median(table["cwnd_pkts"][table["flow"] == flow])) for flow in flows)
    panels, medians = [], []
    for flow, (_, name) in zip(flows, flow_names(scenario, flows.tolist()), strict=True):
        time, window, threshold = (
            table[name][table["flow"] == flow].astype(float)
            for name in ("time_s", "cwnd_pkts", "ssthresh_pkts")
        )
        threshold[~np.isfinite(threshold)] = np.nan
        # The initial threshold may be infinite, so the windows of all flows determine the axis.
        y = window_axis(f"window of\n{name}\n(packets)", top, max(typical, 1.0))
        panels.append(Panel(_window_series(time, window, threshold, (start, end)), x, y))
        medians.append(median_window(time, window, end))
    return Chart(
        title=finding_title(answer, "the median window of a flow", medians, "packet"),
        panels=panels,
        subtitle=f"{scenario_subtitle(scenario)}; {engine_label(answer)}{some}",
        size=(FIGURE_SIZE_IN[0], 0.9 + 1.4 * len(flows)),
        shared_axes="x",
        legend_position="below",
    )


def median_window(time_s: Floats, window_pkts: Floats, end_s: float) -> float:
    """Return the largest window that applies at least half of the time until ``end_s``."""
    lasted = np.diff(np.append(time_s, max(end_s, float(time_s[-1]))))
    order = np.argsort(window_pkts)[::-1]
    reached = np.searchsorted(np.cumsum(lasted[order]), lasted.sum() / 2)
    return float(window_pkts[order][min(int(reached), len(order) - 1)])


def _window_series(
    time: Floats, window: Floats, threshold: Floats, span: tuple[float, float]
) -> list[Drawable]:
    thin = {"color": CALCULATED[0], "linewidth": 1}
    if len(time) <= MAX_DRAWN_CHANGES:
        steps = {"drawstyle": "steps-post"}
        line = {"color": OBSERVED[0], "linewidth": 1.2}
        return [
            Series(time, threshold, "slow-start threshold", thin | steps),
            Series(time, window, "window", line | steps),
        ]
    thresholds, windows = window_ranges(time, threshold, *span), window_ranges(time, window, *span)
    length = windows.edges_s[1] - windows.edges_s[0]
    label = f"window, minimum to maximum per {length:.2g} s"
    line, area = {"color": OBSERVED[0], "linewidth": 0.6}, {"color": OBSERVED[2], "alpha": 0.6}
    return [
        Series(thresholds.edges_s, thresholds.last, "slow-start threshold", thin),
        Band(windows.edges_s, windows.low, windows.high, label, area),
        Series(windows.edges_s, windows.last, "last window", line),
    ]


def rates_chart(answers: Sequence[Answer], scenario: Scenario) -> Chart:
    """Return the rates of new data of traced flows over the run."""
    answer = answers[0]
    table = answer.tables["sequences"]
    new = table["event"] == "sent"
    start, end = float(np.min(table["time_s"])), float(np.max(table["time_s"]))
    by_flow = {}
    for flow in np.unique(table["flow"][new])[:_MAX_FLOWS].tolist():
        rows = new & (table["flow"] == flow)
        columns = table["time_s"][rows], table["sequence"][rows]
        edges, rate = send_rates(*columns, start, max(end, start + 1e-9))
        ((group, name),) = flow_names(scenario, [flow])
        by_flow[name] = group.name, edges, 8 * group.payload_bytes * rate
    scale = scale_for_unit("bit/s", max(float(rate.max()) for *_, rate in by_flow.values()))
    colours = class_styles(scenario.populations)
    one = len(colours) == 1
    series = []
    for i, (name, (of_class, edges, rate)) in enumerate(by_flow.items()):
        style = line_style(i) | ({} if one else {"color": colours[of_class]["color"]})
        series.append(Series(edges, rate / scale.factor, "", style | {"linewidth": 1.2}, name=name))
    y = Axis(f"new data sent ({scale.unit})", 0)
    title = run_title([answer], scenario, "New data sent by each flow")
    return one_panel_chart(scenario, title, Axis("time (s)"), y, series)
