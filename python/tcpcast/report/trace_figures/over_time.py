"""Bytes in flight, RTT and the limits of the rate over time, in three panels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.report.trace_figures.direction import spread
from tcpcast.report.trace_figures.palette import (
    BLUE,
    INDICATIONS,
    LIMITS,
    WINDOW,
    digits,
    legend_above,
    plain,
)
from tcpcast.report.trace_figures.sequence import UNITS

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tcpcast.captures import Table
    from tcpcast.report.trace_figures.direction import Direction

    Floats = np.ndarray[Any, np.dtype[np.float64]]

STRETCHES = 160
"""Into how many the time is cut for its shares."""
FAR = 3.0
"""Window over flight above which the window is left out: the flight would be a flat line."""
WIDE = 12.0
"""An RTT of more than so many times the median is drawn on a logarithmic axis."""


def draw_over_time(direction: Direction, blank: Callable[[float, float], Figure]) -> Figure | None:
    """Return three panels over one time, or None where no round was seen."""
    rounds = direction.table("rounds")
    if rounds is None:
        return None
    edges = _edges(direction, rounds)
    figure = blank(10.0, 7.6)
    flight, rtt, limits = figure.subplots(3, sharex=True, height_ratios=[3, 2, 1.5])
    _draw_flight(flight, direction, edges, rounds)
    _draw_rtt(rtt, direction, edges[:-1], rounds)
    _draw_limits(limits, direction, edges, rounds)
    direction.entitle(figure, flight, pad=20.0)
    end = max(edges[-1], float(np.nan_to_num(direction.row["duration_s"])), 1e-6)
    limits.set_xlim(min(0.0, edges[0]), end)
    direction.label_time(limits)
    return figure


def _edges(direction: Direction, rounds: Table) -> Floats:
    """Return when each round begins, and when the last one ends: a round lasts to the next."""
    time = direction.seconds(rounds["time"])
    return np.append(time, time[-1] + np.nan_to_num(rounds["duration_s"][-1]))


def _draw_flight(axes: Axes, direction: Direction, edges: Floats, rounds: Table) -> None:
    most = spread(rounds["flight_bytes"].astype(float))[1]
    factor, unit = next(u for u in UNITS if most >= u[0] or u[0] == 1)
    flight = rounds["flight_bytes"] / factor
    axes.stairs(
        flight, edges, baseline=None, color=BLUE, linewidth=0.9, label="in flight", zorder=2.5
    )
    window = rounds["window_bytes"] / factor
    top, label = _window_shown(window, max(most / factor, 1e-9), unit)
    axes.stairs(window, edges, baseline=None, color=WINDOW, linewidth=0.9, label=label)
    axes.set_ylim(0, top)
    axes.set_ylabel(f"bytes in flight ({unit})")
    losses = direction.table("loss_indications")
    if losses is not None:
        at = direction.seconds(losses["time"])
        for kind, look in INDICATIONS.items():
            when = at[losses["kind"] == kind]
            if when.size:
                # Along the upper edge, whatever is below.
                y, across = np.full(when.size, 0.96), axes.get_xaxis_transform()
                look.mark(axes, when, y, f"{look.label} ({when.size:,})", transform=across)
    legend_above(axes)
    plain(axes)


def _window_shown(window: Floats, most: float, unit: str) -> tuple[float, str]:
    """Return how far the axis of the flight goes, and what a window beyond is called."""
    # Room for the marks of losses.
    top, label = 1.25 * most, "receiver window"
    low, high = spread(window)
    if high <= FAR * most:
        return max(top, 1.2 * high), label
    said = digits(low) + (f" to {digits(high)}" if high > low else "")
    share = float(np.mean(window > top))
    often = "" if share == 1 else "mostly " if share > 0.5 else "at times "
    return top, f"{label} ({said} {unit}, {often}above)"


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
        label="mean of a round",
    )
    least = direction.row["rtt_min_s"] * 1e3
    if np.isfinite(least):
        axes.axhline(
            least,
            color="#444444",
            linewidth=1,
            linestyle="--",
            label=f"minimum, {digits(least)} ms",
        )
    high = spread(milliseconds)[1]
    positive = milliseconds[milliseconds > 0]
    if positive.size and high > WIDE * float(np.median(positive)):
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    else:
        axes.set_ylim(0, 1.15 * high if high > 0 else 1)
    axes.set_ylabel("RTT (ms)")
    if known.any() or np.isfinite(least):
        legend_above(axes)
    else:
        axes.text(0.5, 0.5, "no RTT can be measured", transform=axes.transAxes, ha="center")
    plain(axes)


def _draw_limits(axes: Axes, direction: Direction, edges: Floats, rounds: Table) -> None:
    duration = np.maximum(np.diff(edges), 0.0)
    stretches = np.linspace(edges[0], edges[-1], STRETCHES + 1)
    base = np.zeros(STRETCHES)
    for limit, (label, colour) in LIMITS.items():
        which = rounds["limited_by"] == limit
        if not which.any():
            continue
        share = shares(edges[:-1][which], duration[which], stretches)
        part = float(direction.row[f"share_{limit}"])
        said = f"{label} {100 * part:.0f} %" if part >= 0.005 else f"{label} < 1 %"
        axes.stairs(base + share, stretches, baseline=base, fill=True, color=colour, label=said)
        base += share
    axes.set_ylim(0, 1)
    axes.set_yticks([0, 0.5, 1], ["0", "50 %", "100 %"])
    axes.set_ylabel("limited by")
    legend_above(axes)
    axes.spines[["top", "right"]].set_visible(False)


def shares(start: Floats, duration: Floats, edges: Floats) -> Floats:
    """Return which share of each stretch between ``edges`` is covered by spans of time."""
    order = np.argsort(start, kind="stable")
    # Up to a moment, the spans before it have all of their time behind them, the last one a part.
    begun = np.concatenate([[0.0], np.cumsum(duration[order])])
    index = np.searchsorted(start[order], edges, "right")
    last = np.maximum(index - 1, 0)
    since = edges - start[order][last]
    over = np.where(index > 0, np.clip(since, 0.0, duration[order][last]), 0.0)
    covered = begun[last] + over
    found: Floats = np.diff(covered) / np.maximum(np.diff(edges), 1e-12)
    return found
