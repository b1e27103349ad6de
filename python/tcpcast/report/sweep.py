"""Rows of a sweep, or of a query about one: a table for people, JSON and CSV for programs."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from tcpcast.metrics import HEADLINE, METRICS
from tcpcast.report import csv
from tcpcast.report.document import BLANK, Column, Paragraph, Table
from tcpcast.report.headline import short_names, sweep_verdict
from tcpcast.report.quantity import ABSENT, DOUBTED, UNTRUSTED, label, scale_of
from tcpcast.sweeps.table import DOUBT, class_columns, is_metric_column
from tcpcast.units import digits

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tcpcast.report.document import Part
    from tcpcast.report.quantity import Scale

MOST_ROWS = 100
"""So many rows are printed for people."""

MEANINGS = {
    UNTRUSTED: "outside the domain of the formula, or no steady state",
    DOUBTED: "no interval, or an interval to be checked",
}
"""Marks of values in sweeps."""

_LEAST = 30
"""Characters of a reason that stand on a line at the least."""


def rows_parts(
    table: Any, keys: Mapping[str, str] | None, *, more: str = "--csv or --json prints them all"
) -> list[Part]:
    """Return rows as a table of a report.

    Parameters
    ----------
    table
        A ``pyarrow.Table``.
    keys
        The keys that vary with their units, which then stand beside the engine, its outcome
        and the leading metrics; None prints every column.
    more
        Where rows are that are too many for the table.
    """
    names = table.column_names
    if keys is not None and names:
        again = ["replication"] if _several(table, "replication") else []
        others = set(table["status"].to_pylist()) - {"answered"}
        fared = ["status", "reason"] if others else []
        names = [*keys, "engine", *again, *_headline(table), *fared]
    some = table.slice(0, MOST_ROWS).to_pydict()
    marks = {name: metric_marks(some, name) for name in names if keys is not None}
    columns = _columns(some, names, keys or {}, marks)
    notes = _notes(some, names) if keys is not None else []
    if any(notes):
        columns.append(Column("notes", notes, right=False, least=_LEAST))
    parts: list[Part] = []
    verdict = sweep_verdict(table.to_pydict(), list(keys)) if keys else ""
    if verdict:
        parts += [Paragraph(verdict), BLANK]
    if columns:
        parts.append(Table(columns, repeated=min(len(keys or ()) + 1, len(columns) - 1)))
    found = [mark for each in marks.values() for mark in each]
    if keys is not None:
        lead = [name for name in names if name not in {*HEADLINE, "status", "reason"}]
        for group, columns_of in by_class(some).items():
            of_class = {n: metric_marks(columns_of, n) for n in HEADLINE if n in columns_of}
            found += [mark for each in of_class.values() for mark in each]
            shown = _columns(columns_of, [*lead, *of_class], keys, of_class)
            parts += [BLANK, Table(shown, f"class {group}", repeated=len(lead))]
    parts += marks_explained(found)
    if table.num_rows > MOST_ROWS:
        parts.append(Paragraph(f"and {table.num_rows - MOST_ROWS:,} rows more; {more}"))
    return parts


def _headline(table: Any) -> list[str]:
    """Return the metrics that the table shows; rates of all flows only without files."""
    shown = [name for name in HEADLINE if name in table.column_names]
    has_files = any(name in shown and METRICS[name].file_kinds for name in HEADLINE)
    return [name for name in shown if not has_files or "bulk" not in METRICS[name].headline_of]


def by_class(table: Mapping[str, Sequence[Any]]) -> dict[str, dict[str, Sequence[Any]]]:
    """Return a sweep's columns for each class, without those of other classes and of all flows."""
    common = {name: column for name, column in table.items() if not is_metric_column(name)}
    return {
        group: common | {name: table[column] for name, column in names.items()}
        for group, names in class_columns(list(table)).items()
    }


def metric_marks(table: Mapping[str, Sequence[Any]], metric: str) -> list[str]:
    """Return the mark of a metric in each row of a sweep's columns, "" for a certain value."""
    nothing = [None] * len(table[metric])
    untrusted, doubts = (table.get(name, nothing) for name in ("untrusted", f"{metric}{DOUBT}"))
    return [
        UNTRUSTED if metric in (names or ()) else DOUBTED if doubt else ""
        for names, doubt in zip(untrusted, doubts, strict=True)
    ]


def marks_explained(marks: Iterable[str]) -> list[Part]:
    """Return the explanation of each mark that occurs."""
    found = set(marks)
    return [
        Paragraph(text, "aside", f" {mark} ", margin=1)
        for mark, text in MEANINGS.items()
        if mark in found
    ]


def _notes(table: Mapping[str, Sequence[Any]], metrics: Iterable[str]) -> list[str]:
    """Return the doubts of each row about these metrics, each once."""
    shown = [f"{name}{DOUBT}" for name in metrics if f"{name}{DOUBT}" in table]
    rows = zip(*(table[name] for name in shown), strict=True)
    return ["; ".join(dict.fromkeys(filter(None, doubts))) for doubts in rows]


def rows_json(table: Any) -> str:
    """Return rows as a list of objects, a row a line; null is what JSON has no number for."""
    rows = (json.dumps(_finite(row), default=str, allow_nan=False) for row in table.to_pylist())
    return "[\n" + ",\n".join(rows) + "\n]"


def _finite(value: Any) -> Any:
    """Return a value with None in place of NaN and of what is infinite, which SQL may give."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return value


def rows_csv(table: Any) -> str:
    """Return rows as CSV with a head, a row a line: no value is empty, a list is JSON."""
    if not table.column_names:
        return ""
    columns = (map(_csv_cell, column.to_pylist()) for column in table.columns)
    return csv.encode(table.column_names, zip(*columns, strict=True))


def _csv_cell(value: Any) -> Any:
    if isinstance(value, list | dict):
        return json.dumps(value, default=str) if value else ""
    return value


def _several(table: Any, name: str) -> bool:
    return name in table.column_names and len(set(table[name].to_pylist())) > 1


def _heading(name: str, keys: Mapping[str, str]) -> str:
    """Return the short name of a key with its unit, or another column's name."""
    unit = keys.get(name, "")
    return "\n".join([short_names(keys).get(name, name), *([] if unit in {"", "1"} else [unit])])


def _columns(
    table: Mapping[str, Sequence[Any]],
    names: Iterable[str],
    keys: Mapping[str, str],
    marks: Mapping[str, Sequence[str]],
) -> list[Column]:
    found = []
    for name in names:
        values, heading = table[name], _heading(name, keys)
        if name in marks and name in METRICS:
            scale = column_scale(name, values)
            values = [None if value is None else value / scale.factor for value in values]
            heading = "\n".join(filter(None, [label(name), scale.unit]))
        found.append(_column(heading, values, marks.get(name)))
    return found


def column_scale(metric: str, values: Iterable[float | None]) -> Scale:
    """Return the unit in which the largest value of a metric is read best."""
    sizes = (abs(value) for value in values if value is not None and math.isfinite(value))
    return scale_of(metric, max(sizes, default=0.0))


def _column(heading: str, values: Sequence[Any], marks: Sequence[str] | None) -> Column:
    figures = all(isinstance(v, int | float) or v is None for v in values)
    cells = [
        _cell(value) + mark for value, mark in zip(values, marks or [""] * len(values), strict=True)
    ]
    return Column(heading, cells, right=figures, least=0 if figures else _LEAST)


def _cell(value: Any) -> str:
    if value is None:
        return ABSENT
    if isinstance(value, float):
        return digits(value)
    return value if isinstance(value, str) else json.dumps(value, default=str)
