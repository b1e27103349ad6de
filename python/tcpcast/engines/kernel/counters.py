"""Convert snapshots of a run to the packet engine's counters, and hence to its metrics."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast import statistics
from tcpcast.emulation.traffic import FLOW_COUNTERS, WAIT_STEP_S
from tcpcast.engines.kernel import file_transfers
from tcpcast.engines.kernel.file_transfers import FinishedFiles, count_senders
from tcpcast.engines.packet import metric_estimates
from tcpcast.engines.packet.class_table import make_class_table
from tcpcast.engines.packet.configuration import size_interval_bounds
from tcpcast.engines.packet.metric_estimates import (
    CLASS_COUNTER,
    LINK_COUNTER,
    SIZE_COUNTER,
    BatchCounters,
    Snapshot,
)
from tcpcast.engines.packet.reliability import add_class_interval_warnings, add_interval_warnings
from tcpcast.engines.packet.scenario_features import has_queue
from tcpcast.metrics import CLASS_METRICS, METRICS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpcast.array_types import Counts, Floats, Table
    from tcpcast.emulation.traffic import TrafficOutcome
    from tcpcast.scenario import Scenario


KERNEL_COUNTERS = {
    "sent": "arrived",
    "arrived": "arrived",
    "passed": "passed",
    "waited_ns": "waited_ns",
    "marked": "marked",
    "queue_drops": "queue_drops",
    "random_drops": "random_drops",
    "retransmitted": "retransmitted",
    "rtt_sum_ns": "rtt_sum_ns",
    "rtt_samples": "rtt_samples",
    "fast_retransmits": "recoveries",
    "timeouts": "timeouts",
    "timeout_sequences": "timeout_sequences",
}
"""Counters of a class, and their names in the kernel and the link."""

MEASURED_COUNTERS = {
    *KERNEL_COUNTERS,
    *("time_ns", "busy_ns", "queue_integral", "delivered"),
    *("transfers", "transfer_packets", "on_time_ns", "delivery_time_ns", "total_time_ns"),
}
"""Simulator counters that a measurement fills; others stay 0."""

MEASURABLE_METRICS = tuple(
    name for name, row in METRICS.items() if row.counters <= MEASURED_COUNTERS
)
"""Metrics that a measurement can have, in report order."""

MIN_MSER_SLOTS = 50
MAX_LIMITED_SHARE = 0.01
"""A warning is given if a buffer of the hosts limited a flow for more than this share of the
time."""


def make_flow_counters(outcome: TrafficOutcome) -> Floats:
    """Return the cumulative counters of each flow, ``[snapshots, flows, len(FLOW_COUNTERS)]``."""
    return np.array([snapshot["flows"] for snapshot in outcome.snapshots], dtype=np.float64)


def find_warm_up_slots(scenario: Scenario, outcome: TrafficOutcome) -> tuple[int, bool]:
    """Return the number of snapshots in the warm-up, and whether it could be determined.

    The scenario's warm-up, or MSER-5 on the mean wait (on bytes received if packets never wait).
    """
    times = np.array([s["now_ns"] for s in outcome.snapshots], dtype=np.float64) * 1e-9
    given = scenario.run.warmup_s
    if given is not None:
        return int(np.searchsorted(times, times[0] + given)), True
    change = np.diff(make_flow_counters(outcome).sum(axis=1), axis=0)
    passed = change[:, FLOW_COUNTERS.index("passed")]
    series = change[:, FLOW_COUNTERS.index("waited_ns")] / np.maximum(passed, 1.0)
    if not has_queue(scenario):
        series = change[:, FLOW_COUNTERS.index("received_bytes")]
    if series.size < MIN_MSER_SLOTS:
        return 0, False
    end = statistics.mser5(series)
    return end.index, end.is_found


def make_cumulative_counters(
    scenario: Scenario, outcome: TrafficOutcome, begin: int, finished: FinishedFiles
) -> Counts:
    """Return cumulative counters after the warm-up, ``[slots + 2, counters]``."""
    groups, network = scenario.populations, scenario.network
    kept = outcome.snapshots[begin:]
    flows = make_flow_counters(outcome)[begin:]
    flows -= flows[0]
    sizes = (
        len(SIZE_COUNTER) * (len(size_interval_bounds(scenario)) + 1)
        if file_transfers.has_files(scenario)
        else 0
    )
    rows = np.zeros((len(kept), len(LINK_COUNTER) + len(groups) * len(CLASS_COUNTER) + sizes))
    times_ns = np.array([s["now_ns"] for s in kept], dtype=np.float64)
    rows[:, LINK_COUNTER["time_ns"]] = times_ns - times_ns[0]
    carried = np.array([s["carried_bytes"] - kept[0]["carried_bytes"] for s in kept])
    link = network.bottleneck
    if not math.isinf(link.rate_bps) and link.varying is None:
        busy = carried * 8e9 / link.rate_bps
        # A packet counts at its departure, so the transmission of the first may precede the run.
        rows[:, LINK_COUNTER["busy_ns"]] = np.minimum(busy, rows[:, LINK_COUNTER["time_ns"]])
    waited = flows[:, :, FLOW_COUNTERS.index("waited_ns")].sum(axis=1)
    # Little's law: packets waiting and in transmission.
    rows[:, LINK_COUNTER["queue_integral"]] = waited + rows[:, LINK_COUNTER["busy_ns"]]
    ends = np.cumsum([count_senders(group) for group in groups])
    for index, (group, end) in enumerate(zip(groups, ends, strict=True)):
        own = flows[:, end - count_senders(group) : end].sum(axis=1)
        first = len(LINK_COUNTER) + index * len(CLASS_COUNTER)
        for cell, name in KERNEL_COUNTERS.items():
            rows[:, first + CLASS_COUNTER[cell]] = own[:, FLOW_COUNTERS.index(name)]
        received = own[:, FLOW_COUNTERS.index("received_bytes")]
        rows[:, first + CLASS_COUNTER["delivered"]] = received // group.payload_bytes
    if sizes:
        finished.add_to_counters(rows, times_ns, len(LINK_COUNTER), len(groups))
    return np.vstack([rows, rows[-1:]]).astype(np.uint64)


class MeasuredCounters:
    """Counters of all replications after their warm-ups."""

    def __init__(self, scenario: Scenario, outcomes: Sequence[TrafficOutcome]) -> None:
        """Determine the warm-ups, and split the remaining runs into statistical units."""
        self.scenario = scenario
        warm_ups = [find_warm_up_slots(scenario, outcome) for outcome in outcomes]
        self.found_warm_up = all(is_found for _, is_found in warm_ups)
        begins = [
            min(slot, len(o.snapshots) - 2) for (slot, _), o in zip(warm_ups, outcomes, strict=True)
        ]
        cut = list(zip(outcomes, begins, strict=True))
        self.files = [FinishedFiles(scenario, o, o.snapshots[index]["now_ns"]) for o, index in cut]
        rows = [
            make_cumulative_counters(scenario, *one, own)
            for one, own in zip(cut, self.files, strict=True)
        ]
        self.warm_ups_s = [
            (o.snapshots[index]["now_ns"] - o.snapshots[0]["now_ns"]) * 1e-9 for o, index in cut
        ]
        self.measured_s = float(sum(row[-1, LINK_COUNTER["time_ns"]] for row in rows)) * 1e-9
        begins_ns = round(max(self.warm_ups_s) * 1e9)
        self.units = BatchCounters(rows, len(scenario.populations), begins_ns=begins_ns)
        self.flows = [make_flow_counters(o)[-1] - make_flow_counters(o)[index] for o, index in cut]
        self._waits = self._count_waits([o.snapshots[index + 1 :] for o, index in cut])
        longest = self._longest_queue_pkts()
        # Inputs of the reliability rules: counters, and the largest queue.
        nothing = np.zeros(longest + 1, dtype=np.uint64)
        totals = {"queue_time_ns": nothing, "queue_seen": nothing}
        self.snapshot = Snapshot(self.units, totals, [], [], [])

    def estimates(self) -> metric_estimates.Estimates:
        """Return every measured metric; None if there was no observation of it."""
        units, scenario = self.units, self.scenario
        estimates = metric_estimates.estimate_class_metrics(scenario, units, None)
        estimates |= metric_estimates.estimate_run_metrics(scenario, units)
        estimates |= self._queue_delay_percentiles()
        estimates |= self._jain_index()
        estimates |= metric_estimates.estimate_finished_transfers(scenario, units)
        if scenario.network.bottleneck.varying is not None:
            estimates["queue_mean_pkts"] = None
        known = {
            name: estimates[name] for name in MEASURABLE_METRICS if estimates.get(name) is not None
        }
        return add_interval_warnings(scenario, self.snapshot, known)

    def _jain_index(self) -> metric_estimates.Estimates:
        """Return Jain's index of endless flows."""
        groups = self.scenario.populations
        if any(group.traffic.kind != "bulk" for group in groups):
            return {}
        if self.scenario.senders == 1:
            return {"jain_index": metric_estimates.point_estimate(1.0)}
        received = FLOW_COUNTERS.index("received_bytes")
        indices = [
            metric_estimates.jain_index(self.units.rates(f[:, received], groups))
            for f in self.flows
        ]
        if not all(map(math.isfinite, indices)):
            return {}
        return {"jain_index": statistics.estimate_mean(indices, replications=len(indices))}

    @staticmethod
    def _count_waits(runs: Sequence[Sequence[dict[str, Any]]]) -> dict[int, int]:
        """Return the number of packets per waiting time, a histogram in steps."""
        counts: dict[int, int] = {}
        for snapshot in (snapshot for snapshots in runs for snapshot in snapshots):
            for steps, count in snapshot["waits"]:
                counts[steps] = counts.get(steps, 0) + count
        return counts

    def _longest_queue_pkts(self) -> int:
        """Return the queue that corresponds to the longest wait, including the sent packet."""
        rate = self.scenario.network.bottleneck.rate_bps
        if math.isinf(rate) or not self._waits:
            return 0
        longest_s = max(self._waits) * WAIT_STEP_S
        smallest = min(group.packet_bytes for group in self.scenario.populations)
        return 1 + round(longest_s * rate / (8.0 * smallest))

    def _queue_delay_percentiles(self) -> metric_estimates.Estimates:
        """Return the 95th and 99th percentiles of the wait, with a resolution of 20 us."""
        counts = self._waits
        if not counts:
            return {}
        steps = np.array(sorted(counts))
        share = np.cumsum([counts[int(step)] for step in steps]) / sum(counts.values())
        quantiles = {"queue_delay_p95_s": 0.95, "queue_delay_p99_s": 0.99}
        return {
            name: metric_estimates.point_estimate(
                float(steps[np.searchsorted(share, q)]) * WAIT_STEP_S
            )
            for name, q in quantiles.items()
        }

    def tables(self) -> dict[str, Table]:
        """Return ``by_class``, ``by_flow`` (with several flows) and the tables of files."""
        groups = self.scenario.populations
        tables = {"by_class": self._class_table()}
        if sum(map(count_senders, groups)) > 1:
            tables["by_flow"] = self._flow_table()
        tables = tables if len(groups) > 1 or "by_flow" in tables else {}
        if file_transfers.has_files(self.scenario):
            tables |= file_transfers.file_tables(self.scenario, self.units, self.files)
        return tables

    def _class_table(self) -> Table:
        groups = self.scenario.populations
        estimates = [
            metric_estimates.estimate_class_metrics(self.scenario, self.units, index)
            for index in range(len(groups))
        ]
        columns = [name for name in MEASURABLE_METRICS if name in CLASS_METRICS]
        return make_class_table(
            groups, add_class_interval_warnings(self.scenario, self.snapshot, estimates), columns
        )

    def _flow_table(self) -> Table:
        groups = self.scenario.populations
        counts = [count_senders(group) for group in groups]
        names = np.repeat([group.name for group in groups], counts)
        on_s = np.repeat([float(self.units.on_seconds([g]).sum()) for g in groups], counts)
        on_s[on_s == 0.0] = math.nan
        totals = np.sum(self.flows, axis=0)
        of = {name: totals[:, index] for index, name in enumerate(FLOW_COUNTERS)}
        sent, samples = np.maximum(of["arrived"], 1.0), np.maximum(of["rtt_samples"], 1.0)
        return {
            "class": names,
            "flow": np.arange(len(names)),
            "goodput_bps": 8.0 * of["received_bytes"] / on_s,
            "send_rate_pps": of["arrived"] / on_s,
            "loss_ratio": (of["queue_drops"] + of["random_drops"]) / sent,
            "loss_indication_ratio": (of["recoveries"] + of["timeout_sequences"]) / sent,
            "retransmit_ratio": of["retransmitted"] / sent,
            "timeouts": of["timeouts"],
            "rtt_mean_s": of["rtt_sum_ns"] * 1e-9 / samples,
        }

    def time_share_limited_by_hosts(self) -> float:
        """Return the share of time in which a window or buffer of a host limited a flow."""
        totals = np.sum(self.flows, axis=0).sum(axis=0)
        return float(
            totals[FLOW_COUNTERS.index("limited_us")]
            / max(totals[FLOW_COUNTERS.index("busy_us")], 1.0)
        )
