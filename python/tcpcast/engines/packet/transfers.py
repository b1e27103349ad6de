"""Single transfers: their times by size and by number of lost packets.

For each size and number of losses, the simulator sums the count, the times and their squares in
integer nanoseconds. The sums are exact and do not depend on the order of replications.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.answer.metrics import METRICS
from tcpcast.engines.packet.reliability import MIN_FILES, reliable_percentiles
from tcpcast.engines.table_columns import estimate_part_column, percentile_columns
from tcpcast.statistics import MIN_EVENTS, Estimate
from tcpcast.statistics.intervals import skew_corrected_half_widths

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tcpcast.array_types import Table
    from tcpcast.engines.packet.counters import Estimates

    Rows = Sequence[tuple[int, int, int, tuple[int, int], tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class TimeSums:
    """Number of transfers, sum of their times in nanoseconds, and sum of squared times."""

    count: int = 0
    total: int = 0
    squares: int = 0

    def __add__(self, other: TimeSums) -> TimeSums:
        """Return the sums over both sets of transfers."""
        return TimeSums(
            self.count + other.count, self.total + other.total, self.squares + other.squares
        )

    @property
    def mean_s(self) -> float:
        """Mean time in seconds."""
        return self.total / self.count * 1e-9 if self.count else math.nan

    @property
    def variance_s2(self) -> float:
        """Variance of one time; inf for fewer than two transfers."""
        if self.count < 2:
            return math.inf
        # In integers, because the two terms may agree in most of their digits.
        deviation = self.count * self.squares - self.total**2
        return deviation / (self.count * (self.count - 1)) * 1e-18


def estimate_mean_time(strata: Sequence[Sequence[TimeSums]]) -> Estimate | None:
    """Estimate the mean time of independent transfers, with a fixed number per size (stratified).

    Parameters
    ----------
    strata
        For each file size, a list of :class:`TimeSums`: one per number of lost packets.

    Returns
    -------
    Estimate, or None
        With Student's 95 % interval, corrected for the skewness of the times, or without an
        interval if a size has a single transfer. None if there was no transfer.
    """
    strata_with_transfers = [sizes for sizes in strata if sum(sums.count for sums in sizes)]
    wholes = [sum(sizes, TimeSums()) for sizes in strata_with_transfers]
    whole = sum(wholes, TimeSums())
    if whole.count == 0:
        return None
    value = whole.mean_s
    variance = sum(sums.count * sums.variance_s2 for sums in wholes)
    error = math.sqrt(variance) / whole.count
    if not math.isfinite(error):
        return Estimate(value, None, None, math.inf, whole.count)
    if error == 0.0:
        return Estimate(value, value, value, 0.0, whole.count)
    cubes = sum(
        _sum_of_cubed_deviations(sizes, of_all.mean_s)
        for sizes, of_all in zip(strata_with_transfers, wholes, strict=True)
    )
    skewed = cubes / whole.count / (variance / whole.count) ** 1.5
    below, above = skew_corrected_half_widths(
        error, whole.count - len(strata_with_transfers), skewed, whole.count
    )
    low, high = max(value - below, 0.0), value + above
    bend = skewed / (6.0 * math.sqrt(whole.count))
    return Estimate(value, low, high, max(below, above), whole.count, skewness_term=bend)


def _sum_of_cubed_deviations(sizes: Sequence[TimeSums], mean_s: float) -> float:
    """Return the part of the sum of cubed deviations that follows from the loss counts.

    Times of transfers with the same number of losses are assumed symmetric about their mean.
    """
    total = 0.0
    for sums in sizes:
        deviation = sums.mean_s - mean_s
        within = sums.variance_s2 if sums.count > 1 else 0.0
        total += sums.count * (deviation**3 + 3.0 * deviation * within)
    return total


def estimate_isolated_transfers(estimates: Estimates, totals: Mapping[str, Any]) -> Estimates:
    """Return the estimates of isolated transfers, which are independent."""
    rows: Rows = totals["transfers"]
    kept = {name: value for name, value in estimates.items() if METRICS[name].has_isolated_value}
    size = estimates.get("mean_size_pkts")
    if size is not None:
        # The number per size was requested, so this is not an estimate.
        kept["mean_size_pkts"] = Estimate(size.value, None, None, math.inf, 0)
    completions, deliveries = (
        list(_sum_times_by_losses(rows, completions=completions).values())
        for completions in (True, False)
    )
    return kept | {
        "completion_time_s": estimate_mean_time(completions),
        "delivery_time_s": estimate_mean_time(deliveries),
        "total_time_s": estimate_mean_time([[sums] for sums in _sum_total_times(totals)]),
    }


def _sum_total_times(totals: Mapping[str, Any]) -> list[TimeSums]:
    """Return, per size, the sums of times from SYN to the last byte."""
    return [TimeSums(count, *sums) for count, sums in totals["opened"]]


def times_by_size_table(
    sizes: Table,
    totals: Mapping[str, Any],
    means: Mapping[int, Estimate | None],
    min_files: Mapping[int, int],
) -> Table:
    """Return one row per size that had a transfer.

    Parameters
    ----------
    sizes
        Columns that identify the size ranges, one row per range, in order.
    totals
        Totals of the simulator.
    means
        Mean completion time per size; missing entries are computed from independent transfers.
    min_files
        Minimum number of transfers for a confidence interval, per size; default: ``MIN_FILES``.
    """
    completions, deliveries = (
        _sum_times_by_losses(totals["transfers"], completions=completions)
        for completions in (True, False)
    )
    order = sorted(completions)
    mean = {
        index: means[index]
        if index in means
        else _estimate_mean_time_of_size(completions[index], min_files.get(index, MIN_FILES))
        for index in order
    }
    counts = np.array([sum(sums.count for sums in completions[index]) for index in order])
    percentiles = reliable_percentiles(
        np.array([totals["completion_percentiles"][index] for index in order]).reshape(-1, 3),
        counts,
    )
    opened = _sum_total_times(totals)
    total_time_columns: Table = {}
    if any(sums.count for sums in opened):
        total_time_columns["total_time_s"] = np.array([opened[index].mean_s for index in order])
        if not means:
            least = [min_files.get(index, MIN_FILES) for index in order]
            rows = zip(order, least, strict=True)
            total = [_estimate_mean_time_of_size([opened[index]], n) for index, n in rows]
            for end in ("low", "high"):
                total_time_columns[f"total_time_s_{end}"] = estimate_part_column(total, end)
    return {
        **{name: column[order] for name, column in sizes.items()},
        "transfers": counts,
        "completion_time_s": estimate_part_column(mean.values(), "value"),
        "low": estimate_part_column(mean.values(), "low"),
        "high": estimate_part_column(mean.values(), "high"),
        "delivery_time_s": np.array([sum(deliveries[index], TimeSums()).mean_s for index in order]),
        **total_time_columns,
        **percentile_columns(percentiles),
    }


TIME_NAMES = ("completion_time", "delivery_time", "total_time")
"""Times of a transfer, in the order of the simulator's percentiles."""

