"""Time-sequence graph: segments, acknowledgements, right window edge and retransmissions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.report.chart import Axis, Chart, IntervalLines, Panel, ReferenceLine, Series
from tcpcast.report.palette import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION, YELLOW
from tcpcast.report.quantity import scale_for_unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from tcpcast.array_types import Table
    from tcpcast.report.chart import Drawable
    from tcpcast.report.trace_figures.direction_data import Direction

    Floats = np.ndarray[Any, np.dtype[np.float64]]
    Causes = Sequence[tuple[Sequence[str], str, str, str]]

CAUSE_MARKS = {
    "duplicates": ("duplicates", BLUE, "v"),
    "sack": ("SACK", SKY, "^"),
    "rack": ("RACK", GREEN, "s"),
    "tail-loss-probe": ("tail-loss probe", YELLOW, "D"),
    "timeout": ("timeout", VERMILION, "X"),
    "after-timeout": ("after a timeout", ORANGE, "P"),
    "unexplained": ("unexplained", BLACK, "*"),
}
"""Label, colour and marker of retransmitted segments by cause."""

WINDOW_COLOUR = "#9A7D0A"
MAX_CAUSES = 3
"""Maximum number of causes with separate marks; the rarest others share one mark."""
DETAIL_SENDS = 240
"""Number of transmissions in a detail panel; fewer if the sequence plot is thinned out."""
MIN_DETAIL_SENDS = 60
MAX_DETAIL_SHARE = 0.25
"""Maximum time span of the detail panel as a share of the total time."""
MAX_SINGLE_PANEL = 1.6
"""Size of a transfer, as a multiple of a detail panel, up to which there is no detail panel."""


def draw_sequence(direction: Direction) -> Figure | None:
    """Draw a panel of the transfer, and a detail panel where retransmissions are most frequent."""
    trail = direction.table("trail")
    if trail is None or not is_transmission(trail).any():
        return None
    time = direction.seconds(trail["time"])
    retransmitted, total = direction.row["retransmissions"], direction.row["data_packets"]
    sent = int(np.count_nonzero(trail["kind"] == "data"))
    thinned = max(1, round(int(total - retransmitted) / max(sent, 1)))
    label = "sent" if thinned == 1 else f"sent (one of {thinned} packets)"
    # The causes, colour, marker and label of each mark; rare causes may share a mark.
    kinds = trail["kind"]
    counts = {cause: int(np.count_nonzero(kinds == cause)) for cause in CAUSE_MARKS}
    present = [cause for cause, count in counts.items() if count]
    own = present
    if len(present) > MAX_CAUSES:
        own = sorted(present, key=lambda cause: -counts[cause])[: MAX_CAUSES - 1]
    marks = [([cause], *CAUSE_MARKS[cause]) for cause in present if cause in own]
    if len(own) < len(present):
        marks.append(([cause for cause in present if cause not in own], "other causes", BLACK, "*"))
    causes = [
        (of, colour, marker, f"retransmitted: {label} ({sum(map(counts.__getitem__, of)):,})")
        for of, label, colour, marker in marks
    ]
    span = float(time.min()), float(time.max())
    panels = [_segments_panel(direction, time, trail, span, causes, label)]
    part = detail_span(time, trail, max(DETAIL_SENDS // thinned, MIN_DETAIL_SENDS))
    if part is not None:
        detail = _segments_panel(direction, time, trail, part, causes, label)
        where = "most retransmissions"
        if part[0] == time[is_transmission(trail)].min():
            where = "the beginning"
        title = f"{where}, {part[0]:.3f} to {part[1]:.3f} s (shaded above)"
        shade = {"color": "#f2e6b8", "alpha": 1}
        shaded = ReferenceLine(part[0], style=shade, axis="x", span_end=part[1])
        panels = [
            replace(panels[0], series=[*panels[0].series, shaded]),
            replace(detail, title=title),
        ]
    message = f"None of the {total:,} data packets is retransmitted"
    if retransmitted:
        verb = "is" if retransmitted == 1 else "are"
        message = f"{retransmitted:,} of {total:,} data packets {verb} retransmitted"
    return Chart(
        title=message,
        panels=panels,
        subtitle=direction.subtitle,
        size=(5.8, 0.8 + 3.0 * len(panels)),
        legend_position="below",
    ).draw()


def is_transmission(trail: Table) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return a mask of transmissions, including retransmissions."""
    return np.isin(trail["kind"], ["data", *CAUSE_MARKS])


