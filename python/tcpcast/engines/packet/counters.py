"""Cumulative counters of a run, and their increments per statistical unit."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast import _native, statistics
from tcpcast.statistics import Estimate, quantiles

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tcpcast.answer.metric_definition import Counters
    from tcpcast.array_types import Counts, Floats
    from tcpcast.scenario import Scenario
    from tcpcast.scenario.classes import Population

    SlotCounts = tuple[int, Counts, Counts, Counts, Counts | Floats]
    """Number of slots, and four columns: slot, group, bucket, count."""

Estimates = dict[str, Estimate | None]

LINK_COUNTER = {name: index for index, name in enumerate(_native.LINK_CELLS)}
CLASS_COUNTER = {name: index for index, name in enumerate(_native.CLASS_CELLS)}
SIZE_COUNTER = {name: index for index, name in enumerate(_native.SIZE_CELLS)}
LINK_TOTAL_COUNTER = {name: index for index, name in enumerate(_native.LINK_TOTAL_CELLS)}
DROP_COUNTERS = ("full_drops", "early_drops", "random_drops")
"""Counters of the drops of a class on a link, by cause."""
LINK_CLASS_COUNTER = {name: index for index, name in enumerate(_native.LINK_CLASS_CELLS)}


def unwrap_counters(rows: Counts | Floats) -> Counts | Floats:
    """Return cumulative counters, ``[rows, counters]``, without their wrap-around modulo 2^64.

    The result is an integer array if no counter wrapped. Rows differ by less than 2^63.
    """
    if rows.dtype != np.uint64:
        return rows
    wrapped = (rows[1:] < rows[:-1]) & (rows[:-1] - rows[1:] > np.uint64(2**63))
    if not wrapped.any():
        return rows
    values = rows.astype(np.float64)
    values[1:] += 2.0**64 * np.cumsum(wrapped, axis=0)
    return values


class BatchCounters:
    """Increments of each counter, by name, per statistical unit (batch or replication) of a run."""

    def __init__(
        self,
        rows: Sequence[Counts | Floats],
        classes: int,
        *,
        begins_ns: int = 0,
        links: int = 0,
        link_classes: Sequence[tuple[int, int]] = (),
    ) -> None:
        """Store the cumulative counters of each replication.

        Each array is ``[slots + 2, counters]``; its last row is the end of the run. Counting starts
        at ``begins_ns``, the end of the warm-up. ``link_classes`` are the pairs of a link and a
        class with counters of the class on the link.
        """
        self._links, self.link_classes = links, list(link_classes)
        self.replications = len(rows)
        rows = [unwrap_counters(row) for row in rows]
        self._cells = statistics.split_units([r[:-1] for r in rows], totals=[r[-1] for r in rows])
        self._classes = classes
        self._times = [row[:, LINK_COUNTER["time_ns"]] for row in rows]
        self._begins_ns = begins_ns
        self._seconds: dict[tuple[float, float], Floats] = {}

    @property
    def elapsed_s(self) -> float:
        """Mean simulated time per replication, including the warm-up, in seconds."""
        return 1e-9 * self._begins_ns + self.measured_s / self.replications

    @property
    def measured_s(self) -> float:
        """Time after the warm-up, summed over the replications, in seconds."""
        return float(self.link("time_ns").sum()) * 1e-9

    def on_seconds(self, groups: Sequence[Population]) -> Floats:
        """Return the time per unit in which the flows are active, in seconds, ``[units]``."""
        if len(groups) > 1 or not groups[0].has_start_or_stop:
            return self.link("time_ns") * 1e-9
        span = groups[0].start_s, groups[0].stop_s
        if span not in self._seconds:
            low, high = np.maximum(np.array(span) * 1e9 - self._begins_ns, 0.0)
            columns = [
                (np.clip(t.astype(np.float64), low, high) - low).reshape(-1, 1) * 1e-9
                for t in self._times
            ]
            totals = [column[-1] for column in columns]
            seconds: Floats = statistics.split_units([c[:-1] for c in columns], totals=totals)[:, 0]
            self._seconds[span] = seconds
        return self._seconds[span]

    def link(self, name: str) -> Floats:
        """Return a counter of the bottleneck, ``[units]``."""
        column: Floats = self._cells[:, LINK_COUNTER[name]]
        return column

    def rates(self, packets: Counts, groups: Sequence[Population]) -> Floats:
        """Return the packets per flow, or packets per second if some flows start or stop."""
        counts = packets.astype(np.float64)
        if not any(group.has_start_or_stop for group in groups):
            return counts
        seconds = [float(self.on_seconds([group]).sum()) for group in groups]
        on = np.repeat(seconds, [group.count for group in groups])
        rates: Floats = np.divide(counts, on, out=np.full_like(counts, np.nan), where=on > 0)
        return rates[np.isfinite(rates)]

    def class_counter(self, name: str, classes: Sequence[int] | None = None) -> Floats:
        """Return a counter summed over some classes (default: all), ``[units]``."""
        selected = range(self._classes) if classes is None else classes
        columns = [
            len(LINK_COUNTER) + number * len(CLASS_COUNTER) + CLASS_COUNTER[name]
            for number in selected
        ]
        total: Floats = self._cells[:, columns].sum(axis=1)
        return total

    def total(self, name: str, classes: Sequence[int] | None = None) -> float:
        """Return a counter summed over the run and over some classes (default: all)."""
        return float(self.class_counter(name, classes).sum())

    def weighted_sum(self, name: str, weights: Mapping[int, float]) -> Floats:
        """Return the sum of a class counter times the weight of the class, ``[units]``."""
        parts = [weight * self.class_counter(name, [index]) for index, weight in weights.items()]
        total: Floats = np.sum(parts, axis=0)
        return total

    def sums(self, names: Counters, classes: Sequence[int] | None = None) -> Floats:
        """Return the sum of counters, ``[units]``.

        Class counters are summed over ``classes`` (default: all).
        """
        cells = [
            self.link(name) if name in LINK_COUNTER else self.class_counter(name, classes)
            for name in names
        ]
        total: Floats = np.sum(cells, axis=0)
        return total

    def event_counter(self, times: Sequence[NDArray[np.int64]]) -> Floats:
        """Count events per unit, ``[units]``; ``times``, one array per replication, are in ns."""
        counts = [
            np.searchsorted(t, ends, "right") for t, ends in zip(times, self._times, strict=True)
        ]
        totals = [np.array([t.size], dtype=np.uint64) for t in times]
        rows = [count[:-1].reshape(-1, 1).astype(np.uint64) for count in counts]
        for row in rows:
            row[0] = 0
        column: Floats = statistics.split_units(rows, totals=totals)[:, 0]
        return column

    def size_counter(self, name: str, row: int) -> Floats:
        """Return a counter of one size interval, ``[units]``."""
        first = len(LINK_COUNTER) + self._classes * len(CLASS_COUNTER)
        column: Floats = self._cells[:, first + row * len(SIZE_COUNTER) + SIZE_COUNTER[name]]
        return column

    @property
    def _first_link_column(self) -> int:
        pairs = len(self.link_classes) * len(LINK_CLASS_COUNTER)
        total: int = self._cells.shape[1] - pairs - self._links * len(LINK_TOTAL_COUNTER)
        return total

    @property
    def size_rows(self) -> int:
        """Number of size intervals."""
        columns = self._first_link_column - len(LINK_COUNTER) - self._classes * len(CLASS_COUNTER)
        return columns // len(SIZE_COUNTER)

    def link_total(self, name: str, link: int) -> Floats:
        """Return a counter of a link of a network over all classes, ``[units]``."""
        first = self._first_link_column + link * len(LINK_TOTAL_COUNTER)
        column: Floats = self._cells[:, first + LINK_TOTAL_COUNTER[name]]
        return column

    def link_class_totals(self) -> dict[str, Floats]:
        """Return each counter of the entries of ``link_classes`` over the run, ``[entries]``."""
        first = self._first_link_column + self._links * len(LINK_TOTAL_COUNTER)
        rows = self._cells[:, first:].sum(axis=0).reshape(-1, len(LINK_CLASS_COUNTER))
        return {name: rows[:, at].astype(np.float64) for name, at in LINK_CLASS_COUNTER.items()}

    def on_link(self, name: str, pairs: Sequence[int]) -> Floats:
        """Return a counter summed over some entries of ``link_classes``, ``[units]``."""
        first = self._first_link_column + self._links * len(LINK_TOTAL_COUNTER)
        columns = [first + n * len(LINK_CLASS_COUNTER) + LINK_CLASS_COUNTER[name] for n in pairs]
        total: Floats = self._cells[:, columns].sum(axis=1)
        return total

    def ratio(
        self,
        numerator: Floats,
        denominator: Floats,
        *,
        scale: float = 1.0,
        events: bool = False,
        maximum: float = math.inf,
    ) -> Estimate | None:
        """Estimate ``scale`` times a ratio of sums."""
        return statistics.estimate_ratio(
            scale * numerator,
            denominator,
            replications=self.replications,
            events=events,
            maximum=maximum,
        )

    def share_of_capacity(self, carried: Floats, capacity: Floats) -> Estimate | None:
        """Estimate the carried share of a capacity, at most 1.

        A link may carry more than its capacity during the measurement: tokens that it saved during
        the warm-up, and packets that are counted before their transmission ends.
        """
        excess = max(1.0, carried.sum() / max(capacity.sum(), 1.0))
        return self.ratio(carried / excess, capacity, maximum=1.0)

    def per_replication(self, counts: Floats, length: Floats | None = None) -> Estimate | None:
        """Estimate the mean of a count over replications.

        ``length`` is the measure of a run's length, ``[units]``: transfers, or time (None). Units
        differ in length, so each is weighted by its share of the total.
        """
        whole = self.link("time_ns") if length is None else length
        if not whole.any():
            return None
        share = whole * (self.replications / whole.sum())
        return self.ratio(counts, share, events=True)


@dataclass(frozen=True, slots=True)
class UnfinishedTransfers:
    """Number of transfers of a class in progress at the end, and sum of their ages in seconds."""

    count: int = 0
    age_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Inputs of metrics and tables at one time of a run.

    ``totals`` contains histograms and counts over all replications. ``sources`` has, for each
    replication, the packets and the ON time (in nanoseconds) of each source. ``loss_events`` has
    the times of the loss events of all flows combined; None if there were too many to keep.
    ``goodputs`` has the counters of file goodput per slot and replication, ``class_times`` those of
    RTTs, delays and latencies, and ``link_waits`` those of queueing delays: one group per entry of
    ``units.link_classes``, then one per link for its cross traffic. ``unfinished`` has the
    transfers in progress at the end, one entry per class. ``time_series`` has the sums over time of
    each replication, as for :func:`.time_series.series_tables`, if they are recorded.
    """

    units: BatchCounters
    totals: dict[str, Any]
    sources: list[tuple[Counts, Counts]]
    loss_events: list[NDArray[np.int64]] | None
    goodputs: Sequence[SlotCounts]
    unfinished: Sequence[UnfinishedTransfers] = ()
    class_times: Sequence[SlotCounts] = ()
    link_waits: Sequence[SlotCounts] = ()
    time_series: Sequence[Floats] = ()

    @property
    def largest_queue(self) -> int:
        """Largest queue at the bottleneck, in packets."""
        return max(len(self.totals["queue_time_ns"]), len(self.totals["queue_seen"]), 1) - 1


