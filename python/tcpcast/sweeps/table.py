"""The table of a sweep: one row per cell, replication and engine, in typed columns."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

from tcpcast.answer import UNITS, Note, Status, finite_or_none, warning_severity
from tcpcast.answer.metrics import HEADLINE_METRICS
from tcpcast.comparison.compare import class_metrics, link_metrics
from tcpcast.process.errors import MachineError
from tcpcast.sweeps.axes import QUANTITY_KINDS, SweepAxis, common_quantity_kind, value_as_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import ModuleType

    from tcpcast.answer import Answer, Metric
    from tcpcast.sweeps.worker import CellRun

STATUSES = (Status.DONE, Status.PARTIAL, Status.NOT_APPLICABLE, Status.FAILED)
ANSWERED, PARTIAL, NOT_APPLICABLE, FAILED = (status.value for status in STATUSES)
"""Status of a row; all but the first have a ``reason``."""

INTEGER, BOOLEAN, TEXT = "integer", "truth", "text"
"""Kinds of columns for keys that are not quantities."""

ANSWER_COLUMNS = (
    *("engine", "replication", "seed", "status", "reason"),
    *("trusted", "untrusted", "regime", "warnings"),
)
"""Columns between those of the varied keys and those of the metrics."""

METRIC_NAMES = tuple(name for name in UNITS)
VALUE_SUFFIXES = ("", "_low", "_high")
WARNING_SUFFIX = "_interval_warning"
METRIC_COLUMNS = tuple(
    f"{name}{suffix}" for name in METRIC_NAMES for suffix in (*VALUE_SUFFIXES, WARNING_SUFFIX)
)
"""Value, interval limits and interval warning of each metric."""
CLASS_COLUMNS = tuple(
    f"{name}{suffix}" for name in HEADLINE_METRICS for suffix in (*VALUE_SUFFIXES, WARNING_SUFFIX)
)
"""Columns of metrics that also exist per class, as ``goodput_bps_low.NAME``."""

_ROWS_PER_CHUNK = 2000
"""Number of rows that are converted together: one has a thousand columns, most of them empty."""


def import_sweep_packages(*names: str, what: str = "sweeps") -> list[ModuleType]:
    """Import packages of the extra ``sweep``.

    Raises
    ------
    MachineError
        A package is not installed or cannot be imported.
    """
    import importlib  # noqa: PLC0415 - only needed here

    imported = []
    for name in names:
        try:
            imported.append(importlib.import_module(name))
        except ModuleNotFoundError as missing:
            package = name.partition(".")[0]
            raise MachineError(
                f"{what} need {package}, which is not installed: pip install {package}"
            ) from missing
        except (ImportError, MemoryError, OSError) as error:
            raise MachineError(
                f"{what} cannot import {name}: {str(error) or type(error).__name__}"
            ) from error
    return imported


def _warning_sort_key(warning: Note) -> tuple[bool, tuple[int, int]]:
    """Return a sort key: warnings about headline metrics first, then by severity."""
    return warning.limited_to(HEADLINE_METRICS) is None, warning_severity(warning)


def write_answer(answer: Answer, *, by_class: bool) -> str:
    """Return an answer as JSON: the columns of its row that do not depend on the sweep.

    ``reason`` explains a missing or partial answer. ``trusted`` is None if there are no metrics,
    and True if all metrics are trusted and no metric of :data:`HEADLINE_METRICS` has an interval
    warning. ``untrusted`` lists the metrics that are not trusted. With ``by_class``, the main
    metrics of each class follow.
    """
    metrics = answer.metrics
    untrusted = [name for name, metric in metrics.items() if not metric.trusted]
    has_warnings = any(
        name in metrics and metrics[name].interval_warning is not None for name in HEADLINE_METRICS
    )
    columns: dict[str, Any] = {
        "engine": answer.engine or None,
        "status": answer.status.value if answer.status in STATUSES else PARTIAL,
        "reason": answer.reason or None,
        "trusted": not untrusted and not has_warnings if metrics else None,
        "untrusted": untrusted,
        "regime": answer.regime,
        "warnings": [str(note) for note in sorted(answer.notes, key=_warning_sort_key)],
    }
    columns |= _metric_columns(metrics, "")
    if by_class and "by_class" in answer.tables:
        for name, of_class in (class_metrics(answer) | link_metrics(answer)).items():
            columns |= _metric_columns(of_class, f".{name}")
    return json.dumps({name: value for name, value in columns.items() if value is not None})


def _metric_columns(metrics: Mapping[str, Metric], group: str) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for name, metric in metrics.items():
        values = (metric.value, metric.low, metric.high)
        for suffix, value in zip(VALUE_SUFFIXES, values, strict=True):
            columns[f"{name}{suffix}{group}"] = finite_or_none(value)
        columns[f"{name}{WARNING_SUFFIX}{group}"] = metric.interval_warning
    return columns


def get_column_kind(axis: SweepAxis) -> str:
    """Return the kind of a key's column: a kind of quantity, whole numbers, truths or texts."""
    typed = axis.values
    if all(type(value) is int for value in typed):
        return INTEGER
    if all(isinstance(value, bool) for value in typed):
        return BOOLEAN
    return common_quantity_kind(typed) or TEXT


