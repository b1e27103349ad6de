"""Results of hops in series: one row per hop, including the measured one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.engines.table_columns import rows_to_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpcast.array_types import Table
    from tcpcast.engines.packet.metric_estimates import Snapshot
    from tcpcast.scenario import Scenario
    from tcpcast.scenario.hops import Hop

ARRIVED, QUEUE_DROPS, RANDOM_DROPS, BUSY, QUEUE_INTEGRAL, LONGEST, LOAD = range(7)
"""Indices of a hop's counts in the totals."""


def hop_table(scenario: Scenario, snapshot: Snapshot) -> Table:
    """Return one row per hop in path order, over all replications.

    If each source has its own copy of a hop, ``utilisation`` and ``queue_mean_pkts`` are means over
    sources, and ``queue_max_pkts`` is the largest queue of any copy. The means are nan if transfers
    begin at random times, because the number of sources is then unknown.
    """
    network = scenario.network
    if len(network.hops) < 2:
        return {}
    rows = [
        _measured_hop_row(snapshot, hop)
        if index == network.measured_index
        else _other_hop_row(scenario, snapshot, index, hop)
        for index, hop in enumerate(network.hops)
    ]
    return {"hop": np.array([hop.name for hop in network.hops])} | rows_to_table(rows)


def _measured_hop_row(snapshot: Snapshot, hop: Hop) -> dict[str, Any]:
    units = snapshot.units
    drops = units.total("queue_drops") + units.total("random_drops")
    sums = [units.link("busy_ns"), units.link("queue_integral"), units.link("time_ns")]
    busy, queue_integral, time = (float(column.sum()) for column in sums)
    return {
        **_loss_columns(units.total("arrived"), drops),
        **_occupancy_columns(busy, queue_integral, time),
        **_varying_rate_utilisation(
            hop, [units.link(name).sum() for name in ("carried_bytes", "capacity_bytes")]
        ),
        "queue_max_pkts": snapshot.largest_queue,
    }


def _other_hop_row(scenario: Scenario, snapshot: Snapshot, index: int, hop: Hop) -> dict[str, Any]:
    counts = snapshot.totals["hops"][index]
    time = float(snapshot.units.link("time_ns").sum())
    if not hop.shared:
        pooled = any(group.traffic.kind == "transfers" for group in scenario.populations)
        time *= math.nan if pooled else scenario.senders
    return {
        **_loss_columns(counts[ARRIVED], counts[QUEUE_DROPS] + counts[RANDOM_DROPS]),
        **_occupancy_columns(counts[BUSY], counts[QUEUE_INTEGRAL], time),
        **_varying_rate_utilisation(hop, counts[LOAD]),
        "queue_max_pkts": counts[LONGEST],
    }


def _loss_columns(arrived: float, drops: float) -> dict[str, Any]:
    # Packets that arrived during the warm-up may be dropped later.
    ratio = drops / arrived if arrived and drops <= arrived else math.nan
    return {"arrived": int(arrived), "drops": int(drops), "loss_ratio": ratio}


def _occupancy_columns(busy_ns: float, queue_integral_ns: float, time_ns: float) -> dict[str, Any]:
    spans = {"utilisation": busy_ns, "queue_mean_pkts": queue_integral_ns}
    return {name: span / time_ns if time_ns else math.nan for name, span in spans.items()}


def _varying_rate_utilisation(hop: Hop, load: Sequence[float]) -> dict[str, float]:
    """Return the utilisation of a hop with varying rate, which does not follow from busy time."""
    if hop.varying is None:
        return {}
    carried, capacity = load
    # A token bucket may also carry tokens that it saved before.
    return {"utilisation": min(carried / capacity, 1.0) if capacity else math.nan}
