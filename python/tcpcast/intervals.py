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

from tcpcast.vector_products import dot_product, matrix_product

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

Floats = NDArray[np.float64]
MetricKey = TypeVar("MetricKey", bound="Hashable")

CONFIDENCE_LEVEL = 0.95
"""Confidence of every interval."""

STUDENT_QUANTILES: dict[float, float] = dict(
    enumerate(
        (
            *(12.706204736174694, 4.302652729749462, 3.1824463052837078, 2.7764451051977934),
            *(2.5705818356363146, 2.4469118511449786, 2.364624251592784, 2.306004135204166),
            *(2.262157162798205, 2.228138851986274, 2.200985160091639, 2.1788128296672284),
            *(2.1603686564627913, 2.144786687917804, 2.131449545559776, 2.1199052992212546),
            *(2.1098155778333156, 2.1009220402410382, 2.0930240544083087, 2.085963447265864),
            *(2.0796138447276795, 2.0738730679040254, 2.0686576104190486, 2.0638985616280245),
            *(2.0595385527532972, 2.0555294386428735, 2.0518305164802846, 2.0484071417952454),
            *(2.045229642132703, 2.0422724563012378, 2.039513446396408, 2.0369333434601016),
        ),
        start=1,
    )
)
"""Student's t quantile for 95 % intervals, by degrees of freedom. This table and
:data:`GARWOOD_INTERVALS` avoid the import of ``scipy.special``, which takes as long as simulating
ten minutes of a path."""

GARWOOD_INTERVALS: dict[float, tuple[float, float]] = {
    1: (0.025317807984289897, 5.571643390938898),
    2: (0.24220927854396507, 7.22468766772396),
    3: (0.6186721228956015, 8.767273069742323),
    4: (1.089865373626325, 10.241588675403694),
    5: (1.623486390118421, 11.66833207932267),
    6: (2.201894253490851, 13.059474022518685),
    7: (2.814363051519867, 14.422675361702376),
    8: (3.4538321767485023, 15.763189220193313),
    9: (4.115373097378334, 17.084803451419166),
}
"""Both ends of the exact interval of the mean of a Poisson count, by count (Garwood 1936)."""

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
    quantile = _student_quantile(freedom)
    b = skewed / (6.0 * math.sqrt(size))
    if abs(b) < 1e-6:  # the limit G(z) = z is more precise than the quotient
        return error * quantile, error * quantile
    below = (np.cbrt(1.0 + 6.0 * b * (quantile - b)) - 1.0) / (2.0 * b)
    above = (np.cbrt(1.0 + 6.0 * b * (-quantile - b)) - 1.0) / (2.0 * b)
    return error * float(below), -error * float(above)


def _student_quantile(freedom: float) -> float:
    if freedom in STUDENT_QUANTILES:
        return STUDENT_QUANTILES[freedom]
    from scipy.special import stdtrit  # noqa: PLC0415 - slow import

    return float(stdtrit(freedom, (1.0 + CONFIDENCE_LEVEL) / 2.0))


def student_tail_probability(t: float, freedom: int) -> float:
    """Return the probability that Student's t exceeds ``t`` in absolute value.

    Uses the finite sums for integer degrees of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4),
    because ``scipy.special`` is slow to import.
    """
    angle = math.atan(t / math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term, total = (cosine if odd else 1.0), 0.0
    for k in range(2 + odd, freedom + 1, 2):
        total += term
        term *= cosine**2 * (k - 1) / k
    within = sine * total
    if odd:
        within = 2.0 / math.pi * (angle + within)
    return max(0.0, 1.0 - within)


def _garwood_interval(count: float) -> tuple[float, float]:
    if count in GARWOOD_INTERVALS:
        return GARWOOD_INTERVALS[count]
    from scipy.special import gammaincinv  # noqa: PLC0415 - slow import

    tail = (1.0 - CONFIDENCE_LEVEL) / 2.0
    return float(gammaincinv(count, tail)), float(gammaincinv(count + 1.0, 1.0 - tail))


def include_poisson_interval(
    count: float, total: float, low: float, high: float
) -> tuple[float, float]:
    """Widen an interval to include the exact interval of a Poisson count (Garwood 1936)."""
    if count == 0.0:
        return 0.0, -math.log(1.0 - CONFIDENCE_LEVEL) / total
    exact_low, exact_high = (end / total for end in _garwood_interval(count))
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
