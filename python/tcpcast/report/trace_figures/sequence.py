"""Time-sequence graph: segments, acknowledgements, right window edge and retransmissions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.readable_units import readable_unit
from tcpcast.report.chart import new_figure
from tcpcast.report.chart_text import LABEL_POINTS, EndLabel, label_line_ends
from tcpcast.report.trace_figures.palette import (
    ACK_COLOUR,
    CAUSE_MARKS,
    DATA_COLOUR,
    OTHER_CAUSES,
    SACK_COLOUR,
    TRACE_DPI,
    WINDOW_COLOUR,
    Mark,
    legend_above,
    simplify_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tcpcast.array_types import Table
    from tcpcast.report.trace_figures.direction_data import Direction

    Floats = np.ndarray[Any, np.dtype[np.float64]]

WIDTH_IN = 5.8
MAX_CAUSES = 3
"""Maximum number of causes with separate marks; the rarest others share one mark."""
DETAIL_SENDS = 240
"""Number of transmissions in a detail panel; fewer if the sequence plot is thinned out."""
MIN_DETAIL_SENDS = 60
MAX_DETAIL_SHARE = 0.25
"""Maximum time span of the detail panel as a share of the total time."""
MAX_SINGLE_PANEL = 1.6
"""Size of a transfer, as a multiple of a detail panel, up to which there is no detail panel."""
BYTE_UNITS = ((1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB"))


def draw_sequence(direction: Direction) -> Figure | None:
    """Draw a panel of the transfer, and a detail panel where retransmissions are most frequent."""
    trail = direction.table("trail")
    if trail is None or not is_transmission(trail).any():
        return None
    time = direction.seconds(trail["time"])
    full = (float(time.min()), float(time.max()))
    thinned = thinning_factor(direction, trail)
    part = detail_span(time, trail, max(DETAIL_SENDS // thinned, MIN_DETAIL_SENDS))
    figure = new_figure((WIDTH_IN, 3.6 if part is None else 6.4), TRACE_DPI)
    panels = figure.subplots(1 if part is None else 2, squeeze=False)[:, 0]
    label = "sent" if thinned == 1 else f"sent (one of {thinned} packets)"
    _draw_segments(panels[0], time, trail, full, label)
    if part is not None:
        _draw_segments(panels[1], time, trail, part, label)
        panels[0].axvspan(*part, color="#f2e6b8", zorder=0)
        where = (
            "the beginning"
            if part[0] == time[is_transmission(trail)].min()
            else "most retransmissions"
        )
        panels[1].set_title(
            f"{where}, {part[0]:.3f} to {part[1]:.3f} s (shaded above)", fontsize=10
        )
    for axes in panels:
        legend_above(axes) if part is None else axes.legend(fontsize=LABEL_POINTS, frameon=False)
        direction.label_time(axes)
    direction.add_title(figure, _title(direction))
    return figure


def _title(direction: Direction) -> str:
    """Return the title with the number of retransmitted packets."""
    count, total = direction.row["retransmissions"], direction.row["data_packets"]
    if not count:
        return f"None of the {total:,} data packets is retransmitted"
    return f"{count:,} of {total:,} data packets {'is' if count == 1 else 'are'} retransmitted"


def is_transmission(trail: Table) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return a mask of transmissions, including retransmissions."""
    return np.isin(trail["kind"], ["data", *CAUSE_MARKS])


def thinning_factor(direction: Direction, trail: Table) -> int:
    """Return the number of new segments sent per new segment in the thinned-out table."""
    first = int(direction.row["data_packets"] - direction.row["retransmissions"])
    drawn = int(np.count_nonzero(trail["kind"] == "data"))
    return max(1, round(first / max(drawn, 1)))