def read_counters(
    scenario: Scenario, run: _native.Simulation, *, each: bool = False
) -> list[BatchCounters]:
    """Return the counters of all replications together, or of each replication."""
    rows, clocks, pairs = run.counters(), run.clocks(), run.link_classes()
    begins = max(0, clocks[0][0] - int(rows[0][-1, LINK_COUNTER["time_ns"]])) if clocks else 0
    return [
        BatchCounters(
            part,
            len(scenario.populations),
            begins_ns=begins,
            links=len(scenario.topology.links) if pairs else 0,
            link_classes=pairs,
        )
        for part in ([[row] for row in rows] if each else [rows])
    ]


def read_snapshot(scenario: Scenario, run: _native.Simulation) -> Snapshot:
    """Read all counters of a run, which can continue afterwards."""
    units = read_counters(scenario, run)[0]
    # Loss events are at least one mean RTT apart (in whole nanoseconds).
    rtt_sum_ns, samples = (units.total(n) for n in ("rtt_sum_ns", "rtt_samples"))
    events = run.loss_events(round(rtt_sum_ns / max(1.0, samples)))
    return Snapshot(
        *(units, run.totals(), run.sources(), events, run.file_goodputs()),
        unfinished=[
            UnfinishedTransfers(sum(count for count, _ in each), sum(age for _, age in each) * 1e-9)
            for each in zip(*run.unfinished(), strict=True)
        ],
        class_times=run.class_times(),
        link_waits=run.link_waits(),
        time_series=[rows.astype(np.float64) for rows in run.time_series()],
    )


