"""Convert snapshots of a run to the packet engine's counters, and hence to its metrics."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast import _native, statistics
from tcpcast.answer.metrics import CLASS_METRICS, METRICS
from tcpcast.emulation.traffic import FLOW_COUNTERS, TIME_STEP_S, TRANSFER_COLUMNS
from tcpcast.engines.packet import metric_estimates, transfers
from tcpcast.engines.packet.configuration import is_without_tcp, size_interval_bounds
from tcpcast.engines.packet.counters import (
    CLASS_COUNTER,
    LINK_COUNTER,
    LINK_TOTAL_COUNTER,
    SIZE_COUNTER,
    BatchCounters,
    Estimates,
    Snapshot,
    point_estimate,
)
from tcpcast.engines.packet.link_tables import has_several_links, make_link_tables
from tcpcast.engines.packet.reliability import (
    add_class_interval_warnings,
    add_interval_warnings,
    reliable_percentiles,
)
from tcpcast.engines.packet.scenario_features import has_queue
from tcpcast.engines.packet.sharing import estimate_convergence_time
from tcpcast.engines.packet.tables import (
    file_packet_bits,
    make_class_table,
    mean_completion_times,
    size_interval_columns,
    size_interval_table,
)
from tcpcast.engines.table_columns import percentile_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tcpcast.array_types import Counts, Floats, Table
    from tcpcast.emulation.traffic import TrafficOutcome
    from tcpcast.engines.packet.config_types import Config
    from tcpcast.engines.packet.counters import SlotCounts
    from tcpcast.scenario import Scenario
    from tcpcast.scenario.classes import Population


def count_senders(group: Population) -> int:
    """Return the number of senders of a class: a single one sends all arriving transfers."""
    return 1 if group.traffic.kind == "transfers" else group.count


def has_files(scenario: Scenario) -> bool:
    """Return True if files share the network."""
    kinds = {group.traffic.kind for group in scenario.populations}
    return scenario.isolated_transfers is None and bool(kinds & {"on-off", "transfers"})


class FinishedFiles:
    """The files of one replication that ended after its warm-up."""

    def __init__(self, scenario: Scenario, outcome: TrafficOutcome, begin_ns: int) -> None:
        """Select the transfers whose last ACK arrived after ``begin_ns`` by the link's clock."""
        rows = np.array(outcome.transfers, dtype=np.int64).reshape(-1, len(TRANSFER_COLUMNS))
        of = {name: rows[:, index] for index, name in enumerate(TRANSFER_COLUMNS)}
        groups = scenario.populations
        counts = [count_senders(group) for group in groups]
        payloads = [group.payload_bytes for group in groups]
        late = of["acked_ns"] > begin_ns
        self.of = {name: column[late] for name, column in of.items()}
        self.group = np.repeat(np.arange(len(groups)), counts)[self.of["flow"]]
        payload = np.array(payloads)[self.group]
        self.packets = -(-self.of["bytes"] // payload)
        self.bits = 8.0 * np.array([g.packet_bytes for g in groups])[self.group] * self.packets
        self.on_ns = np.maximum(self.of["acked_ns"] - self.of["first_ns"], 1)
        self.delivery_ns = self.of["delivered_ns"] - self.of["first_ns"]
        self.total_ns = self.of["delivered_ns"] - self.of["opened_ns"]
        self.row = np.searchsorted(np.array(size_interval_bounds(scenario)), self.packets)
        opens = np.array([group.opens_connections for group in groups])
        self.opened = opens[self.group]

    def __len__(self) -> int:
        """Return the number of files."""
        return int(self.packets.size)

    def add_to_counters(self, rows: Floats, times_ns: Floats, first: int, classes: int) -> None:
        """Store the sums over files that had ended by each time in cumulative counters.

        Parameters
        ----------
        rows
            Counters of the link, classes and size intervals, ``[times, counters]``.
        times_ns
            Times by the link's clock, ``[times]``.
        first
            Index of the first counter of the first class.
        classes
            Number of classes; the counters of size intervals follow theirs.
        """
        of_class = {
            "transfers": np.ones_like(self.packets),
            "transfer_packets": self.packets,
            "on_time_ns": self.on_ns,
            "delivery_time_ns": self.delivery_ns,
            "total_time_ns": self.total_ns,
        }
        for index in range(classes):
            for name, values in of_class.items():
                column = first + index * len(CLASS_COUNTER) + CLASS_COUNTER[name]
                rows[:, column] = self._sums_of_ended_files(values, self.group == index, times_ns)
        rates = self.packets / (self.on_ns * 1e-9) * _native.RATE_UNITS
        of_size = {
            "transfers": of_class["transfers"],
            "packets": self.packets,
            "on_time_ns": self.on_ns,
            "rate_sum": rates.astype(np.int64),
            "arrived": self.of["arrived"],
            "drops": self.of["drops"],
        }
        sizes = first + classes * len(CLASS_COUNTER)
        for index in np.unique(self.row):
            for name, values in of_size.items():
                column = sizes + int(index) * len(SIZE_COUNTER) + SIZE_COUNTER[name]
                rows[:, column] = self._sums_of_ended_files(values, self.row == index, times_ns)

    def _sums_of_ended_files(
        self, values: NDArray[Any], chosen: NDArray[np.bool_], times_ns: Floats
    ) -> Floats:
        ends = self.of["acked_ns"][chosen]
        order = np.argsort(ends, kind="stable")
        sums = np.concatenate([[0.0], np.cumsum(values[chosen][order])])
        sums_at_times: Floats = sums[np.searchsorted(ends[order], times_ns, "right")]
        return sums_at_times


def file_tables(
    scenario: Scenario, units: BatchCounters, runs: Sequence[FinishedFiles]
) -> dict[str, Table]:
    """Return the packet engine's tables of files, over all replications.

    Parameters
    ----------
    scenario
        A scenario with files.
    units
        Units with the counters of :meth:`FinishedFiles.add_to_counters`.
    runs
        The files of each replication.
    """
    if not any(map(len, runs)):
        return {}
    kinds = {group.traffic.kind for group in scenario.populations}
    bits = file_packet_bits(scenario)
    is_on_off = "on-off" in kinds
    on_s, sent_bits = _concatenate_column(runs, "on_ns") * 1e-9, _concatenate_column(runs, "bits")
    quantiles = np.quantile([on_s, sent_bits / on_s], (0.5, 0.95, 0.99), axis=1).T
    tables: dict[str, Table] = {
        "percentiles": {
            "quantity": np.array(
                ["on_time" if is_on_off else "completion_time", "connection_rate"]
            ),
            **percentile_columns(reliable_percentiles(quantiles, np.full(2, on_s.size))),
            "unit": np.array(["s", "bit/s"]),
        }
    }
    if "on-off" in kinds:
        return tables if bits is None else tables | {"by_size": size_interval_table(units, bits)}
    sizes, totals = size_interval_columns(scenario), _make_simulator_totals(scenario, runs)
    return tables | {
        "by_size": transfers.times_by_size_table(sizes, totals, mean_completion_times(units), {}),
        "by_losses": transfers.times_by_losses_table(sizes, totals, independent=False),
        "transfer_times": transfers.time_percentile_table(sizes, totals),
    }


def _concatenate_column(runs: Sequence[FinishedFiles], name: str) -> NDArray[Any]:
    return np.concatenate([getattr(files, name) for files in runs])


def _make_simulator_totals(scenario: Scenario, runs: Sequence[FinishedFiles]) -> dict[str, Any]:
    """Return the simulator's totals that its tables of transfers need."""
    rows, on_ns, delivery_ns = (
        _concatenate_column(runs, n) for n in ("row", "on_ns", "delivery_ns")
    )
    total_ns, opened = _concatenate_column(runs, "total_ns"), _concatenate_column(runs, "opened")
    losses = np.concatenate([files.of["drops"] for files in runs])
    count = len(size_interval_bounds(scenario)) + 1
    of_row = [rows == index for index in range(count)]
    times = {"completion": on_ns, "delivery": delivery_ns, "total": total_ns}
    cells = sorted(set(zip(rows.tolist(), losses.tolist(), strict=True)))
    chosen = {cell: (rows == cell[0]) & (losses == cell[1]) for cell in cells}
    return {
        "transfers": [
            (
                *cell,
                int(own.sum()),
                _sum_and_sum_of_squares(on_ns[own]),
                _sum_and_sum_of_squares(delivery_ns[own]),
            )
            for cell, own in chosen.items()
        ],
        "opened": [
            (int((own & opened).sum()), _sum_and_sum_of_squares(total_ns[own & opened]))
            for own in of_row
        ],
        "completion_percentiles": [
            _time_quantiles_s(on_ns[own], (0.5, 0.95, 0.99)) for own in of_row
        ],
        "time_percentiles": [
            [
                _time_quantiles_s(
                    values[own & (opened | (name != "total"))], (0.5, 0.9, 0.95, 0.99)
                )
                for name, values in times.items()
            ]
            for own in of_row
        ],
    }


def _sum_and_sum_of_squares(times_ns: NDArray[np.int64]) -> tuple[int, int]:
    values = times_ns.tolist()
    return sum(values), sum(value * value for value in values)


def _time_quantiles_s(times_ns: NDArray[np.int64], levels: tuple[float, ...]) -> list[float]:
    if not times_ns.size:
        return [math.nan] * len(levels)
    return [float(value) * 1e-9 for value in np.quantile(times_ns, levels)]


def isolated_transfer_results(
    scenario: Scenario, runs: Sequence[FinishedFiles]
) -> tuple[Estimates, dict[str, Table]]:
    """Return the metrics and tables of isolated transfers over all replications."""
    if not any(map(len, runs)):
        return {}, {}
    totals = _make_simulator_totals(scenario, runs)
    packets = _concatenate_column(runs, "packets")
    sent, drops, again = (
        sum(int(files.of[name].sum()) for files in runs)
        for name in ("arrived", "drops", "retransmitted")
    )
    estimates: Estimates = {
        "loss_ratio": point_estimate(drops / max(sent, 1)),
        "retransmit_ratio": point_estimate(again / max(sent, 1)),
        "mean_size_pkts": point_estimate(float(packets.mean())),
        "transfers": point_estimate(float(packets.size)),
    }
    sizes = size_interval_columns(scenario)
    any_number = dict.fromkeys(range(len(size_interval_bounds(scenario))), 0)
    return transfers.estimate_isolated_transfers(estimates, totals), {
        "by_size": transfers.times_by_size_table(sizes, totals, {}, any_number)
    }


KERNEL_COUNTERS = {
    "sent": "sent",
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
    **{
        name: name
        for name in (
            *("messages", "received", "delay_ns", "requests", "latency_ns"),
            *("startups", "startup_ns", "stalls", "stalled_play_ns", "played_ns"),
        )
    },
}
"""Counters of a class, and their names in the kernel and the link."""

MEASURED_COUNTERS = {
    *KERNEL_COUNTERS,
    *("time_ns", "busy_ns", "queue_integral", "delivered", "hop_drops", "control_sent"),
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


@dataclass(frozen=True, slots=True)
class MeasuredNetwork:
    """Emulated links: numbers of links and classes, pairs of a link and a class, the headline."""

    links: int
    classes: int
    pairs: tuple[tuple[int, int], ...]
    headline: int

    @classmethod
    def of(cls, config: Config) -> MeasuredNetwork:
        """Return the network of a configuration of the simulator."""
        used = [set(itertools.chain(*each["routes"], *each["back"])) for each in config["classes"]]
        pairs = itertools.product(range(len(config["links"])), range(len(used)))
        return cls(
            len(config["links"]),
            len(used),
            tuple((link, index) for link, index in pairs if link in used[index]),
            config["headline"],
        )

    def waits_of_pairs(self, counts: SlotCounts) -> SlotCounts:
        """Replace the groups of queueing delays, a class on a link, by the numbers of pairs.

        The data packets of the headline are omitted, because the group of their pair counts them.
        """
        slots, slot, group, bucket, count = counts
        numbers = np.full(self.links * self.classes + 1, -1)
        numbers[[link * self.classes + index for link, index in self.pairs]] = range(
            len(self.pairs)
        )
        pair = numbers[group.astype(np.intp)]
        kept = pair >= 0
        return slots, slot[kept], pair[kept].astype(np.uint64), bucket[kept], count[kept]

    def headline_counter(self, rows: Floats, name: str) -> Floats:
        """Return a counter of the headline link in rows of all links, ``[snapshots]``."""
        column = self.headline * len(LINK_TOTAL_COUNTER) + LINK_TOTAL_COUNTER[name]
        counter: Floats = rows[:, column]
        return counter


def make_cumulative_counters(
    scenario: Scenario,
    network: MeasuredNetwork,
    outcome: TrafficOutcome,
    begin: int,
    finished: FinishedFiles,
) -> Counts:
    """Return cumulative counters after the warm-up, ``[slots + 2, counters]``."""
    groups = scenario.populations
    kept = outcome.snapshots[begin:]
    flows = make_flow_counters(outcome)[begin:]
    flows -= flows[0]
    links = np.array([snapshot["links"] for snapshot in kept], dtype=np.float64)
    links -= links[0]
    sizes = (
        len(SIZE_COUNTER) * (len(size_interval_bounds(scenario)) + 1) if has_files(scenario) else 0
    )
    of_links = len(LINK_COUNTER) + len(groups) * len(CLASS_COUNTER) + sizes
    rows = np.zeros((len(kept), of_links + links.shape[1]))
    rows[:, of_links:] = links
    times_ns = np.array([s["now_ns"] for s in kept], dtype=np.float64)
    time_ns = rows[:, LINK_COUNTER["time_ns"]] = times_ns - times_ns[0]
    for cell in ("carried_bytes", "capacity_bytes"):
        rows[:, LINK_COUNTER[cell]] = network.headline_counter(links, cell)
    carried, capacity = (
        np.diff(rows[:, LINK_COUNTER[cell]]) for cell in ("carried_bytes", "capacity_bytes")
    )
    share = np.divide(carried, capacity, out=np.zeros_like(carried), where=capacity > 0)
    # Packets count at the start of their transmission, so a slot may carry more than its capacity.
    busy_ns = np.concatenate([[0.0], np.cumsum(share * np.diff(time_ns))])
    rows[:, LINK_COUNTER["busy_ns"]] = np.minimum(busy_ns, time_ns)
    rows[:, LINK_COUNTER["queue_integral"]] = network.headline_counter(links, "packet_ns")
    dropped = flows[:, :, FLOW_COUNTERS.index("dropped_elsewhere")].sum(axis=1)
    rows[:, LINK_COUNTER["hop_drops"]] = dropped
    ends = np.cumsum([count_senders(group) for group in groups])
    for index, (group, end) in enumerate(zip(groups, ends, strict=True)):
        own = flows[:, end - count_senders(group) : end].sum(axis=1)
        first = len(LINK_COUNTER) + index * len(CLASS_COUNTER)
        for cell, name in KERNEL_COUNTERS.items():
            rows[:, first + CLASS_COUNTER[cell]] = own[:, FLOW_COUNTERS.index(name)]
        received = own[:, FLOW_COUNTERS.index("received_bytes")] // group.payload_bytes
        # The simulator counts both ways of a ping.
        of_messages = {"messages": 1, "ping": 2}.get(group.traffic.kind, 0)
        messages = of_messages * own[:, FLOW_COUNTERS.index("received")]
        rows[:, first + CLASS_COUNTER["delivered"]] = received + messages
    if sizes:
        finished.add_to_counters(rows, times_ns, len(LINK_COUNTER), len(groups))
    return np.vstack([rows, rows[-1:]]).astype(np.uint64)


def time_series_rows(
    scenario: Scenario, network: MeasuredNetwork, outcome: TrafficOutcome
) -> Floats:
    """Return the sums of a run for :func:`.time_series.series_tables`, with the warm-up."""
    times_ns = np.array([s["now_ns"] for s in outcome.snapshots], dtype=np.float64)
    links = np.array([snapshot["links"] for snapshot in outcome.snapshots], dtype=np.float64)
    columns = [times_ns - times_ns[0], network.headline_counter(links, "packet_ns")]
    flows, end = make_flow_counters(outcome), 0
    for group in scenario.populations:
        begin, end = end, end + count_senders(group)
        own = flows[:, begin:end].sum(axis=1)
        cells = {name: own[:, FLOW_COUNTERS.index(at)] for name, at in KERNEL_COUNTERS.items()}
        received = own[:, FLOW_COUNTERS.index("received_bytes")] / group.payload_bytes
        # The players of a kernel have one quality, and count the time that they played at events.
        unknown = ("lacking_bytes", "video_bits", "video_ns")
        cells |= {"delivered": received, **dict.fromkeys(unknown, np.zeros_like(received))}
        columns += [cells[name] for name in _native.TIME_SERIES_CELLS]
    return np.column_stack(columns)


def collect_slot_counts(outcome: TrafficOutcome, begin: int, name: str) -> SlotCounts:
    """Return the histograms of times after the warm-up, as the simulator has them per slot."""
    kept = outcome.snapshots[begin:]
    counts = np.array(
        [(slot, *row) for slot, snapshot in enumerate(kept[1:]) for row in snapshot[name]],
        dtype=np.int64,
    ).reshape(-1, 4)
    slot, group, steps, number = counts.T
    times_ns = (steps + 0.5) * (TIME_STEP_S * 1e9)
    bucket = np.searchsorted(_native.TIME_BUCKET_LIMITS_NS, times_ns, "right") - 1
    columns = (column.astype(np.uint64) for column in (slot, group, bucket, number))
    slots, groups, buckets, numbers = columns
    return len(kept), slots, groups, buckets, numbers


class MeasuredCounters:
    """Counters of all replications after their warm-ups."""

    def __init__(
        self, scenario: Scenario, network: MeasuredNetwork, outcomes: Sequence[TrafficOutcome]
    ) -> None:
        """Determine the warm-ups, and split the remaining runs into statistical units."""
        self.scenario, self._network = scenario, network
        warm_ups = [find_warm_up_slots(scenario, outcome) for outcome in outcomes]
        self.found_warm_up = all(is_found for _, is_found in warm_ups)
        begins = [
            min(slot, len(o.snapshots) - 2) for (slot, _), o in zip(warm_ups, outcomes, strict=True)
        ]
        cut = list(zip(outcomes, begins, strict=True))
        self.files = [FinishedFiles(scenario, o, o.snapshots[index]["now_ns"]) for o, index in cut]
        rows = [
            make_cumulative_counters(scenario, self._network, *one, own)
            for one, own in zip(cut, self.files, strict=True)
        ]
        self.warm_ups_s = [
            (o.snapshots[index]["now_ns"] - o.snapshots[0]["now_ns"]) * 1e-9 for o, index in cut
        ]
        self.measured_s = float(sum(row[-1, LINK_COUNTER["time_ns"]] for row in rows)) * 1e-9
        begins_ns = round(max(self.warm_ups_s) * 1e9)
        self.units = BatchCounters(
            rows,
            len(scenario.populations),
            begins_ns=begins_ns,
            links=self._network.links,
            link_classes=self._network.pairs,
        )
        self.flows = [make_flow_counters(o)[-1] - make_flow_counters(o)[index] for o, index in cut]
        runs = [o.snapshots[index + 1 :] for o, index in cut]
        counts: dict[int, int] = {}
        for snapshot in (snapshot for snapshots in runs for snapshot in snapshots):
            for group, steps, count in snapshot["waits"]:
                if group == self._network.links * self._network.classes:
                    counts[steps] = counts.get(steps, 0) + count
        self._waits = counts
        # The queue that corresponds to the longest wait, including the sent packet.
        rate = self.scenario.bottleneck.rate_bps
        if math.isinf(rate) or not self._waits:
            longest = 0
        else:
            longest_s = max(self._waits) * TIME_STEP_S
            smallest = min(group.packet_bytes for group in self.scenario.populations)
            longest = 1 + round(longest_s * rate / (8.0 * smallest))
        # Inputs of the reliability rules: counters, and the largest queue.
        nothing = np.zeros(longest + 1, dtype=np.uint64)
        totals = {"queue_time_ns": nothing, "queue_seen": nothing}
        self.snapshot = Snapshot(
            *(self.units, totals, [], [], []),
            class_times=[collect_slot_counts(*one, "times") for one in cut],
            link_waits=[
                self._network.waits_of_pairs(collect_slot_counts(*one, "waits")) for one in cut
            ],
            time_series=[time_series_rows(scenario, network, each) for each in outcomes],
        )

    def estimates(self) -> Estimates:
        """Return every measured metric; None if there was no observation of it."""
        units, scenario = self.units, self.scenario
        times = self.snapshot.class_times
        estimates = metric_estimates.estimate_class_metrics(scenario, units, None, times)
        estimates |= metric_estimates.estimate_run_metrics(scenario, units)
        counts = self._waits
        if counts:
            steps = np.array(sorted(counts))
            share = np.cumsum([counts[int(step)] for step in steps]) / sum(counts.values())
            quantiles = {"queue_delay_p95_s": 0.95, "queue_delay_p99_s": 0.99}
            estimates |= {
                name: point_estimate(float(steps[np.searchsorted(share, q)]) * TIME_STEP_S)
                for name, q in quantiles.items()
            }
        groups = self.scenario.populations
        if all(group.traffic.kind == "bulk" for group in groups):
            received = FLOW_COUNTERS.index("received_bytes")
            indices = [
                metric_estimates.jain_index(units.rates(f[:, received], groups)) for f in self.flows
            ]
            if scenario.senders == 1:
                estimates["jain_index"] = point_estimate(1.0)
            elif all(map(math.isfinite, indices)):
                estimates["jain_index"] = statistics.estimate_mean(
                    indices, replications=len(indices)
                )
        estimates["convergence_time_s"] = estimate_convergence_time(
            scenario, self.snapshot.time_series
        )
        estimates |= metric_estimates.estimate_finished_transfers(scenario, units)
        known = {
            name: estimates[name] for name in MEASURABLE_METRICS if estimates.get(name) is not None
        }
        return add_interval_warnings(scenario, self.snapshot, known)

    def tables(self) -> dict[str, Table]:
        """Return ``by_class``, ``by_flow`` (with several flows) and the tables of files."""
        groups = self.scenario.populations
        estimates = [
            metric_estimates.estimate_class_metrics(
                self.scenario, self.units, index, self.snapshot.class_times
            )
            for index in range(len(groups))
        ]
        columns = [name for name in MEASURABLE_METRICS if name in CLASS_METRICS]
        tables = {
            "by_class": make_class_table(
                groups,
                add_class_interval_warnings(self.scenario, self.snapshot, estimates),
                columns,
            )
        }
        if sum(map(count_senders, groups)) > 1:
            counts = [count_senders(group) for group in groups]
            with_tcp = np.repeat([not is_without_tcp(group) for group in groups], counts)
            names = np.repeat([group.name for group in groups], counts)[with_tcp]
            on_s = np.repeat([float(self.units.on_seconds([g]).sum()) for g in groups], counts)
            on_s[on_s == 0.0] = math.nan
            on_s = on_s[with_tcp]
            totals = np.sum(self.flows, axis=0)[with_tcp]
            of = {name: totals[:, index] for index, name in enumerate(FLOW_COUNTERS)}
            sent, samples = np.maximum(of["sent"], 1.0), np.maximum(of["rtt_samples"], 1.0)
            tables["by_flow"] = {
                "class": names,
                "flow": np.arange(len(names)),
                "goodput_bps": 8.0 * of["received_bytes"] / on_s,
                "send_rate_pps": of["sent"] / on_s,
                "loss_ratio": (of["queue_drops"] + of["random_drops"])
                / np.maximum(of["arrived"], 1.0),
                "loss_indication_ratio": (of["recoveries"] + of["timeout_sequences"]) / sent,
                "retransmit_ratio": of["retransmitted"] / sent,
                "timeouts": of["timeouts"],
                "rtt_mean_s": of["rtt_sum_ns"] * 1e-9 / samples,
            }
        tables = tables if len(groups) > 1 or "by_flow" in tables else {}
        if has_several_links(self.scenario):
            tables |= make_link_tables(self.scenario, self.snapshot)
        if has_files(self.scenario):
            tables |= file_tables(self.scenario, self.units, self.files)
        return tables

    def time_share_limited_by_hosts(self) -> float:
        """Return the share of time in which a window or buffer of a host limited a flow."""
        totals = np.sum(self.flows, axis=0).sum(axis=0)
        return float(
            totals[FLOW_COUNTERS.index("limited_us")]
            / max(totals[FLOW_COUNTERS.index("busy_us")], 1.0)
        )
