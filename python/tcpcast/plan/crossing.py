"""Where a noisy figure that only falls goes below a target."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.optimize import isotonic_regression

if TYPE_CHECKING:
    from collections.abc import Sequence

LEAST_WIDTH = 1e-4
"""Intervals narrower than this, as a share, weigh no more."""


@dataclass(frozen=True, slots=True)
class Point:
    """A figure above 0 at a number of sources, with its 95 % interval where it has one."""

    sources: float
    value: float
    low: float | None = None
    high: float | None = None

    def at(self, end: Literal["low", "high"]) -> Point:
        """Return the point at an end of its interval."""
        bound = self.low if end == "low" else self.high
        return self if bound is None or not bound > 0 else replace(self, value=bound)


def falls_below(points: Sequence[Point], target: float) -> float:
    """Return where a fit to points that never rises goes below a target.

    The fit is the least-squares one to the figures' logarithms, each weighed by its interval, and
    linear between the points.

    Parameters
    ----------
    points
        In rising order of their sources, at least one.
    target
        Above 0.

    Returns
    -------
    float
        A number of sources; the first or the last one where the fit is all below or above.
    """
    fit = isotonic_regression(
        [math.log(point.value / target) for point in points],
        weights=[_weight(point) for point in points],
        increasing=False,
    ).x
    sources = [point.sources for point in points]
    above = int(np.count_nonzero(fit >= 0))
    if above in {0, len(points)}:
        return sources[min(above, len(points) - 1)]
    share = fit[above - 1] / (fit[above - 1] - fit[above])
    return float(sources[above - 1] + share * (sources[above] - sources[above - 1]))


def _weight(point: Point) -> float:
    if point.low is None or point.high is None or not point.low > 0:
        return 1.0
    return max(LEAST_WIDTH, math.log(point.high / point.low)) ** -2
