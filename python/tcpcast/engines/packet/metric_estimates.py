"""Convert the simulator's cumulative counters to metrics with intervals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tcpcast import _native, statistics
from tcpcast.answer import Metric
from tcpcast.answer.metrics import (
    CLASS_METRICS,
    METRICS,
    PERCENTILE_TIMES,
    PERCENTILES,
    sort_metrics,
)
from tcpcast.engines.packet import transfers
from tcpcast.engines.packet.counters import (
    CLASS_COUNTER,
    DROP_COUNTERS,
    LINK_COUNTER,
    BatchCounters,
    Estimates,
    Snapshot,
    estimate_time_percentiles,
    point_estimate,
    split_slot_counts,
    unwrap_counters,
)
from tcpcast.engines.packet.scenario_features import has_feature, has_queue
from tcpcast.engines.packet.sharing import estimate_convergence_time, estimate_fair_share
from tcpcast.engines.packet.unfinished_transfers import get_unfinished
from tcpcast.scenario.return_path import RETURN
from tcpcast.statistics.latency_under_load import TRIMMED_SHARE, rpm_of_means
from tcpcast.statistics.vector_products import dot_product

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpcast.array_types import Floats
    from tcpcast.engines.packet.counters import SlotCounts
    from tcpcast.scenario import Scenario
    from tcpcast.scenario.classes import Population
    from tcpcast.statistics import Estimate


def estimate_metrics(scenario: Scenario, snapshot: Snapshot) -> Estimates:
    """Return every metric of the run; None if the run had no observation of it."""
    units = snapshot.units
    result = estimate_class_metrics(scenario, units, None, snapshot.class_times)
    result |= estimate_run_metrics(scenario, units)
    if snapshot.loss_events is None or not units.class_counter("rtt_samples").any():
        result["loss_event_ratio_cumulative"] = None
    else:
        events = units.event_counter(snapshot.loss_events)
        result["loss_event_ratio_cumulative"] = units.ratio(
            events, units.class_counter("sent"), events=True, maximum=1.0
        )
    if has_queue(scenario):
        result["queue_max_pkts"] = point_estimate(float(snapshot.largest_queue))
        _, *values = snapshot.totals["wait_percentiles"]
        known = zip(("queue_delay_p95_s", "queue_delay_p99_s"), values, strict=True)
        # The smallest bucket contains packets that did not wait.
        result |= {
            name: point_estimate(s if s > 1e-9 else 0.0) for name, s in known if s is not None
        }
    groups = scenario.populations
    if all(group.traffic.kind == "bulk" for group in groups):
        counts = [group.count for group in groups]
        payloads = np.repeat([np.uint64(group.payload_bytes) for group in groups], counts)
        sizes = payloads if scenario.packet_size_classes else np.uint64(1)
        indices = [
            jain_index(snapshot.units.rates(sizes * sent, groups)) for sent, _ in snapshot.sources
        ]
        if sum(counts) == 1:
            result["jain_index"] = point_estimate(1.0)
        elif all(math.isfinite(index) for index in indices):
            result["jain_index"] = statistics.estimate_ratio(
                indices, [1.0] * len(indices), replications=len(indices), maximum=1.0
            )
    result["convergence_time_s"] = estimate_convergence_time(scenario, snapshot.time_series)
    result |= estimate_finished_transfers(scenario, units)
    result["rpm"] = estimate_rpm(scenario, snapshot.class_times)
    if snapshot.unfinished and scenario.isolated_transfers is None:
        kinds = {"on-off", "transfers"} & {group.traffic.kind for group in scenario.populations}
        if kinds:
            all_classes = range(len(scenario.populations))
            unfinished = get_unfinished(scenario, snapshot, all_classes, kinds).count
            result |= {
                "unfinished_transfers": point_estimate(unfinished / snapshot.units.replications)
            }
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


def estimate_run_metrics(scenario: Scenario, units: BatchCounters) -> Estimates:
    """Return the ratios and counts of counters that exist only in total."""
    estimates = {
        name: _estimate_ratio_of_row(scenario, units, name)
        for name, row in METRICS.items()
        if any(row.ratio_of) and not row.class_columns
    }
    if scenario.network.has_return:
        estimates |= _estimate_return_link(scenario, units)
    if scenario.bottleneck.varying is not None:
        carried, capacity = (units.link(f"{name}_bytes") for name in ("carried", "capacity"))
        estimates["utilisation"] = units.share_of_capacity(carried, capacity)
    # If a number of transfers ends the run, batches of equal time contain different numbers of
    # transfers, and only counts per transfer vary by chance alone.
    by_transfers = scenario.run.transfers is not None or scenario.isolated_transfers is not None
    finished = units.class_counter("transfers")
    length = finished if by_transfers and finished.any() else None
    return estimates | {
        name: units.per_replication(units.sums(row.count_of), length)
        for name, row in METRICS.items()
        if row.count_of and has_feature(scenario, row.needs)
    }


def estimate_rpm(scenario: Scenario, times: Sequence[SlotCounts]) -> Estimate | None:
    """Estimate round trips per minute under load; None without pings beside TCP flows.

    A ping stands for the handshakes and the first request of a new connection, whose packets find
    no others of their flow; TCP's RTT samples stand for requests on connections with the load.
    """
    kinds = [group.traffic.kind for group in scenario.populations]
    pings = [place for place, kind in enumerate(kinds) if kind == "ping"]
    flows = [place for place, kind in enumerate(kinds) if kind not in ("ping", "messages")]
    means = []
    for places, kind in ((pings, "delay"), (flows, "rtt")):
        at = _native.TIME_KINDS.index(kind)
        chosen = [place * len(_native.TIME_KINDS) + at for place in places]
        first, counts = split_slot_counts(times, chosen)
        edges = 1e-9 * np.array(_native.TIME_BUCKET_LIMITS_NS[first : first + counts.shape[1] + 1])
        if not counts.any() or edges.size <= counts.shape[1]:
            return None
        cumulated = np.cumsum(counts.sum(axis=0))
        kept = TRIMMED_SHARE * cumulated[-1]
        below = np.concatenate([[0.0], cumulated[:-1]])
        weights = np.clip((kept - below) / np.maximum(cumulated - below, 1e-300), 0.0, 1.0)
        weighted, middles = counts * weights, (edges[:-1] + edges[1:]) / 2
        means.append((weighted @ middles, weighted.sum(axis=1)))
    sums = [total.sum() / count.sum() for total, count in means]
    value = rpm_of_means(*map(float, sums))
    if not all(count.all() for _, count in means):
        return point_estimate(value)  # Units without a round trip have no mean.
    per_unit = [
        60.0 / rpm_of_means(*pair)
        for pair in zip(*(total / count for total, count in means), strict=True)
    ]
    trips = statistics.estimate_mean(per_unit, replications=max(1, len(times)))
    if trips is None or trips.low is None or trips.high is None or trips.low <= 0:
        return point_estimate(value)
    low, high = 60.0 / trips.high, 60.0 / trips.low
    half = max(value - low, high - value)
    return statistics.Estimate(value, min(low, value), max(high, value), half, trips.units)


def _estimate_return_link(scenario: Scenario, units: BatchCounters) -> Estimates:
    """Return the metrics of the link that the acks share."""
    link = list(scenario.topology.links).index(RETURN)
    pairs = [n for n, (number, _) in enumerate(units.link_classes) if number == link]
    carried, capacity = (
        units.link_total(f"{name}_bytes", link) for name in ("carried", "capacity")
    )
    dropped = np.sum([units.on_link(name, pairs) for name in DROP_COUNTERS], axis=0)
    entered, served = (units.on_link(name, pairs) for name in ("entered", "transmitted"))
    estimates: Estimates = {
        "return_loss_ratio": units.ratio(dropped, entered, events=True, maximum=1.0),
        "return_queue_delay_mean_s": units.ratio(
            units.on_link("waited_ns", pairs), served, scale=1e-9
        ),
    }
    if has_feature(scenario, "return rate"):
        estimates["return_utilisation"] = units.share_of_capacity(carried, capacity)
    return estimates


def estimate_class_metrics(
    scenario: Scenario,
    units: BatchCounters,
    index: int | None,
    times: Sequence[SlotCounts] = (),
) -> Estimates:
    """Return the metrics that exist per class and in total: rates, times, loss, RTT.

    ``times`` are the ``class_times`` of a snapshot.
    """
    groups = scenario.populations
    selected = range(len(groups)) if index is None else (index,)
    seconds = units.on_seconds([groups[place] for place in selected])
    packet_bits = {place: 8.0 * groups[place].packet_bytes for place in selected}
    bits = units.weighted_sum("transfer_packets", packet_bits)
    # The mean time from the first transmission of a packet to the ACK that covers it. Little's
    # law: the sum of these times is the integral of the number of packets in flight. With
    # instantaneous loss feedback, each packet has its own ACK and is one RTT sample.
    sum_ns, packets = "in_flight_ns", "acked"
    if scenario.has_loss_feedback:
        sum_ns, packets = "rtt_sum_ns", "rtt_samples"
    # Messages and pings are packets of any size, without TCP.
    with_tcp = [i for i in selected if groups[i].traffic.kind not in ("messages", "ping")]
    payload_bits = {index: 8.0 * groups[index].payload_bytes for index in with_tcp}
    payload_sent = units.weighted_sum("delivered", payload_bits) if with_tcp else seconds
    lacking = 8.0 * units.class_counter("lacking_bytes", with_tcp)
    special = {
        "connection_rate_bps": units.ratio(
            bits, units.class_counter("on_time_ns", selected) * 1e-9
        ),
        "rtt_packet_mean_s": units.ratio(
            units.class_counter(sum_ns, selected) * 1e-9, units.class_counter(packets, selected)
        ),
        "send_rate_pps": units.ratio(units.class_counter("sent", selected), seconds),
        "goodput_pps": units.ratio(units.class_counter("delivered", selected), seconds),
        "goodput_bps": units.ratio(payload_sent - lacking, seconds) if with_tcp else None,
        "fair_share": estimate_fair_share(scenario, units, index),
    }
    kinds = {groups[place].traffic.kind for place in selected}
    for at, kind in enumerate(_native.TIME_KINDS):
        chosen = [place * len(_native.TIME_KINDS) + at for place in selected]
        # Times of different kinds, such as one-way delays and RTTs of pings, are not mixed.
        is_mixed = len(kinds & set(PERCENTILE_TIMES[kind][1])) > 1
        wanted = {name: percent for name, (of, percent) in PERCENTILES.items() if of == kind}
        found = estimate_time_percentiles(() if is_mixed else times, chosen, [*wanted.values()])
        special |= dict(zip(wanted, found, strict=True))
    of_messages = [place for place in selected if place not in with_tcp]
    pairs = [n for n, (_, place) in enumerate(units.link_classes) if place in of_messages]
    lost = np.sum([units.on_link(name, pairs) for name in DROP_COUNTERS], axis=0)
    messages = units.class_counter("messages", of_messages)
    special["message_loss_ratio"] = units.ratio(lost, messages, events=True, maximum=1.0)
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
        scale={"s": 1e-9, "bit/s": 1e9}.get(row.unit, 1.0),
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


def jain_index(packets: Floats) -> float:
    """Return Jain's fairness index, ``(sum x)^2 / (n sum x^2)``; nan if nothing was sent."""
    squares = packets.size * dot_product(packets, packets)
    return float(packets.sum()) ** 2 / squares if squares else math.nan


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
