"""Convert the simulator's cumulative counters to metrics with intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast import _native, statistics
from tcpcast.answer import Metric
from tcpcast.engines.packet import transfers
from tcpcast.engines.packet.scenario_features import has_feature, has_queue
from tcpcast.engines.packet.unfinished_transfers import UnfinishedTransfers, get_unfinished
from tcpcast.metrics import CLASS_METRICS, METRICS, sort_metrics
from tcpcast.statistics import Estimate
from tcpcast.vector_products import dot_product

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tcpcast.array_types import Counts, Floats
    from tcpcast.metric_definition import Counters
    from tcpcast.scenario import Scenario
    from tcpcast.scenario.classes import Population

Estimates = dict[str, Estimate | None]

LINK_COUNTER = {name: index for index, name in enumerate(_native.LINK_CELLS)}
CLASS_COUNTER = {name: index for index, name in enumerate(_native.CLASS_CELLS)}
SIZE_COUNTER = {name: index for index, name in enumerate(_native.SIZE_CELLS)}


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
        self, rows: Sequence[Counts | Floats], classes: int, *, begins_ns: int = 0
    ) -> None:
        """Store the cumulative counters of each replication.

        Each array is ``[slots + 2, counters]``; its last row is the end of the run. Counting starts
        at ``begins_ns``, the end of the warm-up.
        """
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
            self._seconds[span] = self._overlap_s(span)
        return self._seconds[span]

    def _overlap_s(self, span: tuple[float, float]) -> Floats:
        low, high = np.maximum(np.array(span) * 1e9 - self._begins_ns, 0.0)
        columns = [
            (np.clip(t.astype(np.float64), low, high) - low).reshape(-1, 1) * 1e-9
            for t in self._times
        ]
        totals = [column[-1] for column in columns]
        seconds: Floats = statistics.split_units([c[:-1] for c in columns], totals=totals)[:, 0]
        return seconds

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
    def size_rows(self) -> int:
        """Number of size intervals."""
        columns: int = self._cells.shape[1] - len(LINK_COUNTER) - self._classes * len(CLASS_COUNTER)
        return columns // len(SIZE_COUNTER)

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
class Snapshot:
    """Inputs of metrics and tables at one time of a run.

    ``totals`` contains histograms and counts over all replications. ``sources`` has, for each
    replication, the packets and the ON time (in nanoseconds) of each source. ``loss_events`` has
    the times of the loss events of all flows combined; None if there were too many to keep.
    ``goodputs`` has the counters of file goodput per slot and replication. ``unfinished`` has the
    transfers in progress at the end, one entry per class.
    """

    units: BatchCounters
    totals: dict[str, Any]
    sources: list[tuple[Counts, Counts]]
    loss_events: list[NDArray[np.int64]] | None
    goodputs: Sequence[tuple[int, Counts, Counts, Counts, Counts | Floats]]
    unfinished: Sequence[UnfinishedTransfers] = ()

    @property
    def largest_queue(self) -> int:
        """Largest queue at the bottleneck, in packets."""
        return max(len(self.totals["queue_time_ns"]), len(self.totals["queue_seen"]), 1) - 1


def read_snapshot(scenario: Scenario, run: _native.Simulation) -> Snapshot:
    """Read all counters of a run, which can continue afterwards."""
    rows, clocks = run.counters(), run.clocks()
    begins = max(0, clocks[0][0] - int(rows[0][-1, LINK_COUNTER["time_ns"]])) if clocks else 0
    units = BatchCounters(rows, len(scenario.populations), begins_ns=begins)
    # Loss events are at least one mean RTT apart (in whole nanoseconds).
    rtt_sum_ns, samples = (units.total(n) for n in ("rtt_sum_ns", "rtt_samples"))
    events = run.loss_events(round(rtt_sum_ns / max(1.0, samples)))
    return Snapshot(
        *(units, run.totals(), run.sources(), events, run.file_goodputs()),
        unfinished=[
            UnfinishedTransfers(sum(count for count, _ in each), sum(age for _, age in each) * 1e-9)
            for each in zip(*run.unfinished(), strict=True)
        ],
    )


def estimate_metrics(scenario: Scenario, snapshot: Snapshot) -> Estimates:
    """Return every metric of the run; None if the run had no observation of it."""
    units = snapshot.units
    result = estimate_class_metrics(scenario, units, None)
    result |= estimate_run_metrics(scenario, units) | _estimate_delay_percentiles(snapshot.totals)
    result["loss_event_ratio_cumulative"] = _estimate_loss_event_ratio(snapshot)
    result |= _metrics_without_batches(scenario, snapshot)
    result |= estimate_finished_transfers(scenario, units)
    if snapshot.unfinished and scenario.isolated_transfers is None:
        result |= _mean_unfinished_transfers(scenario, snapshot)
    if scenario.isolated_transfers is not None:
        return transfers.estimate_isolated_transfers(result, snapshot.totals)
    return result


def estimate_finished_transfers(scenario: Scenario, units: BatchCounters) -> Estimates:
    """Return the mean number of finished transfers per replication, and the offered load."""
    estimates: Estimates = {}
    finished = units.per_replication(units.class_counter("transfers"))
    if finished is not None and finished.value > 0:
        # A requested number is not an estimate.
        is_requested = scenario.run.transfers is not None or scenario.isolated_transfers is not None
        estimates["transfers"] = point_estimate(finished.value) if is_requested else finished
    if scenario.arriving_load is not None:
        estimates["offered_load"] = point_estimate(scenario.arriving_load)
    return estimates


def _mean_unfinished_transfers(scenario: Scenario, snapshot: Snapshot) -> Estimates:
    """Return the mean number of unfinished transfers per replication at the end of the run."""
    kinds = {"on-off", "transfers"} & {group.traffic.kind for group in scenario.populations}
    if not kinds:
        return {}
    all_classes = range(len(scenario.populations))
    unfinished = get_unfinished(scenario, snapshot, all_classes, kinds).count
    return {"unfinished_transfers": point_estimate(unfinished / snapshot.units.replications)}


def estimate_run_metrics(scenario: Scenario, units: BatchCounters) -> Estimates:
    """Return the ratios and counts of counters that exist only in total."""
    estimates = {
        name: _estimate_ratio_of_row(scenario, units, name)
        for name, row in METRICS.items()
        if any(row.ratio_of) and not row.class_columns
    }
    if scenario.network.bottleneck.varying is not None:
        # A token bucket may also carry tokens that it saved during the warm-up: at most 100 %.
        capacity = units.link("capacity_bytes")
        carried = units.link("carried_bytes")
        if carried.sum() > capacity.sum():
            carried *= capacity.sum() / carried.sum()
        estimates["utilisation"] = units.ratio(carried, capacity, maximum=1.0)
    return estimates | _count_events_per_run(scenario, units)


def _count_events_per_run(scenario: Scenario, units: BatchCounters) -> Estimates:
    """Return the counts of events per run of the same duration or number of transfers.

    If a number of transfers ends the run, batches of equal time contain different numbers of
    transfers, and only counts per transfer vary by chance alone.
    """
    by_transfers = scenario.run.transfers is not None or scenario.isolated_transfers is not None
    finished = units.class_counter("transfers")
    length = finished if by_transfers and finished.any() else None
    return {
        name: units.per_replication(units.sums(row.count_of), length)
        for name, row in METRICS.items()
        if row.count_of and has_feature(scenario, row.needs)
    }


def estimate_class_metrics(
    scenario: Scenario, units: BatchCounters, index: int | None
) -> Estimates:
    """Return the metrics that exist per class and in total: rates, ON times, loss, RTT."""
    groups = scenario.populations
    selected = range(len(groups)) if index is None else (index,)
    seconds = units.on_seconds([groups[place] for place in selected])
    packet_bits = {place: 8.0 * groups[place].packet_bytes for place in selected}
    bits = units.weighted_sum("transfer_packets", packet_bits)
    special = {
        "connection_rate_bps": units.ratio(
            bits, units.class_counter("on_time_ns", selected) * 1e-9
        ),
        "rtt_packet_mean_s": _estimate_packet_rtt(scenario, units, selected),
        "send_rate_pps": units.ratio(units.class_counter("sent", selected), seconds),
        "goodput_pps": units.ratio(units.class_counter("delivered", selected), seconds),
        "goodput_bps": _estimate_goodput_bps(scenario, units, selected),
    }
    return {
        name: special[name]
        if name in special
        else _estimate_ratio_of_row(
            scenario,
            units,
            name,
            [place for place in selected if _covers_class(groups[place], name)],
        )
        for name in CLASS_METRICS
    }


def _estimate_ratio_of_row(
    scenario: Scenario, units: BatchCounters, name: str, classes: Sequence[int] | None = None
) -> Estimate | None:
    """Estimate a metric from the counters in its row, for some classes (default: all).

    If the counted events cannot occur, a value of 0 is exact.
    """
    row = METRICS[name]
    if not has_feature(scenario, row.needs):
        return None
    numerator, denominator = (units.sums(names, classes) for names in row.ratio_of)
    return units.ratio(
        numerator,
        denominator,
        scale=1e-9 if row.unit == "s" else 1.0,
        events=row.counts_events and has_feature(scenario, row.events_need),
        maximum=row.maximum,
    )


def _covers_class(group: Population, name: str) -> bool:
    """Return True if a metric covers the sources of a class."""
    if name == "total_time_s":
        return group.opens_connections
    if name == "idle_restart_ratio":
        return group.traffic.kind == "on-off" and group.traffic.connection == "persistent"
    kinds = METRICS[name].file_kinds
    return not kinds or group.traffic.kind in kinds


def _estimate_goodput_bps(
    scenario: Scenario, units: BatchCounters, selected: Sequence[int]
) -> Estimate | None:
    """Return the payload delivered per second; timestamps reduce the payload of a packet."""
    groups = scenario.populations
    payload_bits = {index: 8.0 * groups[index].payload_bytes for index in selected}
    bits = units.weighted_sum("delivered", payload_bits)
    lacking = 8.0 * units.class_counter("lacking_bytes", selected)
    return units.ratio(bits - lacking, units.on_seconds([groups[index] for index in selected]))


def _estimate_packet_rtt(
    scenario: Scenario, units: BatchCounters, selected: Sequence[int]
) -> Estimate | None:
    """Return the mean time from the first transmission of a packet to the ACK that covers it.

    Little's law: the sum of these times is the integral of the number of packets in flight. With
    instantaneous loss feedback, each packet has its own ACK and is one RTT sample.
    """
    sum_ns, packets = "in_flight_ns", "acked"
    if scenario.has_loss_feedback:
        sum_ns, packets = "rtt_sum_ns", "rtt_samples"
    return units.ratio(
        units.class_counter(sum_ns, selected) * 1e-9, units.class_counter(packets, selected)
    )


def _estimate_delay_percentiles(totals: Mapping[str, Any]) -> Estimates:
    """Return the 95th and 99th percentiles of the queueing delay, if it was recorded."""
    _, *values = totals["wait_percentiles"]
    names = ("queue_delay_p95_s", "queue_delay_p99_s")
    known = zip(names, values, strict=True)
    # The smallest bucket contains packets that did not wait.
    return {name: point_estimate(s if s > 1e-9 else 0.0) for name, s in known if s is not None}


def _estimate_loss_event_ratio(snapshot: Snapshot) -> Estimate | None:
    """Return loss events of the aggregate of all flows per packet sent; None if there is no RTT."""
    units = snapshot.units
    if snapshot.loss_events is None or not units.class_counter("rtt_samples").any():
        return None
    events = units.event_counter(snapshot.loss_events)
    return units.ratio(events, units.class_counter("sent"), events=True, maximum=1.0)


def _metrics_without_batches(scenario: Scenario, snapshot: Snapshot) -> Estimates:
    """Return metrics that have no batches: the largest queue, Jain's index of the flows."""
    estimates: Estimates = {}
    if has_queue(scenario):
        estimates["queue_max_pkts"] = point_estimate(float(snapshot.largest_queue))
    groups = scenario.populations
    if all(group.traffic.kind == "bulk" for group in groups):
        counts = [group.count for group in groups]
        payloads = np.repeat([np.uint64(group.payload_bytes) for group in groups], counts)
        sizes = payloads if scenario.packet_size_classes else np.uint64(1)
        indices = [
            jain_index(snapshot.units.rates(sizes * sent, groups)) for sent, _ in snapshot.sources
        ]
        if sum(counts) == 1:
            estimates["jain_index"] = point_estimate(1.0)
        elif all(math.isfinite(index) for index in indices):
            estimates["jain_index"] = statistics.estimate_ratio(
                indices, [1.0] * len(indices), replications=len(indices), maximum=1.0
            )
    return estimates


