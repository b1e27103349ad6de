"""Groups of flows: loss, rates, and models of parallel flows.

Damjanovic et al. (2008) define three loss measures, each per packet sent:

- p: loss indications of all flows
- p_e: loss events of the group treated as one flow, at most one per RTT
- p_r: lost packets
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.model_rates import has_measurable_rate, has_model_inputs, model_inputs
from tcpcast.captures.table import start_times_ns
from tcpcast.captures.tap_comparison import loss_denominators
from tcpcast.models.domain import MAX_RTO_SHARE
from tcpcast.models.parallel import (
    cumulative_throughput,
    multiplied_pftk_rate_pps,
    parallel_throughput,
)
from tcpcast.process.errors import DomainError

if TYPE_CHECKING:
    from tcpcast.array_types import Table

    Column = np.ndarray[Any, Any]

ANY_HOST = "*"
"""End point of a group that includes any host."""
MIN_GROWTH_ACK_SHARE = 0.5
"""Minimum share of a group's ACKs in flows with one kind of window growth, to apply it to the
group."""

_MAX_TIME_NS = np.iinfo(np.int64).max
"""Latest time that a table can represent, in nanoseconds since 1970."""

GROUPINGS = ("all", "pair", "source", "destination")
"""Ways to group directions by hosts; ports are ignored."""


def group_directions(
    connections: Table, loss_indications: Table, *, by: str = "pair", rtt_s: float | None = None
) -> Table:
    """Return one row per group of directions; see :meth:`tcpcast.captures.Capture.groups`."""
    if by not in GROUPINGS:
        raise DomainError(f"by must be one of {', '.join(GROUPINGS)}, not {by!r}")
    if rtt_s is not None and not 0 < rtt_s < np.inf:
        raise DomainError(f"rtt_s must be above 0 s and finite, not {rtt_s!r}")
    ends, group = _group_keys(connections, by)
    count = len(ends)
    table: Table = {
        "src": np.array([source for source, _ in ends], dtype=np.str_),
        "dst": np.array([destination for _, destination in ends], dtype=np.str_),
        "flows": np.bincount(group, minlength=count),
        **active_times_and_flow_counts(connections, group, count),
    }
    table |= _group_sums(connections, group, count)
    table |= _group_means(connections, group, count)
    apart = table["rtt_mean_s"] if rtt_s is None else np.full(count, rtt_s)
    # Count the loss events of each group treated as one flow; NaN if not all times are kept. As in
    # the simulator, the first indication counts, and each later one that is at least one RTT after
    # the last counted indication.
    rows = loss_indications["direction"]
    kept = np.bincount(rows, minlength=group.size)
    missing = kept < connections["td"] + connections["to"]
    times = loss_indications["time"].astype(np.int64)
    events = np.zeros(apart.size)
    order = np.lexsort((times, group[rows]))
    for at, where in zip(*_rows_by_sorted_key(group[rows][order]), strict=True):
        if np.isfinite(apart[at]):
            events[at] = _count_separate_times(times[order[where]], round(float(apart[at]) * 1e9))
    events[np.isnan(apart)] = np.nan
    events[group[missing]] = np.nan
    table["loss_events"] = events
    table |= _group_ratios(connections, group, table)
    return table | _group_model_rates(table)


def host_address(end: str) -> str:
    """Return the address of ``10.0.0.1:80`` or ``[fd00::1]:80``."""
    return end.rpartition(":")[0].strip("[]")


def group_mask(connections: Table, source: str, destination: str) -> Column:
    """Return a mask of the directions in the group with this source and destination."""
    ends = zip(connections["src"].tolist(), connections["dst"].tolist(), strict=True)
    return np.array(
        [
            source in (ANY_HOST, host_address(a)) and destination in (ANY_HOST, host_address(b))
            for a, b in ends
        ],
        dtype=bool,
    )


def _group_keys(connections: Table, by: str) -> tuple[list[tuple[str, str]], Column]:
    """Return the end points of each group, and the group index of each direction."""
    sources = by in ("pair", "source")
    destinations = by in ("pair", "destination")
    numbers: dict[tuple[str, str], int] = {}
    ends = zip(connections["src"].tolist(), connections["dst"].tolist(), strict=True)
    group = [
        numbers.setdefault(
            (
                host_address(a) if sources else ANY_HOST,
                host_address(b) if destinations else ANY_HOST,
            ),
            len(numbers),
        )
        for a, b in ends
    ]
    return list(numbers), np.array(group, dtype=np.int64)


def active_times_and_flow_counts(connections: Table, group: Column, count: int) -> Table:
    """Return the active time of each group and the numbers of flows active at the same time."""
    begin = start_times_ns(connections)
    lived_ns = np.nan_to_num(connections["duration_s"] * 1e9).astype(np.int64)
    end = begin + np.minimum(lived_ns, _MAX_TIME_NS - begin)
    first, active, most = (np.zeros(count, dtype=np.int64) for _ in range(3))
    order = np.lexsort((begin, group))
    for at, rows in zip(*_rows_by_sorted_key(group[order]), strict=True):
        starts, ends = begin[order[rows]], end[order[rows]]
        first[at] = starts[0]
        reached = np.maximum.accumulate(ends)
        # Each flow adds the time that earlier flows do not cover.
        before = np.concatenate([starts[:1], reached[:-1]])
        active[at] = np.maximum(ends - np.maximum(starts, before), 0).sum()
        alive = np.arange(1, starts.size + 1) - np.searchsorted(np.sort(ends), starts, "right")
        most[at] = max(alive.max(), 1)  # 1 for flows with one packet, which have no duration
    with np.errstate(divide="ignore", invalid="ignore"):
        lived = np.bincount(group, weights=(end - begin) / 1e9, minlength=count)
        together = np.where(active > 0, lived / (active / 1e9), 1.0)
    return {
        "parallel_flows": together,
        "parallel_flows_max": most,
        "start": first.view("datetime64[ns]"),
        "active_s": active / 1e9,
    }


def _rows_by_sorted_key(keys: Column) -> tuple[list[int], list[slice]]:
    """Return each key of a sorted column and the slice of its rows."""
    values, firsts = np.unique(keys, return_index=True)
    bounds = [*firsts.tolist(), keys.size]
    return values.tolist(), [slice(a, b) for a, b in pairwise(bounds)]


def _group_sums(connections: Table, group: Column, count: int) -> Table:
    def total(values: Column) -> Column:
        sums = np.bincount(group, weights=values, minlength=count)
        return sums.astype(np.int64) if np.isfinite(sums).all() else sums  # NaN in logs

    named = ("bytes", "unique_bytes", "retransmissions", "td", "to", "timeouts")
    return {
        "packets_sent": total(connections["data_packets"]),
        **{name: total(connections[name]) for name in named},
    }


def _group_means(connections: Table, group: Column, count: int) -> Table:
    """Return the means of RTT, T0, b and W_max per group, without unknown values.

    RTTs are weighted by time, T0 by timeout sequences, b by acks; each flow has one W_max.
    ``window_grows_by`` is "packets" if this growth applies to most ACKs.
    """

    def mean(values: Column, weights: Column) -> Column:
        known = np.isfinite(values) & (weights > 0)
        heavy = np.where(known, weights, 0.0)
        sums = np.bincount(group, weights=np.where(known, values, 0.0) * heavy, minlength=count)
        with np.errstate(invalid="ignore"):
            return np.asarray(sums / np.bincount(group, weights=heavy, minlength=count))

    # A flow with one packet has an RTT but no duration.
    time = np.fmax(np.nan_to_num(connections["duration_s"]), 1e-9)
    return {
        "rtt_mean_s": mean(connections["rtt_mean_s"], time),
        "t0_s": mean(connections["t0_s"], connections["to"]),
        "packets_per_ack": mean(connections["packets_per_ack"], connections["acks"]),
        "window_grows_by": np.where(
            mean(1.0 * (connections["window_grows_by"] == "packets"), connections["acks"])
            > MIN_GROWTH_ACK_SHARE,
            "packets",
            "unknown",
        ),
        "w_max_pkts": mean(connections["w_max_pkts"], np.ones(group.size)),
    }


def _count_separate_times(times: Column, apart: int) -> int:
    """Count times that are at least ``apart`` after the last counted time."""
    at, count = 0, 0
    while at < times.size:
        count += 1
        # Python integers, because the sum of time and RTT may exceed 64 bits.
        after = int(times[at]) + max(apart, 1)
        at = int(np.searchsorted(times, after, "left")) if after <= _MAX_TIME_NS else times.size
    return count


def _group_ratios(connections: Table, group: Column, table: Table) -> Table:
    """Return p, p_e and p_r, rates while the group was active, and Jain's fairness index."""
    count = table["flows"].size
    sent = table["packets_sent"]
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = connections["data_packets"] / connections["duration_s"]
        known = np.where(np.isfinite(rates) & has_measurable_rate(connections), rates, 0.0)
        any_rate = np.bincount(group, weights=has_measurable_rate(connections), minlength=count) > 0
        active = np.where(any_rate, table["active_s"], np.nan)
        total = np.bincount(group, weights=known, minlength=count)
        squares = np.bincount(group, weights=known * known, minlength=count)
        sharing = np.bincount(group, weights=known > 0, minlength=count)
        exact = np.full(count, np.nan)
        if "lost_between" in connections:  # two captures of the same packets
            known = loss_denominators(connections)
            lost = np.where(known > 0, connections["lost_between"], 0.0)
            exact = np.bincount(group, weights=lost, minlength=count) / np.bincount(
                group, weights=known, minlength=count
            )
        return {
            "loss_indication_ratio": (table["td"] + table["to"]) / sent,
            "loss_event_ratio_cumulative": table["loss_events"] / sent,
            "loss_ratio": exact,
            "loss_ratio_estimate": table["retransmissions"] / sent,
            "send_rate_pps": sent / active,
            "throughput_bps": 8 * table["bytes"] / active,
            "goodput_bps": 8 * table["unique_bytes"] / active,
            "jain_index": total**2 / (sharing * squares),
        }


