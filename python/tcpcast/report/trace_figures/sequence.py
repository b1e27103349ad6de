"""The time-sequence graph: segments, acknowledgements, the window's edge, retransmissions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.report.trace_figures.palette import ACK, CAUSES, DATA, SACK, WINDOW, plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tcpcast.captures import Table
    from tcpcast.report.trace_figures.direction import Direction

    Floats = np.ndarray[Any, np.dtype[np.float64]]

IN_DETAIL = 240
"""Transmissions that a panel shows one by one, fewer where the trail has not all of them."""
LEAST_DETAIL = 60
LONGEST_DETAIL = 0.25
"""Longest detail, as a share of the whole time."""
WHOLE_IS_DETAIL = 1.6
"""A transfer of at most this many details needs no second panel."""
UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))


def draw_sequence(direction: Direction, blank: Callable[[float, float], Figure]) -> Figure | None:
    """Return the graph of the whole transfer, and of the part with most retransmissions."""
    trail = direction.table("trail")
    if trail is None or not sent(trail).any():
        return None
    time = direction.seconds(trail["time"])
    whole = (float(time.min()), float(time.max()))
    thinned = one_of(direction, trail)
    part = detail(time, trail, max(IN_DETAIL // thinned, LEAST_DETAIL))
    figure = blank(11.5, 4.6 if part is None else 8.6)
    panels = figure.subplots(1 if part is None else 2, squeeze=False)[:, 0]
    said = "sent" if thinned == 1 else f"sent (one of {thinned})"
    _draw(panels[0], time, trail, whole, said)
    direction.entitle(figure, panels[0])
    if part is not None:
        _draw(panels[1], time, trail, part, said)
        panels[0].axvspan(*part, color="#f2e6b8", zorder=0, label="shown below")
        where = "the beginning" if part[0] == time[sent(trail)].min() else "most retransmissions"
        panels[1].set_title(f"{where}, {part[0]:.3f} to {part[1]:.3f} s", fontsize=9)
    for axes in panels:
        # To the right of the panel: the graph may be anywhere in it.
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8, frameon=False)
    direction.label_time(panels[-1])
    return figure


def sent(trail: Table) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which rows are transmissions, retransmissions included."""
    return np.isin(trail["kind"], ["data", *CAUSES])


def one_of(direction: Direction, trail: Table) -> int:
    """Return how many segments were sent for the first time for each that the trail has."""
    first = int(direction.row["data_packets"] - direction.row["retransmissions"])
    drawn = int(np.count_nonzero(trail["kind"] == "data"))
    return max(1, round(first / max(drawn, 1)))


def detail(time: Floats, trail: Table, most: int = IN_DETAIL) -> tuple[float, float] | None:
    """Return from when to when ``most`` transmissions are shown; None if all can be."""
    sends = np.sort(time[sent(trail)])
    if sends.size <= WHOLE_IS_DETAIL * most:
        return None
    retransmitted = np.sort(time[np.isin(trail["kind"], list(CAUSES))])
    if not retransmitted.size:
        return float(sends[0]), float(sends[most])
    # Spans of equally many transmissions, each begun a little before a retransmission.
    first = np.maximum(np.searchsorted(sends, retransmitted) - most // 6, 0)
    last = np.minimum(first + most, sends.size - 1)
    before, through = (
        np.searchsorted(retransmitted, sends[first]),
        np.searchsorted(retransmitted, sends[last], "right"),
    )
    whole = sends[-1] - sends[0]
    short = sends[last] - sends[first] <= LONGEST_DETAIL * whole
    if not short.any():
        return float(sends[0]), float(sends[most])
    best = int(np.argmax(np.where(short, through - before, -1)))
    return float(sends[first[best]]), float(sends[last[best]])


def _upright(axes: Axes, at: Floats, low: Floats, high: Floats, **look: Any) -> None:
    """Draw an upright line for each place; ``axes.vlines`` takes five times as long for many."""
    from matplotlib.collections import LineCollection  # noqa: PLC0415 - optional, slow to import

    ends = (np.column_stack([at, low]), np.column_stack([at, high]))
    segments: Any = np.stack(ends, axis=1)
    axes.add_collection(LineCollection(segments, **look), autolim=False)


def _draw(axes: Axes, time: Floats, trail: Table, span: tuple[float, float], sent_is: str) -> None:
    margin = 0.02 * (span[1] - span[0]) or 0.01
    near = (time >= span[0] - margin) & (time <= span[1] + margin)
    ends = trail["end_bytes"][near & sent(trail)]
    starts = trail["start_bytes"][near & sent(trail)]
    factor, unit = next(u for u in UNITS if ends.max() >= u[0] or u[0] == 1)
    low, high = float(starts.min()) / factor, float(ends.max()) / factor
    room = 0.06 * (high - low) or 1.0

    def of(kind: str, where: Any = near) -> tuple[Floats, Floats, Floats]:
        rows = where & (trail["kind"] == kind)
        return time[rows], trail["start_bytes"][rows] / factor, trail["end_bytes"][rows] / factor

    everywhere = np.ones_like(near)
    at, start, end = of("data")
    _upright(axes, at, start, end, color=DATA, linewidth=1.3, label=sent_is, zorder=2.2)
    at, start, end = of("sacked")
    if at.size:
        _upright(axes, at, start, end, color=SACK, linewidth=1.3, alpha=0.8, label="SACK")
    # A line comes from before the panel and goes on behind it.
    for kind, colour, label in (("ack", ACK, "acknowledged"), ("window", WINDOW, "window's edge")):
        at, _, end = of(kind, everywhere)
        inside = (end >= low - room) & (end <= high + room) & (at >= span[0]) & (at <= span[1])
        if at.size and (kind == "ack" or inside.any()):
            axes.step(at, end, where="post", color=colour, linewidth=0.9, label=label)
    for cause, look in CAUSES.items():
        at, start, end = of(cause)
        if at.size:
            _upright(axes, at, start, end, color=look.colour, linewidth=1.3)
            look.mark(axes, at, (start + end) / 2, f"retransmitted: {look.label} ({at.size:,})")
    axes.set_xlim(span[0] - margin, span[1] + margin)
    axes.set_ylim(low - room, high + room)
    axes.set_ylabel(f"sequence ({unit})")
    plain(axes)
