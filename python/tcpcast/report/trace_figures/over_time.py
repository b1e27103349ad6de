"""Figure of bytes in flight, RTT and the limits of the rate over time, in three panels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.answer.limit_names import LIMIT_NAMES
from tcpcast.report.chart import (
    Axis,
    Band,
    Chart,
    Panel,
    ReferenceLine,
    Series,
    TextNote,
    value_axis,
)
from tcpcast.report.palette import BLUE, GREEN, ORANGE, PURPLE, REFERENCE, SKY, VERMILION, YELLOW
from tcpcast.report.quantity import scale_for_unit, three_digit_text
from tcpcast.report.trace_figures.sequence import WINDOW_COLOUR

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tcpcast.array_types import Table
    from tcpcast.report.chart import Drawable
    from tcpcast.report.trace_figures.direction_data import Direction

    Floats = np.ndarray[Any, np.dtype[np.float64]]

LIMIT_COLOURS = {
    "application": SKY,
    "receiver_window": BLUE,
    "send_buffer": PURPLE,
    "slow_start": YELLOW,
    "congestion_window": GREEN,
    "bottleneck": "#444444",
    "loss_recovery": ORANGE,
    "timeout": VERMILION,
    "unknown": "#DDDDDD",
}
MAX_LIMITS = 5
"""Maximum number of limits with a separate colour; the shortest limits share one colour."""
TIME_BINS = 160
"""Number of time bins for the shares of the limits."""
MAX_WINDOW_RATIO = 3.0
"""Ratio of window to data in flight above which the axis does not include the window."""
_LIMITS_WITH_ARTICLE = {
    "application",
    "receiver_window",
    "send_buffer",
    "congestion_window",
    "bottleneck",
}


def draw_over_time(direction: Direction) -> Figure | None:
    """Return three panels over a common time axis, or None if there are no rounds."""
    rounds = direction.table("rounds")
    if rounds is None:
        return None
    time = direction.seconds(rounds["time"])
    edges = np.append(time, time[-1] + np.nan_to_num(rounds["duration_s"][-1]))
    end = max(edges[-1], float(np.nan_to_num(direction.row["duration_s"])), 1e-6)
    x = direction.time_axis(min(0.0, float(edges[0])), end)
    shares = {
        limit: float(direction.row[f"share_{limit}"])
        for limit in LIMIT_COLOURS
        if (rounds["limited_by"] == limit).any()
    }
    title = "Data in flight, round-trip times and limits of the rate"
    limit = max(shares, key=shares.__getitem__)
    if limit != "unknown" and shares[limit] >= 0.005:
        subject = f"{'the ' if limit in _LIMITS_WITH_ARTICLE else ''}{LIMIT_NAMES[limit]}"
        title = f"The rate is limited by {subject} {100 * shares[limit]:.0f} % of the time"
    return Chart(
        title=title,
        panels=[
            _flight_panel(direction, edges, rounds, x),
            _rtt_panel(direction, time, rounds, x),
            _limits_panel(shares, edges, rounds, x),
        ],
        subtitle=direction.subtitle,
        size=(5.8, 6.3),
        height_ratios=(3, 2, 1.5),
        shared_axes="x",
        legend_position="above",
    ).draw()


def _flight_panel(direction: Direction, edges: Floats, rounds: Table, x: Axis) -> Panel:
    peak = float(np.max(rounds["flight_bytes"]))
    scale = scale_for_unit("byte", peak)
    # Leave space for the marks of losses.
    top, label = 1.25 * max(peak, 1e-9), "receiver window"
    window = rounds["window_bytes"]
    high = float(np.nanmax(window)) if np.isfinite(window).any() else 1.0
    if high <= MAX_WINDOW_RATIO * peak:
        top = max(top, 1.2 * high)
    else:
        share = float(np.mean(window > top))
        often = "" if share == 1 else "mostly " if share > 0.5 else "sometimes "
        label += f" ({often}above this axis, up to {three_digit_text(high, 'byte')})"
    line = {"linewidth": 0.9}
    flight = rounds["flight_bytes"] / scale.factor
    series: list[Drawable] = [
        Series(edges, flight, "in flight", line | {"color": BLUE, "zorder": 2.5}),
        Series(edges, window / scale.factor, label, line | {"color": WINDOW_COLOUR}),
    ]
    top /= scale.factor
    losses = direction.table("loss_indications") or {"kind": np.array([])}
    for kind, name, colour, marker in (
        ("td", "fast recoveries", BLUE, "v"),
        ("to", "timeouts", VERMILION, "X"),
    ):
        rows = losses["kind"] == kind
        if rows.any():
            style = {"color": colour, "marker": marker, "linestyle": "none", "markersize": 5}
            times = direction.seconds(losses["time"][rows])
            # Marks are along the upper edge, independent of the curves.
            series.append(
                Series(times, np.full(times.size, 0.96 * top), f"{name} ({times.size:,})", style)
            )
    return Panel(series, x, Axis(f"bytes in flight ({scale.unit})", 0, top))


def _rtt_panel(direction: Direction, time: Floats, rounds: Table, x: Axis) -> Panel:
    known = np.isfinite(rounds["rtt_s"])
    minimum, rtt = direction.row["rtt_min_s"], rounds["rtt_s"][known] * 1e3
    points = {"color": BLUE, "linestyle": "none", "marker": "o", "markersize": 2.4}
    series: list[Drawable] = []
    if known.any():
        series.append(Series(time[known], rtt, "mean per round", points))
    if np.isfinite(minimum):
        label = f"minimum, {three_digit_text(minimum, 's')}"
        series.append(ReferenceLine(minimum * 1e3, label, {"color": "#444444", "linestyle": "--"}))
    if not series:
        centred = {"ha": "center"}
        series.append(TextNote("no RTT can be measured", (0.5, 0.5), style=centred))
    return Panel(series, x, value_axis("RTT (ms)", [rtt]))


def _limits_panel(shares: dict[str, float], edges: Floats, rounds: Table, x: Axis) -> Panel:
    duration = np.maximum(np.diff(edges), 0.0)
    bins = np.linspace(edges[0], edges[-1], TIME_BINS + 1)
    base = np.zeros(TIME_BINS)
    own = list(shares)
    if len(own) > MAX_LIMITS:
        own = sorted(shares, key=lambda limit: -shares[limit])[: MAX_LIMITS - 1]
    drawn = [
        ([limit], LIMIT_NAMES[limit], LIMIT_COLOURS[limit]) for limit in shares if limit in own
    ]
    if len(own) < len(shares):
        drawn.append(([limit for limit in shares if limit not in own], "other", REFERENCE))
    series = []
    for limits, label, colour in drawn:
        which = np.isin(rounds["limited_by"], limits)
        share = covered_shares(edges[:-1][which], duration[which], bins)
        total = sum(shares[limit] for limit in limits)
        name = f"{label} {100 * total:.0f} %" if total >= 0.005 else f"{label} < 1 %"
        series.append(Band(bins, base, base + share, name, {"color": colour, "alpha": 1}))
        base = base + share
    return Panel(series, x, Axis("share of time", 0, 1, ticks={0: "0", 0.5: "50 %", 1: "100 %"}))


def covered_shares(start: Floats, duration: Floats, edges: Floats) -> Floats:
    """Return the share of each bin between ``edges`` that is covered by non-overlapping spans."""
    order = np.argsort(start, kind="stable")
    # Time covered before an edge: all spans started before it, minus the part after the edge.
    begun = np.concatenate([[0.0], np.cumsum(duration[order])])
    index = np.searchsorted(start[order], edges, "right")
    last = np.maximum(index - 1, 0)
    since = edges - start[order][last]
    over = np.where(index > 0, np.clip(since, 0.0, duration[order][last]), 0.0)
    covered = begun[last] + over
    result: Floats = np.diff(covered) / np.maximum(np.diff(edges), 1e-12)
    return result
