"""The table of a sweep: one row per cell, replication and engine, in typed columns."""

from __future__ import annotations

import functools
import hashlib
from typing import TYPE_CHECKING, Any, NamedTuple

from tcpcast.answer import UNITS, Note, Status, finite_or_none, warning_severity
from tcpcast.compare import class_metrics
from tcpcast.errors import MachineError
from tcpcast.metrics import HEADLINE_METRICS
from tcpcast.output import PARQUET_KIND
from tcpcast.sweeps.arrow_columns import make_arrow_column, make_text_list_column
from tcpcast.sweeps.axes import QUANTITY_KINDS, SweepAxis, common_quantity_kind, value_as_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import ModuleType

    from tcpcast.answer import Answer, Metric
    from tcpcast.sweeps.worker import CellReplication

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

_DIGEST, _NO_DIGEST = "tcpcast.digest", b"0" * 64
"""Metadata key of a Parquet file's SHA-256, and the zeros that replace it during the
computation."""

MIN_COMPRESSED_ROWS = 20
"""Minimum number of rows for compression."""


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


class AnswerRow(NamedTuple):
    """Columns of one engine's answer to one cell in one replication.

    ``reason`` explains a missing or partial answer. ``trusted`` is None if there are no metrics,
    and True if all metrics are trusted and no metric of :data:`HEADLINE_METRICS` has an interval
    warning. ``untrusted`` lists the metrics that are not trusted.
    """

    variant: CellReplication
    engine: str
    status: str
    reason: str | None
    trusted: bool | None
    untrusted: list[str]
    regime: str | None
    warnings: list[str]
    metrics: dict[str, Metric]
    classes: dict[str, dict[str, Metric]]
    wall_s: float


def _warning_sort_key(warning: Note) -> tuple[bool, tuple[int, int]]:
    """Return a sort key: warnings about headline metrics first, then by severity."""
    return warning.limited_to(HEADLINE_METRICS) is None, warning_severity(warning)


def make_answer_row(variant: CellReplication, answer: Answer) -> AnswerRow:
    """Return the row of an answer, without its steps and tables."""
    metrics = answer.metrics
    untrusted = [name for name, metric in metrics.items() if not metric.trusted]
    has_warnings = any(
        name in metrics and metrics[name].interval_warning is not None for name in HEADLINE_METRICS
    )
    return AnswerRow(
        variant,
        answer.engine,
        answer.status.value if answer.status in STATUSES else PARTIAL,
        answer.reason or None,
        not untrusted and not has_warnings if metrics else None,
        untrusted,
        answer.regime,
        [str(note) for note in sorted(answer.notes, key=_warning_sort_key)],
        metrics,
        class_metrics(answer) if "by_class" in answer.tables else {},
        answer.wall_s,
    )


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


def make_record_batch(
    rows: Sequence[AnswerRow], kinds: Mapping[str, str], classes: tuple[str, ...] = ()
) -> Any:
    """Return rows as a ``pyarrow.RecordBatch``.

    Parameters
    ----------
    rows
        Rows in the order of the table.
    kinds
        Kind of the column of each varied key, from :func:`get_column_kind`.
    classes
        Names of the classes, if there are several.
    """
    (arrow,) = import_sweep_packages("pyarrow")
    arrays = [*_make_columns_before_metrics(arrow, rows, kinds)]
    arrays += _make_metric_columns(arrow, [row.metrics for row in rows], METRIC_NAMES)
    for name in classes:
        arrays += _make_metric_columns(
            arrow, [row.classes.get(name, {}) for row in rows], HEADLINE_METRICS
        )
    schema = _make_schema(arrow, tuple(kinds.items()), classes)
    return arrow.RecordBatch.from_arrays(arrays, schema=schema)


def select_stored_rows(
    rows: Any,
    values: Mapping[int, Mapping[str, Any]],
    kinds: Mapping[str, str],
    classes: tuple[str, ...] = (),
) -> Any:
    """Return stored rows as a ``pyarrow.RecordBatch``, with the columns of the keys.

    Parameters
    ----------
    rows
        A table with all columns except those of the keys.
    values
        Values of the keys by cell.
    kinds, classes
        As for :func:`make_record_batch`.
    """
    (arrow,) = import_sweep_packages("pyarrow")
    schema = _make_schema(arrow, tuple(kinds.items()), classes)
    cells = [values[cell] for cell in rows["cell"].to_pylist()]
    arrays = dict(zip(kinds, _make_key_columns(arrow, cells, kinds), strict=True))
    arrays |= {name: rows[name] for name in schema.names if name not in arrays}
    table = arrow.table([arrays[name] for name in schema.names], schema=schema)
    return table.combine_chunks().to_batches()[0]


def encode_as_arrow_stream(batch: Any) -> bytes:
    """Return a batch as an Arrow stream: the columns as they are in memory, without compression."""
    (arrow,) = import_sweep_packages("pyarrow")
    buffer = arrow.BufferOutputStream()
    with arrow.ipc.new_stream(buffer, batch.schema) as writer:
        writer.write_batch(batch)
    data: bytes = buffer.getvalue().to_pybytes()
    return data


