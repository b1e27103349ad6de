"""Fit a monotone curve to noisy points, and find where it crosses a target, with an interval.

The standard error is measured: each point comes from a run with another seed, so the points
scatter about the curve like answers with other seeds. The points' own intervals are only a lower
limit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tcpcast.statistics.intervals import student_quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

NORMAL_QUANTILE = 1.96
"""Half-width of a 95 % interval in standard errors."""

DIFFERENCE_VARIANCE_RATIO = 2.0
"""Ratio of the variance of the difference of two independent answers to the variance of one."""

REGRESSION_STEPS = 25
"""Maximum number of iterations of the regression, which is accurate after about five."""

CONVERGED = 1e-10
"""Relative change of the fit in the last iteration: convergence is quadratic."""

LOG_DISTANCES = np.geomspace(1e-7, 20.0, 3000)
"""Candidate distances of the interval's ends from the centre, as logarithms."""


CLEAR_FACTOR = 2.0
"""A metric without an interval is above or below the target if it differs by this factor."""

MAX_LOGARITHM = 20.0
"""Maximum logarithm of a fit or a value, relative to target or centre."""

MIN_LINE_POINTS, MIN_PARABOLA_POINTS = 4, 7
"""Minimum number of points for a line and for a parabola."""


@dataclass(frozen=True, slots=True)
class MeasuredPoint:
    """A metric above 0 at a value, with its optional 95 % interval."""

    value: float
    metric: float
    low: float | None = None
    high: float | None = None

    @property
    def error(self) -> float:
        """Standard error of the metric's logarithm from its interval; 0 if it has none."""
        if self.low is None or self.high is None or not self.low > 0:
            return 0.0
        return math.log(self.high / self.low) / (2 * NORMAL_QUANTILE)

    def is_certainly_above(self, target: float) -> bool:
        """Return True if the interval, or without one half of the metric, is above the target."""
        return (self.metric / CLEAR_FACTOR if self.low is None else self.low) > target

    def is_certainly_below(self, target: float) -> bool:
        """Return True if the interval, or without one twice the metric, is below the target."""
        return (self.metric * CLEAR_FACTOR if self.high is None else self.high) < target


@dataclass(frozen=True, slots=True)
class FittedCurve:
    """A line or parabola through the logarithms of points, over the logarithm of the value.

    ``terms`` are the coefficients about ``centre`` in ascending order, ``covariance`` is their
    covariance matrix, and ``quantile`` is the half-width of a 95 % interval in standard errors.
    """

    centre: float
    terms: Floats
    covariance: Floats
    quantile: float

    def band_at(self, value: float) -> tuple[float, float, float]:
        """Return the metric at a value and its 95 % interval, both divided by the target."""
        middle, error = self.errors(np.array([math.log(value) - self.centre]))
        half = self.quantile * error
        ends = np.clip([middle, middle - half, middle + half], -MAX_LOGARITHM, MAX_LOGARITHM)
        metric, low, high = np.exp(ends)[:, 0].tolist()
        return metric, low, high

    def errors(self, away: Floats) -> tuple[Floats, Floats]:
        """Return the metric's logarithm at distances from the centre, and its standard error."""
        powers = np.vander(away, len(self.terms), increasing=True)
        squares = np.einsum("ni,ij,nj->n", powers, self.covariance, powers)
        return powers @ self.terms, np.sqrt(np.maximum(squares, 0.0))

    def root(self) -> float:
        """Return the distance from the centre at which the curve falls to 0, or NaN."""
        height, slope, bend = (*self.terms, 0.0)[:3]
        inside = slope**2 - 4 * bend * height
        if not inside > 0:
            return math.nan
        steep = math.sqrt(inside) - slope  # twice the fall, if the curve falls at the centre
        root = 2 * height / steep if abs(height) < MAX_LOGARITHM * steep / 2 else math.nan
        return root if slope + 2 * bend * root < 0 else math.nan

    def slope(self, away: float) -> tuple[float, float]:
        """Return the slope at a distance from the centre, and its standard error."""
        powers = np.array([0.0, 1.0, 2 * away])[: len(self.terms)]
        return float(powers @ self.terms), math.sqrt(float(powers @ self.covariance @ powers))


@dataclass(frozen=True, slots=True)
class TargetCrossing:
    """Crossing of a falling curve and the target.

    With other seeds, the crossing lies between ``low`` and ``high`` with 95 % probability; 0 and
    infinity if the points do not determine whether the curve falls. ``slope_uncertainty`` is the
    square of (half-width of the slope's 95 % interval / slope): above 1, ``low`` to ``high`` is
    unbounded. ``excess_scatter`` is the standard deviation of the points about the curve, divided
    by the standard deviation that the points' own intervals imply; 0 if the points have no
    intervals.
    """

    value: float
    low: float
    high: float
    slope_uncertainty: float
    curve: FittedCurve
    excess_scatter: float


