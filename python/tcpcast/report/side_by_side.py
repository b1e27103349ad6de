"""A comparison as table cells: values with marks, intervals and differences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast.report.document import Column
from tcpcast.report.quantity import (
    ABSENT_MARK,
    UNTRUSTED_MARK,
    difference_text,
    interval_text,
    metric_label,
    scale_for_row,
    value_text,
)

if TYPE_CHECKING:
    from tcpcast.answer import Metric
    from tcpcast.comparison.compare import Comparison, ComparisonRow
    from tcpcast.report.quantity import Scale

KIND_LABELS = {"formula": "formula", "simulation": "simulated", "measurement": "measured"}
"""Words for each kind of answer in a column heading."""


def side_by_side_columns(comparison: Comparison, title: str) -> list[Column]:
    """Return a comparison as columns of values, intervals (if any) and differences."""
    scales = [scale_for_row(row) for row in comparison.rows]
    columns = [
        Column(title, [row_name(row) for row in comparison.rows], right=False),
        Column("unit", [scale.unit for scale in scales], right=False),
    ]
    with_intervals = engines_with_intervals(comparison)
    for i, engine in enumerate(comparison.engines):
        given = [
            (row.metrics[i], scale) for row, scale in zip(comparison.rows, scales, strict=True)
        ]
        columns.append(Column(engine, [value_or_mark_text(f, scale) for f, scale in given]))
        if i in with_intervals:
            columns.append(
                Column("95 %", [interval_cell(f, scale) for f, scale in given], right=False)
            )
    for i in comparison.compared_columns:
        cells = [difference_text(row.differences[i]) for row in comparison.rows]
        columns.append(Column(difference_heading(comparison, i), cells))
    return columns


def row_name(row: ComparisonRow) -> str:
    """Return the label of a row: its subject, or else its metric in words."""
    return row.subject or metric_label(row.metric)


def value_or_mark_text(metric: Metric | None, scale: Scale) -> str:
    """Return a value as text, with a dagger if it is untrusted."""
    if metric is None:
        return ABSENT_MARK
    return value_text(metric, scale) + ("" if metric.trusted else UNTRUSTED_MARK)


def interval_cell(metric: Metric | None, scale: Scale) -> str:
    """Return the interval of a value, or "" if there is none."""
    return "" if metric is None else interval_text(metric, scale)


def engines_with_intervals(comparison: Comparison) -> set[int]:
    """Return the indices of engines with at least one interval or a reason for its absence."""
    return {
        i
        for row in comparison.rows
        for i, figure in enumerate(row.metrics)
        if interval_cell(figure, scale_for_row(row))
    }


def difference_heading(comparison: Comparison, engine: int) -> str:
    """Return the column heading for the differences between an engine and the reference."""
    assert comparison.reference is not None
    return f"{comparison.engines[engine]}\nvs {comparison.engines[comparison.reference]}"