TIME_PERCENTILES = (50, 90, 95, 99)


def time_percentile_table(sizes: Table, totals: Mapping[str, Any]) -> Table:
    """Return percentiles of times in seconds, one row per size and kind of time (modern TCP only).

    Parameters
    ----------
    sizes
        Columns that identify the size ranges, one row per range, in order.
    totals
        Totals of the simulator.
    """
    counts = Counter[int]()
    for size, _, count, *_ in totals["transfers"]:
        counts[size] += count
    rows = [
        (index, name, np.array(totals["time_percentiles"][index][kind]))
        for index in sorted(counts)
        for kind, name in enumerate(TIME_NAMES)
        if not np.isnan(totals["time_percentiles"][index][kind]).all()
    ]
    order = [row[0] for row in rows]
    beyond = np.array([counts[index] for index in order]).reshape(-1, 1) * (
        1.0 - np.array(TIME_PERCENTILES) / 100
    )
    values = np.array([row[2] for row in rows]).reshape(-1, len(TIME_PERCENTILES))
    # Tolerance of half a transfer for rounding.
    reliable = np.where(beyond > MIN_EVENTS - 0.5, values, np.nan)
    return {
        **{name: column[order] for name, column in sizes.items()},
        "quantity": np.array([row[1] for row in rows]),
        **percentile_columns(reliable, TIME_PERCENTILES),
        "unit": np.full(len(rows), "s"),
    }


def withhold_times(table: Table) -> Table:
    """Return a table of times without values: the finished transfers do not represent all."""
    times = {"completion_time_s", "low", "high", "delivery_time_s", "total_time_s"}
    times |= {f"p{percent}" for percent in (50, *TIME_PERCENTILES)}
    return {
        name: np.full_like(column, np.nan) if name in times else column
        for name, column in table.items()
    }


def times_by_losses_table(sizes: Table, totals: Mapping[str, Any], *, independent: bool) -> Table:
    """Return one row per size and number of lost packets, including lost retransmissions.

    Transfers that share a network are not independent, so they have no interval here.
    """
    rows: Rows = sorted(totals["transfers"])
    order = [row[0] for row in rows]
    completions = [TimeSums(row[2], *row[3]) for row in rows]
    table: Table = {
        **{name: column[order] for name, column in sizes.items()},
        "losses": np.array([row[1] for row in rows]),
        "transfers": np.array([row[2] for row in rows]),
        "completion_time_s": np.array([sums.mean_s for sums in completions]),
    }
    if independent:
        estimates = [estimate_mean_time([[sums]]) for sums in completions]
        table |= {
            "low": estimate_part_column(estimates, "low"),
            "high": estimate_part_column(estimates, "high"),
        }
    table["delivery_time_s"] = np.array([TimeSums(row[2], *row[4]).mean_s for row in rows])
    return table


def _estimate_mean_time_of_size(
    sums_by_losses: Sequence[TimeSums], min_files: int
) -> Estimate | None:
    """Estimate the mean time of one size, without an interval for too few transfers."""
    result = estimate_mean_time([sums_by_losses])
    if result is None or result.units >= min_files:
        return result
    return result.with_warning("too few files", withheld=True)


def _sum_times_by_losses(rows: Rows, *, completions: bool) -> dict[int, list[TimeSums]]:
    """Return, per size, the sums for each number of losses."""
    strata: dict[int, list[TimeSums]] = {}
    for size, _, count, completion, delivery in rows:
        sums = TimeSums(count, *(completion if completions else delivery))
        strata.setdefault(size, []).append(sums)
    return strata
