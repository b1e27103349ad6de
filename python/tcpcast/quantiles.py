"""Quantiles of what was counted in buckets, with 95 % intervals.

The interval is Woodruff's: the share beyond the quantile is a ratio of counts over the units
of :func:`tcpcast.statistics.blocks`, so that it has the interval of any ratio, correlation of
neighbours and rare events included; where the distribution has the two ends of that, the quantile's
interval ends. Nothing is assumed of a density, and what comes in few distinct values does no harm.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tcpcast import statistics
from tcpcast.errors import DomainError
from tcpcast.statistics import Estimate

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


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
        Without an interval where the units give none, such as a single one; None where nothing
        was counted.

    Raises
    ------
    DomainError
        Shapes that do not go together, counts below 0, a share outside its domain, or units that do
        not divide among the replications.

    References
    ----------
    R. S. Woodruff, "Confidence intervals for medians and other position measures", Journal of the
    American Statistical Association 47 (1952).
    """
    table, ends = _checked(counts, edges, share)
    of_unit = table.sum(axis=1)
    total = float(of_unit.sum())
    if total == 0.0:
        return None
    whole = np.concatenate(([0.0], np.cumsum(table.sum(axis=0))))
    value = _reached(whole, ends, (1.0 - share) * total)
    # Of the two sides the smaller is counted: it is the rarer that its events tell of.
    below_is_less = share >= 0.5
    below = _below(table, ends, value)
    beyond = statistics.ratio(
        below if below_is_less else of_unit - below,
        of_unit,
        replications=replications,
        events=True,
        at_most=1.0,
    )
    if beyond is None or beyond.low is None or beyond.high is None:
        units = 0 if beyond is None else beyond.units
        return Estimate(value, None, None, math.inf, units)
    shares = (beyond.low, beyond.high) if below_is_less else (1 - beyond.high, 1 - beyond.low)
    low, high = (_reached(whole, ends, at * total) for at in shares)
    half_width = max(value - low, high - value)
    return Estimate(
        value, low, high, half_width, beyond.units, beyond.lag1, beyond.pairs, beyond.few
    )


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


def _below(
    table: NDArray[np.float64], edges: NDArray[np.float64], value: float
) -> NDArray[np.float64]:
    """Count what each unit has below a value."""
    at = min(int(np.searchsorted(edges, value, side="right")) - 1, table.shape[1] - 1)
    inside = (value - edges[at]) / (edges[at + 1] - edges[at])
    below: NDArray[np.float64] = table[:, :at].sum(axis=1) + inside * table[:, at]
    return below
