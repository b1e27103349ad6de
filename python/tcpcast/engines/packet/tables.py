"""Tables of a simulated answer: distributions, and values by size, class and state."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast import _native, statistics
from tcpcast.answer import Note
from tcpcast.answer.metrics import CLASS_METRICS, METRICS, PERCENTILES
from tcpcast.engines.packet import cross_traffic, file_goodputs, link_tables, transfers
from tcpcast.engines.packet.configuration import SIZE_BOUNDS, UNLIMITED_WINDOW, sorted_listed_sizes
from tcpcast.engines.packet.counters import (
    read_counters,
    time_percentiles_of_groups,
)
from tcpcast.engines.packet.metric_estimates import estimate_class_metrics
from tcpcast.engines.packet.reliability import (
    add_class_interval_warnings,
    min_transfers_by_size,
    reliable_percentiles,
    withhold_goodput_intervals,
)
from tcpcast.engines.packet.unfinished_transfers import has_many_unfinished
from tcpcast.engines.table_columns import (
    estimate_columns,
    estimate_part_column,
    estimate_part_or_nan,
    percentile_columns,
    quantity_table,
    rows_to_table,
)
from tcpcast.quantity.units import digits
from tcpcast.scenario.classes import has_too_different_file_sizes
from tcpcast.statistics.vector_products import dot_product

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tcpcast.array_types import Counts, Floats, Table
    from tcpcast.engines.packet.counters import BatchCounters, Estimates, Snapshot
    from tcpcast.scenario import Population, Scenario
    from tcpcast.statistics import Estimate

    Row = dict[str, Any]
    from tcpcast.engines.packet.counters import SlotCounts

    Tables = dict[str, dict[str, np.ndarray[Any, Any]]]

MAX_QUEUE_ROWS = 10_000
"""Maximum number of rows of the distribution of the queue."""

MIN_DEATHS = 10
"""Minimum number of deaths (departures) from a state for its rate (Engset report, Figure 11)."""

SIZE_LOWS = (1, *(bound + 1 for bound in SIZE_BOUNDS))
SIZE_HIGHS = (*SIZE_BOUNDS, 2**32 - 1)
"""Ends of the size intervals."""

FILE_TIME_NAME = {"on-off": "on_time", "transfers": "completion_time"}
"""Name of the duration of a file, by the kind of traffic."""

MAX_TIMEOUT_DEPTH = 5
"""Longer timeout sequences are counted together, as in Tables 2 and 3 of PFTK."""


def make_all_tables(
    scenario: Scenario, snapshot: Snapshot, by_share: Mapping[float, Estimate]
) -> dict[str, Table]:
    """Return every table that is not empty, except for the traces.

    ``by_share`` contains the goodputs of :func:`.file_goodputs.estimate_exceeded_goodputs`.
    """
    kinds = {group.traffic.kind for group in scenario.populations}
    groups = scenario.populations
    each = [
        estimate_class_metrics(scenario, snapshot.units, index, snapshot.class_times)
        for index in range(len(groups))
    ]
    estimates = add_class_interval_warnings(scenario, snapshot, each)
    is_isolated = scenario.isolated_transfers is not None
    shown = [name for name in CLASS_METRICS if METRICS[name].has_isolated_value or not is_isolated]
    tables = {"by_class": make_class_table(groups, estimates, shown)}
    if scenario.isolated_transfers is None:
        totals = snapshot.totals
        time, at_arrivals = _pad_to_equal_length(totals["queue_time_ns"], totals["queue_seen"])
        if time.sum() == 0.0 or time.size < 2:
            tables["queue"] = {}
        else:
            lengths = np.arange(time.size)
            if time.size > MAX_QUEUE_ROWS:
                # All short queues, and longer ones at proportional distances: a million rows would
                # take longer than the run.
                short = MAX_QUEUE_ROWS // 2
                far = np.geomspace(short, time.size - 1, MAX_QUEUE_ROWS - short)
                lengths = np.unique(
                    np.concatenate([lengths[:short], np.rint(far).astype(np.int64)])
                )
            tables["queue"] = {
                "queue_pkts": lengths,
                "time_above": _tail_probabilities(time)[lengths],
                "arrivals_above": _tail_probabilities(at_arrivals)[lengths],
            }
        if kinds & {"on-off", "transfers"}:
            tables |= _file_tables(scenario, snapshot)
            tables |= file_goodputs.file_goodput_tables(
                scenario, snapshot, size_interval_columns(scenario), by_share
            )
            files = snapshot.units.total("transfers")
            if _has_class_with_many_unfinished(scenario, snapshot):
                files = 0.0
            tables["file_goodput"] = withhold_goodput_intervals(tables["file_goodput"], files)
            files_of = {
                group.name: 0.0
                if has_many_unfinished(scenario, snapshot, [index])
                else snapshot.units.total("transfers", [index])
                for index, group in enumerate(scenario.populations)
            }
            of_class = tables["file_goodput_by_class"]
            files_by_row = np.array([files_of[name] for name in of_class.get("name", ())])
            tables["file_goodput_by_class"] = withhold_goodput_intervals(of_class, files_by_row)
    if "transfers" in kinds:
        # With on/off sources, `by_size` covers all files, including those of transfers.
        sizes = size_interval_columns(scenario)
        means = {} if is_isolated else mean_completion_times(snapshot.units)
        by_size = transfers.times_by_size_table(
            sizes, snapshot.totals, means, min_transfers_by_size(scenario, snapshot)
        )
        is_biased = not is_isolated and _has_class_with_many_unfinished(scenario, snapshot)
        of_transfers = {
            "by_size": transfers.withhold_times(by_size) if is_biased else by_size,
            "by_losses": transfers.times_by_losses_table(
                sizes, snapshot.totals, independent=is_isolated
            ),
        }
        if scenario.is_modern:
            times = transfers.time_percentile_table(sizes, snapshot.totals)
            of_transfers["transfer_times"] = transfers.withhold_times(times) if is_biased else times
        tables = of_transfers | tables
    red = scenario.network.red_parameters()
    if red is None:
        tables["red"] = {}
    else:
        counts = snapshot.totals
        early = int(counts["early_drops"])
        red_rows = [
            ("min_threshold", red.min_threshold_pkts, "packet"),
            ("max_threshold", red.max_threshold_pkts, "packet"),
            ("max_probability", red.max_probability, "1"),
            ("weight", red.weight, "1"),
            (
                "average_mean",
                _ratio_or_nan(counts["average_sum"], counts["averages_seen"]),
                "packet",
            ),
            ("early_drops", early, "count"),
            ("forced_drops", snapshot.units.total("queue_drops") - early, "count"),
        ]
        tables["red"] = quantity_table(red_rows)
    if snapshot.units.link_classes and link_tables.has_several_links(scenario):
        tables |= link_tables.make_link_tables(scenario, snapshot)
    measured_s = snapshot.units.measured_s
    tables["cross"] = cross_traffic.cross_traffic_table(scenario, snapshot.totals, measured_s)
    drops = snapshot.totals["number_drops"]
    if drops.any():
        cells = [
            "timeout_sequences",
            *(f"sequences_of_{n}" for n in range(2, MAX_TIMEOUT_DEPTH + 2)),
        ]
        reached = np.array([snapshot.units.total(cell) for cell in cells])
        if not reached[0]:
            timeout_depth_table: Table = {}
        else:
            sequences = reached - np.append(reached[1:], 0.0)
            timeout_depth_table = {
                "depth": np.array(
                    [*(f"T{n}" for n in range(MAX_TIMEOUT_DEPTH)), f"T{MAX_TIMEOUT_DEPTH}+"]
                ),
                "sequences": sequences.astype(np.int64),
            }
        tables |= {
            "drops_by_sequence": {
                "sequence": np.arange(1, len(drops)),
                "packets": snapshot.totals["number_packets"][1:],
                "drops": drops[1:],
            },
            "timeouts_by_kind": {
                "kind": np.array(_native.TIMEOUT_KINDS),
                "timeouts": snapshot.totals["timeouts"],
                "time_s": snapshot.totals["stalled_ns"] * 1e-9,
            },
            "timeout_depths": timeout_depth_table,
            "timeouts_by_window": _histogram_table(
                "window_pkts", "timeouts", snapshot.totals["timeouts_by_window"]
            ),
            "recovery_retransmissions": _histogram_table(
                "count", "recoveries", snapshot.totals["by_retransmissions"]
            ),
            "recovery_sent": _histogram_table("count", "recoveries", snapshot.totals["by_burst"]),
            "loss_recovery": _loss_recovery_table(
                snapshot.units, snapshot.totals, common_packet_bits(scenario.populations)
            ),
        }
    return {name: table for name, table in tables.items() if _count_rows(table) > 0}


def _count_rows(table: Table) -> int:
    return len(next(iter(table.values()), ()))


def _pad_to_equal_length(*columns: Counts) -> tuple[Floats, ...]:
    length = max(len(column) for column in columns)
    return tuple(np.pad(column.astype(np.float64), (0, length - len(column))) for column in columns)


def _tail_probabilities(weights: Floats) -> Floats:
    total = weights.sum()
    if total == 0:
        return np.full(weights.size, np.nan)
    # Summed from the tail, so that small probabilities keep their precision.
    tail: Floats = np.append(np.cumsum(weights[::-1])[::-1][1:], 0.0) / total
    return tail


def common_packet_bits(groups: Iterable[Population]) -> float | None:
    """Return the IP bits of a full packet of these classes, None if they differ."""
    sizes = {group.packet_bytes for group in groups}
    return 8.0 * sizes.pop() if len(sizes) == 1 else None


def file_packet_bits(scenario: Scenario) -> float | None:
    """Return the IP bits of a full packet of a file, None if classes have different packets."""
    return common_packet_bits(g for g in scenario.populations if g.traffic.kind != "bulk")


def _file_tables(scenario: Scenario, snapshot: Snapshot) -> dict[str, Table]:
    bits = file_packet_bits(scenario)
    kinds = {group.traffic.kind for group in scenario.populations}
    tables = {}
    if "on-off" in kinds and bits is not None:
        tables["by_size"] = size_interval_table(snapshot.units, bits)
    # Endless flows are also active, but they do not carry files.
    endless = "bulk" in kinds
    mixed = endless or has_too_different_file_sizes(scenario.populations)
    packet_bits = None if mixed else bits
    time, births, deaths = _pad_to_equal_length(
        snapshot.totals["states_time_ns"], snapshot.totals["births"], snapshot.totals["deaths"]
    )
    number = np.arange(time.size)
    size = _ratio_or_nan(
        snapshot.units.total("transfer_packets"),
        snapshot.units.total("transfers"),
    )
    table = {
        "active": number,
        "probability": time / time.sum() if time.sum() else time,
        "births": births.astype(np.int64),
        "deaths": deaths.astype(np.int64),
    }
    if packet_bits is None:
        tables["states"] = table
    else:
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = deaths / (time * 1e-9) * size * packet_bits / number
        known = (deaths >= MIN_DEATHS) & (number > 0)
        tables["states"] = table | {"shared_rate_bps": np.where(known, rate, np.nan)}
    if not endless and bits is not None:
        of_sources = "transfers" not in kinds
        packets = np.concatenate([column for column, _ in snapshot.sources]).astype(np.float64)
        on_ns = np.concatenate([column for _, column in snapshot.sources]).astype(np.float64)
        active = on_ns > 0
        units = snapshot.units
        transfers = units.total("transfers")
        if not active.any() or not transfers:
            tables["rates"] = {}
        else:
            time, deaths = _pad_to_equal_length(
                snapshot.totals["states_time_ns"], snapshot.totals["deaths"]
            )
            size = float(units.total("transfer_packets") / transfers)
            busy_s = dot_product(np.arange(time.size), time) * 1e-9
            own = sum(units.size_counter("rate_sum", row).sum() for row in range(units.size_rows))
            rates = {
                "ratio of sums": packets.sum() / (on_ns.sum() * 1e-9),
                "mean over sources": float(np.mean(packets[active] / (on_ns[active] * 1e-9))),
                "birth-death process": size * deaths.sum() / busy_s if busy_s else np.nan,
                "mean over transfers": float(own) / _native.RATE_UNITS / transfers,
            }
            if not of_sources:
                del rates["mean over sources"]
            tables["rates"] = {
                "method": np.array(list(rates)),
                "connection_rate_bps": bits * np.array(list(rates.values()), dtype=np.float64),
            }
    totals = snapshot.totals
    time = totals["queue_time_ns"].astype(np.float64)
    below = np.cumsum(time) / time.sum() if time.sum() else np.ones(1)
    queue = [float(np.searchsorted(below, q)) for q in (0.5, 0.95, 0.99)]
    rows: list[tuple[str, str, Any, str]] = []
    for index, group in enumerate(scenario.populations):
        if group.traffic.kind in FILE_TIME_NAME:
            files = snapshot.units.total("transfers", [index])
            files = 0.0 if has_many_unfinished(scenario, snapshot, [index]) else files
            values = np.array(
                [totals["on_time_percentiles"][index], totals["rate_percentiles"][index]]
            )
            scales = [[1.0], [8.0 * group.packet_bytes]]
            times, rates = reliable_percentiles(values * scales, np.array([files, files]))
            rows.append((group.name, FILE_TIME_NAME[group.traffic.kind], times, "s"))
            rows.append((group.name, "connection_rate", rates, "bit/s"))
    several = len(rows) > 2
    rows.append(("", "queue", queue, "packet"))
    return tables | {
        "percentiles": {
            **({"class": np.array([row[0] for row in rows])} if several else {}),
            "quantity": np.array([row[1] for row in rows]),
            **percentile_columns(np.array([row[2] for row in rows])),
            "unit": np.array([row[3] for row in rows]),
        }
    }


def _has_class_with_many_unfinished(scenario: Scenario, snapshot: Snapshot) -> bool:
    """Return True if the finished transfers of a class do not represent all of its transfers."""
    classes = range(len(scenario.populations))
    return any(has_many_unfinished(scenario, snapshot, [index]) for index in classes)


def size_interval_columns(scenario: Scenario) -> Table:
    """Return the columns that identify the size intervals."""
    listed = sorted_listed_sizes(scenario)
    if listed is not None:
        return {"size_pkts": np.array(listed)}
    return {"low_pkts": np.array(SIZE_LOWS), "high_pkts": np.array(SIZE_HIGHS)}


def mean_completion_times(units: BatchCounters) -> dict[int, Estimate | None]:
    """Return the mean completion time of each size interval."""
    return {
        index: units.ratio(
            units.size_counter("on_time_ns", index) * 1e-9, units.size_counter("transfers", index)
        )
        for index in range(units.size_rows)
    }


def size_interval_table(units: BatchCounters, bits: float) -> Table:
    """Return one row per size interval that had a file; ``bits`` is the size of a packet."""
    rows = [
        _size_interval_row(units, index, low, high, bits)
        for index, (low, high) in enumerate(zip(SIZE_LOWS, SIZE_HIGHS, strict=True))
        if units.size_counter("transfers", index).sum() > 0
    ]
    if not rows:
        return {}
    table = rows_to_table(rows)
    table["share"] = table["transfers"] / table["transfers"].sum()
    return table


def _size_interval_row(
    units: BatchCounters, index: int, low: int, high: int, bits: float
) -> dict[str, float]:
    def total(name: str) -> float:
        return float(units.size_counter(name, index).sum())

    on_s = total("on_time_ns") * 1e-9
    units_of_rate = _native.RATE_UNITS
    drops = total("drops")
    on_time = units.ratio(
        units.size_counter("on_time_ns", index) * 1e-9, units.size_counter("transfers", index)
    )
    return {
        "low_pkts": low,
        "high_pkts": high,
        "transfers": int(total("transfers")),
        "share": 0.0,
        "mean_size_pkts": total("packets") / total("transfers"),
        "connection_rate_bps": _ratio_or_nan(bits * total("packets"), on_s),
        "transfer_rate_mean_bps": bits * total("rate_sum") / (units_of_rate * total("transfers")),
        "on_time_s": estimate_part_or_nan(on_time, "value"),
        "on_time_low_s": estimate_part_or_nan(on_time, "low"),
        "on_time_high_s": estimate_part_or_nan(on_time, "high"),
        "queue_seen_mean_pkts": _ratio_or_nan(total("queue_seen"), total("arrived")),
        "packets": int(total("arrived")),
        "drops": int(drops),
        "timeouts": int(total("timeouts")),
        "timeouts_per_drop": _ratio_or_nan(total("timeouts"), drops),
        "recovered_per_drop": _ratio_or_nan(total("recovered"), drops),
        "timeout_time_share": _ratio_or_nan(total("stalled_ns") * 1e-9, on_s),
    }


def _ratio_or_nan(part: float, whole: float) -> float:
    return part / whole if whole else np.nan


def _histogram_table(value: str, count: str, counts: Counts) -> Table:
    return {value: np.arange(len(counts)), count: counts}


def _loss_recovery_table(
    units: BatchCounters, totals: Mapping[str, Any], bits: float | None
) -> Table:
    """Return the statistics of timeouts and recoveries in Table 7 of the Engset report.

    Its rates need packets of one size; without ``bits`` they are left out.
    """
    drops = float((units.class_counter("queue_drops") + units.class_counter("random_drops")).sum())
    timeouts = float(totals["timeouts"].sum())
    entered = units.total("fast_retransmits")
    recovered = float(totals["recoveries"])
    transfers = units.total("transfers")
    stalled_s = float(totals["stalled_ns"].sum()) * 1e-9
    recovery_s = float(totals["recovery_ns"]) * 1e-9
    burst = totals["by_burst"]
    on_exit = dot_product(np.arange(len(burst)), burst)
    on_s = units.total("on_time_ns") * 1e-9
    rows = [("timeouts_per_drop", _ratio_or_nan(timeouts, drops), "1")]
    for kind, count in zip(_native.TIMEOUT_KINDS, totals["timeouts"], strict=True):
        rows.append((f"{kind}_per_timeout", _ratio_or_nan(float(count), timeouts), "1"))
    rows += [
        ("time_per_timeout", _ratio_or_nan(stalled_s, timeouts), "s"),
        ("timeout_time_per_transfer", _ratio_or_nan(stalled_s, transfers), "s"),
        ("fast_retransmits_per_drop", _ratio_or_nan(entered, drops), "1"),
        ("recoveries_per_fast_retransmit", _ratio_or_nan(recovered, entered), "1"),
        ("sent_per_recovery", _ratio_or_nan(float(totals["recovery_sent"]), recovered), "packet"),
        ("sent_on_exit_per_recovery", _ratio_or_nan(on_exit, recovered), "packet"),
        ("time_per_recovery", _ratio_or_nan(recovery_s, recovered), "s"),
        ("recovery_time_per_transfer", _ratio_or_nan(recovery_s, transfers), "s"),
    ]
    if bits is not None:
        sent = units.total("sent")
        rows += [
            (
                "rate_in_recovery",
                _ratio_or_nan(bits * totals["recovery_sent"], recovery_s),
                "bit/s",
            ),
            ("send_rate", _ratio_or_nan(bits * sent, on_s), "bit/s"),
        ]
    return quantity_table(rows)


def traced_flow_tables(traces: Mapping[str, Any]) -> dict[str, Table]:
    """Return windows, sequence numbers and states of BBR of the traced flows, ordered by time."""
    unlimited = traces["ssthresh"] == UNLIMITED_WINDOW
    # Some drops are reported after later events.
    order = np.argsort(traces["mark_time_ns"], kind="stable")
    tables: dict[str, Table] = {
        "windows": {
            "time_s": traces["window_time_ns"] * 1e-9,
            "flow": traces["window_flow"],
            "cwnd_pkts": traces["cwnd"],
            "ssthresh_pkts": np.where(unlimited, np.inf, traces["ssthresh"].astype(np.float64)),
            "flight_pkts": traces["flight"],
        },
        "sequences": {
            "time_s": traces["mark_time_ns"][order] * 1e-9,
            "flow": traces["mark_flow"][order],
            "sequence": traces["mark_number"][order],
            "event": traces["mark"][order],
        },
        "bbr": {"time_s": traces["bbr"]["time_ns"] * 1e-9}
        | {name: column for name, column in traces["bbr"].items() if name != "time_ns"},
    }
    return {name: table for name, table in tables.items() if _count_rows(table) > 0}


def note_thinned_traces(traces: Mapping[str, Any]) -> list[Note]:
    """Return notes on tables of traced flows that are thinned, with the width of the bins."""
    bins = {
        "windows": traces["window_bin_ns"],
        "sequences": traces["mark_bin_ns"],
        "bbr": traces["bbr_bin_ns"],
    }
    return [
        Note(
            f"the table `{name}` has too many points, so it contains only the lowest, the highest "
            f"and the last point of each flow per {digits(width * 1e-6)} ms; "
            "trace fewer flows, or shorten the run",
            (name,),
            kind="remark",
        )
        for name, width in bins.items()
        if width
    ]


def make_class_table(
    groups: Sequence[Population], each: Sequence[Estimates], metrics: Iterable[str]
) -> Table:
    """Return the table of metrics, with one row per class.

    Parameters
    ----------
    groups
        The classes.
    each
        The estimates of each class, by metric.
    metrics
        Metrics to include if any class has an estimate.

    Returns
    -------
    dict
        Columns ``name``, ``sources``, and per metric the value, ``_low`` and ``_high`` (nan if
        missing), and ``_at_least`` if any class has a lower bound. With several classes, a column
        ``_interval_warning`` is added to each metric whose interval is withheld or needs a check
        for any class. It contains the reason, "" for a trusted interval.
    """
    table: Table = {
        "name": np.array([group.name for group in groups]),
        "sources": np.array([group.count for group in groups]),
    }
    for metric in metrics:
        values = [estimates[metric] for estimates in each]
        if all(value is None for value in values):
            continue
        table |= estimate_columns(metric, values)
        bounds = estimate_part_column(values, "at_least")
        if not np.isnan(bounds).all():
            table[f"{metric}_at_least"] = bounds
        warnings = ["" if value is None else value.interval_warning or "" for value in values]
        if len(groups) > 1 and any(warnings):  # the metrics of a single class already have them
            table[f"{metric}_interval_warning"] = np.array(warnings)
    return table


def delivered_table(scenario: Scenario, packets: Sequence[Sequence[Sequence[int]]]) -> Table:
    """Return one row per class of endless flows and time of ``run.report_at``.

    Parameters
    ----------
    scenario
        The scenario, with ``run.report_at``.
    packets
        Packets delivered in order, per replication and source, at each of the times that the run
        reached.

    Returns
    -------
    dict
        ``t_s`` after the start of a flow, ``bytes`` as the mean over flows with its interval over
        replications (``nan`` for a single replication), ``flows`` as the number of flows in all
        replications, and ``class`` if there are several classes. Times that no flow reached have no
        row.
    """
    rows: list[Row] = []
    first = 0
    for group in scenario.populations:
        last = first + group.count
        if group.traffic.kind == "bulk":
            payload = group.payload_bytes
            of_class = [run[first:last] for run in packets]
            for index, time_s in enumerate(scenario.run.report_at or ()):
                reached = [[flow[index] for flow in run if len(flow) > index] for run in of_class]
                means = [payload * math.fsum(counts) / len(counts) for counts in reached if counts]
                if means:
                    estimate = statistics.estimate_mean(means, replications=len(means))
                    row = {
                        "class": group.name,
                        "t_s": time_s,
                        "bytes": math.fsum(means) / len(means),
                    }
                    ends = {part: estimate_part_or_nan(estimate, part) for part in ("low", "high")}
                    rows += [row | ends | {"flows": sum(map(len, reached))}]
        first = last if group.traffic.kind != "transfers" else first
    table = rows_to_table(rows)
    if len(scenario.populations) == 1:
        table.pop("class", None)
    return table


def warn_about_unreached_times(scenario: Scenario, delivered: Table) -> list[Note]:
    """Return a note if no flow reached one of the times."""
    reached = set(delivered.get("t_s", ()))
    missing = [time for time in scenario.run.report_at or () if time not in reached]
    if not missing:
        return []
    return [
        Note(
            f"the table `delivered` ends before {missing[0]:g} s, a time in run.report_at, "
            "because no flow ran for this long; use a longer run.duration",
            kind="remark",
        )
    ]


BY_REPLICATION, TIME_DISTRIBUTION = "by_replication", "time_distribution"


def replication_tables(scenario: Scenario, run: _native.Simulation) -> Tables:
    """Return the tables ``by_replication`` and ``time_distribution`` of a run.

    The first has a row for each replication, with the metrics that classes can have, over all
    classes. The second has the number of times of each kind by bucket, over all replications.
    """
    times = run.class_times()
    rows = [
        estimate_class_metrics(scenario, units, None)
        for units in read_counters(scenario, run, each=True)
    ]
    columns = {
        name: np.array([np.nan if (e := row.get(name)) is None else e.value for row in rows])
        for name in CLASS_METRICS
        if name not in PERCENTILES
    }
    merged = [_times_by_kind(replication) for replication in times]
    for name, (kind, percent) in PERCENTILES.items():
        at = _native.TIME_KINDS.index(kind)
        columns[name] = np.array(
            [
                time_percentiles_of_groups([one], len(_native.TIME_KINDS), [percent])[0, at]
                for one in merged
            ]
        )
    known = {name: column for name, column in columns.items() if np.isfinite(column).any()}
    numbers = np.arange(len(rows))
    return {
        BY_REPLICATION: {"replication": numbers, **known},
        TIME_DISTRIBUTION: _distribution(merged),
    }


def _times_by_kind(replication: SlotCounts) -> SlotCounts:
    """Return the counts of a replication with the times of all classes in one group per kind."""
    slots, slot, group, bucket, count = replication
    return slots, slot, group % len(_native.TIME_KINDS), bucket, count


def _distribution(merged: list[SlotCounts]) -> dict[str, np.ndarray[Any, Any]]:
    limits = 1e-9 * np.array(_native.TIME_BUCKET_LIMITS_NS)
    width = limits.size - 1
    cells = [
        group.astype(np.int64) * width + bucket.astype(np.int64)
        for _, _, group, bucket, _ in merged
    ]
    counts = [count for *_, count in merged]
    known, index = np.unique(np.concatenate(cells), return_inverse=True)
    totals = np.bincount(index, weights=np.concatenate(counts), minlength=known.size)
    kinds = np.array(_native.TIME_KINDS)
    return {
        "kind": kinds[known // width],
        "low_s": limits[known % width],
        "high_s": limits[known % width + 1],
        "count": totals,
    }
