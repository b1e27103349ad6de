"""What a sweep found, arranged for figures: places along each key that varies, and values there."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.engines import REGISTRY
from tcpcast.engines.registry import Formula
from tcpcast.report.quantity import scale_of_unit
from tcpcast.report.sweep import metric_marks
from tcpcast.statistics import mean
from tcpcast.sweeps.table import WARNING_SUFFIX
from tcpcast.units import digits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Floats = np.ndarray[Any, np.dtype[np.float64]]

WIDE = 8.0
"""From this ratio of the largest to the smallest value on, a key has a log scale."""
MOST_TICKS = 7
MOST_CURVES = 8
"""So many lines are told apart in one figure."""
_UNITS = {"ratio": "%", "number": "1", "integer": "1"}
"""Of kinds of keys whose unit in a table is 1, or none."""


@dataclass(frozen=True, slots=True)
class Along:
    """A key that varies: its values in their order, and where they are drawn.

    ``places`` are the values, their decimal logarithms where ``log``, or their numbers where they
    are no quantities; ``labels`` has what stands beside the axis at each, ``title`` what it is.
    """

    values: Sequence[Any]
    places: Floats
    labels: Sequence[str]
    title: str
    log: bool
    quantities: bool

    @property
    def edges(self) -> Floats:
        """Where one value's cell ends and the next begins; one more than there are values."""
        if len(self.places) == 1:
            return np.array([self.places[0] - 0.5, self.places[0] + 0.5])
        middle = (self.places[1:] + self.places[:-1]) / 2
        first, last = 2 * self.places[0] - middle[0], 2 * self.places[-1] - middle[-1]
        return np.concatenate([[first], middle, [last]])

    @property
    def ticks(self) -> tuple[Floats, list[str]]:
        """The places that are labelled, and their labels; not more than fit."""
        step = -(-len(self.places) // MOST_TICKS) if self.quantities else 1
        return self.places[::step], list(self.labels[::step])


@dataclass(frozen=True, slots=True)
class Cells:
    """One metric as one engine gives it, by the place along each key.

    ``value``, ``low`` and ``high`` have an axis a key, NaN where there is none; ``marks`` has the
    mark of each value that is not certain, "" elsewhere, and ``doubts`` the reason in words.
    """

    engine: str
    simulated: bool
    value: Floats
    low: Floats
    high: Floats
    marks: np.ndarray[Any, np.dtype[np.object_]]
    doubts: np.ndarray[Any, np.dtype[np.object_]]

    @property
    def doubted(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return True for each value with a mark."""
        return np.array([bool(mark) for mark in self.marks.flat]).reshape(self.marks.shape)


def along(key: str, column: Sequence[Any], kind: str, unit: str) -> Along:
    """Return what is drawn along a key.

    Parameters
    ----------
    key
        Its name.
    column
        Its value in each row of the table.
    kind, unit
        What the column holds, by :func:`tcpcast.sweeps.table.kind_of_column`, and its unit.
    """
    values = list(dict.fromkeys(column))
    quantities = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    if not quantities:
        labels = [v if isinstance(v, str) else json.dumps(v) for v in values]
        places = np.arange(len(values), dtype=float)
        return Along(values, places, labels, key, log=False, quantities=False)
    values.sort()
    numbers = np.array(values, dtype=float)
    log = numbers[0] > 0 and numbers[-1] / numbers[0] >= WIDE
    scale = scale_of_unit(_UNITS.get(kind, unit), numbers[-1])
    factor = 0.01 if kind == "ratio" else scale.factor
    labels = [digits(each / factor, 3) for each in numbers]
    title = f"{key} ({scale.unit})" if scale.unit else key
    return Along(values, np.log10(numbers) if log else numbers, labels, title, log, quantities=True)


def cells(
    table: Mapping[str, Sequence[Any]], metric: str, axes: Mapping[str, Along]
) -> list[Cells]:
    """Return a metric by engine, those first that are calculated.

    Parameters
    ----------
    table
        The columns of a sweep.
    metric
        A name of :data:`tcpcast.answer.UNITS`.
    axes
        The keys that vary, and their places.
    """
    shape = tuple(len(axis.values) for axis in axes.values())
    at = [{value: place for place, value in enumerate(axis.values)} for axis in axes.values()]
    found: dict[str, dict[tuple[int, ...], list[int]]] = {}
    for row, (engine, value) in enumerate(zip(table["engine"], table[metric], strict=True)):
        if engine is not None and value is not None:
            place = tuple(places[table[key][row]] for places, key in zip(at, axes, strict=True))
            found.setdefault(engine, {}).setdefault(place, []).append(row)
    all_cells = [_engine_cells(name, rows, table, metric, shape) for name, rows in found.items()]
    return sorted(all_cells, key=lambda each: each.simulated)


def by_word(found: Sequence[Cells], keys: Sequence[Along]) -> list[Cells]:
    """Return a curve for each value of a key of words, along the other key, of quantities.

    Empty where not just one of two keys has quantities, and where the curves would be more than
    :data:`MOST_CURVES`.

    Parameters
    ----------
    found
        A metric by engine, over both keys.
    keys
        The keys, in the order of their axes.
    """
    words = [axis for axis, key in enumerate(keys) if not key.quantities]
    if len(keys) != 2 or len(words) != 1:
        return []
    (axis,) = words
    name = keys[axis].title.rpartition(".")[2]
    curves = [
        _at(each, axis, place, f"{name} {label}")
        for each in found
        for place, label in enumerate(keys[axis].labels)
    ]
    told = [curve for curve in curves if np.isfinite(curve.value).any()]
    return told if len(told) <= MOST_CURVES else []


def _at(each: Cells, axis: int, place: int, label: str) -> Cells:
    """Return what an engine gives at one place along an axis, under that place's label."""
    parts = {
        name: np.take(getattr(each, name), place, axis=axis)
        for name in ("value", "low", "high", "marks", "doubts")
    }
    return replace(each, engine=f"{label}, {each.engine}", **parts)


def _engine_cells(
    engine: str,
    rows: Mapping[tuple[int, ...], Sequence[int]],
    table: Mapping[str, Sequence[Any]],
    metric: str,
    shape: tuple[int, ...],
) -> Cells:
    value, low, high = (np.full(shape, np.nan) for _ in range(3))
    marks, doubts = (np.full(shape, "", dtype=np.object_) for _ in range(2))
    none = [None] * len(table[metric])
    row_marks, row_doubts = (
        metric_marks(table, metric),
        table.get(f"{metric}{WARNING_SUFFIX}", none),
    )
    columns = [table.get(name, none) for name in (metric, f"{metric}_low", f"{metric}_high")]
    for place, several in rows.items():
        value[place], low[place], high[place] = _together(
            *([column[row] for row in several] for column in columns)
        )
        marks[place] = next((row_marks[row] for row in several if row_marks[row]), "")
        doubts[place] = next((row_doubts[row] for row in several if row_doubts[row]), "")
    simulated = not isinstance(REGISTRY.get(engine), Formula)
    return Cells(engine, simulated, value, low, high, marks, doubts)


def _together(
    values: Sequence[float], lows: Sequence[float | None], highs: Sequence[float | None]
) -> tuple[float, float, float]:
    """Return a value and its interval; of several replications their mean and its interval."""
    value, low, high = values[0], lows[0], highs[0]
    found = mean(values, replications=len(values)) if len(values) > 1 else None
    if found is not None:
        value, low, high = found.value, found.low, found.high
    return value, math.nan if low is None else low, math.nan if high is None else high