def detail_span(
    time: Floats, trail: Table, count: int = DETAIL_SENDS
) -> tuple[float, float] | None:
    """Return start and end of a detail panel with ``count`` transmissions; None if all fit."""
    sends = np.sort(time[is_transmission(trail)])
    if sends.size <= MAX_SINGLE_PANEL * count:
        return None
    retransmitted = np.sort(time[np.isin(trail["kind"], list(CAUSE_MARKS))])
    # One candidate per retransmission: ``count`` transmissions, the first count/6 before it.
    first = np.maximum(np.searchsorted(sends, retransmitted) - count // 6, 0)
    last = np.minimum(first + count, sends.size - 1)
    short = sends[last] - sends[first] <= MAX_DETAIL_SHARE * (sends[-1] - sends[0])
    if not short.any():
        return float(sends[0]), float(sends[count])
    before = np.searchsorted(retransmitted, sends[first])
    through = np.searchsorted(retransmitted, sends[last], "right")
    best = int(np.argmax(np.where(short, through - before, -1)))
    return float(sends[first[best]]), float(sends[last[best]])


def _segments_panel(  # noqa: PLR0913, PLR0917 - the data, and what to draw of it
    direction: Direction,
    time: Floats,
    trail: Table,
    span: tuple[float, float],
    causes: Causes,
    sent_label: str,
) -> Panel:
    margin = 0.02 * (span[1] - span[0]) or 0.01
    x = direction.time_axis(span[0] - margin, span[1] + margin)
    near = (time >= span[0] - margin) & (time <= span[1] + margin)
    sends = near & is_transmission(trail)
    scale = scale_for_unit("byte", float(trail["end_bytes"][sends].max()))
    start, end = (trail[name] / scale.factor for name in ("start_bytes", "end_bytes"))
    low, high = float(start[sends].min()), float(end[sends].max())
    margin = 0.06 * (high - low) or 1.0
    y = Axis(f"data sent so far ({scale.unit})", low - margin, high + margin)
    series: list[Drawable] = []
    for kinds, colour, marker, label in (
        (["data"], "#333333", "", sent_label),
        (["sacked"], PURPLE, "", "SACK"),
        *causes,
    ):
        rows = near & np.isin(trail["kind"], kinds)
        if not rows.any():
            continue
        style = {"color": colour, "linewidth": 1.3, "label": "" if marker else label}
        series.append(IntervalLines(time[rows], start[rows], end[rows], style))
        if marker:
            mark = {"color": colour, "marker": marker, "linestyle": "none", "markersize": 5}
            mark |= {"markeredgecolor": "white", "markeredgewidth": 0.4, "zorder": 3}
            series.append(Series(time[rows], (start + end)[rows] / 2, label, mark))
    visible = near & (end >= low - margin) & (end <= high + margin)
    for kind, colour, name in (
        ("ack", "#999999", "acknowledged"),
        ("window", WINDOW_COLOUR, "window edge"),
    ):
        # Lines start before the panel and continue after it.
        rows = trail["kind"] == kind
        if (rows & visible).any() or (kind == "ack" and rows.any()):
            line = {"color": colour, "linewidth": 0.9, "drawstyle": "steps-post"}
            series.append(Series(time[rows], end[rows], style=line, name=name))
    return Panel(series, x, y)
