"""Build tables, which are columns by name, from rows, from other tables, and from estimates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcpcast.array_types import Floats, Table


def rows_to_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return the columns of rows with equal keys; empty without rows."""
    return {name: np.array([row[name] for row in rows]) for name in rows[0]} if rows else {}


def concatenate_tables(tables: Iterable[Table]) -> Table:
    """Return the rows of all tables that are not empty; these tables have equal columns."""
    filled = [table for table in tables if table]
    names = filled[0] if filled else {}
    return {name: np.concatenate([table[name] for table in filled]) for name in names}


def quantity_table(rows: Iterable[tuple[str, float, str]]) -> Table:
    """Return a table with one quantity per row: its name, value and unit."""
    return rows_to_table(
        [{"quantity": name, "value": float(value), "unit": unit} for name, value, unit in rows]
    )


def percentile_columns(values: NDArray[Any], percentages: Sequence[int] = (50, 95, 99)) -> Table:
    """Return the columns ``p50``, ``p95``, ... of ``values``, ``[rows, percentages]``."""
    return {f"p{percent}": values[:, index] for index, percent in enumerate(percentages)}


def estimate_part_or_nan(estimate: object, part: str) -> float:
    """Return an attribute of an estimate, such as ``low``; nan if the attribute or all is None."""
    value = getattr(estimate, part, None)
    return math.nan if value is None else float(value)


def estimate_columns(name: str, estimates: Sequence[object]) -> Table:
    """Return a column of values and, with ``_low`` and ``_high``, of the ends of intervals."""
    parts = {"": "value", "_low": "low", "_high": "high"}
    return {name + end: estimate_part_column(estimates, part) for end, part in parts.items()}


def estimate_part_column(estimates: Iterable[object], part: str) -> Floats:
    """Return :func:`estimate_part_or_nan` of each estimate."""
    return np.array(
        [estimate_part_or_nan(estimate, part) for estimate in estimates], dtype=np.float64
    )
