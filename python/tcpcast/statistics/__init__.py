"""Statistics of simulated metrics: intervals, end of the warm-up, and stopping rule.

:func:`split_units` splits cumulative counters, recorded in equally long time slots, into about
32 units. :func:`estimate_ratio` estimates a ratio of counters with a 95 % interval. :func:`mser5`
finds the end of the warm-up. Reasons and measured coverage are in
``docs/background/statistics.md``.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tcpcast.process.errors import DomainError
from tcpcast.statistics import intervals

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tcpcast.statistics.intervals import MetricKey

Floats = NDArray[np.float64]

TOTAL_BATCHES = 32
"""Number of batches over all replications of an answer. The number is large enough for a t quantile
(2.04) near the normal quantile, and small enough for batches longer than the correlation time."""

MIN_EVENTS = 10
"""Minimum number of events for a t interval; with fewer events, most units are empty."""

MIN_UNITS = 16
"""Minimum number of units for a precision."""

MIN_GROWTH, MAX_GROWTH = 1.5, 2.0
"""Minimum and maximum factor by which a run grows between two checks. The minimum limits the number
of checks, because each check may find a half-width that is small by chance. The maximum limits the
time beyond the required length."""

MAX_CORRELATION_Z = 2.576
"""Limit of the lag-1 correlation in standard errors; 0.5 % of independent series exceed it."""

CORRELATION_TEST_LEVEL = 0.02
"""Share of answers with independent units that may be reported as too short. Separate tests of each
metric would have a share that grows with the number of metrics."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A ``value`` with its 95 % interval.

    If the data give no interval (one unit contains the full denominator), ``low`` and ``high`` are
    None, and ``half_width`` is infinite. ``half_width`` is the larger half-width of the interval,
    before ``low`` and ``high`` are limited to possible values. ``units`` counts units whose
    denominator is not 0. ``lag1`` is the correlation of neighbouring units within replications,
    over ``pairs`` pairs. ``has_few_events`` is True for fewer than :data:`MIN_EVENTS` events.
    ``skewness_term`` is the skewness of the units divided by ``6 sqrt(units)``. ``differing_units``
    counts the units that differ from the most frequent ratio; None if no ratio occurs twice.
    ``interval_warning`` is the reason why the interval needs a check or is withheld;
    ``is_permanent`` is True if a longer run would remove no warning. ``at_least`` is a lower bound
    if the value itself is withheld. ``pseudo_values`` contains the jackknife pseudo-values,
    ``[units]``, of ``replications`` runs.
    """

    value: float
    low: float | None
    high: float | None
    half_width: float
    units: int
    lag1: float = 0.0
    pairs: int = 0
    has_few_events: bool = False
    skewness_term: float = 0.0
    differing_units: int | None = None
    interval_warning: str | None = None
    is_permanent: bool = False
    at_least: float | None = None
    pseudo_values: Floats | None = field(default=None, repr=False, compare=False)
    replications: int = 1

    @property
    def is_correlated(self) -> bool:
        """True if the run is too short for this interval, by a test of this metric alone."""
        return self.lag1_z_score > MAX_CORRELATION_Z

    @property
    def lag1_z_score(self) -> float:
        """Correlation of neighbouring units divided by its standard error."""
        return self.lag1 * math.sqrt(self.pairs)

    @property
    def relative_half_width(self) -> float:
        """Half-width divided by value; 0 for a constant, infinite for value 0 with an interval."""
        if self.half_width == 0.0:
            return 0.0
        return self.half_width / abs(self.value) if self.value else math.inf

    def with_warning(
        self, why: str, *, withheld: bool = False, is_permanent: bool = False
    ) -> Estimate:
        """Return the estimate with a warning unless it has one; ``withheld`` drops the interval."""
        # A longer run helps if it removes one of the warnings.
        is_permanent = is_permanent and (self.interval_warning is None or self.is_permanent)
        warning = self.interval_warning or why
        if not withheld:
            return replace(self, interval_warning=warning, is_permanent=is_permanent)
        return replace(self, low=None, high=None, half_width=math.inf, interval_warning=warning)


@dataclass(frozen=True, slots=True)
class Truncation:
    """End of the warm-up: the first ``index`` observations are omitted.

    ``is_found`` is False if the series is too short.
    """

    index: int
    is_found: bool


def split_units(
    counters: Sequence[ArrayLike], *, totals: Sequence[ArrayLike] | None = None
) -> Floats:
    """Split the snapshots of all replications into about 32 units.

    Each of ``R`` replications is split into ``ceil(32 / R)`` batches of slots; the numbers of slots
    differ by at most one. If ``R >= 32``, each replication is one unit. With fewer slots than
    batches, each slot is a batch.

    Parameters
    ----------
    counters
        One array of cumulative counters per replication, ``[slots + 1, counters]``. The first row
        contains the values at the end of the warm-up (zeros), each further row the values at the
        end of a slot. All arrays have the same columns.
    totals
        One array per replication, ``[counters]``: the counters at the end of the run. The last
        batch includes the time after the last complete slot. None: the run ended on the last slot.

    Returns
    -------
    array ``[units, counters]``
        Increments of each counter per unit. The units of a replication are consecutive and in order
        of time, ``units / R`` per replication, as :func:`estimate_ratio` needs for
        ``replications=R``.

    Raises
    ------
    DomainError
        There are no replications, neither slots nor totals, or arrays of different widths.
    """
    tables = [np.asarray(table, dtype=np.float64) for table in counters]
    if not tables:
        raise DomainError("split_units requires at least one array of snapshots")
    if any(table.ndim != 2 or table.shape[1] != tables[0].shape[1] for table in tables):
        shapes = [table.shape for table in tables]
        raise DomainError(
            f"split_units: the shapes are {shapes}, but must be [slots + 1, counters] with the "
            "same number of counters"
        )
    fewest_slots = min(len(table) for table in tables) - 1
    if fewest_slots < (1 if totals is None else 0):
        raise DomainError("split_units: a replication has no complete slot; simulate it for longer")
    if totals is not None and len(totals) != len(tables):
        raise DomainError(
            f"split_units requires one total per replication, not {len(totals)} totals for "
            f"{len(tables)} replications"
        )
    batches = max(1, min(math.ceil(TOTAL_BATCHES / len(tables)), fewest_slots))
    units = []
    for replication, table in enumerate(tables):
        slots = len(table) - 1
        edges = table[np.rint(np.linspace(0, slots, batches + 1)).astype(np.intp)]
        if totals is not None:
            edges[-1] = np.asarray(totals[replication], dtype=np.float64)
        units.append(np.diff(edges, axis=0))
    return np.concatenate(units)


def estimate_ratio(
    numerators: ArrayLike,
    denominators: ArrayLike,
    *,
    replications: int = 1,
    events: bool = False,
    maximum: float = math.inf,
) -> Estimate | None:
    """Estimate a ratio of sums with a 95 % jackknife interval.

    The value is the plain ratio of the sums, so that it agrees with the counters in the tables. The
    bias correction of the jackknife is omitted, because it is far below the half-width. The
    interval is computed from the pseudo-values, with their long-run variance and a correction for
    their skewness. ``low`` is at least 0 if no numerator is negative.

    Parameters
    ----------
    numerators, denominators
        Columns of :func:`split_units`, ``[units]``: drops and arrivals, ON time and transfers,
        queue integral (packet s) and time (s), ... Denominators must not be negative.
    replications
        Number of replications of the units, each with the same number of units.
    events
        True if the numerator counts events. With fewer than 10 events, the interval also covers the
        exact Poisson interval. Without events, the interval is 0 to ``-ln(0.05) /
        sum(denominators)`` (rule of three, for independent events). In both cases,
        ``has_few_events`` is True.
    maximum
        Largest possible long-term value, such as 1 for a share. ``high`` does not exceed it, unless
        the value does: packets dropped in a short run may have been sent before the run.

    Returns
    -------
    Estimate, or None
        None if the denominators sum to 0: there was no observation.

    Raises
    ------
    DomainError
        Shapes differ, a value is not finite, a denominator is negative, or the number of units is
        not a multiple of ``replications``.

    References
    ----------
    R. G. Miller, "The jackknife: a review", Biometrika 61 (1974).
    A. Tafazzoli, J. R. Wilson, "Skart: a skewness- and autoregression-adjusted batch-means
    procedure for simulation analysis", IIE Transactions 43 (2011): the correction for skewness.
    The long-run variance: :func:`tcpcast.statistics.intervals.variance_of_mean`.
    """
    y, x = _as_columns(numerators, denominators, replications)
    total = float(x.sum())
    if total == 0.0:
        return None
    value = float(y.sum()) / total
    low, high, half_width = -math.inf, math.inf, math.inf
    lag1, pairs, skewness_term, pseudo_values = 0.0, 0, 0.0, None
    units = int(np.count_nonzero(x))
    if units >= 2:
        pseudo_values = _pseudo_values(y, x)
        lag1, pairs = intervals.neighbour_correlation(pseudo_values, replications)
        freedom = total**2 / float((x * x).sum()) - 1.0
        skewed = intervals.skewness(pseudo_values)
        correlated = lag1 * math.sqrt(pairs) > intervals.MIN_CORRELATED_Z
        below, above = intervals.half_widths(
            pseudo_values, replications, freedom, skewed, correlated=correlated
        )
        low, high, half_width = value - below, value + above, max(below, above)
        skewness_term = skewed / (6.0 * math.sqrt(pseudo_values.size))
    few = bool(events and y.sum() < MIN_EVENTS)
    if few:
        low, high = intervals.include_poisson_interval(float(y.sum()), total, low, high)
        half_width = max(value - low, high - value)
    if not math.isfinite(half_width):
        return Estimate(value, None, None, math.inf, units)
    if (y >= 0.0).all():
        low = max(low, 0.0)
    high = min(high, max(maximum, value))
    seen = x > 0.0
    ratios = np.round(y[seen] / x[seen], 12)
    commonest = max(Counter(ratios.tolist()).values())
    values = (
        value,
        low,
        high,
        half_width,
        units,
        lag1,
        pairs,
        few,
        skewness_term,
        (None if commonest == 1 else ratios.size - commonest),
    )
    return Estimate(*values, pseudo_values=pseudo_values, replications=replications)


def estimate_mean(values: ArrayLike, *, replications: int = 1) -> Estimate | None:
    """Estimate the mean of equally weighted ``values``, ``[units]``: see :func:`estimate_ratio`."""
    column = np.asarray(values, dtype=np.float64)
    return estimate_ratio(column, np.ones_like(column), replications=replications)


def estimate_replication_mean(
    values: ArrayLike, *, replications: int = 1, events: bool = False
) -> Estimate | None:
    """Estimate the mean over replications of a total per replication, such as timeouts.

    ``values`` is a column of :func:`split_units`, ``[units]``; for the other
    parameters see :func:`estimate_ratio`.
    """
    column = np.asarray(values, dtype=np.float64)
    share = np.full_like(column, replications / max(column.size, 1))
    return estimate_ratio(column, share, replications=replications, events=events)


def mser5(series: ArrayLike) -> Truncation:
    """Find the end of the warm-up by MSER-5.

    The series is averaged in groups of five. The first ``d`` averages are left out so that ``sum((z
    - mean(z))**2) / m**2`` of the remaining ``m`` is minimal. If the minimum is in the second half
    of the series, the series is too short: ``is_found`` is False, and ``index`` is the best index
    in the first half. At least the last five averages are kept, because fewer could be equal by
    chance.

    Parameters
    ----------
    series
        Equally spaced observations from the start of the run, ``[observations]``, at least 50.

    Returns
    -------
    Truncation
        ``index`` counts observations of ``series``, a multiple of 5.

    Raises
    ------
    DomainError
        There are fewer than 50 observations, or an observation is not finite.

    References
    ----------
    K. P. White, "An effective truncation heuristic for bias reduction in simulation output",
    Simulation 69 (1997); K. P. White, M. J. Cobb, S. C. Spratt, "A comparison of five steady-state
    truncation heuristics for simulation", Winter Simulation Conference 2000 (batches of five).
    """
    column = np.asarray(series, dtype=np.float64)
    if column.ndim != 1 or column.size < 50:
        raise DomainError(f"mser5 requires at least 50 observations, not {column.size}")
    if not np.isfinite(column).all():
        raise DomainError("mser5 requires finite observations")
    z = column[: column.size // 5 * 5].reshape(-1, 5).mean(axis=1)
    z = z - z[z.size // 2 :].mean()  # a large mean would reduce the precision of sums of squares
    left = np.arange(z.size, 0, -1)
    sums, squares = np.cumsum(z[::-1])[::-1], np.cumsum((z * z)[::-1])[::-1]
    spread = np.maximum(squares - sums**2 / left, 0.0) / left.astype(np.float64) ** 2
    best = int(np.argmin(spread[: z.size - 5 + 1]))
    half = z.size // 2
    if best <= half:
        return Truncation(5 * best, is_found=True)
    return Truncation(5 * int(np.argmin(spread[: half + 1])), is_found=False)


def find_correlated_metrics(estimates: Mapping[MetricKey, Estimate | None]) -> frozenset[MetricKey]:
    """Return the metrics of one answer, ``estimates``, whose units are significantly correlated.

    :func:`tcpcast.statistics.intervals.select_significant_tests` combines the tests; each returned
    metric must also satisfy :attr:`Estimate.is_correlated`.
    """
    levels = {
        name: 0.5 * math.erfc(e.lag1_z_score / math.sqrt(2.0))
        for name, e in estimates.items()
        if e is not None and e.pairs > 0
    }
    correlated = intervals.select_significant_tests(levels, CORRELATION_TEST_LEVEL)
    return frozenset(
        name for name in correlated if (e := estimates[name]) is not None and e.is_correlated
    )


def unmet_precision(
    estimates: Mapping[str, Estimate | None], targets: Mapping[str, float]
) -> dict[str, str]:
    """Return the reason for each metric that has not reached its precision.

    A target ``g`` is reached if the half-width is at most ``g / (1 + g)`` of the value, because
    only then is the error at most ``g`` of the true value (A. M. Law, "Simulation Modeling and
    Analysis", "obtaining a specified precision"). Also required: at least 16 units, 10 events, and
    no significant lag-1 correlation of the units.

    Parameters
    ----------
    estimates
        Estimates by metric.
    targets
        Relative half-widths by metric, above 0.

    Returns
    -------
    dict
        Reason by metric, in the order of ``targets``; empty if all targets are reached.

    Raises
    ------
    DomainError
        A target that is not above 0.
    """
    reasons = {name: _unmet_reason(estimates.get(name), goal) for name, goal in targets.items()}
    return {name: reason for name, reason in reasons.items() if reason is not None}


def required_run_length(
    length: float, estimates: Mapping[str, Estimate | None], targets: Mapping[str, float]
) -> float | None:
    """Return the required length of the run at the next check, or None if it may stop.

    Half-widths shrink with the square root of the length. The result is the length at which all
    targets are expected to be reached, limited to 1.5 to 2 times the present length; the caller
    rounds it. Some metrics can never reach their target (for example loss, if nothing is lost), so
    the caller needs a limit.

    Parameters
    ----------
    length
        Present length, above 0: seconds, transfers or slots.
    estimates, targets
        As for :func:`unmet_precision`.
    """
    # A longer run does not remove permanent warnings.
    fixable = {
        name: replace(e, interval_warning=None) if e is not None and e.is_permanent else e
        for name, e in estimates.items()
    }
    unmet = unmet_precision(fixable, targets)
    if not unmet:
        return None
    growth = MIN_GROWTH
    for name in unmet:
        estimate = estimates.get(name)
        lacking = (
            math.inf
            if estimate is None or estimate.has_few_events
            else estimate.relative_half_width
        )
        # For targets close to 0, the square would overflow.
        missed = min(lacking / _max_relative_half_width(targets[name]), MAX_GROWTH)
        growth = max(growth, 1.05 * missed**2)
    return length * min(growth, MAX_GROWTH)


def _as_columns(
    numerators: ArrayLike, denominators: ArrayLike, replications: int
) -> tuple[Floats, Floats]:
    y = np.asarray(numerators, dtype=np.float64)
    x = np.asarray(denominators, dtype=np.float64)
    if y.ndim != 1 or y.shape != x.shape or y.size == 0:
        raise DomainError(
            f"ratio requires two columns of equal length, not the shapes {y.shape} and {x.shape}"
        )
    sums = float(np.add.reduce(y)), float(np.add.reduce(x))
    if not (all(map(math.isfinite, sums)) and np.minimum.reduce(x) >= 0.0):
        raise DomainError("ratio: all values must be finite, and denominators at least 0")
    if replications < 1 or y.size % replications:
        raise DomainError(
            f"ratio: {y.size} units are not a multiple of {replications} replications"
        )
    return y, x


def _pseudo_values(y: Floats, x: Floats) -> Floats:
    """``n * ratio - (n - 1) * ratio without unit i``; constants stay exactly constant."""
    n, total, sum_y = len(x), float(x.sum()), y.sum()
    without = (sum_y - y) / (total - x)
    pseudo_values: Floats = n * (sum_y / total) - (n - 1) * without
    # Rounding errors must not count as variance or correlation.
    if np.ptp(pseudo_values) <= 1e-11 * n * np.abs(pseudo_values).max():
        return np.full_like(pseudo_values, pseudo_values.mean())
    return pseudo_values


def _max_relative_half_width(target: float) -> float:
    if not target > 0.0:
        raise DomainError(f"precision: {target} must be above 0, such as 0.01 for 1 %")
    return target / (1.0 + target)


def _unmet_reason(estimate: Estimate | None, target: float) -> str | None:
    goal = _max_relative_half_width(target)
    if estimate is None or estimate.low is None or estimate.interval_warning is not None:
        return (estimate and estimate.interval_warning) or "no interval yet"
    if estimate.has_few_events:
        return f"fewer than {MIN_EVENTS} events"
    relative = estimate.relative_half_width
    if relative > goal:
        return (
            f"the half-width is {relative:.3g} of the value, but must be at most {goal:.3g} for a "
            f"precision of {target:.3g}"
        )
    if estimate.units < MIN_UNITS:
        return f"only {estimate.units} batches"
    if estimate.lag1_z_score > intervals.MIN_CORRELATED_Z:
        return "the batches of the run are still correlated"
    return None