def split_slot_counts(
    replications: Sequence[SlotCounts], groups: Sequence[int]
) -> tuple[int, Floats]:
    """Return counts of some groups per unit and bucket, ``[units, buckets]``, and the first bucket.

    Without counts, the first bucket is 0, and the array is a single 0.
    """
    chosen = [np.isin(group, groups) for _, _, group, _, _ in replications]
    buckets = [r[3][which].astype(np.intp) for r, which in zip(replications, chosen, strict=True)]
    occupied = np.concatenate(buckets) if buckets else np.zeros(0, dtype=np.intp)
    if not occupied.size:
        return 0, np.zeros((max(1, len(replications)), 1))
    first = int(occupied.min())
    width = int(occupied.max()) - first + 1
    rows = []
    for (slots, slot, _, _, count), which, bucket in zip(
        replications, chosen, buckets, strict=True
    ):
        positions = (slot[which].astype(np.intp) + 1) * width + bucket - first
        added = np.bincount(positions, weights=count[which], minlength=(slots + 1) * width)
        rows.append(np.cumsum(added.reshape(slots + 1, width), axis=0))
    counts = statistics.split_units([row[:-1] for row in rows], totals=[row[-1] for row in rows])
    return first, counts


def estimate_time_percentiles(
    replications: Sequence[SlotCounts], groups: Sequence[int], percentages: Sequence[int]
) -> list[Estimate | None]:
    """Estimate percentiles in seconds of the times of some groups; None without a time."""
    first, counts = split_slot_counts(replications, groups)
    last = first + counts.shape[1]
    edges = 1e-9 * np.array(_native.TIME_BUCKET_LIMITS_NS[first : last + 1])
    estimates = [
        quantiles.estimate_exceeded_value(
            counts, edges, 1 - percent / 100, replications=max(1, len(replications))
        )
        for percent in percentages
    ]
    # The first bucket contains only times of 0.
    return [
        replace(each, value=0.0, low=None if each.low is None else 0.0)
        if each is not None and each.value < edges[1] and first == 0
        else each
        for each in estimates
    ]


