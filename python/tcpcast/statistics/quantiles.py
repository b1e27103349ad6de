"""Quantiles with 95 % intervals, computed from values counted in buckets.

The share of values above a limit is a ratio of counts over units
(:func:`tcpcast.statistics.split_units`), so :func:`tcpcast.statistics.estimate_ratio` computes
its interval, including correlation and rare events. The interval of a quantile contains the limits
for which the interval of the share includes the given share (an inverted test). This assumes
nothing about the density, and values may be discrete.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tcpcast import statistics
from tcpcast.process.errors import DomainError
from tcpcast.statistics import Estimate

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

END_TOLERANCE = 1e-4
"""Accuracy of the ends of intervals, relative to their distance to the smallest or largest
value."""


def estimate_exceeded_value(
    counts: ArrayLike, edges: ArrayLike, share: float, *, replications: int = 1
) -> Estimate | None:
    """Estimate the value that a share of all values exceeds.

    Parameters
    ----------
    counts
        Number of values per bucket, ``[units, buckets]``, with units as in
        :func:`tcpcast.statistics.estimate_ratio`.
    edges
        Ends of the buckets in ascending order, ``[buckets + 1]``, in the unit of the values. Within
        a bucket, values are assumed to be spread evenly.
    share
        Share of the values above the result, above 0 and below 1: 0.95 gives the 5 % quantile.
    replications
        Number of replications of the units, each with the same number of units.

    Returns
    -------
    Estimate, or None
        The estimate has no interval if fewer than 10 values are on the rarer side of the quantile,
        or if :func:`tcpcast.statistics.estimate_ratio` has no interval. ``value`` is nan if fewer
        than one value is on the rarer side. None if nothing was counted.

    Raises
    ------
    DomainError
        Shapes that do not match, counts below 0, a share outside its domain, or units that do
        not divide among the replications.

    References
    ----------
    C. A. Francisco, W. A. Fuller, "Quantile estimation with a complex survey design", Annals of
    Statistics 19 (1991): the test inverted.
    """
    table, ends = _check_arguments(counts, edges, share)
    of_unit = table.sum(axis=1)
    total = float(of_unit.sum())
    if total == 0.0:
        return None
    whole = np.concatenate(([0.0], np.cumsum(table.sum(axis=0))))
    rarer = min(share, 1.0 - share) * total
    if rarer < 1.0:  # fewer than one value is on the rarer side
        return Estimate(math.nan, None, None, math.inf, int(np.count_nonzero(of_unit)))
    value = _interpolate_value(whole, ends, (1.0 - share) * total)
    below = np.column_stack((np.zeros(len(table)), np.cumsum(table, axis=1)))
    test = _ExceedanceTest(below, ends, share, replications)
    at_value = test.estimate_share_beyond(value)
    units = 0 if at_value is None else at_value.units
    if at_value is None or at_value.low is None or rarer < statistics.MIN_EVENTS:
        return Estimate(value, None, None, math.inf, units)
    first = float(ends[int(np.searchsorted(whole, 0.0, side="right")) - 1])
    # The last sum may differ from the total by a rounding error.
    last = float(ends[int(np.searchsorted(whole[:-1], total, side="left"))])
    low = _bisect_last_passing_value(value, first, test.may_be_as_low_as)
    high = _bisect_last_passing_value(value, last, test.may_be_as_high_as)
    half_width = max(value - low, high - value)
    return replace(
        at_value, value=value, low=low, high=high, half_width=half_width, differing_units=None
    )


@dataclass(frozen=True, slots=True)
class _ExceedanceTest:
    """Test whether a given share of values may exceed a limit, by the interval of the share."""

    below: NDArray[np.float64]
    """Number of values of each unit below each edge, ``[units, buckets + 1]``."""
    edges: NDArray[np.float64]
    share: float
    replications: int

    def estimate_share_beyond(self, value: float) -> Estimate | None:
        """Estimate the share of values on the rarer side of the quantile beyond a limit."""
        upper = min(int(np.searchsorted(self.edges, value, side="right")), len(self.edges) - 1)
        inside = (value - self.edges[upper - 1]) / (self.edges[upper] - self.edges[upper - 1])
        below = self.below[:, upper - 1] + inside * (
            self.below[:, upper] - self.below[:, upper - 1]
        )
        of_unit = self.below[:, -1]
        return statistics.estimate_ratio(
            below if self.share >= 0.5 else of_unit - below,
            of_unit,
            replications=self.replications,
            events=True,
            maximum=1.0,
        )

    def may_be_as_low_as(self, value: float) -> bool:
        """Return True if the quantile may be as low as a value."""
        return self._may_reach(value, large_share=self.share >= 0.5)

    def may_be_as_high_as(self, value: float) -> bool:
        """Return True if the quantile may be as high as a value."""
        return self._may_reach(value, large_share=self.share < 0.5)

    def _may_reach(self, value: float, *, large_share: bool) -> bool:
        """Compare the share beyond a value with the share on the rarer side of the quantile.

        With ``large_share``, return True if the share beyond the value may be at least as large;
        otherwise return True if it may be at least as small.
        """
        estimate, rarer = self.estimate_share_beyond(value), min(self.share, 1.0 - self.share)
        if estimate is None or estimate.low is None or estimate.high is None:
            return False
        return estimate.high >= rarer if large_share else estimate.low <= rarer


def _bisect_last_passing_value(start: float, end: float, passes: Callable[[float], bool]) -> float:
    """Return the value closest to ``end`` that passes, by bisection; ``start`` passes."""
    if passes(end):
        return end
    passed, failed = start, end
    while abs(failed - passed) > END_TOLERANCE * abs(start - end):
        middle = (passed + failed) / 2
        passed, failed = (middle, failed) if passes(middle) else (passed, middle)
    return passed


def tail_shares(counts: ArrayLike) -> NDArray[np.float64]:
    """Return the share of values beyond the lower end of each bucket, ``[buckets]``.

    Parameters
    ----------
    counts
        Number of values per bucket, ``[buckets]``; not all 0.

    Raises
    ------
    DomainError
        Nothing was counted.
    """
    column = np.asarray(counts, dtype=np.float64)
    total = float(column.sum())
    if column.ndim != 1 or total <= 0.0:
        raise DomainError("tail_shares: counts must be one column with a sum above 0")
    # Sum from the end, so that small shares keep their precision.
    beyond: NDArray[np.float64] = np.cumsum(column[::-1])[::-1] / total
    return beyond


def _check_arguments(
    counts: ArrayLike, edges: ArrayLike, share: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    table = np.asarray(counts, dtype=np.float64)
    ends = np.asarray(edges, dtype=np.float64)
    if not 0.0 < share < 1.0:
        raise DomainError(
            f"estimate_exceeded_value: share must be above 0 and below 1, not {share}"
        )
    if table.ndim != 2 or ends.shape != (table.shape[1] + 1,):
        message = (
            "estimate_exceeded_value: counts must be [units, buckets], and edges [buckets + 1]"
        )
        raise DomainError(f"{message}; their shapes are {table.shape} and {ends.shape}")
    if not (table >= 0.0).all() or not (np.diff(ends) > 0.0).all():
        raise DomainError(
            "estimate_exceeded_value: counts must be at least 0, and edges must be ascending"
        )
    return table, ends


def _interpolate_value(
    whole: NDArray[np.float64], edges: NDArray[np.float64], wanted: float
) -> float:
    """Return the value with ``wanted`` values below it; ``whole`` is the number below each edge."""
    after = int(np.searchsorted(whole, wanted, side="left"))
    if after == 0:  # lower edge of the first non-empty bucket
        after = int(np.searchsorted(whole, 0.0, side="right"))
        return float(edges[after - 1])
    after = min(after, len(whole) - 1)
    inside = (wanted - whole[after - 1]) / (whole[after] - whole[after - 1])
    return float(edges[after - 1] + min(inside, 1.0) * (edges[after] - edges[after - 1]))