def _group_model_rates(table: Table) -> Table:
    """Return the rates by algorithms 1 and 2 and n times PFTK, at most n windows per RTT.

    n is the mean number of flows active at the same time, rounded to an integer.
    """
    count = table["flows"].size
    path: dict[str, Any] = model_inputs(table)
    window = path.pop("receiver_window_pkts")
    path["flows"] = np.maximum(np.rint(table["parallel_flows"]), 1)
    p, p_e = table["loss_indication_ratio"], table["loss_event_ratio_cumulative"]
    exact = table["loss_ratio"]
    p_r = np.where(np.isnan(exact), table["loss_ratio_estimate"], exact)
    names = ("parallel_pps", "parallel_cumulative_pps", "multiplied_pftk_pps", "waiting_share")
    found = {name: np.full(count, np.nan) for name in names}
    known = has_model_inputs(p, path | {"receiver_window_pkts": window})
    with np.errstate(divide="ignore", invalid="ignore"):
        most = path["flows"] * window / path["rtt_s"]
    if known.any():
        given = {name: values[known] for name, values in path.items()}
        first = parallel_throughput(loss_event_ratio=p[known], **given)
        found["parallel_pps"][known] = np.minimum(first.rate_pps, most[known])
        found["waiting_share"][known] = first.flows_in_timeout / given["flows"]
        found["multiplied_pftk_pps"][known] = multiplied_pftk_rate_pps(
            loss_indication_ratio=p[known], receiver_window_pkts=window[known], **given
        )
    known &= (p_e > 0) & (p_e < 1) & (p_r > 0) & (p_r < 1)
    if known.any():
        second = cumulative_throughput(
            loss_event_ratio_cumulative=p_e[known],
            loss_ratio=p_r[known],
            **{name: values[known] for name, values in path.items()},
        )
        found["parallel_cumulative_pps"][known] = np.minimum(second.rate_pps, most[known])
    return found


def have_many_flows_in_rto(groups: Table) -> Column:
    """Return a mask of groups with more flows in RTO than algorithm 1 assumes, by its result."""
    return np.asarray(groups["waiting_share"] > MAX_RTO_SHARE)
