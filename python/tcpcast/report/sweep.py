"""Rows of a sweep or of a query: a readable table, JSON and CSV."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from tcpcast.answer.finding import Finding
from tcpcast.answer.metrics import HEADLINE_METRICS, METRICS
from tcpcast.comparison.compare import LINK_PREFIX
from tcpcast.comparison.verdict import (
    MAX_NAMED,
    SWEEP_COLUMNS,
    WAITING_METRICS,
    main_metric_of_sweep,
    sweep_findings,
)
from tcpcast.quantity.units import digits
from tcpcast.report import csv
from tcpcast.report.document import BLANK_LINE, Column, Paragraph, Table
from tcpcast.report.quantity import (
    ABSENT_MARK,
    DOUBTED_MARK,
    UNTRUSTED_MARK,
    metric_label,
    scale_for_metric,
    scale_for_unit,
)
from tcpcast.report.verdict import verdict_text
from tcpcast.statistics.latency_under_load import bufferbloat_grade
from tcpcast.sweeps.table import WARNING_SUFFIX, group_class_columns, is_metric_column

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tcpcast.report.document import Part
    from tcpcast.report.quantity import Scale
    from tcpcast.scenario import Scenario

MAX_ROWS = 100
"""Maximum number of rows in a readable table."""

MARK_MEANINGS = {
    UNTRUSTED_MARK: "outside the domain of the formula, or no steady state",
    DOUBTED_MARK: "no interval, or an interval that should be checked",
}
"""Meanings of the marks of values in sweeps."""

_MIN_TEXT_WIDTH = 30
"""Minimum width of a text column, whose cells are wrapped."""


def sweep_rows_parts(
    table: Any,
    keys: Mapping[str, str] | None,
    *,
    max_rows: int = MAX_ROWS,
    how_to_get_rest: str = "--csv or --json prints all rows",
) -> list[Part]:
    """Return rows as a table of a report.

    Parameters
    ----------
    table
        A ``pyarrow.Table``.
    keys
        The varied keys with their units. If given, the table shows these keys, the engine, its
        status and the most important metrics. None shows all columns.
    max_rows
        Maximum number of rows.
    how_to_get_rest
        Text that states how to get the rows that do not fit in the table.
    """
    names = table.column_names
    if keys is not None and names:
        several = "replication" in names and len(set(table["replication"].to_pylist())) > 1
        replication = ["replication"] if several else []
        others = set(table["status"].to_pylist()) - {"answered"}
        status = ["status", "reason"] if others else []
        names = [*keys, "engine", *replication, *_headline_metrics(table), *status]
    first_rows = table.slice(0, max_rows).to_pydict()
    marks = {name: metric_marks(first_rows, name) for name in names if keys is not None}
    columns = _table_columns(first_rows, names, keys or {}, marks)
    notes = _warnings_of_each_row(first_rows, names) if keys is not None else []
    if any(notes):
        columns.append(Column("notes", notes, right=False, min_width=_MIN_TEXT_WIDTH))
    parts: list[Part] = []
    if columns:
        parts.append(Table(columns, repeated_columns=min(len(keys or ()) + 1, len(columns) - 1)))
    used_marks = [mark for each in marks.values() for mark in each]
    if keys is not None:
        lead = [name for name in names if name not in {*HEADLINE_METRICS, "status", "reason"}]
        for group, columns_of in tables_by_class(first_rows).items():
            of_class = {n: metric_marks(columns_of, n) for n in HEADLINE_METRICS if n in columns_of}
            used_marks += [mark for each in of_class.values() for mark in each]
            shown = _table_columns(columns_of, [*lead, *of_class], keys, of_class)
            parts += [BLANK_LINE, Table(shown, group_label(group), repeated_columns=len(lead))]
    parts += mark_meaning_parts(used_marks)
    if table.num_rows > max_rows:
        parts.append(Paragraph(f"and {table.num_rows - max_rows:,} more rows; {how_to_get_rest}"))
    return parts


def table_findings(
    table: Any, keys: Mapping[str, str], scenario: Scenario | None = None
) -> list[Finding]:
    """Return the findings of a ``pyarrow.Table`` of a sweep; with a few classes, those of each.

    With more classes, they are those of the first classes that wait for messages or requests.
    Only the columns that they need are converted, since a sweep may have hundreds of others.
    If the scenario is given and its queues are compared, the first finding is what they change for
    the class that waits longest.
    """
    names = [n for n in table.column_names if n in keys or n.partition(".")[0] in SWEEP_COLUMNS]
    columns = table.select(names).to_pydict()
    classes = {
        group: each
        for group, each in tables_by_class(columns).items()
        if not group.startswith(LINK_PREFIX)
    }
    if len(classes) > MAX_NAMED:
        waits = _waiting_classes(classes)
        classes = {name: classes[name] for name in waits[:MAX_NAMED]}
    lead = None if scenario is None else _queue_finding(columns, keys, scenario)
    if lead is not None:
        first, finding = lead
        others = [name for name in classes if name != first and name in _waiting_classes(classes)]
        found = [sweep_findings(classes[name], keys, name) for name in others]
        return [finding, *(each for every in found for each in every)]
    found = [sweep_findings(each, keys, group) for group, each in classes.items()]
    if found and all(found) and (len(found) > 1 or classes.keys() != {""}):
        return [finding for each in found for finding in each]
    return sweep_findings(columns, keys)


def _waiting_classes(classes: Mapping[str, Mapping[str, Sequence[Any]]]) -> list[str]:
    return [n for n, each in classes.items() if main_metric_of_sweep(each, n) in WAITING_METRICS]


def _queue_finding(
    columns: Mapping[str, Sequence[Any]], keys: Mapping[str, str], scenario: Scenario
) -> tuple[str, Finding] | None:
    """Return what queues change for the class with the longest delay, and the name of this class.

    None if other keys vary, if several engines answered, or if no class of messages or pings runs
    beside endless flows, or the queues make less than a third of difference.
    """
    if len(keys) != 1 or not next(iter(keys)).endswith(".queue"):
        return None
    (key,) = keys
    queues = [value if isinstance(value, str) else str(value) for value in columns[key]]
    loads = [group.name for group in scenario.populations if group.traffic.kind == "bulk"]
    delays = {
        group.name: (group, columns[f"delay_p95_s.{group.name}"])
        for group in scenario.populations
        if group.traffic.kind in ("messages", "ping") and f"delay_p95_s.{group.name}" in columns
    }
    if len(set(queues)) != len(queues) or len(queues) < 2 or not (loads and delays):
        return None
    if any(value is None for _, values in delays.values() for value in values):
        return None
    name, (group, values) = max(delays.items(), key=lambda item: max(item[1][1]))
    worst, best = values.index(max(values)), values.index(min(values))
    if values[worst] < MIN_QUEUE_EFFECT * values[best]:
        return None
    idle, high, low = (
        f"{digits(1e3 * seconds, 2 if seconds >= MIN_THREE_DIGITS_S else 3)} ms"
        for seconds in (group.idle_delay_s, values[worst], values[best])
    )
    grades = [bufferbloat_grade(values[at] - group.idle_delay_s) for at in (worst, best)]
    cost = _cost(columns, loads, worst, best)
    one = f"class {loads[0]} raises"
    several = f"classes {', '.join(loads[:-1])} and {loads[-1]} raise"
    what = one if len(loads) == 1 else several
    text = (
        f"with {queues[worst]}, {what} the delay of class {name} from {idle} to {high} (p95, "
        f"bufferbloat grade {grades[0]}); {queues[best]} keeps it at {low} ({grades[1]}){cost}"
    )
    return name, Finding(text, claim="text")


MIN_QUEUE_EFFECT = 1.5
"""Smallest ratio of two delays for which a verdict states what the queue changes."""

MIN_THREE_DIGITS_S = 0.1
MIN_COST = 0.005


def _cost(columns: Mapping[str, Sequence[Any]], loads: Sequence[str], worst: int, best: int) -> str:
    """Return the largest loss of goodput of a class, as a clause; "" if no goodput is known."""
    changes = []
    for name in loads:
        rates = columns.get(f"goodput_bps.{name}", columns.get("goodput_bps"))
        if rates and rates[worst] and rates[best] is not None:
            changes.append((rates[best] / rates[worst] - 1, name))
    if not changes:
        return ""
    change, name = min(changes)
    if change > -MIN_COST:
        return " and costs no goodput"
    return f" and costs class {name} {digits(-100 * change, 2)} % of its goodput"


def sweep_verdict_parts(
    table: Any, keys: Mapping[str, str], scenario: Scenario | None = None
) -> list[Part]:
    """Return the verdict on a ``pyarrow.Table`` of a sweep, if there is one."""
    verdict = verdict_text(table_findings(table, keys, scenario))
    return [Paragraph(verdict, "heading"), BLANK_LINE] if verdict else []


def verdict_json(
    table: Any, keys: Mapping[str, str], scenario: Scenario | None = None
) -> dict[str, Any]:
    """Return ``verdict`` and ``findings`` of a ``pyarrow.Table`` of a sweep."""
    findings = table_findings(table, keys, scenario)
    return {
        "verdict": verdict_text(findings) or None,
        "findings": [finding.to_json() for finding in findings],
    }


def _headline_metrics(table: Any) -> list[str]:
    """Return the metrics to show; rates of all flows only without metrics of transfers."""
    shown = [name for name in HEADLINE_METRICS if name in table.column_names]
    has_files = any(name in shown and METRICS[name].file_kinds for name in HEADLINE_METRICS)
    return [name for name in shown if not has_files or "bulk" not in METRICS[name].headline_of]


def group_label(group: str) -> str:
    """Return "class NAME", or "link NAME" for a link of a network."""
    is_link = group.startswith(LINK_PREFIX)
    return f"link {group.removeprefix(LINK_PREFIX)}" if is_link else f"class {group}"


def tables_by_class(table: Mapping[str, Sequence[Any]]) -> dict[str, dict[str, Sequence[Any]]]:
    """Return the columns of each class and link by its name, without totals."""
    common = {name: column for name, column in table.items() if not is_metric_column(name)}
    return {
        group: common | {name: table[column] for name, column in names.items()}
        for group, names in group_class_columns(list(table)).items()
    }


def metric_marks(table: Mapping[str, Sequence[Any]], metric: str) -> list[str]:
    """Return the mark of a metric in each row, or "" for a value without a warning."""
    nothing = [None] * len(table[metric])
    untrusted, doubts = (
        table.get(name, nothing) for name in ("untrusted", f"{metric}{WARNING_SUFFIX}")
    )
    return [
        UNTRUSTED_MARK if metric in (names or ()) else DOUBTED_MARK if doubt else ""
        for names, doubt in zip(untrusted, doubts, strict=True)
    ]


def mark_meaning_parts(marks: Iterable[str]) -> list[Part]:
    """Return the explanation of each mark that occurs."""
    used = set(marks)
    return [
        Paragraph(text, "aside", f" {mark} ", right_margin=1)
        for mark, text in MARK_MEANINGS.items()
        if mark in used
    ]


def _warnings_of_each_row(table: Mapping[str, Sequence[Any]], metrics: Iterable[str]) -> list[str]:
    """Return the distinct warnings about these metrics in each row."""
    shown = [f"{name}{WARNING_SUFFIX}" for name in metrics if f"{name}{WARNING_SUFFIX}" in table]
    rows = zip(*(table[name] for name in shown), strict=True)
    return ["; ".join(dict.fromkeys(filter(None, doubts))) for doubts in rows]


def rows_json(table: Any) -> str:
    """Return rows as a JSON list, one object per line; NaN and infinity become null."""
    rows = (
        json.dumps(_finite_or_none(row), default=str, allow_nan=False) for row in table.to_pylist()
    )
    return "[\n" + ",\n".join(rows) + "\n]"


def sweep_json(table: Any, keys: Mapping[str, str], scenario: Scenario | None = None) -> str:
    """Return ``verdict``, ``findings`` and ``answers``, with one object per line and row."""
    return (
        f'{json.dumps(verdict_json(table, keys, scenario))[:-1]},\n"answers": {rows_json(table)}}}'
    )


def short_key_names(keys: Iterable[str]) -> dict[str, str]:
    """Return the last part of each key's name, or the full name if two last parts are equal."""
    last = {key: key.rpartition(".")[2] for key in keys}
    alike = list(last.values())
    return {key: name if alike.count(name) == 1 else key for key, name in last.items()}


