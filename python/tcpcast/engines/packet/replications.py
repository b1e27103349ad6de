"""Metrics of each replication, for paired differences, and the distribution of all times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast import _native
from tcpcast.engines.packet.counters import (
    read_counters,
    time_percentiles_of_groups,
)
from tcpcast.engines.packet.metric_estimates import estimate_class_metrics
from tcpcast.metrics import CLASS_METRICS, PERCENTILES

if TYPE_CHECKING:
    from tcpcast.engines.packet.counters import SlotCounts
    from tcpcast.scenario import Scenario

    Tables = dict[str, dict[str, np.ndarray[Any, Any]]]

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
