"""Where a curve through noisy points meets a target, and in which interval.

The noise is measured: every point comes from a run with another seed, so the points scatter about
the curve as the answers of other seeds do. Their own intervals are only a lower limit of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtrit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

LEVEL = 0.95

NORMAL = 1.96
"""Half the width of a 95 % interval, in standard errors."""

ANOTHER_ANSWER = 2.0
"""Variance of the difference of two answers with different seeds, over the variance of one."""

STEPS = 25
"""Rounds of the regression, which is accurate after some five."""

LARGEST = 20.0
"""The largest logarithm of a fit and of a value, relative to target and centre."""

LEAST_SHARE = 0.25
"""The variance of the scatter is at least this share of that by the points' own intervals: few
points may lie on a curve by chance."""

FEWEST = 4
"""Points from which a line and its scatter are estimated."""


@dataclass(frozen=True, slots=True)
class Point:
    """A metric above 0 at a value, with its 95 % interval if it has one."""

    value: float
    metric: float
    low: float | None = None
    high: float | None = None

    @property
    def error(self) -> float:
        """Standard error of the metric's logarithm by its interval, 0 without an interval."""
        if self.low is None or self.high is None or not self.low > 0:
            return 0.0
        return math.log(self.high / self.low) / (2 * NORMAL)

    def is_above(self, target: float) -> bool:
        """Return True if the whole interval is above the target; False without an interval."""
        return self.low is not None and self.low > target

    def is_below(self, target: float) -> bool:
        """Return True if the whole interval is below the target; False without an interval."""
        return self.high is not None and self.high < target


@dataclass(frozen=True, slots=True)
class Crossing:
    """Where a falling curve meets the target.

    ``low`` to ``high`` contains the crossing of other seeds at 95 %; 0 and infinity if the points
    do not tell whether it falls. ``doubt`` is the square of the relative error of
    the slope, at 95 %: above 1 the interval has no end.
    """

    value: float
    low: float
    high: float
    doubt: float


def crossing(points: Sequence[Point], target: float) -> Crossing | None:
    """Fit a power of the value to points, and return where it meets a target.

    Parameters
    ----------
    points
        At two values at least; all from runs of equal length.
    target
        Above 0.

    Returns
    -------
    Crossing or None
        The fit is a quasi-Poisson regression: the variance of a metric is in proportion to its
        mean, as that of a count. The mean of its logarithm would be below the logarithm of its
        mean. The interval is Fieller's: all values at which the band of the fit contains the
        target. None for fewer than :data:`FEWEST` points, or if the fit does not fall or
        meets the target too far away.
    """
    if len(points) < FEWEST:
        return None
    x = np.log([point.value for point in points])
    y = np.array([point.metric / target for point in points])
    if not np.ptp(x) > 0:
        return None
    centre, height, slope, weights = _regression(x, y)
    if not height < -LARGEST * slope or not height > LARGEST * slope:
        return None
    freedom = len(points) - 2
    scatter = float(((y - weights) ** 2 / weights).sum()) / freedom
    claimed = float(np.median(np.array([point.error for point in points]) ** 2 * weights))
    noise = max(scatter, LEAST_SHARE * claimed)
    limit = ANOTHER_ANSWER * noise * float(stdtrit(freedom, (1 + LEVEL) / 2)) ** 2
    squares = float((weights * (x - centre) ** 2).sum())
    tilt = limit / squares
    low, high = _fieller(height, slope, limit / float(weights.sum()), tilt)
    first, value, last = (math.exp(centre + end) for end in (low, -height / slope, high))
    return Crossing(value, first, last, tilt / slope**2)


def _regression(x: Floats, y: Floats) -> tuple[float, float, float, Floats]:
    """Return the weighted mean of x, the logarithm of the fit there, its slope, and the fit."""
    seen, weights = np.log(y), np.ones_like(y)
    for _ in range(STEPS):
        centre, height = np.average(x, weights=weights), np.average(seen, weights=weights)
        away = x - centre
        slope = float((weights * away * seen).sum() / (weights * away**2).sum())
        fit = np.clip(height + slope * away, -LARGEST, LARGEST)
        weights = np.exp(fit)
        seen = fit + (y - weights) / weights
    return float(centre), float(height), slope, weights


def _fieller(height: float, slope: float, limit: float, tilt: float) -> tuple[float, float]:
    """Return between which d ``(height + slope d)^2 <= limit + tilt d^2`` holds."""
    steep = slope**2 - tilt
    if steep <= 0:
        return -math.inf, math.inf
    middle = -height * slope / steep
    root = math.sqrt(max(middle**2 - (height**2 - limit) / steep, 0.0))
    low, high = middle - root, middle + root
    return low if low > -LARGEST else -math.inf, high if high < LARGEST else math.inf
