"""What an engine of another package returns is held here, so that nothing behind it has to ask."""

from __future__ import annotations

import math
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any

from tcpcast.answer import UNITS, Answer, Metric
from tcpcast.errors import TcpcastError

if TYPE_CHECKING:
    from collections.abc import Mapping


def held(found: Any, units: Mapping[str, str]) -> Answer:
    """Return an answer that is whole: its numbers are numbers, its own metrics have their units.

    Parameters
    ----------
    found
        What the engine returned.
    units
        The units of its own metrics, by name.

    Raises
    ------
    TcpcastError
        It is no answer, or a part of it is none; the message says what has to be there instead.
    """
    if not isinstance(found, Answer):
        raise TcpcastError(f"returned {type(found).__name__}; it has to return tcpcast.Answer")
    for name, metric in found.metrics.items():
        found.metrics[name] = _metric(name, metric, units)
    found.tables = {name: _table(name, table) for name, table in found.tables.items()}
    if isinstance(found.warnings, str) or not all(isinstance(w, str) for w in found.warnings):
        raise TcpcastError("returned warnings that are no list of texts")
    found.warnings = list(found.warnings)
    return found


def _metric(name: str, metric: Any, units: Mapping[str, str]) -> Metric:
    if not (isinstance(name, str) and name.isidentifier()):
        raise TcpcastError(f"named a metric {name!r}; a name has letters, digits and _")
    if not isinstance(metric, Metric):
        kind = type(metric).__name__
        raise TcpcastError(f"returned {kind} for {name}; it has to be tcpcast.Metric(value)")
    value = _number(name, metric.value)
    ends = [None if end is None else _number(name, end) for end in (metric.low, metric.high)]
    low, high = ends
    if (low is None) != (high is None) or (low is not None and high is not None and low > high):
        raise TcpcastError(f"returned the interval {low} to {high} for {name}")
    unit = metric.unit or units.get(name, "")
    if unit and name in UNITS and unit != UNITS[name]:
        raise TcpcastError(f"returned {name} in {unit}; it is in {UNITS[name]} for every engine")
    return replace(metric, value=value, low=low, high=high, unit=unit)


def _number(name: str, value: Any) -> float:
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TcpcastError(f"returned {value!r} for {name}; it has to be a number")
    number = float(value)
    if math.isnan(number):
        raise TcpcastError(f"returned nan for {name}; a value that it does not have is left out")
    return number


def _table(name: str, table: Any) -> dict[str, Any]:
    import numpy as np  # noqa: PLC0415 - few engines have tables

    columns = {str(column): np.asarray(values) for column, values in dict(table).items()}
    if len({values.shape for values in columns.values()}) > 1 or any(
        values.ndim != 1 for values in columns.values()
    ):
        lengths = ", ".join(f"{column} {values.shape}" for column, values in columns.items())
        raise TcpcastError(f"returned table {name} with columns of unequal length: {lengths}")
    return columns
