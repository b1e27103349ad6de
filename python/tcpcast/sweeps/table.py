"""The table of a sweep: a row for each cell, replication and engine, in columns of fixed types."""

from __future__ import annotations

import functools
import hashlib
import math
from typing import TYPE_CHECKING, Any, NamedTuple

from tcpcast.answer import UNITS, Note, Status, severity
from tcpcast.compare import class_metrics
from tcpcast.errors import EnvironmentFault
from tcpcast.metrics import HEADLINE
from tcpcast.output import PARQUET
from tcpcast.sweeps.axes import KINDS, Axis, as_text, kind_of
from tcpcast.sweeps.columns import column, lists_of_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import ModuleType

    from tcpcast.answer import Answer, Metric
    from tcpcast.sweeps.worker import Variant

STATUSES = (Status.DONE, Status.PARTIAL, Status.NOT_APPLICABLE, Status.FAILED)
ANSWERED, PARTIAL, NOT_APPLICABLE, FAILED = (status.value for status in STATUSES)
"""How a row fared; all but the first have a ``reason``."""

INTEGER, TRUTH, TEXT = "integer", "truth", "text"
"""Columns of keys that are no quantities."""

AFTER_KEYS = (
    *("engine", "replication", "seed", "status", "reason"),
    *("trusted", "untrusted", "regime", "warnings"),
)
"""Columns between those of the keys that vary and those of the metrics."""

METRICS = tuple(name for name in UNITS)
NUMBERS = ("", "_low", "_high")
DOUBT = "_interval_warning"
METRIC_COLUMNS = tuple(f"{name}{suffix}" for name in METRICS for suffix in (*NUMBERS, DOUBT))
"""The value, both ends and the doubt of each metric."""
PARTS = tuple(f"{name}{suffix}" for name in HEADLINE for suffix in (*NUMBERS, DOUBT))
"""Those columns of metrics that each class has, too: ``goodput_bps_low.NAME``."""

_DIGEST, _NO_DIGEST = "tcpcast.digest", b"0" * 64
"""A Parquet file contains its own SHA-256, computed with zeros in place of the digest."""

COMPRESSED = 20
"""Files of so many rows and more are compressed."""


def modules(*names: str, what: str = "sweeps") -> list[ModuleType]:
    """Import packages of the extra ``sweep``.

    Raises
    ------
    EnvironmentFault
        One is not installed, or cannot be imported.
    """
    import importlib  # noqa: PLC0415 - with what it imports

    found = []
    for name in names:
        try:
            found.append(importlib.import_module(name))
        except ModuleNotFoundError as missing:
            package = name.partition(".")[0]
            raise EnvironmentFault(
                f"{what} need {package}, which is not installed: pip install {package}"
            ) from missing
        except (ImportError, MemoryError, OSError) as fault:
            raise EnvironmentFault(
                f"{what} cannot import {name}: {str(fault) or type(fault).__name__}"
            ) from fault
    return found


class Row(NamedTuple):
    """One engine's answer to one cell in one replication, as far as a column holds it.

    ``reason`` says why it is not answered, or only in part. ``trusted`` is None without metrics,
    and True if each metric is trusted and no metric of :data:`HEADLINE` has a doubt; ``untrusted``
    names the metrics that are not trusted.
    """

    variant: Variant
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


def _severity(warning: Note) -> tuple[bool, tuple[int, int]]:
    """Return a key that sorts warnings about headlines first, the worst first."""
    return warning.about(HEADLINE) is None, severity(warning)


def row_of(variant: Variant, answer: Answer) -> Row:
    """Return the row of an answer; a batch has thousands, without their steps and tables."""
    found = answer.metrics
    untrusted = [name for name, metric in found.items() if not metric.trusted]
    doubted = any(name in found and found[name].interval_warning is not None for name in HEADLINE)
    return Row(
        variant,
        answer.engine,
        answer.status.value if answer.status in STATUSES else PARTIAL,
        answer.not_applicable or answer.incomplete_reason,
        not untrusted and not doubted if found else None,
        untrusted,
        answer.regime,
        [str(note) for note in sorted(answer.notes, key=_severity)],
        found,
        class_metrics(answer) if "by_class" in answer.tables else {},
        answer.wall_s,
    )


