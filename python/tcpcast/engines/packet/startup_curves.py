"""Data that endless flows delivered by given times after their start: start-up curves."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tcpcast import statistics
from tcpcast.answer import Note
from tcpcast.engines.table_columns import estimate_part_or_nan, rows_to_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpcast.array_types import Table
    from tcpcast.scenario import Scenario

    Row = dict[str, Any]


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
                rows += _delivered_row(group.name, time_s, index, payload, of_class)
        first = last if group.traffic.kind != "transfers" else first
    table = rows_to_table(rows)
    if len(scenario.populations) == 1:
        table.pop("class", None)
    return table


def _delivered_row(
    name: str, time_s: float, index: int, payload: int, packets: Sequence[Sequence[Sequence[int]]]
) -> list[Row]:
    reached = [[flow[index] for flow in run if len(flow) > index] for run in packets]
    means = [payload * math.fsum(counts) / len(counts) for counts in reached if counts]
    if not means:
        return []
    estimate = statistics.estimate_mean(means, replications=len(means))
    row = {"class": name, "t_s": time_s, "bytes": math.fsum(means) / len(means)}
    ends = {part: estimate_part_or_nan(estimate, part) for part in ("low", "high")}
    return [row | ends | {"flows": sum(map(len, reached))}]


def warn_about_unreached_times(scenario: Scenario, delivered: Table) -> list[Note]:
    """Return a note if no flow reached one of the times."""
    reached = set(delivered.get("t_s", ()))
    missing = [time for time in scenario.run.report_at or () if time not in reached]
    if not missing:
        return []
    return [
        Note(
            f"the table `delivered` ends before {missing[0]:g} s, a time in run.report_at, "
            "because no flow ran for this long; write a longer run.duration",
            kind="remark",
        )
    ]
