"""Faults of a figure that a reader sees: cut or overlapping texts, axes without numbers."""

import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import BboxBase

TOLERANCE_PX = 1.5
"""Texts may extend by so much beyond the figure or another text; glyphs are smaller than boxes."""

MIN_AXES_SHARE = 0.6
"""Minimum width of all panels of a row, as a share of the width of the figure."""


def figure_faults(figure: Figure, *, is_rendered: bool = False) -> list[str]:
    """Lay a figure out and return its faults as texts; none for a good figure.

    Lines and glyphs become pixels only if ``is_rendered``, which long tests use: it takes half as
    long again, and finds only paths that the renderer refuses.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - optional

    canvas: Any = FigureCanvasAgg(figure)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if is_rendered:
            canvas.draw()
        else:
            figure.draw_without_rendering()
    faults = [f"warning: {warning.message}" for warning in caught]
    faults += _text_faults(figure)
    panels = [axes for axes in figure.axes if axes.get_visible() and axes.axison]
    for axes in panels:
        faults += _axes_faults(axes, is_colorbar=axes.get_label() == "<colorbar>")
    faults += _width_faults(figure, panels)
    return faults


def _text_faults(figure: Figure) -> Iterator[str]:
    """Yield texts that are cut off, and pairs of texts that overlap."""
    boxes = list(_visible_texts(figure))
    whole = figure.bbox.padded(TOLERANCE_PX)
    for text, box in boxes:
        if not (whole.contains(box.x0, box.y0) and whole.contains(box.x1, box.y1)):
            yield f"cut off: {text!r}"
    for (text, box), (other, beside) in itertools.combinations(boxes, 2):
        across = min(box.x1, beside.x1) - max(box.x0, beside.x0)
        up = min(box.y1, beside.y1) - max(box.y0, beside.y0)
        # Boxes of lines include the space for descenders, which may touch the next line.
        if across > TOLERANCE_PX and up > 0.3 * min(box.height, beside.height):
            yield f"overlap: {text!r} and {other!r}"


def _visible_texts(figure: Figure) -> Iterator[tuple[str, BboxBase]]:
    """Yield each drawn text with its box in pixels, tick labels outside the axes excluded."""
    from matplotlib.text import Text  # noqa: PLC0415 - optional

    hidden = set()
    for axes in figure.axes:
        for axis, limits in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
            shown = {id(tick) for tick in _drawn_ticks(axis)}
            ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
            drawn = axes.get_visible() and axes.axison
            inside = [min(limits) <= tick.get_loc() <= max(limits) for tick in ticks]
            for tick, is_inside in zip(ticks, inside, strict=True):
                if not (drawn and is_inside and id(tick) in shown):
                    hidden |= {tick.label1, tick.label2}
            if not drawn:
                hidden |= {axis.label, axis.get_offset_text()}
        if not (axes.get_visible() and axes.axison):
            hidden |= {axes.title}
    for text in figure.findobj(Text):
        if text.get_text().strip() and text.get_visible() and text not in hidden:
            yield " ".join(text.get_text().split()), text.get_window_extent()


def _drawn_ticks(axis: Any) -> list[Any]:
    ticks: list[Any] = axis._update_ticks()  # there is no public way
    return ticks


def _axes_faults(axes: Axes, *, is_colorbar: bool) -> Iterator[str]:
    """Yield missing labels and numbers, and data that is drawn outside the panel."""
    where = f"panel {axes.get_ylabel()!r}".replace("\n", " ")
    for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        low, high = sorted(axis.get_view_interval())
        if not np.isfinite([low, high]).all():
            yield f"{where}: {name} axis from {low} to {high}"
            continue
        if not axis.get_tick_params()[{"x": "labelbottom", "y": "labelleft"}[name]]:
            continue
        if is_colorbar:
            continue
        numbers = [
            tick.label1.get_text()
            for tick in _drawn_ticks(axis)
            if low <= tick.get_loc() <= high and tick.label1.get_text()
        ]
        if len(set(numbers)) < min(2, len(axis.get_ticklocs())):
            yield f"{where}: {name} axis has the tick labels {numbers}"
        if len(set(numbers)) < len(numbers):
            yield f"{where}: {name} axis repeats tick labels {numbers}"
        if not axis.get_label().get_text():
            yield f"{where}: {name} axis has no label"
    yield from (f"{where}: {fault}" for fault in _data_faults(axes))


def _data_faults(axes: Axes) -> Iterator[str]:
    """Yield drawn data that is not clipped but outside the panel, and intervals that are cut."""
    low, high = sorted(axes.get_ylim())
    margin = 1e-6 * (high - low)
    for container in axes.containers:
        for bars in getattr(container, "lines", (None, None, ()))[2]:
            ends = np.array([segment[:, 1] for segment in bars.get_segments()]).ravel()
            outside = ends[(ends < low - margin) | (ends > high + margin)]
            if outside.size:
                yield f"intervals end at {outside.tolist()}, outside {low} to {high}"
    for line in axes.lines:
        y = np.asarray(line.get_ydata(), dtype=float)
        y = y[np.isfinite(y)]
        is_outside = not line.get_clip_on() and ((y < low - margin) | (y > high + margin)).any()
        if is_outside and line.get_transform() == axes.transData:
            yield f"{line.get_label()} is drawn outside {low} to {high}"


def _width_faults(figure: Figure, panels: list[Any]) -> Iterator[str]:
    """Yield rows of panels that take too small a part of the width."""
    rows: dict[int, float] = {}
    for axes in panels:
        box = axes.get_window_extent()
        row = round(box.y0)
        rows[row] = rows.get(row, 0.0) + box.width / figure.bbox.width
    for share in rows.values():
        if share < MIN_AXES_SHARE:
            yield f"panels take {100 * share:.0f} % of the width"