def get_column_unit(kind: str) -> str:
    """Return the unit of a kind of column, or ""."""
    return QUANTITY_KINDS[kind].unit if kind in QUANTITY_KINDS else ""


def is_metric_column(name: str) -> bool:
    """Return True for a column of a metric, in total or per class."""
    return name.partition(".")[0] in METRIC_COLUMNS


def group_class_columns(names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the columns of each class: their names by the names without the class."""
    columns: dict[str, dict[str, str]] = {}
    for name in names:
        column_of, dot, group = name.partition(".")
        if dot and column_of in METRIC_COLUMNS:
            columns.setdefault(group, {})[column_of] = name
    return columns


def make_line(run: CellRun, kinds: Mapping[str, str], answer: str) -> str:
    """Return a row as JSON: the values of its run, and an answer of :func:`write_answer`."""
    values = {key: _column_value(kinds[key], value) for key, value in run.values.items()}
    lead = {"cell": run.cell, **values, "replication": run.replication, "seed": run.seed}
    return f"{json.dumps(lead)[:-1]}, {answer[1:]}"


def _column_value(kind: str, value: Any) -> Any:
    """Return a typed value as a value of its column."""
    if kind in QUANTITY_KINDS:
        return QUANTITY_KINDS[kind].read(value)
    return value_as_text(value) if kind == TEXT else value


def make_table(lines: Iterator[str], kinds: Mapping[str, str], classes: Sequence[str]) -> Any:
    """Return rows of :func:`make_line` as a ``pyarrow.Table`` without empty metric columns.

    ``kinds`` has the kind of the column of each varied key, from :func:`get_column_kind`.

    Raises
    ------
    ValueError
        A row is damaged.
    """
    arrow, arrow_json = import_sweep_packages("pyarrow", "pyarrow.json")
    schema = _make_schema(arrow, kinds, classes)
    tables = []
    while chunk := "\n".join(itertools.islice(lines, _ROWS_PER_CHUNK)).encode():
        # pyarrow.array would import pandas, which takes as long as the simulation of a few cells.
        table = arrow_json.read_json(
            arrow.BufferReader(chunk),
            arrow_json.ReadOptions(use_threads=False, block_size=len(chunk) + 1),
            arrow_json.ParseOptions(schema, unexpected_field_behavior="ignore"),
        )
        metrics = filter(is_metric_column, schema.names)
        empty = [name for name in metrics if table[name].null_count == len(table)]
        tables.append(table.drop_columns(empty))
    if not tables:
        return schema.empty_table()
    whole = arrow.concat_tables(tables, promote_options="default").combine_chunks()
    return whole.select([name for name in schema.names if name in whole.column_names])


def _make_schema(arrow: ModuleType, kinds: Mapping[str, str], classes: Sequence[str]) -> Any:
    number, integer, truth, text = arrow.float64(), arrow.int64(), arrow.bool_(), arrow.string()
    types = {INTEGER: integer, BOOLEAN: truth, TEXT: text}
    columns = {"cell": integer, **{key: types.get(kind, number) for key, kind in kinds.items()}}
    columns |= dict.fromkeys(ANSWER_COLUMNS, text) | {"trusted": truth}
    columns |= dict.fromkeys(("replication", "seed"), integer)
    columns |= dict.fromkeys(("untrusted", "warnings"), arrow.list_(text))
    metrics = [*METRIC_COLUMNS, *(f"{name}.{each}" for each in classes for name in CLASS_COLUMNS)]
    for name in metrics:
        columns[name] = text if name.partition(".")[0].endswith(WARNING_SUFFIX) else number
    return arrow.schema(list(columns.items()))
