"""Cells of the tables about captures: counts, and values in one unit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.report.document import Paragraph
from tcpcast.report.quantity import ABSENT_MARK, Scale, scale_for_unit

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

MAX_INTEGER_DIGITS = 5
"""Maximum integer digits of a rate; larger rates use a larger unit."""


def omitted_rows_parts(total: int, shown: int, noun: str = "") -> list[Paragraph]:
    """Return a line with the number of rows that a table omits, if any."""
    left = total - shown
    more = f"… and {left:,} more{noun}; --all prints all"
    return [Paragraph(more, mark=" ")] if left > 0 else []


def rate_scale(rates: Array) -> Scale:
    """Return one unit for all rates in bit/s, chosen for the median rate.

    The unit is larger if the largest rate would have more than :data:`MAX_INTEGER_DIGITS` integer
    digits.
    """
    known = rates[np.isfinite(rates) & (rates > 0)]
    if not known.size:
        return scale_for_unit("bit/s", 1e6)
    scale = scale_for_unit("bit/s", float(np.median(known)))
    largest = float(known.max())
    while largest / scale.factor >= 10**MAX_INTEGER_DIGITS:
        larger = scale_for_unit("bit/s", 1e3 * scale.factor)
        if larger == scale:
            break
        scale = larger
    return scale


def integer_texts(values: Array) -> list[str]:
    """Return integers as texts; a count may be NaN if it is unknown."""
    return [f"{value:.0f}" if math.isfinite(value) else ABSENT_MARK for value in values.tolist()]


def scaled_number_texts(values: Array, factor: float = 1.0) -> list[str]:
    """Return each value times a factor, formatted by :func:`number_text`."""
    return [number_text(value * factor) for value in values.tolist()]


def number_text(value: float) -> str:
    """Return a value with three significant digits, or all integer digits if it has more."""
    if not math.isfinite(value):
        return ABSENT_MARK
    if value == 0:
        return "0"
    decimals = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{min(decimals, 3)}f}"
