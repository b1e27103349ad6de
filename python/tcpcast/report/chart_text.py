"""Texts around the panels of a figure: title, subtitle, and labels at the right ends of lines."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.report.palette import REFERENCE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    Style = dict[str, Any]

TITLE_POINTS, SUBTITLE_POINTS, LABEL_POINTS = 11.5, 9.0, 9.0
"""Font sizes in points: the title, the subtitle, and the texts of legends and line ends."""
_LINE_SPACING = 1.25
_SPACE_BEFORE_UNIT = re.compile(r"(?<=\d) (?=%|[kMG]?bit/s|[m\u00b5]?s\b)|(?<=[A-Za-z]) (?=%)")
"""Spaces before units, where a text must not wrap."""


@dataclass(frozen=True, slots=True)
class EndLabel:
    """A text to the right of a panel, at the last of the ``values`` of a line in its y axis."""

    text: str
    values: tuple[float, ...]
    colour: str


def label_line_ends(axes: Axes, ends: Sequence[EndLabel]) -> None:
    """Write the texts to the right of a panel, one below the other, without overlaps."""
    height = axes.get_window_extent().height * 72 / axes.figure.dpi  # height before the layout
    line = _LINE_SPACING * LABEL_POINTS / max(0.72 * height, 1.0)
    limits = np.array(axes.get_ylim(), dtype=float)
    to_axis = axes.transScale.transform
    low, high = (to_axis((1.0, limit))[1] for limit in limits)
    at = []
    for end in ends:
        visible = [value for value in end.values if limits.min() <= value <= limits.max()]
        if visible:
            at.append(((to_axis((1.0, visible[-1]))[1] - low) / (high - low), end))
    lowest = 0.4 * line  # above the tick labels of the x axis
    placed = {}
    for position, end in sorted(at, key=lambda each: each[0]):
        lowest = max(position, lowest)
        placed[end] = lowest
        lowest += line * (1 + end.text.count("\n"))
    excess = max(0.0, lowest - line - 1.0)
    for end, position in placed.items():
        style: Style = {"xycoords": "axes fraction", "textcoords": "offset points"}
        style |= {"va": "center", "fontsize": LABEL_POINTS, "color": end.colour}
        axes.annotate(end.text, (1.0, position - excess), xytext=(4, 0), **style)


def write_titles(figure: Figure, title: str, subtitle: str) -> None:
    """Write the title and the subtitle of a figure, aligned to its left edge.

    The height of the figure grows by the height of both texts, so that the panels keep their
    height.
    """
    width, height = figure.get_size_inches()
    message, setup = (
        wrap_text(text, int(72 * width / (max(share, bold * _digits_share(text)) * size)))
        for text, size, share, bold in (
            (title, TITLE_POINTS, 0.585, 1.13),
            (subtitle, SUBTITLE_POINTS, 0.53, 1.0),
        )
    )
    rows = [text.count("\n") + 1 if text else 0 for text in (message, setup)]
    heights = [
        _LINE_SPACING * n * size
        for n, size in zip(rows, (TITLE_POINTS, SUBTITLE_POINTS), strict=True)
    ]
    total = height + sum(heights) / 72
    figure.set_size_inches(width, total)
    if not message:
        return
    style: Style = {"x": 0.01, "ha": "left", "fontsize": TITLE_POINTS, "fontweight": "bold"}
    title_text = figure.suptitle(message, **style)
    if setup:
        figure.set_layout_engine("constrained", rect=(0, 0, 1, 1 - heights[1] / 72 / total))
        below: Style = {"xycoords": title_text, "textcoords": "offset points", "va": "top"}
        below |= {"fontsize": SUBTITLE_POINTS, "color": REFERENCE, "annotation_clip": False}
        note = figure_annotation(setup, (0, 0), xytext=(0, -3), **below)
        note.set_in_layout(False)
        figure.add_artist(note)


def _digits_share(text: str) -> float:
    """Return the mean width of a text's characters in font sizes, if it has many digits.

    Addresses and counts are wider than words: a digit takes 0.64, other characters about 0.51.
    """
    digits = sum(character.isdigit() for character in text)
    return 0.51 + 0.13 * digits / max(len(text), 1)


def figure_annotation(text: str, at: tuple[float, float], **style: Any) -> Any:
    """Return an annotation that belongs to a figure instead of a panel."""
    from matplotlib.text import Annotation  # noqa: PLC0415 - optional, and slow to import

    return Annotation(text, at, **style)


def wrap_text(text: str, width: int) -> str:
    """Wrap a text without breaks inside a hyphenated name or between a number and its unit."""
    lines = textwrap.wrap(_SPACE_BEFORE_UNIT.sub("\u00a0", text), width, break_on_hyphens=False)
    return "\n".join(lines)