def _finite_or_none(value: Any) -> Any:
    """Return a value, or None for NaN and infinity, which SQL may return."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite_or_none(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite_or_none(each) for each in value]
    return value


def rows_csv(table: Any) -> str:
    """Return rows as CSV with a header row; missing values are empty, lists are JSON."""
    if not table.column_names:
        return ""
    columns = (map(_csv_cell, column.to_pylist()) for column in table.columns)
    return csv.encode_csv(table.column_names, zip(*columns, strict=True))


def _csv_cell(value: Any) -> Any:
    if isinstance(value, list | dict):
        return json.dumps(value, default=str) if value else ""
    return value


def _table_columns(
    table: Mapping[str, Sequence[Any]],
    names: Iterable[str],
    keys: Mapping[str, str],
    marks: Mapping[str, Sequence[str]],
) -> list[Column]:
    columns, key_names = [], short_key_names(keys)
    for name in names:
        values, heading = table[name], key_names.get(name, name)
        scale = None
        if name in marks and name in METRICS:
            scale, heading = column_scale(name, values), metric_label(name)
        elif all(isinstance(value, float) for value in values) and keys.get(name):
            scale = scale_for_unit(keys[name], max(values, default=0.0))
        if scale is not None:
            values = [None if value is None else value / scale.factor for value in values]
            heading = "\n".join(filter(None, [heading, scale.unit]))
        is_numeric = all(isinstance(v, int | float) or v is None for v in values)
        cells = [
            _cell_text(value) + mark
            for value, mark in zip(values, marks.get(name) or [""] * len(values), strict=True)
        ]
        min_width = 0 if is_numeric else _MIN_TEXT_WIDTH
        columns.append(Column(heading, cells, right=is_numeric, min_width=min_width))
    return columns


def column_scale(metric: str, values: Iterable[float | None]) -> Scale:
    """Return a readable unit for the largest value of a metric."""
    sizes = (abs(value) for value in values if value is not None and math.isfinite(value))
    return scale_for_metric(metric, max(sizes, default=0.0))


def _cell_text(value: Any) -> str:
    if value is None:
        return ABSENT_MARK
    if isinstance(value, float):
        return digits(value)
    return value if isinstance(value, str) else json.dumps(value, default=str)