def detail_span(
    time: Floats, trail: Table, count: int = DETAIL_SENDS
) -> tuple[float, float] | None:
    """Return start and end of a detail panel with ``count`` transmissions; None if all fit."""
    sends = np.sort(time[is_transmission(trail)])
    if sends.size <= MAX_SINGLE_PANEL * count:
        return None
    retransmitted = np.sort(time[np.isin(trail["kind"], list(CAUSE_MARKS))])
    if not retransmitted.size:
        return float(sends[0]), float(sends[count])
    # One candidate per retransmission: ``count`` transmissions, the first count/6 before it.
    first = np.maximum(np.searchsorted(sends, retransmitted) - count // 6, 0)
    last = np.minimum(first + count, sends.size - 1)
    before, through = (
        np.searchsorted(retransmitted, sends[first]),
        np.searchsorted(retransmitted, sends[last], "right"),
    )
    short = sends[last] - sends[first] <= MAX_DETAIL_SHARE * (sends[-1] - sends[0])
    if not short.any():
        return float(sends[0]), float(sends[count])
    best = int(np.argmax(np.where(short, through - before, -1)))
    return float(sends[first[best]]), float(sends[last[best]])


def _draw_vertical_lines(axes: Axes, x: Floats, low: Floats, high: Floats, **look: Any) -> None:
    """Draw vertical lines; for many lines, ``axes.vlines`` takes five times as long."""
    from matplotlib.collections import LineCollection  # noqa: PLC0415 - optional, slow to import

    ends = (np.column_stack([x, low]), np.column_stack([x, high]))
    segments: Any = np.stack(ends, axis=1)
    axes.add_collection(LineCollection(segments, **look), autolim=False)


def _draw_segments(
    axes: Axes, time: Floats, trail: Table, span: tuple[float, float], sent_label: str
) -> None:
    margin = 0.02 * (span[1] - span[0]) or 0.01
    near = (time >= span[0] - margin) & (time <= span[1] + margin)
    highest = trail["end_bytes"][near & is_transmission(trail)].max()
    lowest = trail["start_bytes"][near & is_transmission(trail)].min()
    factor, unit = readable_unit(float(highest), BYTE_UNITS)
    low, high = float(lowest) / factor, float(highest) / factor
    ends: list[EndLabel] = []
    room = 0.06 * (high - low) or 1.0

    def of(kinds: str | list[str], where: Any = near) -> tuple[Floats, Floats, Floats]:
        rows = where & np.isin(trail["kind"], kinds)
        return time[rows], trail["start_bytes"][rows] / factor, trail["end_bytes"][rows] / factor

    everywhere = np.ones_like(near)
    x, start, end = of("data")
    _draw_vertical_lines(
        axes, x, start, end, color=DATA_COLOUR, linewidth=1.3, label=sent_label, zorder=2.2
    )
    x, start, end = of("sacked")
    if x.size:
        _draw_vertical_lines(
            axes, x, start, end, color=SACK_COLOUR, linewidth=1.3, alpha=0.8, label="SACK"
        )
    # Lines start before the panel and continue after it.
    for kind, colour, label in (
        ("ack", ACK_COLOUR, "acknowledged"),
        ("window", WINDOW_COLOUR, "window edge"),
    ):
        x, _, end = of(kind, everywhere)
        inside = (end >= low - room) & (end <= high + room) & (x >= span[0]) & (x <= span[1])
        if x.size and (kind == "ack" or inside.any()):
            axes.step(x, end, where="post", color=colour, linewidth=0.9)
            last = float(end[inside][-1] if inside.any() else end[-1])
            ends.append(EndLabel(label, (last,), colour))
    for causes, look in _marks_of_causes(trail["kind"][near]):
        x, start, end = of(causes)
        _draw_vertical_lines(axes, x, start, end, color=look.colour, linewidth=1.3)
        look.mark(axes, x, (start + end) / 2, f"retransmitted: {look.label} ({x.size:,})")
    axes.set_xlim(span[0] - margin, span[1] + margin)
    axes.set_ylim(low - room, high + room)
    axes.set_ylabel(f"data sent so far ({unit})")
    simplify_axes(axes)
    label_line_ends(axes, ends)


def _marks_of_causes(kinds: Any) -> list[tuple[list[str], Mark]]:
    """Return the causes that occur, and their marks; rare causes may share a mark."""
    counts = {cause: int(np.count_nonzero(kinds == cause)) for cause in CAUSE_MARKS}
    present = [cause for cause, count in counts.items() if count]
    if len(present) <= MAX_CAUSES:
        return [([cause], CAUSE_MARKS[cause]) for cause in present]
    frequent = sorted(present, key=lambda cause: -counts[cause])[: MAX_CAUSES - 1]
    rest = [cause for cause in present if cause not in frequent]
    return [
        *(([cause], CAUSE_MARKS[cause]) for cause in present if cause in frequent),
        (rest, OTHER_CAUSES),
    ]
