"""Time series of a simulated run for plots, from the start of the run, including the warm-up.

The simulator keeps sums at the ends of equal slots (256 to 512 slots for any length of the run) and
the windows of a few flows, which are thinned as they grow: memory does not grow with the run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpcast import _native
from tcpcast.engines.packet.configuration import make_configuration, sorted_listed_sizes
from tcpcast.engines.packet.scenario_features import has_queue
from tcpcast.engines.table_columns import concatenate_tables
from tcpcast.statistics.intervals import NORMAL_QUANTILE, student_quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpcast.array_types import Counts, Floats, Table
    from tcpcast.engines.packet.config_types import Config
    from tcpcast.scenario import Population, Scenario

    Estimates = tuple[Floats, Floats, Floats]
    TimeCounts = Sequence[tuple[Counts, Floats, Counts]]

MAX_CLASSES = 6
"""Maximum number of classes with one traced flow each; a single class has :data:`MAX_FLOWS`."""
MAX_FLOWS = 3
MAX_TRACE_POINTS = 150_000
"""Maximum number of window points."""
MIN_REPLICATIONS = 3
"""Minimum number of replications for intervals. The intervals of two would hide the curve."""
MAX_SLOTS = 256
"""Maximum number of slots; more could not be distinguished in a plot."""
MAX_SIZES = 5
MIN_TRANSFERS = 10
"""Minimum number of transfers for a distribution of completion times."""

_NS_PER_SECOND = 1e9
_LINK_COLUMNS = 2


def select_watched_flows(scenario: Scenario) -> list[int]:
    """Return the flows whose windows are kept: ``probes.flows``, or some flows of each class."""
    if scenario.probes.flows:
        return list(scenario.probes.flows)
    groups = scenario.populations
    each = MAX_FLOWS if len(groups) == 1 else 1
    flows: list[int] = []
    first = 0
    for group in groups[:MAX_CLASSES]:
        if group.traffic.kind in {"bulk", "on-off"}:
            flows += range(first, first + min(each, group.count))
        first += group.count
    return flows


def make_configuration_over_time(scenario: Scenario, warmup_s: float) -> Config:
    """Return the simulator's configuration with the probes of :func:`time_series_tables`."""
    config = make_configuration(scenario, warmup_s)
    config["probes"]["course"] = True
    if scenario.isolated_transfers is not None:
        return config  # each transfer starts at time 0; there is no common time
    config["probes"]["traced"] = select_watched_flows(scenario)
    if not scenario.probes.flows:
        config["probes"]["trace_points"] = MAX_TRACE_POINTS
    return config


def time_series_tables(scenario: Scenario, run: _native.Simulation) -> dict[str, Table]:
    """Return the tables for plots over time and of completion times.

    Parameters
    ----------
    scenario
        The scenario.
    run
        The run, configured with ``over_time``.

    Returns
    -------
    dict
        ``queue_over_time``: ``from_s``, ``to_s``, ``queue_pkts`` with ``_low`` and ``_high``.
        ``flows_over_time``: per class, ``goodput_bps``, ``rtt_s``, ``delay_s`` (of messages and
        pings), and ``video_rate_bps`` and ``buffered_s`` (of players), with the same columns.
        ``windows_over_time``: per watched flow, in the first
        replication, ``mean_pkts``, ``low_pkts`` and ``high_pkts``. ``completion_distribution``:
        the ``share`` of transfers that take at most ``time_s``, for some of the listed sizes, or
        for all files. Ends of 95 % intervals are NaN if there is none: intervals need three or more
        replications; for isolated transfers they follow from the number of transfers. Empty tables
        are left out.
    """
    kinds = {group.traffic.kind for group in scenario.populations}
    sizes = sorted_listed_sizes(scenario) if kinds == {"transfers"} else None
    counts = run.time_counts(sizes is None)
    observed_sizes = {int(row) for rows, *_ in counts for row in np.unique(rows)}
    if sizes is None:
        completion_time_distribution: Table = _distribution_for_size(
            counts, 0, None, is_isolated=False
        )
    else:
        places = sorted(observed_sizes)
        chosen = (
            {
                places[index]
                for index in np.linspace(0, len(places) - 1, min(MAX_SIZES, len(places))).astype(
                    int
                )
            }
            if places
            else set()
        )
        is_isolated = scenario.isolated_transfers is not None
        completion_time_distribution = concatenate_tables(
            _distribution_for_size(counts, row, sizes[row], is_isolated=is_isolated)
            for row in sorted(chosen)
        )
    tables = {"completion_distribution": completion_time_distribution}
    if scenario.isolated_transfers is None:
        rows = [row.astype(np.float64) for row in _align_replications(run.time_series())]
        tables |= series_tables(scenario, rows)
        traces = run.traces()
        ends_ns = rows[0][:, 0]
        flows = select_watched_flows(scenario)[: max(MAX_CLASSES, MAX_FLOWS)]
        groups = [group for group in scenario.populations for _ in range(group.count)]
        window_tables = []
        for flow in flows:
            of_flow = traces["window_flow"] == flow
            if of_flow.any():
                times, window = traces["window_time_ns"][of_flow], traces["cwnd"][of_flow]
                # A stopped flow keeps its last window, which means nothing.
                values = _summarize_step_function(
                    times.astype(np.float64),
                    window.astype(np.float64),
                    ends_ns[ends_ns <= groups[flow].stop_s * _NS_PER_SECOND],
                )
                count = len(values["to_s"])
                window_tables.append(
                    {"class": np.full(count, groups[flow].name), "flow": np.full(count, flow)}
                    | values
                )
        tables["windows_over_time"] = concatenate_tables(window_tables)
    return {name: table for name, table in tables.items() if table}