def jain_index(packets: Floats) -> float:
    """Return Jain's fairness index, ``(sum x)^2 / (n sum x^2)``; nan if nothing was sent."""
    squares = packets.size * dot_product(packets, packets)
    return float(packets.sum()) ** 2 / squares if squares else math.nan


def point_estimate(value: float) -> Estimate:
    """Return a value as an estimate without an interval."""
    return Estimate(value, None, None, math.inf, 0)


def convert_to_metrics(estimates: Estimates) -> dict[str, Metric]:
    """Return the existing estimates as the metrics of an answer, in display order."""
    known = {name: e for name, e in estimates.items() if e is not None}
    fields = ("value", "low", "high", "interval_warning", "at_least")
    return {
        name: Metric(**{field: getattr(known[name], field) for field in fields})
        for name in sort_metrics(known)
    }


def warm_up_series(run: _native.Simulation, scenario: Scenario) -> tuple[float, list[Floats]]:
    """Return the slot length in seconds and the series that show the end of the warm-up.

    The first series is the mean queue per slot. If no queue can form (unlimited rate, or a
    policer), it is the number of packets delivered per slot. With several classes, one series of
    packets per class is added, because the classes' shares of the link often settle long after the
    queue. A class that starts or stops during the run is left out. Each series is ``[slots]``.
    """
    rows = unwrap_counters(run.counters()[0])[:-1].astype(np.float64)
    if len(rows) < 2:
        return 0.0, []
    groups = scenario.populations
    columns = [
        len(LINK_COUNTER) + n * len(CLASS_COUNTER) + CLASS_COUNTER["delivered"]
        for n in range(len(groups))
    ]
    delivered, queue = (
        np.diff(rows[:, columns], axis=0),
        np.diff(rows[:, LINK_COUNTER["queue_integral"]]),
    )
    total = queue if has_queue(scenario) else delivered.sum(axis=1)
    shares = [
        delivered[:, index]
        for index, group in enumerate(groups)
        if len(groups) > 1 and not group.has_start_or_stop
    ]
    return rows[1, LINK_COUNTER["time_ns"]] * 1e-9, [total, *shares]