def fit_target_crossing(points: Sequence[MeasuredPoint], target: float) -> TargetCrossing | None:
    """Fit a curve to points, and return its crossing of a target.

    Parameters
    ----------
    points
        Points at two or more values; all from runs of equal length.
    target
        Above 0.

    Returns
    -------
    TargetCrossing or None
        The fit is a quasi-Poisson regression of a power of the value: the variance of a metric is
        proportional to its mean, as for a count. (A fit of logarithms would be biased: the mean
        of a logarithm is below the logarithm of the mean.) A significantly curved fit is a
        parabola of the logarithms, because a line would treat the curvature as noise and miss the
        target. The interval is Fieller's: all values at which the band of the fit contains the
        target. None for fewer than :data:`MIN_LINE_POINTS` points, or if the fit does not fall or
        crosses the target too far away.
    """
    if len(points) < MIN_LINE_POINTS:
        return None
    x = np.log([point.value for point in points])
    y = np.array([point.metric / target for point in points])
    if not np.ptp(x) > 0:
        return None
    fits = [_fit_log_regression(points, x, y, 1)]
    if len(points) >= MIN_PARABOLA_POINTS and len(np.unique(x)) >= MIN_LINE_POINTS:
        bent = _fit_log_regression(points, x, y, 2)
        if abs(bent[0].terms[2]) > bent[0].quantile * math.sqrt(bent[0].covariance[2, 2]):
            fits.insert(0, bent)
    found = [
        _compute_crossing(curve, excess) for curve, excess in fits if math.isfinite(curve.root())
    ]
    closed = (each for each in found if each.low > 0 and each.high < math.inf)
    return next(closed, found[-1] if found else None)


def _compute_crossing(curve: FittedCurve, excess: float) -> TargetCrossing:
    root = curve.root()
    wider = math.sqrt(DIFFERENCE_VARIANCE_RATIO) * curve.quantile
    slope, error = curve.slope(root)
    low, high = (_find_band_end(curve, root + sign * LOG_DISTANCES, wider) for sign in (-1, 1))
    low, value, high = (math.exp(curve.centre + end) for end in (low, root, high))
    return TargetCrossing(value, low, high, (wider * error / slope) ** 2, curve, excess)


def _find_band_end(curve: FittedCurve, away: Floats, wider: float) -> float:
    """Return the first distance at which the band of the fit excludes the target."""
    middle, error = curve.errors(away)
    outside = np.flatnonzero(np.abs(middle) > wider * error)
    if outside.size:
        return float(away[outside[0]])
    return math.copysign(math.inf, away[-1] - away[0])


def _fit_log_regression(
    points: Sequence[MeasuredPoint], x: Floats, y: Floats, degree: int
) -> tuple[FittedCurve, float]:
    """Return a regression of the logarithm of y, and the excess scatter as a factor."""
    seen, weights, centre = np.log(y), np.ones_like(y), float(np.mean(x))
    for _ in range(REGRESSION_STEPS):
        centre = float(np.average(x, weights=weights))
        powers = np.vander(x - centre, degree + 1, increasing=True)
        inverse = np.linalg.pinv(powers.T @ (weights[:, None] * powers), hermitian=True)
        terms = inverse @ powers.T @ (weights * seen)
        fit = np.clip(powers @ terms, -MAX_LOGARITHM, MAX_LOGARITHM)
        previous, weights = weights, np.exp(fit)
        seen = fit + (y - weights) / weights
        if np.allclose(weights, previous, rtol=CONVERGED, atol=0.0):
            break
    freedom = len(points) - degree - 1
    scatter = float(((y - weights) ** 2 / weights).sum()) / freedom
    # The scatter according to the points' own intervals; 0 if none has an interval.
    stated = [p.error**2 * w for p, w in zip(points, weights, strict=True) if p.error > 0]
    claimed = float(np.median(stated)) if stated else 0.0
    noise = max(scatter, claimed)  # few points may be close to the curve by chance
    quantile = student_quantile(freedom)
    excess = math.sqrt(scatter / claimed) if claimed > 0 else 0.0
    covariance = np.asarray(noise * inverse, dtype=np.float64)
    return FittedCurve(centre, np.asarray(terms, dtype=np.float64), covariance, quantile), excess


def stated_log_error(points: Sequence[MeasuredPoint]) -> float:
    """Return the standard error of the points' logarithms from their intervals, or 0."""
    stated = [point.error for point in points if point.error > 0]
    return float(np.median(stated)) if stated else 0.0
