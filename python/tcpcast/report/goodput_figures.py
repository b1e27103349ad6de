"""Figures of the goodput of files: how it is distributed, and how often it is more.

They are Figures 8 and 11 of INRIA report 4154.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.report.quantity import scale_of_unit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matplotlib.axes import Axes

    from tcpcast.answer import Answer

    Table = dict[str, np.ndarray[Any, Any]]

COLUMNS = {
    "by_file": "over files",
    "by_large_file": "over large files",
    "by_packets": "over blocks of packets",
}
"""The columns of the table, in the order in which they are drawn."""

BARS = 40
"""A distribution has about so many steps over what is shown."""

_RARE = 1e-3
"""What is rarer than this at either end is not shown."""

_WIDE = 4.0
"""From this ratio of its ends on, an axis of goodputs is logarithmic."""


def distribution(answer: Answer) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the ends of steps of goodput, ``[steps + 1]``, and the share of files in 1 % of each.

    Steps are of much the same ratio; each ends at a row of the table ``file_goodput_tail``, so
    that shares are those counted, and is so wide that its share is divided by it.
    """
    table = answer.tables["file_goodput_tail"]
    goodput, beyond = table["goodput_bps"], table["by_file"]
    low, high = ends(table, ("by_file",))
    wanted = np.searchsorted(goodput, np.geomspace(low, high, BARS + 1))
    places = np.unique(np.clip(wanted, 0, len(goodput) - 1))
    widths = np.diff(np.log(goodput[places])) / np.log(1.01)
    return goodput[places], -np.diff(beyond[places]) / widths


def ends(table: Table, columns: Iterable[str]) -> tuple[float, float]:
    """Return from where to where something happens in some columns that is not too rare."""
    goodput = table["goodput_bps"]
    known = [table[name] for name in columns if name in table]
    first = min(int(np.sum(column >= 1 - _RARE)) for column in known) - 1
    last = max(int(np.sum(column > _RARE)) for column in known)
    return float(goodput[max(first, 0)]), float(goodput[min(last, len(goodput) - 1)])


def frame(axes: Axes, answers: Sequence[Answer], columns: Iterable[str]) -> tuple[float, str]:
    """Set the axis of goodputs; return what its figures are divided by, and their unit."""
    both = [ends(answer.tables["file_goodput_tail"], columns) for answer in answers]
    low, high = min(low for low, _ in both), max(high for _, high in both)
    scale = scale_of_unit("bit/s", high)
    if high > _WIDE * low:
        axes.set_xscale("log")
        decades = 10.0 ** np.arange(-3, 4)
        ticks = np.outer(decades, (1, 2, 5)).ravel() * scale.factor
        shown = ticks[(low <= ticks) & (ticks <= high)] / scale.factor
        axes.set_xticks(shown, [f"{tick:g}" for tick in shown])
        # Of half a decade matplotlib would name the ticks between them, too, as 3 x 10^1.
        axes.tick_params(axis="x", which="minor", labelbottom=False)
    axes.set_xlim(low / scale.factor, high / scale.factor)
    return scale.factor, scale.unit
