"""Statistical tests of metrics: for a trend, and for correlation that leaves few independent units.

A queue reaches its steady state in seconds, while the shares of classes with different TCP stacks
may drift for minutes. The interval of a drifting metric describes the run instead of the steady
state. Both tests use the pseudo-values of the metric, and have known error rates without drift.
Limits of the tests are in ``docs/background/statistics.md``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tcpcast.statistics import intervals
from tcpcast.statistics.intervals import MAX_COSINES
from tcpcast.statistics.vector_products import matrix_product

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tcpcast.statistics import Estimate
    from tcpcast.statistics.intervals import Floats, MetricKey

DRIFT_LEVEL = 0.01
"""Share of answers without a trend in which the test may report a trend."""

MIN_RELATIVE_CHANGE = 0.005
"""A trend is ignored if it changes a metric by less than this share of its value."""

MIN_CYCLES = 24
"""Minimum number of cycles of a source in a long run. A cycle is an OFF time and the next file or,
for endless flows, the time from one loss to the next."""

MIN_INDEPENDENT_UNITS = 12
"""Minimum number of independent units for an interval from correlated units."""


def find_drifting_metrics(estimates: Mapping[MetricKey, Estimate | None]) -> frozenset[MetricKey]:
    """Return the metrics that change during the run by more than chance.

    Parameters
    ----------
    estimates
        All estimates of one answer, by metric (and class). The number of estimates determines the
        level of each test, see :func:`tcpcast.statistics.intervals.select_significant_tests`.
    """
    levels = {}
    for name, e in estimates.items():
        if e is None or e.pseudo_values is None or e.has_few_events or e.pairs == 0:
            continue
        level, change = find_trend(e.pseudo_values, e.replications)
        levels[name] = level if change > MIN_RELATIVE_CHANGE * abs(e.value) else 1.0
    return intervals.select_significant_tests(levels, DRIFT_LEVEL)


def find_trend(units: Floats, replications: int) -> tuple[float, float]:
    """Test for a trend common to all replications; return its p-value and the size of the change.

    A trend from the start to the end of a run changes the lowest cosine coefficient (half a wave
    over the run). Without a trend, the lowest coefficients of a long run have equal variances. The
    test compares the square of the lowest coefficient, averaged over the replications, with the
    squares of the next ones. It is Geweke's comparison of start and end, but with a smooth weight
    and the variance at low frequencies. Periodic behaviour within the run does not influence the
    test.

    Parameters
    ----------
    units, replications
        See :func:`tcpcast.statistics.intervals.variance_of_mean`.

    References
    ----------
    J. Geweke, "Evaluating the accuracy of sampling-based approaches to the calculation of posterior
    moments", Bayesian Statistics 4 (1992); U. K. Müller, M. W. Watson, "Low-frequency econometrics"
    (2017): tests with few cosines.
    """
    table = (units - units.mean()).reshape(replications, -1)
    length = table.shape[1]
    cosines = min(length - 1, MAX_COSINES)
    # Replications may be nearly identical, so they add no degrees of freedom.
    freedom = min(replications * cosines, MAX_COSINES) - 1
    if cosines < 1 or freedom < 1:
        return 1.0, 0.0
    coefficients = matrix_product(table, intervals.lowest_cosines(length, cosines))
    lowest = float(coefficients[:, 0].mean())
    rest = float((coefficients**2).sum()) - replications * lowest**2
    change = 2.0 * abs(lowest) * math.sqrt(2.0 / length)
    if rest <= 0.0:
        return (0.0 if lowest else 1.0), change
    of_one = rest / (replications * cosines - 1)
    t = abs(lowest) * math.sqrt(replications / of_one)
    from tcpcast import _native  # noqa: PLC0415 - formulas have no intervals

    return _native.student_tail_probability(t, freedom), change


def count_independent_units(units: Floats, replications: int) -> float:
    """Return the effective number of independent units.

    The result is the number of units divided by the correlation time in units. The correlation time
    is one plus twice the sum of the autocorrelations up to the last one before a non-positive one.
    """
    table = (units - units.mean()).reshape(replications, -1)
    variance = float((table**2).sum())
    correlation_time = 1.0
    for lag in range(1, max(2, table.shape[1] // 2)):
        correlation = float((table[:, lag:] * table[:, :-lag]).sum())
        if correlation <= 0.0 or variance == 0.0:
            break
        correlation_time += 2.0 * correlation / variance
    return units.size / correlation_time
