"""Tables of the links of a network, and of the classes on each link."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpcast.answer.metrics import PERCENTAGES
from tcpcast.engines.packet.counters import (
    DROP_COUNTERS,
    estimate_time_percentiles,
    time_percentiles_of_groups,
)
from tcpcast.engines.table_columns import estimate_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpcast.array_types import Table
    from tcpcast.engines.packet.counters import BatchCounters, Estimates, Snapshot
    from tcpcast.scenario import Scenario
    from tcpcast.statistics import Estimate


def has_several_links(scenario: Scenario) -> bool:
    """Return True if a scenario is a network of links, or a road of several links."""
    return bool(scenario.links) or len(scenario.topology.links) > 1


def make_link_tables(scenario: Scenario, snapshot: Snapshot) -> dict[str, Table]:
    """Return table ``by_link`` with a row per link, and ``by_link_class``.

    For a link with ``each``, a row covers all of its instances; ``queue_mean_pkts`` is the mean of
    one instance. Values of classes on links have no intervals, because a network has many.
    """
    units, names = snapshot.units, list(scenario.topology.links)
    of_link, of_class = np.array(units.link_classes, dtype=np.int64).reshape(-1, 2).T
    totals = units.link_class_totals()
    instances = [_count_instances(scenario, name) for name in names]
    rows = []
    for index in range(len(names)):
        cells = "carried_bytes", "capacity_bytes", "packet_ns"
        carried, capacity, packet_ns = (units.link_total(name, index) for name in cells)
        pairs = np.flatnonzero(of_link == index).tolist()
        with_cross = [*pairs, of_link.size + index]
        waits = estimate_time_percentiles(snapshot.link_waits, with_cross, PERCENTAGES)
        rows.append(
            {
                "utilisation": units.share_of_capacity(carried, capacity),
                **_estimate_losses_and_delay(units, pairs),
                **{f"queue_delay_p{p}_s": e for p, e in zip(PERCENTAGES, waits, strict=True)},
                "queue_mean_pkts": units.ratio(
                    packet_ns, units.link("time_ns"), scale=1 / instances[index]
                ),
            }
        )
    drops = sum(totals[name] for name in DROP_COUNTERS)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = {
            "rate_bps": 8 * totals["left_bytes"] / units.measured_s,
            "loss_ratio": drops / totals["entered"],
            "ecn_mark_ratio": totals["marked"] / totals["transmitted"],
            "queue_delay_mean_s": 1e-9 * totals["waited_ns"] / totals["transmitted"],
        }
    percentiles = time_percentiles_of_groups(snapshot.link_waits, of_link.size, PERCENTAGES)
    shares |= {
        f"queue_delay_p{percent}_s": row
        for percent, row in zip(PERCENTAGES, percentiles, strict=True)
    }
    groups = np.array([group.name for group in scenario.populations])
    packets = np.bincount(of_link, weights=totals["entered"], minlength=len(names))
    columns: Table = {}
    for name in rows[0] if rows else ():
        values = [row[name] for row in rows]
        if any(value is not None for value in values):
            columns |= estimate_columns(name, values)
    return {
        "by_link": {
            "link": np.array(names),
            "instances": np.array(instances),
            "packets": packets.astype(np.int64),
            **columns,
        },
        "by_link_class": {
            "link": np.array(names)[of_link],
            "class": groups[of_class],
            "packets": totals["entered"].astype(np.int64),
            **shares,
        },
    }


def _count_instances(scenario: Scenario, name: str) -> int:
    each = scenario.topology.links[name].each
    if each is None:
        return 1
    if each in scenario.sites:
        return scenario.sites[each].count
    paths = ((group, (*group.route, *group.back)) for group in scenario.populations)
    return max(1, sum(group.count for group, path in paths if any(on.name == name for on in path)))


def _estimate_losses_and_delay(units: BatchCounters, pairs: Sequence[int]) -> Estimates:
    def ratio(names: Sequence[str], of: str) -> Estimate | None:
        part = np.sum([units.on_link(name, pairs) for name in names], axis=0)
        return units.ratio(part, units.on_link(of, pairs), events=True, maximum=1.0)

    return {
        "loss_ratio": ratio(DROP_COUNTERS, "entered"),
        "queue_loss_ratio": ratio(["full_drops", "early_drops"], "entered"),
        "aqm_loss_ratio": ratio(["early_drops"], "entered"),
        "random_loss_ratio": ratio(["random_drops"], "entered"),
        "ecn_mark_ratio": ratio(["marked"], "transmitted"),
        "queue_delay_mean_s": units.ratio(
            units.on_link("waited_ns", pairs), units.on_link("transmitted", pairs), scale=1e-9
        ),
    }