def kind_of_column(axis: Axis) -> str:
    """Return what a key's column holds: a kind of quantity, whole numbers, truths or texts."""
    typed = axis.values
    if all(type(value) is int for value in typed):
        return INTEGER
    if all(isinstance(value, bool) for value in typed):
        return TRUTH
    return kind_of(typed) or TEXT


def unit_of_column(kind: str) -> str:
    """Return the unit of what a key's column holds, "" for what has none."""
    return KINDS[kind].unit if kind in KINDS else ""


def is_metric_column(name: str) -> bool:
    """Return True for a column of a metric, of all classes or of one."""
    return name.partition(".")[0] in METRIC_COLUMNS


def class_columns(names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the columns of each class among these, by class and by the name without it."""
    found: dict[str, dict[str, str]] = {}
    for name in names:
        column_of, dot, group = name.partition(".")
        if dot and column_of in METRIC_COLUMNS:
            found.setdefault(group, {})[column_of] = name
    return found


def record_batch(
    rows: Sequence[Row], kinds: Mapping[str, str], classes: tuple[str, ...] = ()
) -> Any:
    """Return rows as a ``pyarrow.RecordBatch``.

    Parameters
    ----------
    rows
        In the order of the table.
    kinds
        What the column of each key that varies holds, by :func:`kind_of_column`.
    classes
        The names of the classes, if there are several.
    """
    (arrow,) = modules("pyarrow")
    arrays = [*_leading(arrow, rows, kinds)]
    arrays += _metrics(arrow, [row.metrics for row in rows], METRICS)
    for name in classes:
        arrays += _metrics(arrow, [row.classes.get(name, {}) for row in rows], HEADLINE)
    schema = _schema(arrow, tuple(kinds.items()), classes)
    return arrow.RecordBatch.from_arrays(arrays, schema=schema)


def batch_of_rows(
    rows: Any,
    values: Mapping[int, Mapping[str, Any]],
    kinds: Mapping[str, str],
    classes: tuple[str, ...] = (),
) -> Any:
    """Return rows of parts as a ``pyarrow.RecordBatch``, their keys by the values of their cells.

    Parameters
    ----------
    rows
        A table with all columns but those of the keys.
    values
        The values of each cell that it has.
    kinds, classes
        As for :func:`record_batch`.
    """
    (arrow,) = modules("pyarrow")
    schema = _schema(arrow, tuple(kinds.items()), classes)
    cells = [values[cell] for cell in rows["cell"].to_pylist()]
    arrays = dict(zip(kinds, _of_keys(arrow, cells, kinds), strict=True))
    arrays |= {name: rows[name] for name in schema.names if name not in arrays}
    table = arrow.table([arrays[name] for name in schema.names], schema=schema)
    return table.combine_chunks().to_batches()[0]


def as_stream(batch: Any) -> bytes:
    """Return a batch in Arrow's own format, which is written and read at once."""
    (arrow,) = modules("pyarrow")
    buffer = arrow.BufferOutputStream()
    with arrow.ipc.new_stream(buffer, batch.schema) as writer:
        writer.write_batch(batch)
    data: bytes = buffer.getvalue().to_pybytes()
    return data


def as_file(batch: Any, marks: Mapping[str, str]) -> bytes:
    """Return a batch as a Parquet file; ``marks`` are what it says of itself."""
    arrow, parquet = modules("pyarrow", "pyarrow.parquet")
    buffer = arrow.BufferOutputStream()
    with parquet.ParquetWriter(
        buffer,
        batch.schema,
        # Of a row or two it makes nothing smaller, and takes as long as all else.
        compression="zstd" if batch.num_rows >= COMPRESSED else "none",
        write_statistics=False,
        store_schema=False,  # with it a part of one row would be three times as large
        use_dictionary=[
            *("engine", "status", "reason", "regime"),
            *("warnings.list.element", "untrusted.list.element"),
        ],
    ) as writer:
        writer.write_batch(batch)
        marks = {PARQUET.mark.decode(): "sweep", **marks, _DIGEST: _NO_DIGEST.decode()}
        writer.add_key_value_metadata(marks)
    data: bytes = buffer.getvalue().to_pybytes()
    before, _, after = data.rpartition(_NO_DIGEST)
    return before + hashlib.sha256(data).hexdigest().encode() + after


def intact_marks(data: bytes) -> dict[str, str]:
    """Return the marks of a Parquet file of :func:`as_file`, none if a bit of it has changed."""
    arrow, parquet = modules("pyarrow", "pyarrow.parquet")
    try:
        found = parquet.read_metadata(arrow.BufferReader(data)).metadata or {}
        marks = {key.decode(): value.decode() for key, value in found.items()}
    except (OSError, ValueError, arrow.ArrowException):
        return {}
    digest = marks.pop(_DIGEST, "")
    before, _, after = data.rpartition(digest.encode() or _NO_DIGEST)
    whole = hashlib.sha256(before + _NO_DIGEST + after).hexdigest()
    return marks if whole == digest else {}


@functools.cache  # a batch may be of one row, and its sweep of thousands
def _schema(arrow: ModuleType, kinds: tuple[tuple[str, str], ...], classes: tuple[str, ...]) -> Any:
    fields = [arrow.field("cell", arrow.int64())]
    fields += [arrow.field(key, _type(arrow, kind)) for key, kind in kinds]
    after: dict[str, Any] = dict.fromkeys(AFTER_KEYS, arrow.string())
    after |= dict.fromkeys(("replication", "seed"), arrow.int64())
    after |= {"trusted": arrow.bool_()}
    texts = arrow.list_(arrow.field("element", arrow.string()))  # as Parquet says
    after |= dict.fromkeys(("untrusted", "warnings"), texts)
    fields += [arrow.field(name, kind) for name, kind in after.items()]
    kinds_of = (*[arrow.float64()] * len(NUMBERS), arrow.string())
    fields += map(arrow.field, METRIC_COLUMNS, kinds_of * len(METRICS))
    for name in classes:
        fields += map(arrow.field, [f"{part}.{name}" for part in PARTS], kinds_of * len(HEADLINE))
    return arrow.schema(fields)


def _type(arrow: ModuleType, kind: str) -> Any:
    types = {INTEGER: arrow.int64(), TRUTH: arrow.bool_(), TEXT: arrow.string()}
    return types.get(kind, arrow.float64())


def _leading(arrow: ModuleType, rows: Sequence[Row], kinds: Mapping[str, str]) -> list[Any]:
    """Return the columns up to the metrics."""
    variants = [row.variant for row in rows]
    texts = arrow.string()
    return [
        column(arrow, [variant.cell for variant in variants], arrow.int64()),
        *_of_keys(arrow, [variant.values for variant in variants], kinds),
        column(arrow, [row.engine or None for row in rows], texts),
        column(arrow, [variant.replication for variant in variants], arrow.int64()),
        column(arrow, [variant.seed for variant in variants], arrow.int64()),
        column(arrow, [row.status for row in rows], texts),
        column(arrow, [row.reason for row in rows], texts),
        column(arrow, [row.trusted for row in rows], arrow.bool_()),
        lists_of_texts(arrow, [row.untrusted for row in rows]),
        column(arrow, [row.regime for row in rows], texts),
        lists_of_texts(arrow, [row.warnings for row in rows]),
    ]


def _of_keys(
    arrow: ModuleType, rows: Sequence[Mapping[str, Any]], kinds: Mapping[str, str]
) -> Iterator[Any]:
    """Yield the columns of the keys that vary, of the values in each row."""
    for key, kind in kinds.items():
        read = _reader(kind)
        yield column(arrow, [read(values[key]) for values in rows], _type(arrow, kind))


def _reader(kind: str) -> Callable[[Any], Any]:
    """Return what makes of a value as typed what its column holds."""
    if kind in KINDS:
        return KINDS[kind].read
    return as_text if kind == TEXT else lambda value: value


def _metrics(
    arrow: ModuleType, rows: Sequence[Mapping[str, Metric]], metrics: Sequence[str]
) -> list[Any]:
    """Return the columns of metrics, those that no row has as well."""
    number, text, columns = arrow.float64(), arrow.string(), []
    nothing = [*[arrow.nulls(len(rows), number)] * len(NUMBERS), arrow.nulls(len(rows), text)]
    for name in metrics:
        found = [row.get(name) for row in rows]
        if not any(found):
            columns += nothing
            continue
        for part in ("value", "low", "high"):
            values = [_number(getattr(metric, part, None)) for metric in found]
            columns.append(column(arrow, values, number))
        columns.append(
            column(arrow, [getattr(metric, "interval_warning", None) for metric in found], text)
        )
    return columns


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