def time_percentiles_of_groups(
    replications: Sequence[SlotCounts], groups: int, percentages: Sequence[int]
) -> Floats:
    """Return percentiles in seconds of the times of each group, ``[percentages, groups]``.

    Without a time, the percentiles of a group are nan. Within a bucket, times are assumed to be
    spread evenly.
    """
    result = np.full((len(percentages), groups), np.nan)
    if not replications:
        return result
    limits = 1e-9 * np.array(_native.TIME_BUCKET_LIMITS_NS)
    width = limits.size - 1
    columns = [(group, bucket, count) for _, _, group, bucket, count in replications]
    group, bucket, count = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    known = group < groups
    cells, index = np.unique(
        group[known].astype(np.int64) * width + bucket[known].astype(np.int64), return_inverse=True
    )
    counts = np.bincount(index, weights=count[known], minlength=cells.size)
    below = np.concatenate(([0.0], np.cumsum(counts)))
    firsts = np.searchsorted(cells, np.arange(groups + 1) * width)
    totals = below[firsts[1:]] - below[firsts[:-1]]
    filled = np.flatnonzero(totals)
    for row, percent in enumerate(percentages):
        wanted = below[firsts[filled]] + percent / 100 * totals[filled]
        at = np.searchsorted(below, wanted, "left") - 1
        at = np.clip(at, firsts[filled], firsts[filled + 1] - 1)
        low, high = limits[cells[at] % width], limits[cells[at] % width + 1]
        high = np.where(low == 0, 0, high)  # the first bucket contains only times of 0
        result[row, filled] = low + (high - low) * (wanted - below[at]) / counts[at]
    return result


def point_estimate(value: float) -> Estimate:
    """Return a value as an estimate without an interval."""
    return Estimate(value, None, None, math.inf, 0)