def series_tables(scenario: Scenario, rows: Sequence[Floats]) -> dict[str, Table]:
    """Return ``queue_over_time`` and ``flows_over_time``.

    ``rows`` are the sums at the ends of slots of each replication, ``[slots + 1, columns]``: time
    and queue integral, then ``TIME_SERIES_CELLS`` per class.
    """
    steps = [np.diff(row[:, :_LINK_COLUMNS], axis=0) for row in rows]
    ends = _slot_time_columns(rows)
    class_tables = []
    for index, group in enumerate(scenario.populations):
        cells = [slot_counters(row, index) for row in rows]
        payload = 8.0 * group.payload_bytes
        bits = [payload * c["delivered"] - 8.0 * c["lacking_bytes"] for c in cells]
        goodput = _estimate_ratios_per_slot(bits, [step[:, 0] / _NS_PER_SECOND for step in steps])
        times = {
            name: _estimate_ratios_per_slot(
                [c[total] / _NS_PER_SECOND for c in cells], [c[count] for c in cells]
            )
            for name, total, count in (
                ("rtt_s", "rtt_sum_ns", "rtt_samples"),
                ("delay_s", "delay_ns", "received"),
            )
        }
        table = {"class": np.full(len(ends["to_s"]), group.name)} | ends
        table |= _estimate_columns("goodput_bps", goodput)
        if any(other.traffic.kind == "stream" for other in scenario.populations):
            times |= _player_series(group, rows, cells)
        for name, estimates in times.items():
            table |= _estimate_columns(name, estimates)
        class_tables.append(table)
    queue = {"queue_over_time": _queue_series(rows)} if has_queue(scenario) else {}
    return queue | {"flows_over_time": concatenate_tables(class_tables)}


def _player_series(
    group: Population, rows: Sequence[Floats], cells: Sequence[dict[str, Floats]]
) -> dict[str, Estimates]:
    """Return the rate of received segments, and the buffered time of a player at slot ends.

    Both are nan without players, and the rate is also nan for players with one quality.
    """
    rates = _estimate_ratios_per_slot(
        [_NS_PER_SECOND * c["video_bits"] for c in cells], [c["video_ns"] for c in cells]
    )
    buffered_s = [np.cumsum(c["video_ns"] - c["played_ns"]) / _NS_PER_SECOND for c in cells]
    # A player begins with its first segment, and a stopped one keeps its buffer.
    plays = [
        (np.cumsum(c["video_ns"]) > 0.0) & (row[1:, 0] <= group.stop_s * _NS_PER_SECOND)
        for c, row in zip(cells, rows, strict=True)
    ]
    buffers = _estimate_ratios_per_slot(
        [np.where(each, time, 0.0) for time, each in zip(buffered_s, plays, strict=True)],
        [np.where(each, float(group.count), 0.0) for each in plays],
    )
    has_rates = getattr(group.traffic, "ladder", None) is not None
    value, low, high = (
        np.where(has_rates & np.isfinite(buffers[0]), each, np.nan) for each in _hold(rates)
    )
    return {"video_rate_bps": (value, low, high), "buffered_s": buffers}


def _hold(estimates: Estimates) -> Estimates:
    """Return the estimates with those of the slot before where a slot has none."""
    value, low, high = estimates
    known = np.maximum.accumulate(np.where(np.isfinite(value), np.arange(len(value)), 0))
    return value[known], low[known], high[known]


def slot_counters(rows: Floats, index: int) -> dict[str, Floats]:
    """Return the counters of a class in each slot, ``[slots]``, by name.

    ``rows`` are the sums of one replication, as for :func:`series_tables`.
    """
    names = _native.TIME_SERIES_CELLS
    first = _LINK_COLUMNS + index * len(names)
    steps = np.diff(rows[:, first : first + len(names)], axis=0)
    return dict(zip(names, steps.T, strict=True))


def _align_replications(replications: Sequence[Counts]) -> list[Counts]:
    """Return all replications with the widest slots; a short last slot joins the one before.

    Sums of queue length times time wrap at 2^64, so their differences are accumulated again.
    """
    slot = max(int(rows[min(1, len(rows) - 1), 0]) for rows in replications)
    while slot and max(int(rows[-1, 0]) for rows in replications) > MAX_SLOTS * slot:
        slot *= 2
    aligned = []
    for rows in replications:
        ends = rows[:, 0]
        kept = ends % max(slot, 1) == 0
        kept[-1] = True
        if kept.sum() > 2 and ends[-1] - ends[kept][-2] < slot / 2:
            kept[np.flatnonzero(kept)[-2]] = False
        kept_rows = rows[kept]
        kept_rows[1:, 1] = np.cumsum(np.diff(kept_rows[:, 1]))
        aligned.append(kept_rows)
    return aligned


