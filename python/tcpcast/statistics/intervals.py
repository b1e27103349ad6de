"""Half-widths of 95 % intervals: long-run variance, skewness, and counts of rare events.

Units are the rows returned by :func:`tcpcast.statistics.split_units`: consecutive batches of
the first replication, then of the next one. The reasons for each rule and the measured coverage of
the intervals are in ``docs/background/statistics.md``.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from tcpcast.statistics.vector_products import dot_product, matrix_product

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

Floats = NDArray[np.float64]
MetricKey = TypeVar("MetricKey", bound="Hashable")

CONFIDENCE_LEVEL = 0.95
"""Confidence of every interval."""

UPPER_LEVEL = (1.0 + CONFIDENCE_LEVEL) / 2.0
NORMAL_QUANTILE = 1.959963984540054
"""Quantile of the normal distribution at :data:`UPPER_LEVEL`."""

_MAX_FREEDOM, _MAX_SHAPE = 500.0, 10_000.0
"""Degrees of freedom, and shape of a gamma distribution, above which an expansion is precise."""

MAX_COSINES = 8
"""Number of low frequencies for the variance of one run. The number is small enough to include
correlations over 1/30 of the run, and large enough for a t quantile of 2.31."""


MIN_CORRELATED_Z = 1.282
"""Lag-1 correlation of units, in standard errors, above which a slow component is possible. 10 % of
metrics with independent units exceed this limit. A run with a requested precision continues above
the limit."""


MAX_VARIANCE_RATIO_Z = 3.09
"""Normal quantile above which replications differ more than their batches explain. One metric in
1,000 with independent units exceeds it."""


def variance_of_mean(
    units: Floats, replications: int, max_cosines: int = MAX_COSINES
) -> tuple[float, int]:
    """Estimate the variance of the mean of correlated units, and its degrees of freedom.

    The variance of the mean of a long series follows from its spectral density at frequency 0. It
    is estimated by the mean square of the lowest cosine coefficients of each replication, about 8
    in total, and of the means of the replications. These coefficients include slow fluctuations,
    even if faster fluctuations dominate the correlation of neighbouring units. They also include
    negative correlations, for example in the output of a link.

    Parameters
    ----------
    units
        ``[units]``, at least 2.
    replications
        Number of replications of the units, each with the same number of units.
    max_cosines
        Number of cosines of all replications, rounded up to a multiple of ``replications``.

    References
    ----------
    E. Lazarus, D. J. Lewis, J. H. Stock, M. W. Watson, "HAR inference: recommendations for
    practice", Journal of Business & Economic Statistics 36 (2018): equal-weighted cosines.
    """
    table = (units - _mean(units)).reshape(replications, -1)
    length = table.shape[1]
    cosines = min(math.ceil(max_cosines / replications), length - 1)
    squares, freedom = 0.0, 0
    if cosines > 0:
        squares += float((matrix_product(table, lowest_cosines(length, cosines)) ** 2).sum())
        freedom += replications * cosines
    if replications > 1:
        squares += length * float((table.mean(axis=1) ** 2).sum())
        freedom += replications - 1
    return squares / freedom / units.size, freedom


@functools.cache  # the same for all metrics of an answer
def lowest_cosines(length: int, cosines: int) -> Floats:
    """Return the lowest cosines over ``length`` units, ``[units, cosines]``."""
    times = np.pi * (np.arange(length) + 0.5) / length
    waves: Floats = math.sqrt(2.0 / length) * np.cos(np.outer(times, np.arange(1, cosines + 1)))
    return waves


def _mean(units: Floats) -> float:
    """Return the mean of units; ``numpy.mean`` is several times slower for few units."""
    return float(np.add.reduce(units)) / units.size


def skewness(units: Floats) -> float:
    """Return the skewness of units, 0 for fewer than 3 units or without spread."""
    n = units.size
    deviations = units - _mean(units)
    variance = dot_product(deviations, deviations) / max(n - 1, 1)
    if n < 3 or variance == 0.0:
        return 0.0
    return float(n / ((n - 1) * (n - 2)) * (deviations**3).sum() / variance**1.5)


def half_widths(
    units: Floats, replications: int, max_freedom: float, skewed: float, *, correlated: bool
) -> tuple[float, float]:
    """Return the lower and upper half-widths of the interval of the mean of units.

    The t quantile is transformed by Johnson's transformation for a skewed mean as modified by Hall
    and Willink, ``G(z) = (cbrt(1 + 6 b (z - b)) - 1) / (2 b)``, ``b = skewness / (6 sqrt(n))``.

    Parameters
    ----------
    units, replications
        See :func:`variance_of_mean`.
    max_freedom
        Maximum degrees of freedom, lower if some units contain no information.
    skewed
        Result of :func:`skewness` for the units.
    correlated
        Whether neighbouring units correlate, possibly by a slow component. The spectral density of
        a slow component rises towards frequency 0, so its mean over all frequencies is too small.
        The interval by half as many frequencies is then also computed, and the wider interval is
        returned.
    """
    cosines = (MAX_COSINES, MAX_COSINES // 2) if correlated else (MAX_COSINES,)
    variances = [variance_of_mean(units, replications, most) for most in cosines]
    variances += _variance_of_differing_replications(units, replications)
    return max(
        skew_corrected_half_widths(
            math.sqrt(variance), max(min(freedom, max_freedom), 1.0), skewed, units.size
        )
        for variance, freedom in variances
    )


def _variance_of_differing_replications(
    units: Floats, replications: int
) -> list[tuple[float, int]]:
    """Return the variance of the mean by replications alone, if they differ more than by chance.

    A deterministic network may lock into a phase that depends on its start. The batches of each
    replication then vary little, and only the means of the replications show the variance.
    """
    table = (units - _mean(units)).reshape(replications, -1)
    length = table.shape[1]
    if replications < 2 or length < 2:
        return []
    between = length * float((table.mean(axis=1) ** 2).sum()) / (replications - 1)
    cosines = min(math.ceil(MAX_COSINES / replications), length - 1)
    squares = matrix_product(table, lowest_cosines(length, cosines)) ** 2
    within = float(squares.sum()) / (replications * cosines)
    if not _is_variance_ratio_large(between, within, replications - 1, replications * cosines):
        return []
    return [(between / units.size, replications - 1)]


def _is_variance_ratio_large(
    above: float, below: float, above_freedom: int, below_freedom: int
) -> bool:
    """Return True if a ratio of variances is significant, by Paulson's approximation of F.

    References
    ----------
    E. Paulson, "An approximate normalization of the analysis of variance distribution", Annals of
    Mathematical Statistics 13 (1942).
    """
    if below <= 0.0:
        return above > 0.0
    root = (above / below) ** (1.0 / 3.0)
    one, other = 2.0 / (9.0 * above_freedom), 2.0 / (9.0 * below_freedom)
    z = ((1.0 - other) * root - (1.0 - one)) / math.sqrt(other * root**2 + one)
    return bool(z > MAX_VARIANCE_RATIO_Z)


def skew_corrected_half_widths(
    error: float, freedom: float, skewed: float, size: int
) -> tuple[float, float]:
    """Return the half-widths of a mean of ``size`` skewed values, given its standard error."""
    quantile = student_quantile(freedom)
    b = skewed / (6.0 * math.sqrt(size))
    if abs(b) < 1e-6:  # the limit G(z) = z is more precise than the quotient
        return error * quantile, error * quantile
    below = (np.cbrt(1.0 + 6.0 * b * (quantile - b)) - 1.0) / (2.0 * b)
    above = (np.cbrt(1.0 + 6.0 * b * (-quantile - b)) - 1.0) / (2.0 * b)
    return error * float(below), -error * float(above)


def student_quantile(freedom: float) -> float:
    """Return the upper end of the central 95 % of Student's t.

    For many degrees of freedom, an expansion (Abramowitz and Stegun, 26.7.5).
    """
    if freedom <= _MAX_FREEDOM:
        from tcpcast import _native  # noqa: PLC0415 - formulas have no intervals

        return _native.student_quantile(freedom, UPPER_LEVEL)
    x = NORMAL_QUANTILE
    terms = (
        x,
        (x**3 + x) / 4.0,
        (5.0 * x**5 + 16.0 * x**3 + 3.0 * x) / 96.0,
        (3.0 * x**7 + 19.0 * x**5 + 17.0 * x**3 - 15.0 * x) / 384.0,
        (79.0 * x**9 + 776.0 * x**7 + 1482.0 * x**5 - 1920.0 * x**3 - 945.0 * x) / 92160.0,
    )
    return math.fsum(term / freedom**power for power, term in enumerate(terms))


def _gamma_quantile(shape: float, x: float) -> float:
    """Return a quantile of the gamma distribution, at the level of the normal quantile ``x``.

    For a large shape, the expansion of chi-square for 2 ``shape`` degrees of freedom: H. Goldberg
    and H. Levine, Annals of Mathematical Statistics 17 (1946).
    """
    if shape <= _MAX_SHAPE:
        from tcpcast import _native  # noqa: PLC0415 - formulas have no intervals

        return _native.gamma_quantile(shape, UPPER_LEVEL if x > 0 else 1.0 - UPPER_LEVEL)
    freedom, root = 2.0 * shape, 2.0 * math.sqrt(shape)
    terms = (
        freedom,
        root * x,
        2.0 * (x**2 - 1.0) / 3.0,
        (x**3 - 7.0 * x) / (9.0 * root),
        (-6.0 * x**4 - 14.0 * x**2 + 32.0) / (405.0 * freedom),
        (9.0 * x**5 + 256.0 * x**3 - 433.0 * x) / (4860.0 * root * freedom),
    )
    return math.fsum(terms) / 2.0


def include_poisson_interval(
    count: float, total: float, low: float, high: float
) -> tuple[float, float]:
    """Widen an interval to include the exact interval of a Poisson count (Garwood 1936)."""
    if count == 0.0:
        return 0.0, -math.log(1.0 - CONFIDENCE_LEVEL) / total
    exact_low, exact_high = (
        end / total
        for end in (
            _gamma_quantile(count, -NORMAL_QUANTILE),
            _gamma_quantile(count + 1.0, NORMAL_QUANTILE),
        )
    )
    if not math.isfinite(high):
        return exact_low, exact_high
    return min(low, exact_low), max(high, exact_high)


def neighbour_correlation(units: Floats, replications: int) -> tuple[float, int]:
    """Return the correlation of neighbours within a replication, and the number of pairs."""
    deviations = units - _mean(units)
    table = deviations.reshape(replications, -1)
    pairs = replications * (table.shape[1] - 1)
    variance = _mean(deviations * deviations)
    if pairs == 0 or variance == 0.0:
        return 0.0, pairs
    return float((table[:, 1:] * table[:, :-1]).sum()) / pairs / variance, pairs


def select_significant_tests(
    levels: Mapping[MetricKey, float], share: float
) -> frozenset[MetricKey]:
    """Return the names of the significant tests, with a limited false discovery rate.

    With many tests, small p-values occur by chance. Therefore, with k tests, the i-th smallest
    p-value is significant if it or a larger p-value satisfies p_i <= share * i / k.

    Parameters
    ----------
    levels
        The p-value of each test, by the name of the test.
    share
        Maximum expected share of false discoveries.

    References
    ----------
    Y. Benjamini, Y. Hochberg, "Controlling the false discovery rate", Journal of the Royal
    Statistical Society B 57 (1995).
    """
    order = sorted(levels, key=lambda name: levels[name])
    ranks = [rank for rank, name in enumerate(order, 1) if levels[name] < share * rank / len(order)]
    return frozenset(order[: max(ranks, default=0)])
