"""Inverse of a rate that decreases with loss, by bisection."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tcpcast.array_types import Floats

BISECTION_STEPS = 64
"""Number of halvings of the searched range of ln(p/(1-p)), enough for the precision of a float."""


def bisect_largest_loss_ratio(
    reached: Callable[[Floats], NDArray[np.bool_]], shape: tuple[int, ...]
) -> Floats:
    """Return the largest p for which ``reached`` holds, by bisection; 1 if it always holds.

    Bisects ln(p/(1-p)), which is precise both near 0 and near 1.

    Parameters
    ----------
    reached
        Returns for each p of an array of ``shape`` whether the condition holds. If it fails for one
        p, it must fail for every larger p.
    shape
        Shape of the result.
    """
    low, high = np.full(shape, -650.0), np.full(shape, 30.0)
    always = reached(1 / (1 + np.exp(-high)))
    for _ in range(BISECTION_STEPS):
        middle = (low + high) / 2
        below = reached(1 / (1 + np.exp(-middle)))
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(np.where(always, 1.0, 1 / (1 + np.exp(-low))))
