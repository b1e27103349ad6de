"""The loss up to which something holds, by bisection: the inverse of a rate that falls in loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

STEPS = 64
"""Halvings of the 680 that ln(p/(1-p)) spans: beyond a float's precision."""


def largest_loss_ratio(
    reached: Callable[[NDArray[np.float64]], NDArray[np.bool_]], shape: tuple[int, ...]
) -> NDArray[np.float64]:
    """Return by bisection the p up to which ``reached`` holds, 1 where it never ceases to.

    It bisects ln(p/(1-p)), which resolves p near 0 and near 1 alike.

    Parameters
    ----------
    reached
        Whether each p of an array of ``shape`` still does; once it does not, no larger p may.
    shape
        Of the result.
    """
    low, high = np.full(shape, -650.0), np.full(shape, 30.0)
    always = reached(1 / (1 + np.exp(-high)))
    for _ in range(STEPS):
        middle = (low + high) / 2
        below = reached(1 / (1 + np.exp(-middle)))
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(np.where(always, 1.0, 1 / (1 + np.exp(-low))))
