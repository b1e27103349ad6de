"""Rows of a sweep, or of a query about one, as a table for people and as JSON for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from tcpcast.report.lines import Column
from tcpcast.report.quantity import ABSENT
from tcpcast.report.terminal import table_of
from tcpcast.scenario.units import digits

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_ROWS = 100
"""So many rows are printed for people."""

LEADING = (
    "connection_rate_bps",
    "completion_time_s",
    "goodput_bps",
    "send_rate_pps",
    "loss_ratio",
    "queue_delay_mean_s",
    "utilisation",
)
"""Metrics that are printed for people, as far as there are any."""


def rows_text(table: Any, keys: Sequence[str] | None) -> Group:
    """Return rows as something that a rich console prints.

    Parameters
    ----------
    table
        A ``pyarrow.Table``.
    keys
        The keys that vary, which then stand beside the engine, what became of it and the leading
        metrics; None prints every column.
    """
    names = table.column_names
    if keys is not None:
        again = ["replication"] if _several(table, "replication") else []
        fared = ["status"] if _several(table, "status") else []
        names = [*keys, "engine", *again, *fared, *(n for n in LEADING if n in names)]
    shown = table.slice(0, MOST_ROWS).select(names)
    columns = [_column(name, shown[name].to_pylist()) for name in names]
    parts: list[Any] = [table_of(columns)] if columns else []
    if table.num_rows > MOST_ROWS:
        parts.append(Text(f"and {table.num_rows - MOST_ROWS:,} rows more; --json prints them all"))
    return Group(*parts)


def rows_json(table: Any) -> str:
    """Return rows as a list of objects, a row a line."""
    rows = (json.dumps(row, default=str, allow_nan=False) for row in table.to_pylist())
    return "[\n" + ",\n".join(rows) + "\n]"


def _several(table: Any, name: str) -> bool:
    return name in table.column_names and len(table[name].unique()) > 1


def _column(name: str, values: list[Any]) -> Column:
    figures = all(isinstance(v, int | float) or v is None for v in values)
    return Column(name, [_cell(value) for value in values], right=figures)


def _cell(value: Any) -> str:
    if value is None:
        return ABSENT
    if isinstance(value, float):
        return digits(value)
    return value if isinstance(value, str) else json.dumps(value, default=str)
