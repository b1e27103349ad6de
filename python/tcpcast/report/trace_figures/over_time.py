"""Figure of bytes in flight, RTT and the limits of the rate over time, in three panels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.readable_units import readable_unit
from tcpcast.report.chart import new_figure, set_log_ticks
from tcpcast.report.palette import BLUE, REFERENCE
from tcpcast.report.trace_figures.direction_data import finite_range
from tcpcast.report.trace_figures.palette import (
    LIMIT_STYLES,
    LOSS_INDICATION_MARKS,
    TRACE_DPI,
    WINDOW_COLOUR,
    legend_above,
    simplify_axes,
    three_digits,
)
from tcpcast.report.trace_figures.sequence import BYTE_UNITS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tcpcast.array_types import Table
    from tcpcast.report.trace_figures.direction_data import Direction

    Floats = np.ndarray[Any, np.dtype[np.float64]]

FIGURE_SIZE_IN = (5.8, 6.0)
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
LOG_AXIS_RATIO = 12.0
"""Ratio of maximum to median RTT above which the RTT axis is logarithmic."""


def draw_over_time(direction: Direction) -> Figure | None:
    """Return three panels over a common time axis, or None if there are no rounds."""
    rounds = direction.table("rounds")
    if rounds is None:
        return None
    edges = _round_edges(direction, rounds)
    figure = new_figure(FIGURE_SIZE_IN, TRACE_DPI)
    flight, rtt, limits = figure.subplots(3, sharex=True, height_ratios=[3, 2, 1.5])
    _draw_flight(flight, direction, edges, rounds)
    _draw_rtt(rtt, direction, edges[:-1], rounds)
    _draw_limits(limits, direction, edges, rounds)
    direction.add_title(figure, _title(direction, rounds))
    end = max(edges[-1], float(np.nan_to_num(direction.row["duration_s"])), 1e-6)
    limits.set_xlim(min(0.0, edges[0]), end)
    direction.label_time(limits)
    return figure


def _title(direction: Direction, rounds: Table) -> str:
    """Return the title with the limit that applied for the largest share of the time."""
    known = {
        name: float(direction.row[f"share_{name}"]) for name in _limits_in_legend_order(rounds)
    }
    name = max(known, key=lambda each: known[each])
    if name == "unknown" or known[name] < 0.005:
        return "Data in flight, round-trip times and limits of the rate"
    subject = f"{'the ' if name in _LIMITS_WITH_ARTICLE else ''}{LIMIT_STYLES[name][0]}"
    return f"The rate is limited by {subject} {100 * known[name]:.0f} % of the time"


def _limits_in_legend_order(rounds: Table) -> list[str]:
    """Return the limits that occur, in the order of the legend."""
    return [limit for limit in LIMIT_STYLES if (rounds["limited_by"] == limit).any()]


def _round_edges(direction: Direction, rounds: Table) -> Floats:
    """Return the start times of all rounds, and the end of the last round."""
    time = direction.seconds(rounds["time"])
    return np.append(time, time[-1] + np.nan_to_num(rounds["duration_s"][-1]))


def _draw_flight(axes: Axes, direction: Direction, edges: Floats, rounds: Table) -> None:
    peak = finite_range(rounds["flight_bytes"].astype(float))[1]
    factor, unit = readable_unit(peak, BYTE_UNITS)
    flight = rounds["flight_bytes"] / factor
    axes.stairs(
        flight, edges, baseline=None, color=BLUE, linewidth=0.9, label="in flight", zorder=2.5
    )
    window = rounds["window_bytes"] / factor
    top, label = _window_axis(window, max(peak / factor, 1e-9), factor)
    axes.stairs(window, edges, baseline=None, color=WINDOW_COLOUR, linewidth=0.9, label=label)
    axes.set_ylim(0, top)
    axes.set_ylabel(f"bytes in flight ({unit})")
    losses = direction.table("loss_indications")
    if losses is not None:
        seconds = direction.seconds(losses["time"])
        for kind, look in LOSS_INDICATION_MARKS.items():
            times = seconds[losses["kind"] == kind]
            if times.size:
                # Marks are along the upper edge, independent of the curves.
                y, across = np.full(times.size, 0.96), axes.get_xaxis_transform()
                look.mark(axes, times, y, f"{look.label} ({times.size:,})", transform=across)
    legend_above(axes)
    simplify_axes(axes)


def _window_axis(window: Floats, peak: float, factor: float) -> tuple[float, str]:
    """Return the upper end of the flight axis and the label of the receiver window."""
    # Leave space for the marks of losses.
    top, label = 1.25 * peak, "receiver window"
    high = finite_range(window)[1]
    if high <= MAX_WINDOW_RATIO * peak:
        return max(top, 1.2 * high), label
    share = float(np.mean(window > top))
    often = "" if share == 1 else "mostly " if share > 0.5 else "sometimes "
    size, unit = readable_unit(high * factor, BYTE_UNITS)
    shown = f"{three_digits(high * factor / size)} {unit}"
    return top, f"{label} ({often}above this axis, up to {shown})"


def _draw_rtt(axes: Axes, direction: Direction, time: Floats, rounds: Table) -> None:
    known = np.isfinite(rounds["rtt_s"])
    milliseconds = rounds["rtt_s"][known] * 1e3
    axes.plot(
        time[known],
        milliseconds,
        linestyle="none",
        marker="o",
        markersize=2.4,
        color=BLUE,
        label="mean per round",
    )
    minimum = direction.row["rtt_min_s"] * 1e3
    if np.isfinite(minimum):
        axes.axhline(
            minimum,
            color="#444444",
            linewidth=1,
            linestyle="--",
            label=f"minimum, {three_digits(minimum)} ms",
        )
    high = finite_range(milliseconds)[1]
    positive = milliseconds[milliseconds > 0]
    if positive.size and high > LOG_AXIS_RATIO * float(np.median(positive)):
        axes.set_yscale("log")
        set_log_ticks(axes.yaxis)
        axes.yaxis.set_minor_formatter("")
    else:
        axes.set_ylim(0, 1.15 * high if high > 0 else 1)
    axes.set_ylabel("RTT (ms)")
    if known.any() or np.isfinite(minimum):
        legend_above(axes)
    else:
        axes.text(0.5, 0.5, "no RTT can be measured", transform=axes.transAxes, ha="center")
    simplify_axes(axes)


def _draw_limits(axes: Axes, direction: Direction, edges: Floats, rounds: Table) -> None:
    duration = np.maximum(np.diff(edges), 0.0)
    bins = np.linspace(edges[0], edges[-1], TIME_BINS + 1)
    base = np.zeros(TIME_BINS)
    totals = {
        limit: float(direction.row[f"share_{limit}"]) for limit in _limits_in_legend_order(rounds)
    }
    longest = sorted(totals, key=lambda limit: -totals[limit])
    separate = longest if len(longest) <= MAX_LIMITS else longest[: MAX_LIMITS - 1]
    drawn = [([limit], *LIMIT_STYLES[limit]) for limit in totals if limit in separate]
    if len(separate) < len(totals):
        drawn.append(([limit for limit in totals if limit not in separate], "other", REFERENCE))
    for limits, label, colour in drawn:
        which = np.isin(rounds["limited_by"], limits)
        share = covered_shares(edges[:-1][which], duration[which], bins)
        total = sum(totals[limit] for limit in limits)
        name = f"{label} {100 * total:.0f} %" if total >= 0.005 else f"{label} < 1 %"
        axes.stairs(base + share, bins, baseline=base, fill=True, color=colour, label=name)
        base += share
    axes.set_ylim(0, 1)
    axes.set_yticks([0, 0.5, 1], ["0", "50 %", "100 %"])
    axes.set_ylabel("share of time")
    legend_above(axes)
    axes.spines[["top", "right"]].set_visible(False)


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