def encode_as_parquet_file(batch: Any, marks: Mapping[str, str]) -> bytes:
    """Return a batch as a Parquet file with ``marks`` as metadata."""
    arrow, parquet = import_sweep_packages("pyarrow", "pyarrow.parquet")
    buffer = arrow.BufferOutputStream()
    with parquet.ParquetWriter(
        buffer,
        batch.schema,
        # A dictionary saves nothing for one or two rows, and takes half of the time.
        compression="zstd" if batch.num_rows >= MIN_COMPRESSED_ROWS else "none",
        write_statistics=False,
        store_schema=False,  # the schema would triple the size of a part with one row
        use_dictionary=[
            *("engine", "status", "reason", "regime"),
            *("warnings.list.element", "untrusted.list.element"),
        ],
    ) as writer:
        writer.write_batch(batch)
        marks = {PARQUET_KIND.mark.decode(): "sweep", **marks, _DIGEST: _NO_DIGEST.decode()}
        writer.add_key_value_metadata(marks)
    data: bytes = buffer.getvalue().to_pybytes()
    before, _, after = data.rpartition(_NO_DIGEST)
    return before + hashlib.sha256(data).hexdigest().encode() + after


def read_intact_metadata(data: bytes) -> dict[str, str]:
    """Return the metadata of a file of :func:`encode_as_parquet_file`, or {} if it is damaged."""
    arrow, parquet = import_sweep_packages("pyarrow", "pyarrow.parquet")
    try:
        metadata = parquet.read_metadata(arrow.BufferReader(data)).metadata or {}
        marks = {key.decode(): value.decode() for key, value in metadata.items()}
    except (OSError, ValueError, arrow.ArrowException):
        return {}
    digest = marks.pop(_DIGEST, "")
    before, _, after = data.rpartition(digest.encode() or _NO_DIGEST)
    computed = hashlib.sha256(before + _NO_DIGEST + after).hexdigest()
    return marks if computed == digest else {}


@functools.cache  # a sweep may have thousands of batches with one row
def _make_schema(
    arrow: ModuleType, kinds: tuple[tuple[str, str], ...], classes: tuple[str, ...]
) -> Any:
    fields = [arrow.field("cell", arrow.int64())]
    fields += [arrow.field(key, _get_arrow_type(arrow, kind)) for key, kind in kinds]
    after: dict[str, Any] = dict.fromkeys(ANSWER_COLUMNS, arrow.string())
    after |= dict.fromkeys(("replication", "seed"), arrow.int64())
    after |= {"trusted": arrow.bool_()}
    texts = arrow.list_(arrow.field("element", arrow.string()))  # Parquet's name
    after |= dict.fromkeys(("untrusted", "warnings"), texts)
    fields += [arrow.field(name, kind) for name, kind in after.items()]
    kinds_of = (*[arrow.float64()] * len(VALUE_SUFFIXES), arrow.string())
    fields += map(arrow.field, METRIC_COLUMNS, kinds_of * len(METRIC_NAMES))
    for name in classes:
        fields += map(
            arrow.field,
            [f"{part}.{name}" for part in CLASS_COLUMNS],
            kinds_of * len(HEADLINE_METRICS),
        )
    return arrow.schema(fields)


def _get_arrow_type(arrow: ModuleType, kind: str) -> Any:
    types = {INTEGER: arrow.int64(), BOOLEAN: arrow.bool_(), TEXT: arrow.string()}
    return types.get(kind, arrow.float64())


def _make_columns_before_metrics(
    arrow: ModuleType, rows: Sequence[AnswerRow], kinds: Mapping[str, str]
) -> list[Any]:
    """Return the columns before the metrics."""
    variants = [row.variant for row in rows]
    texts = arrow.string()
    return [
        make_arrow_column(arrow, [variant.cell for variant in variants], arrow.int64()),
        *_make_key_columns(arrow, [variant.values for variant in variants], kinds),
        make_arrow_column(arrow, [row.engine or None for row in rows], texts),
        make_arrow_column(arrow, [variant.replication for variant in variants], arrow.int64()),
        make_arrow_column(arrow, [variant.seed for variant in variants], arrow.int64()),
        make_arrow_column(arrow, [row.status for row in rows], texts),
        make_arrow_column(arrow, [row.reason for row in rows], texts),
        make_arrow_column(arrow, [row.trusted for row in rows], arrow.bool_()),
        make_text_list_column(arrow, [row.untrusted for row in rows]),
        make_arrow_column(arrow, [row.regime for row in rows], texts),
        make_text_list_column(arrow, [row.warnings for row in rows]),
    ]


def _make_key_columns(
    arrow: ModuleType, rows: Sequence[Mapping[str, Any]], kinds: Mapping[str, str]
) -> Iterator[Any]:
    """Yield the columns of the varied keys from the values of each row."""
    for key, kind in kinds.items():
        read = _get_value_reader(kind)
        yield make_arrow_column(
            arrow, [read(values[key]) for values in rows], _get_arrow_type(arrow, kind)
        )


def _get_value_reader(kind: str) -> Callable[[Any], Any]:
    """Return the function that converts a typed value for its column."""
    if kind in QUANTITY_KINDS:
        return QUANTITY_KINDS[kind].read
    return value_as_text if kind == TEXT else lambda value: value


def _make_metric_columns(
    arrow: ModuleType, rows: Sequence[Mapping[str, Metric]], metrics: Sequence[str]
) -> list[Any]:
    """Return the columns of metrics, including empty ones."""
    number, text, columns = arrow.float64(), arrow.string(), []
    nothing = [
        *[arrow.nulls(len(rows), number)] * len(VALUE_SUFFIXES),
        arrow.nulls(len(rows), text),
    ]
    for name in metrics:
        cells = [row.get(name) for row in rows]
        if not any(cells):
            columns += nothing
            continue
        for part in ("value", "low", "high"):
            values = [finite_or_none(getattr(metric, part, None)) for metric in cells]
            columns.append(make_arrow_column(arrow, values, number))
        columns.append(
            make_arrow_column(
                arrow, [getattr(metric, "interval_warning", None) for metric in cells], text
            )
        )
    return columns
