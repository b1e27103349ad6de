"""Results of a sweep, arranged in grids over the varied keys for figures."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.answer import Metric
from tcpcast.comparison.compare import is_formula
from tcpcast.comparison.verdict import swept_metrics
from tcpcast.quantity.units import digits
from tcpcast.report.key_labels import key_label
from tcpcast.report.quantity import DOUBTED_MARK, UNTRUSTED_MARK, scale_for_unit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Floats = np.ndarray[Any, np.dtype[np.float64]]

LOG_SCALE_RATIO = 8.0
"""Ratio of the largest to the smallest value from which a key has a logarithmic scale."""
MAX_TICKS = 7
MAX_CURVES = 8
"""Maximum number of distinguishable lines in one figure."""


@dataclass(frozen=True, slots=True)
class SweptKey:
    """A varied key: its values in order, and their positions on an axis.

    ``positions`` holds the values, their decimal logarithms if ``log`` is True, or their indices if
    they are not quantities. ``labels`` holds the tick labels and ``unit`` their unit. ``heading``
    is the name of the key with its unit, ``label`` a readable name without a unit.
    """

    values: Sequence[Any]
    positions: Floats
    labels: Sequence[str]
    heading: str
    log: bool
    is_numeric: bool
    label: str
    unit: str = ""

    @property
    def axis_label(self) -> str:
        """The readable name with the unit."""
        return f"{self.label} ({self.unit})" if self.unit else self.label

    @property
    def edges(self) -> Floats:
        """Edges of the cells around the positions, shape ``[len(positions) + 1]``."""
        if len(self.positions) == 1:
            return np.array([self.positions[0] - 0.5, self.positions[0] + 0.5])
        middle = (self.positions[1:] + self.positions[:-1]) / 2
        first, last = 2 * self.positions[0] - middle[0], 2 * self.positions[-1] - middle[-1]
        return np.concatenate([[first], middle, [last]])

    @property
    def ticks(self) -> tuple[Floats, list[str]]:
        """Positions and labels of the ticks; quantities have at most :data:`MAX_TICKS`."""
        step = -(-len(self.positions) // MAX_TICKS) if self.is_numeric else 1
        return self.positions[::step], list(self.labels[::step])


@dataclass(frozen=True, slots=True)
class MetricGrid:
    """The values of one metric by one engine, for all combinations of the varied keys.

    All arrays have one axis per key. ``value``, ``low`` and ``high`` are NaN if missing. ``marks``
    holds the mark of each uncertain value ("" for others), and ``interval_warnings`` the reason as
    text. ``text_value`` is the value of the key of texts that this curve belongs to, or "".
    """

    engine: str
    is_simulated: bool
    value: Floats
    low: Floats
    high: Floats
    marks: np.ndarray[Any, np.dtype[np.object_]]
    interval_warnings: np.ndarray[Any, np.dtype[np.object_]]
    text_value: str = ""

    def metric_at(self, index: Any) -> Metric:
        """Return the value at an index, with its interval or the reason for its absence."""
        low, high = float(self.low[index]), float(self.high[index])
        warning = self.interval_warnings[index] or None
        if not (math.isfinite(low) and math.isfinite(high)):
            return Metric(float(self.value[index]), interval_warning=warning)
        return Metric(float(self.value[index]), low, high, interval_warning=warning)

    @property
    def is_marked(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Mask of the values with a mark."""
        return np.array([bool(mark) for mark in self.marks.flat]).reshape(self.marks.shape)


def make_swept_key(key: str, column: Sequence[Any], unit: str) -> SweptKey:
    """Return the values and axis positions of a key.

    Parameters
    ----------
    key
        Name of the key.
    column
        Value of the key in each row of the table.
    unit
        Unit of the column, from ``SweepResults.keys``.
    """
    values = list(dict.fromkeys(column))
    quantities = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    if not quantities:
        labels = [v if isinstance(v, str) else json.dumps(v) for v in values]
        positions = np.arange(len(values), dtype=float)
        words = key_label(key)
        return SweptKey(values, positions, labels, key, log=False, is_numeric=False, label=words)
    values.sort()
    numbers = np.array(values, dtype=float)
    log = numbers[0] > 0 and numbers[-1] / numbers[0] >= LOG_SCALE_RATIO
    scale = scale_for_unit(unit, numbers[-1])
    labels = [digits(each / scale.factor, 3) for each in numbers]
    title = f"{key} ({scale.unit})" if scale.unit else key
    positions = np.log10(numbers) if log else numbers
    how = {"label": key_label(key), "unit": scale.unit.replace("pkt", "packets")}
    return SweptKey(values, positions, labels, title, log, is_numeric=True, **how)


def metric_grids(
    table: Mapping[str, Sequence[Any]], metric: str, axes: Mapping[str, SweptKey]
) -> list[MetricGrid]:
    """Return one grid of a metric per engine; formulas come first.

    Parameters
    ----------
    table
        The columns of a sweep.
    metric
        A name of :data:`tcpcast.answer.UNITS`.
    axes
        The varied keys with their axes.
    """
    shape = tuple(len(axis.values) for axis in axes.values())
    indices = [{value: index for index, value in enumerate(a.values)} for a in axes.values()]
    grids = []
    for engine, cells in swept_metrics(table, metric, list(axes)).items():
        value, low, high = (np.full(shape, np.nan) for _ in range(3))
        marks, doubts = (np.full(shape, "", dtype=np.object_) for _ in range(2))
        for cell, at in cells.items():
            place = tuple(index[each] for index, each in zip(indices, cell, strict=True))
            value[place], doubts[place] = at.value, at.interval_warning or ""
            low[place], high[place] = (math.nan if v is None else v for v in (at.low, at.high))
            doubt = DOUBTED_MARK if at.interval_warning else ""
            marks[place] = doubt if at.trusted else UNTRUSTED_MARK
        grids.append(MetricGrid(engine, not is_formula(engine), value, low, high, marks, doubts))
    return sorted(grids, key=lambda each: each.is_simulated)


def curves_by_text_value(grids: Sequence[MetricGrid], keys: Sequence[SweptKey]) -> list[MetricGrid]:
    """Return one curve over a numeric key for each value of a key whose values are texts.

    Empty unless exactly one of two keys is numeric and there are at most :data:`MAX_CURVES`
    curves.

    Parameters
    ----------
    grids
        One grid per engine over both keys.
    keys
        The keys in the order of the axes.
    """
    words = [axis for axis, key in enumerate(keys) if not key.is_numeric]
    if len(keys) != 2 or len(words) != 1:
        return []
    (axis,) = words
    curves = [
        _select_slice(each, axis, index, label)
        for each in grids
        for index, label in enumerate(keys[axis].labels)
    ]
    nonempty = [curve for curve in curves if np.isfinite(curve.value).any()]
    return nonempty if len(nonempty) <= MAX_CURVES else []


def _select_slice(grid: MetricGrid, axis: int, index: int, label: str) -> MetricGrid:
    """Return the values at one index of an axis; ``label`` is the text of the key at this index."""
    parts = {
        name: np.take(getattr(grid, name), index, axis=axis)
        for name in ("value", "low", "high", "marks", "interval_warnings")
    }
    return replace(grid, text_value=label, **parts)
