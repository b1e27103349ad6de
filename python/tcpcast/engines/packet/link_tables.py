"""Tables of the links of a network, and of the classes on each link."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpcast.engines.packet.counters import DROP_COUNTERS, estimate_time_percentiles
from tcpcast.engines.table_columns import estimate_columns
from tcpcast.metrics import PERCENTAGES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tcpcast.array_types import Table
    from tcpcast.engines.packet.counters import BatchCounters, Estimates, Snapshot
    from tcpcast.scenario import Scenario
    from tcpcast.statistics import Estimate


def make_link_tables(scenario: Scenario, snapshot: Snapshot) -> dict[str, Table]:
    """Return table ``by_link`` with a row per link, and ``by_link_class``.

    For a link with ``each``, a row covers all of its instances; ``queue_mean_pkts`` is the mean of
    one instance.
    """
    units, names = snapshot.units, list(scenario.links)
    pairs = [
        [n for n, (link, _) in enumerate(units.link_classes) if link == index]
        for index in range(len(names))
    ]
    instances = [_count_instances(scenario, name) for name in names]
    of_links = []
    for index in range(len(names)):
        carried, capacity, packet_ns = (
            units.link_total(name, index)
            for name in ("carried_bytes", "capacity_bytes", "packet_ns")
        )
        waits = estimate_time_percentiles(snapshot.link_waits, [index], PERCENTAGES)
        of_links.append(
            {
                "utilisation": units.share_of_capacity(carried, capacity),
                **_estimate_losses_and_delay(units, pairs[index]),
                **{f"queue_delay_p{p}_s": e for p, e in zip(PERCENTAGES, waits, strict=True)},
                "queue_mean_pkts": units.ratio(
                    packet_ns, units.link("time_ns"), scale=1 / instances[index]
                ),
            }
        )
    seconds = units.link("time_ns") * 1e-9
    of_pairs = [
        {
            "rate_bps": units.ratio(units.on_link("left_bytes", [pair]), seconds, scale=8.0),
            **_estimate_losses_and_delay(units, [pair]),
        }
        for pair in range(len(units.link_classes))
    ]
    groups = [group.name for group in scenario.populations]
    return {
        "by_link": {
            "link": np.array(names),
            "instances": np.array(instances),
            "packets": _packet_column(units, pairs),
            **_columns(of_links),
        },
        "by_link_class": {
            "link": np.array([names[link] for link, _ in units.link_classes]),
            "class": np.array([groups[index] for _, index in units.link_classes]),
            "packets": _packet_column(units, [[n] for n in range(len(units.link_classes))]),
            **_columns(of_pairs),
        },
    }


def _count_instances(scenario: Scenario, name: str) -> int:
    each = scenario.links[name].each
    if each is None:
        return 1
    if each in scenario.sites:
        return scenario.sites[each].count
    paths = ((group, (*group.route, *group.back)) for group in scenario.populations)
    return max(1, sum(group.count for group, path in paths if any(on.name == name for on in path)))


def _packet_column(units: BatchCounters, rows: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    return np.array([int(units.on_link("entered", pairs).sum()) for pairs in rows])


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


def _columns(rows: Sequence[Estimates]) -> Table:
    """Return the columns of the quantities that any row has."""
    columns: Table = {}
    for name in rows[0] if rows else ():
        values = [row[name] for row in rows]
        if any(value is not None for value in values):
            columns |= estimate_columns(name, values)
    return columns
