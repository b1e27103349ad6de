"""Cells of the tables about captures: counts, figures in one unit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.report.quantity import ABSENT, Scale, scale_of_unit

if TYPE_CHECKING:
    Figures = np.ndarray[Any, Any]

WHOLE_DIGITS = 5
"""Of a rate, at most: beyond them a larger unit reads better."""


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