def _estimate_ratios_per_slot(
    parts: Sequence[Floats], wholes: Sequence[Floats], maximum: float = np.inf
) -> Estimates:
    """Return ratios of sums over replications per slot, and both ends of their intervals.

    Parameters
    ----------
    parts, wholes
        Numerators and denominators per replication, ``[slots]``; shorter if the replication ended
        earlier.
    maximum
        Upper limit of the intervals; the lower limit is 0.
    """
    places = max(len(whole) for whole in wholes)
    part, whole = (
        np.array([np.pad(column, (0, places - len(column))) for column in columns])
        for columns in (parts, wholes)
    )
    there = (whole > 0).sum(axis=0)
    total = whole.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = part.sum(axis=0) / total
        residuals = np.where(whole > 0, part - value * whole, 0.0)
        spread = np.sqrt((residuals**2).sum(axis=0) * there / (there - 1)) / total
        quantiles = [student_quantile(max(count - 1, 1)) for count in range(len(wholes) + 1)]
        half = np.array(quantiles)[there] * spread
    half[there < MIN_REPLICATIONS] = np.nan
    return value, np.maximum(value - half, 0.0), np.minimum(value + half, maximum)


def _slot_time_columns(rows: Sequence[Floats]) -> Table:
    longest = max(rows, key=len)[:, 0] / _NS_PER_SECOND
    return {"from_s": longest[:-1], "to_s": longest[1:]}


def _queue_series(rows: Sequence[Floats]) -> Table:
    steps = [np.diff(row[:, :_LINK_COLUMNS], axis=0) for row in rows]
    estimates = _estimate_ratios_per_slot(
        [step[:, 1] for step in steps], [step[:, 0] for step in steps]
    )
    return _slot_time_columns(rows) | _estimate_columns("queue_pkts", estimates)


def _estimate_columns(name: str, estimates: Estimates) -> Table:
    return {
        name + suffix: part for suffix, part in zip(("", "_low", "_high"), estimates, strict=True)
    }


def _summarize_step_function(time: Floats, window: Floats, ends: Floats) -> Table:
    """Return the mean, lowest and highest value of a step function between ``ends``."""
    # Add the current value at each end, so that every slot has a value.
    known = ends[ends >= time[0]]
    if len(known) < 2:
        return {
            name: np.empty(0) for name in ("from_s", "to_s", "mean_pkts", "low_pkts", "high_pkts")
        }
    at_ends = window[np.searchsorted(time, known, side="right") - 1]
    order = np.argsort(np.concatenate([known, time]), kind="stable")
    times = np.concatenate([known, time])[order]
    values = np.concatenate([at_ends, window])[order]
    inside = (times >= known[0]) & (times < known[-1])
    times, values = times[inside], values[inside]
    firsts = np.searchsorted(times, known[:-1], side="left")
    lengths = np.diff(np.append(times, known[-1]))
    return {
        "from_s": known[:-1] / _NS_PER_SECOND,
        "to_s": known[1:] / _NS_PER_SECOND,
        "mean_pkts": np.add.reduceat(values * lengths, firsts) / np.diff(known),
        "low_pkts": np.minimum.reduceat(values, firsts),
        "high_pkts": np.maximum.reduceat(values, firsts),
    }


def _distribution_for_size(
    counts: TimeCounts, row: int, size: int | None, *, is_isolated: bool
) -> Table:
    of_row = [(times[rows == row], number[rows == row]) for rows, times, number in counts]
    total = int(sum(number.sum() for _, number in of_row))
    if total < MIN_TRANSFERS:
        return {}
    edges = np.unique(np.concatenate([times for times, _ in of_row]))
    within = [_count_transfers_within(times, number, edges) for times, number in of_row]
    wholes = [np.full(len(edges), float(number.sum())) for _, number in of_row]
    share, low, high = _estimate_ratios_per_slot(within, wholes, maximum=1.0)
    if is_isolated:
        # Wilson's 95 % interval of a share of independent trials (JASA 22, 1927).
        z2 = NORMAL_QUANTILE**2
        middle = (share + z2 / (2 * total)) / (1 + z2 / total)
        half = np.sqrt(z2 / total * (share * (1 - share) + z2 / (4 * total))) / (1 + z2 / total)
        low, high = (np.clip(middle - half, 0.0, share), np.clip(middle + half, share, 1.0))
    named = {} if size is None else {"size_pkts": np.full(len(edges), size)}
    transfers = np.full(len(edges), total)
    return named | {
        "transfers": transfers,
        "time_s": edges,
        "share": share,
        "low": low,
        "high": high,
    }


def _count_transfers_within(times: Floats, number: Counts, edges: Floats) -> Floats:
    """Return the number of transfers that take at most as long as each edge."""
    sums = np.append(0.0, np.cumsum(number.astype(np.float64)))
    counts: Floats = sums[np.searchsorted(times, edges, side="right")]
    return counts
