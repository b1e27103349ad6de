"""Quantiles of what was counted in buckets, with 95 % intervals.

The share beyond a value is a ratio of counts over units (:func:`tcpcast.statistics.blocks`), so
that it has the interval of any ratio, correlation and rare events included. The quantile's interval
holds the values at which that interval has the share that is asked for: a test at each value,
inverted. Nothing is assumed of a density, and what comes in few distinct values does no harm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tcpcast import statistics
from tcpcast.errors import DomainError
from tcpcast.statistics import Estimate

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

CLOSE = 1e-4
"""An end of an interval is found to so much of the way to the smallest or largest counted."""


def exceeded_by(
    counts: ArrayLike, edges: ArrayLike, share: float, *, replications: int = 1
) -> Estimate | None:
    """Estimate what a share of all exceeds.

    Parameters
    ----------
    counts
        How many were in each bucket, ``[units, buckets]``, the units as in
        :func:`tcpcast.statistics.ratio`.
    edges
        Ends of the buckets, rising, ``[buckets + 1]``, in the unit of what was counted. Within a
        bucket they are taken to be spread evenly.
    share
        Above 0 and below 1: 0.95 gives the quantile at 5 %.
    replications
        How many replications the units come from, each with the same number of them.

    Returns
    -------
    Estimate, or None
        Without an interval where fewer than 10 are on the rarer side of the quantile, or the units
        give none; ``value`` is nan where not even one is. None where nothing was counted.

    Raises
    ------
    DomainError
        Shapes that do not go together, counts below 0, a share outside its domain, or units that do
        not divide among the replications.

    References
    ----------
    C. A. Francisco, W. A. Fuller, "Quantile estimation with a complex survey design", Annals of
    Statistics 19 (1991): the test inverted.
    """
    table, ends = _checked(counts, edges, share)
    of_unit = table.sum(axis=1)
    total = float(of_unit.sum())
    if total == 0.0:
        return None
    whole = np.concatenate(([0.0], np.cumsum(table.sum(axis=0))))
    rarer = min(share, 1.0 - share) * total
    if rarer < 1.0:  # beyond the sample: not even one is on the rarer side
        return Estimate(math.nan, None, None, math.inf, int(np.count_nonzero(of_unit)))
    value = _reached(whole, ends, (1.0 - share) * total)
    below = np.column_stack((np.zeros(len(table)), np.cumsum(table, axis=1)))
    test = _Test(below, ends, share, replications)
    at_value = test.beyond(value)
    units = 0 if at_value is None else at_value.units
    if at_value is None or at_value.low is None or rarer < statistics.FEW_EVENTS:
        return Estimate(value, None, None, math.inf, units)
    first = float(ends[int(np.searchsorted(whole, 0.0, side="right")) - 1])
    last = float(ends[int(np.searchsorted(whole, total, side="left"))])
    low = _last_passed(value, first, test.not_above)
    high = _last_passed(value, last, test.not_below)
    half_width = max(value - low, high - value)
    return replace(at_value, value=value, low=low, high=high, half_width=half_width, unlike=None)


@dataclass(frozen=True, slots=True)
class _Test:
    """Whether a share of all may exceed a value, by the interval of what does at that value."""

    below: NDArray[np.float64]
    """What each unit has below each edge, ``[units, buckets + 1]``."""
    edges: NDArray[np.float64]
    share: float
    replications: int

    def beyond(self, value: float) -> Estimate | None:
        """Estimate the share on the side that is rarer: it is the one whose events tell."""
        at = min(int(np.searchsorted(self.edges, value, side="right")), len(self.edges) - 1)
        inside = (value - self.edges[at - 1]) / (self.edges[at] - self.edges[at - 1])
        below = self.below[:, at - 1] + inside * (self.below[:, at] - self.below[:, at - 1])
        of_unit = self.below[:, -1]
        return statistics.ratio(
            below if self.share >= 0.5 else of_unit - below,
            of_unit,
            replications=self.replications,
            events=True,
            at_most=1.0,
        )

    def not_above(self, value: float) -> bool:
        """Say whether the quantile may be as low as a value."""
        found = self.beyond(value)
        if found is None or found.low is None or found.high is None:
            return False
        return found.high >= 1.0 - self.share if self.share >= 0.5 else found.low <= self.share

    def not_below(self, value: float) -> bool:
        """Say whether the quantile may be as high as a value."""
        found = self.beyond(value)
        if found is None or found.low is None or found.high is None:
            return False
        return found.low <= 1.0 - self.share if self.share >= 0.5 else found.high >= self.share


def _last_passed(start: float, end: float, passes: Callable[[float], bool]) -> float:
    """Return how far from ``start``, which passes, towards ``end`` values pass."""
    if passes(end):
        return end
    passed, failed = start, end
    while abs(failed - passed) > CLOSE * abs(start - end):
        middle = (passed + failed) / 2
        passed, failed = (middle, failed) if passes(middle) else (passed, middle)
    return passed


def tail(counts: ArrayLike) -> NDArray[np.float64]:
    """Return the share that is beyond the lower end of each bucket, ``[buckets]``.

    Parameters
    ----------
    counts
        How many were in each bucket, ``[buckets]``; not all 0.

    Raises
    ------
    DomainError
        Nothing was counted.
    """
    column = np.asarray(counts, dtype=np.float64)
    total = float(column.sum())
    if column.ndim != 1 or total <= 0.0:
        raise DomainError("tail: nothing was counted; give one column of counts, not all 0")
    # Summed from the end, so that small shares keep their digits.
    beyond: NDArray[np.float64] = np.cumsum(column[::-1])[::-1] / total
    return beyond


def _checked(
    counts: ArrayLike, edges: ArrayLike, share: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    table = np.asarray(counts, dtype=np.float64)
    ends = np.asarray(edges, dtype=np.float64)
    if not 0.0 < share < 1.0:
        raise DomainError(f"exceeded_by: a share of {share}; give one above 0 and below 1")
    if table.ndim != 2 or ends.shape != (table.shape[1] + 1,):
        message = f"exceeded_by: counts {table.shape} and edges {ends.shape}"
        raise DomainError(f"{message}; give [units, buckets] and [buckets + 1]")
    if not (table >= 0.0).all() or not (np.diff(ends) > 0.0).all():
        raise DomainError("exceeded_by: counts must not be below 0, and edges must rise")
    return table, ends


def _reached(whole: NDArray[np.float64], edges: NDArray[np.float64], wanted: float) -> float:
    """Return where so many are below; ``whole`` counts those below each edge."""
    after = int(np.searchsorted(whole, wanted, side="left"))
    if after == 0:  # all are above the first bucket that is not empty
        after = int(np.searchsorted(whole, 0.0, side="right"))
        return float(edges[after - 1])
    after = min(after, len(whole) - 1)
    inside = (wanted - whole[after - 1]) / (whole[after] - whole[after - 1])
    return float(edges[after - 1] + min(inside, 1.0) * (edges[after] - edges[after - 1]))
