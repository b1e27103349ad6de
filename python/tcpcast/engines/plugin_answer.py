"""Validation of the answers of engines from other packages, so that later code can rely on them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, replace
from numbers import Real
from typing import Any

from tcpcast.answer import UNITS, Answer, Metric, Note, Status
from tcpcast.errors import TcpcastError
from tcpcast.metrics import METRICS
from tcpcast.units import quote

MAX_NAME_LENGTH = 60
"""Maximum length of the names of metrics, tables, columns and units, in characters."""
_MAX_TEXT_LENGTH = 500
"""Maximum length of a warning or an error, in characters."""

_ROUNDING_TOLERANCE = 1e-9
"""Tolerance by which a share may exceed 1."""

_DICT_FIELDS = ("metrics", "tables", "provenance", "domain")


def validate_plugin_answer(returned: Any, units: Mapping[str, str]) -> Answer:
    """Validate an answer and add the units of the engine's own metrics.

    Parameters
    ----------
    returned
        Return value of the engine.
    units
        The units of its own metrics, by name.

    Raises
    ------
    TcpcastError
        The value is not an answer, or a part of it is invalid; the message states what is required.
    """
    if not isinstance(returned, Answer):
        raise TcpcastError(f"returned {type(returned).__name__}; it must return tcpcast.Answer")
    # Copy to a plain Answer, because attributes of a subclass may raise later.
    answer = Answer(**{each.name: getattr(returned, each.name) for each in fields(Answer)})
    _check_field_types(answer)
    answer.metrics = {name: _check_metric(name, m, units) for name, m in answer.metrics.items()}
    answer.tables = {
        _check_name("table", name): _check_table(name, t) for name, t in answer.tables.items()
    }
    answer.notes = [replace(note, why=truncate_text(note.why)) for note in answer.notes]
    answer.write_errors = [truncate_text(each) for each in answer.write_errors]
    answer.reason = truncate_text(answer.reason)
    answer.regime = None if answer.regime is None else truncate_text(answer.regime)
    try:
        json.dumps(replace(answer, tables={}).to_json(), allow_nan=False)
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise TcpcastError(
            f"returned an answer that cannot be converted to JSON: {error}"
        ) from None
    return answer


def _check_field_types(answer: Answer) -> None:
    for name in _DICT_FIELDS:
        if not isinstance(getattr(answer, name), dict):
            raise TcpcastError(f"returned {name} that are not in a dict")
    for name, kind, what in (("notes", Note, "tcpcast.Note"), ("write_errors", str, "texts")):
        parts = getattr(answer, name)
        if not isinstance(parts, list | tuple) or not all(isinstance(p, kind) for p in parts):
            raise TcpcastError(f"returned {name} that are not a list of {what}")
    for name, kinds, what in (
        ("status", Status, "a tcpcast.Status"),
        ("reason", str, "a text"),
        ("regime", str | None, "a text"),
    ):
        if not isinstance(getattr(answer, name), kinds):
            raise TcpcastError(f"returned a value of {name} that is not {what}")


def truncate_text(text: str) -> str:
    """Return a text of another package, truncated to :data:`_MAX_TEXT_LENGTH` characters."""
    return text if len(text) <= _MAX_TEXT_LENGTH else f"{text[: _MAX_TEXT_LENGTH - 3]}..."


def exception_text(error: BaseException) -> str:
    """Return the type and the message of an exception of another package."""
    try:
        text = truncate_text(str(error))
    except Exception:
        text = "(its text cannot be read)"
    return f"{type(error).__name__:.{MAX_NAME_LENGTH}}: {text}"


def has_short_text(error: BaseException) -> bool:
    """Return True if the message of an exception can be shown in full."""
    try:
        return len(str(error)) <= _MAX_TEXT_LENGTH
    except Exception:
        return False


def _check_name(what: str, name: Any) -> str:
    if not isinstance(name, str):
        raise TcpcastError(f"named a {what} {quote(name)}; a name must be a string")
    return _check_name_length(what, name)


def _check_name_length(what: str, name: str) -> str:
    if len(name) > MAX_NAME_LENGTH:
        raise TcpcastError(
            f"named a {what} {quote(name)}; a name has at most {MAX_NAME_LENGTH} characters"
        )
    return name


def _check_metric(name: str, metric: Any, units: Mapping[str, str]) -> Metric:
    if not (isinstance(name, str) and name.isidentifier()):
        raise TcpcastError(
            f"named a metric {quote(name)}; a name consists of letters, digits and _"
        )
    _check_name_length("metric", name)
    if not isinstance(metric, Metric):
        kind = type(metric).__name__
        raise TcpcastError(f"returned {kind} for {name}; it must return tcpcast.Metric(value)")
    value = _check_number(name, metric.value)
    if value < 0 and name in UNITS:
        raise TcpcastError(f"returned {value} for {name}; it must be 0 or more")
    if name in METRICS and value > METRICS[name].maximum * (1 + _ROUNDING_TOLERANCE):
        raise TcpcastError(f"returned {value} for {name}; a share must be at most 1")
    ends = [None if end is None else _check_number(name, end) for end in (metric.low, metric.high)]
    low, high = ends
    if (low is None) != (high is None) or (low is not None and high is not None and low > high):
        raise TcpcastError(f"returned the interval {low} to {high} for {name}")
    if not isinstance(metric.unit, str) or not isinstance(metric.interval_warning, str | None):
        raise TcpcastError(f"returned a unit or interval_warning of {name} that is not a string")
    unit = _check_name_length("unit", metric.unit or units.get(name, ""))
    if unit and name in UNITS and unit != UNITS[name]:
        raise TcpcastError(
            f"returned {name} in {unit}; the unit of this metric must be {UNITS[name]}"
        )
    warning = None if metric.interval_warning is None else truncate_text(metric.interval_warning)
    return replace(metric, value=value, low=low, high=high, unit=unit, interval_warning=warning)


def _check_number(name: str, value: Any) -> float:
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TcpcastError(f"returned {quote(value)} for {name}; it must be a number")
    try:
        number = float(value)
    except OverflowError:
        raise TcpcastError(f"returned a number for {name} that is too large") from None
    if not math.isfinite(number):
        raise TcpcastError(f"returned {number} for {name}; omit a metric that has no value")
    return number


def _check_table(name: str, table: Any) -> dict[str, Any]:
    if not isinstance(table, dict):
        raise TcpcastError(f"returned table {name} that is not a dict of columns")
    columns = {
        _check_name("column", column): _check_column(name, column, v) for column, v in table.items()
    }
    if len({values.shape for values in columns.values()}) > 1 or any(
        values.ndim != 1 for values in columns.values()
    ):
        lengths = ", ".join(f"{column} {values.shape}" for column, values in columns.items())
        raise TcpcastError(f"returned table {name} with columns of unequal length: {lengths}")
    return columns


def _check_column(table: str, name: str, values: Any) -> Any:
    """Return a column as an array of numbers, booleans or strings."""
    import numpy as np  # noqa: PLC0415 - few engines have tables

    try:
        column = np.asarray(values)
    except (TypeError, ValueError, OverflowError):  # rows of unequal length
        column = np.asarray(None)
    if column.dtype.kind not in "biufU":
        raise TcpcastError(
            f"returned table {table} with a column {name} that is not a list of numbers or strings"
        )
    return column
