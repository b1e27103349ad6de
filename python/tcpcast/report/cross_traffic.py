"""Table of cross traffic: what each stream offered, what the hop carried, and the wait."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tcpcast import units
from tcpcast.report.document import Column, Table
from tcpcast.report.quantity import ABSENT_MARK, scale_for_unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpcast.answer import Answer

_QUANTITIES = (
    ("offered_bps", "offered", "bit/s", 1.0),
    ("carried_bps", "carried", "bit/s", 1.0),
    ("loss_ratio", "loss ratio", "%", 100.0),
    ("queue_delay_mean_s", "mean queue delay", "s", 1.0),
)
"""Columns of table ``cross`` to show, with headings, units and factors."""


def cross_traffic_table(answers: Sequence[Answer]) -> Table | None:
    """Return one row per answer and stream of cross traffic, or None if there is none."""
    rows = [
        (answer, index)
        for answer in answers
        if not answer.withheld
        for index in range(len(answer.tables.get("cross", {}).get("name", ())))
    ]
    if not rows:
        return None
    streams = [
        (answer, {name: column[index] for name, column in answer.tables["cross"].items()})
        for answer, index in rows
    ]
    columns = [
        Column("cross traffic", [str(row["name"]) for _, row in streams], right=False),
        Column("hop", [str(row["hop"]) for _, row in streams], right=False),
        Column("by", [answer.engine for answer, _ in streams], right=False),
    ]
    for name, heading, unit, factor in _QUANTITIES:
        values = [factor * float(row.get(name, math.nan)) for _, row in streams]
        scale = scale_for_unit(unit, max((v for v in values if not math.isnan(v)), default=1.0))
        cells = [
            ABSENT_MARK if math.isnan(value) else units.digits(value / scale.factor)
            for value in values
        ]
        columns.append(Column(f"{heading}\n({scale.unit})", cells))
    return Table(columns)
