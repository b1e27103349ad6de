"""Cells of the tables about captures: counts, figures in one unit, the ends of a direction."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.report.lines import table_width
from tcpcast.report.quantity import ABSENT, Scale, scale_of_unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpcast.report.lines import Column

    Figures = np.ndarray[Any, Any]

ARROW = " > "
NARROWEST_END = 9
WHOLE_DIGITS = 5
"""Of a rate, at most: beyond them a larger unit reads better."""


def without(columns: Sequence[Column], spare: Sequence[str], room: int) -> list[Column]:
    """Return the columns that fit, leaving out those that can be spared, in their order.

    ``spare`` are headings, ``room`` is how wide a table of the columns may be.
    """
    kept = list(columns)
    for heading in spare:
        if table_width(kept) <= room:
            break
        kept = [column for column in kept if not column.heading.strip().startswith(heading)]
    return kept


def rate_scale(rates: Figures) -> Scale:
    """Return one unit for all rates, bit/s: the one in which the middle of them reads best.

    Or a larger one, in which the largest has no more than :data:`WHOLE_DIGITS` digits.
    """
    known = rates[np.isfinite(rates) & (rates > 0)]
    if not known.size:
        return scale_of_unit("bit/s", 1e6)
    scale = scale_of_unit("bit/s", float(np.median(known)))
    largest = float(known.max())
    while largest / scale.factor >= 10**WHOLE_DIGITS:
        larger = scale_of_unit("bit/s", 1e3 * scale.factor)
        if larger == scale:
            break
        scale = larger
    return scale


def counts(values: Figures) -> list[str]:
    """Return whole numbers."""
    return [str(value) for value in values.tolist()]


def figures(values: Figures, factor: float = 1.0) -> list[str]:
    """Return what :func:`figure` makes of each value times a factor."""
    return [figure(value * factor) for value in values.tolist()]


def figure(value: float) -> str:
    """Return three digits, or all of a large number's whole ones."""
    if not math.isfinite(value):
        return ABSENT
    if value == 0:
        return "0"
    decimals = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{min(decimals, 3)}f}"


def both_ends(source: str, destination: str, room: int) -> str:
    """Return both ends; what does not fit loses its beginning: they differ at the end."""
    if len(source) + len(destination) + len(ARROW) <= room:
        return source + ARROW + destination
    each = max((room - len(ARROW)) // 2, NARROWEST_END)
    spare = max(each - min(len(source), len(destination)), 0)
    return ARROW.join(
        end if len(end) <= each + spare else f"…{end[1 - each - spare :]}"
        for end in (source, destination)
    )
