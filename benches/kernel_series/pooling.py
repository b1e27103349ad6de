"""Quantities of the runs of one cell, with half the width of their 95 % intervals.

From the t distribution over runs, from order statistics for percentiles, and from the Poisson
distribution for counts.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from scipy.stats import binom
from tcpcast_papers.kernel.cells import Measured, mean_over_runs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def mean_count(values: Sequence[float]) -> Measured:
    """Return the mean of counts of independent runs; their sum has a Poisson distribution."""
    total, count = math.fsum(values), len(values)
    return Measured(total / count, 1.96 * math.sqrt(max(total, 1.0)) / count, count)


def mean_of_column(runs: Sequence[Mapping[str, Any]], column: str, scale: float = 1.0) -> Measured:
    """Return the mean of a column over the runs of a cell, multiplied by ``scale``."""
    return mean_over_runs([scale * float(run[column]) for run in runs])


def ratio_of_sums(runs: Sequence[Mapping[str, Any]], column: str, of: str) -> Measured:
    """Return the ratio of the sums of two columns over the runs of a cell.

    The mean of the runs' ratios would be larger, because runs with few packets have many losses.
    """
    each = mean_over_runs([float(run[column]) / float(run[of]) for run in runs])
    total = math.fsum(float(run[column]) for run in runs) / math.fsum(
        float(run[of]) for run in runs
    )
    return replace(each, mean=total)


def mean_count_of_column(runs: Sequence[Mapping[str, Any]], column: str) -> Measured:
    """Return the mean of a column of counts over the runs of a cell."""
    return mean_count([float(run[column]) for run in runs])


def percentile_with_interval(values: Sequence[float], share: float) -> Measured:
    """Return a percentile of single observations, with an interval from order statistics."""
    ordered, count = sorted(values), len(values)
    low, high = (int(binom.ppf(each, count, share)) for each in (0.025, 0.975))
    last = count - 1
    ends = ordered[min(max(low - 1, 0), last)], ordered[min(high, last)]
    middle = ordered[min(math.ceil(share * count) - 1, last)]
    return Measured(middle, max(ends[1] - middle, middle - ends[0]), count)
