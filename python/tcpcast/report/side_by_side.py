"""A comparison as cells of a table: values, intervals, differences, and what is marked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast.report.document import Column
from tcpcast.report.quantity import (
    ABSENT,
    UNTRUSTED,
    difference_text,
    interval_text,
    label,
    row_scale,
    value_text,
)

if TYPE_CHECKING:
    from tcpcast.answer import Metric
    from tcpcast.compare import Comparison, Row
    from tcpcast.report.quantity import Scale

KINDS = {"formula": "formula", "simulation": "simulated", "measurement": "measured"}
"""How the answers of a kind are called at the head of a column."""


def side_by_side_columns(comparison: Comparison, title: str) -> list[Column]:
    """Return a comparison as columns: a value and, where there is one, its interval beside it."""
    scales = [row_scale(row) for row in comparison.rows]
    columns = [
        Column(title, [row_name(row) for row in comparison.rows], right=False),
        Column("unit", [scale.unit for scale in scales], right=False),
    ]
    bearing = bearing_intervals(comparison)
    for i, engine in enumerate(comparison.engines):
        given = [
            (row.metrics[i], scale) for row, scale in zip(comparison.rows, scales, strict=True)
        ]
        columns.append(Column(engine, [marked_value(f, scale) for f, scale in given]))
        if i in bearing:
            columns.append(Column("95 %", [interval(f, scale) for f, scale in given], right=False))
    for i in comparison.compared:
        cells = [difference_text(row.differences[i]) for row in comparison.rows]
        columns.append(Column(versus(comparison, i), cells))
    return columns


def row_name(row: Row) -> str:
    """Return what a row is of: its subject, or its metric in words."""
    return row.subject or label(row.metric)


def marked_value(figure: Metric | None, scale: Scale) -> str:
    """Return a value as people read it, with a dagger where it is not to be trusted."""
    if figure is None:
        return ABSENT
    return value_text(figure, scale) + ("" if figure.trusted else UNTRUSTED)


def interval(figure: Metric | None, scale: Scale) -> str:
    """Return the interval of a value, "" without one."""
    return "" if figure is None else interval_text(figure, scale)


def bearing_intervals(comparison: Comparison) -> set[int]:
    """Return which engines give at least one interval, or say why not."""
    return {
        i
        for row in comparison.rows
        for i, figure in enumerate(row.metrics)
        if interval(figure, row_scale(row))
    }


def versus(comparison: Comparison, engine: int) -> str:
    """Return the heading of an engine's differences from the reference."""
    assert comparison.reference is not None
    return f"{comparison.engines[engine]}\nvs {comparison.engines[comparison.reference]}"
