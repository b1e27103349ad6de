"""Titles of the figures of a sweep, computed from the drawn values.

A difference is named only if the 95 % intervals are disjoint; untrusted values are never named.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.report.headline import differ_beyond_intervals
from tcpcast.report.quantity import UNTRUSTED_MARK, metric_label
from tcpcast.units import digits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpcast.answer import Metric
    from tcpcast.report.quantity import Scale
    from tcpcast.report.sweep_cells import MetricGrid, SweptKey


def sweep_figure_title(
    metric: str,
    grids: Sequence[MetricGrid],
    keys: Sequence[SweptKey],
    scale: Scale,
    levels: Sequence[float],
) -> str:
    """Return the title of the figure of one metric.

    Parameters
    ----------
    metric
        A name of :data:`tcpcast.answer.UNITS`.
    grids, keys
        The drawn values, and the keys of their axes.
    scale
        The unit of the figure.
    levels
        Requested values of the metric.
    """
    name = metric_label(metric)
    plain = f"{name} by {' and '.join(key.label for key in keys)}"
    plain = plain[0].upper() + plain[1:]
    if any(each.text_value for each in grids):
        across = next(key for key in keys if key.is_numeric)
        return _always_largest_curve(name, grids, across) or plain
    lead = next(
        (each for each in grids if each.is_simulated and _trusted_mask(each).sum() > 1), None
    )
    lead = lead or next((each for each in grids if _trusted_mask(each).sum() > 1), None)
    if lead is None:
        return plain
    by = f", by {lead.engine}" if len(grids) > 1 else ""
    if len(keys) > 1:
        return f"The {name} {_map_range_text(lead, scale)}{by}"
    text = _level_text(lead, keys[0], scale, levels) if levels and keys[0].is_numeric else ""
    return f"The {name} {text or _curve_range_text(lead, keys[0], scale)}{by}"


def _trusted_mask(grid: MetricGrid) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return a mask of the finite and trusted values."""
    usable: np.ndarray[Any, np.dtype[np.bool_]]
    usable = np.isfinite(grid.value) & (grid.marks != UNTRUSTED_MARK)
    return usable


def _value_range_text(low: float, high: float, scale: Scale) -> str:
    first, last = (digits(value / scale.factor, 3) for value in (low, high))
    return f"{first} to {last} {scale.unit}".rstrip()


def _metric_at(grid: MetricGrid, index: Any) -> Metric:
    """Return the value at an index; a simulation without an interval has a warning."""
    metric = grid.metric_at(index)
    if grid.is_simulated and metric.low is None and metric.interval_warning is None:
        return replace(metric, interval_warning="no interval")
    return metric


def _level_text(grid: MetricGrid, key: SweptKey, scale: Scale, levels: Sequence[float]) -> str:
    """Return a clause with the key value from which the metric stays below or above a level."""
    rows = np.flatnonzero(_trusted_mask(grid)).tolist()
    metrics = [_metric_at(grid, row) for row in rows]
    for level in levels:
        for word, sides in (
            ("below", [_interval_end(m, upper=True) < level for m in metrics]),
            ("above", [_interval_end(m, upper=False) > level for m in metrics]),
        ):
            first = len(sides)
            while first and sides[first - 1]:
                first -= 1
            if 0 < first < len(sides):
                at = f"{key.label} \u2265 {key.labels[rows[first]]} {key.unit}".rstrip()
                return f"is {word} {scale.text(level, 3)} for {at}"
    return ""


def _interval_end(metric: Metric, *, upper: bool) -> float:
    end = metric.high if upper else metric.low
    return metric.value if end is None else end


def _curve_range_text(grid: MetricGrid, key: SweptKey, scale: Scale) -> str:
    """Return a clause with the values at both ends of the key, or the extreme values."""
    usable = np.flatnonzero(_trusted_mask(grid)).tolist()
    rows = [row for row in usable if _metric_at(grid, row).interval_warning is None]
    if len(rows) < 2:
        values = grid.value[usable]
        return (
            f"is {_value_range_text(values.min(), values.max(), scale)}, without reliable intervals"
        )
    values = grid.value[rows]
    most, least = int(rows[np.argmax(values)]), int(rows[np.argmin(values)])
    if not differ_beyond_intervals(_metric_at(grid, most), _metric_at(grid, least)):
        span = _value_range_text(values.min(), values.max(), scale)
        return f"does not differ significantly: {span}"
    first, last = int(rows[0]), int(rows[-1])
    if key.is_numeric and {first, last} == {most, least}:
        ends = [f"{scale.text(grid.value[i], 3)} ({key.value_text(i)})" for i in (first, last)]
        return f"{'falls' if first == most else 'rises'} from {ends[0]} to {ends[1]}"
    ends = [f"{scale.text(grid.value[i], 3)} ({key.value_text(i)})" for i in (least, most)]
    return f"lies between {ends[0]} and {ends[1]}"


def _map_range_text(grid: MetricGrid, scale: Scale) -> str:
    """Return a clause with the range over two keys, and whether its ends differ significantly."""
    usable = _trusted_mask(grid)
    ends = [np.where(usable, grid.value, end) for end in (np.inf, -np.inf)]
    least, most = (
        np.unravel_index(find(values), values.shape)
        for find, values in zip((np.argmin, np.argmax), ends, strict=True)
    )
    span = _value_range_text(float(grid.value[least]), float(grid.value[most]), scale)
    separate = differ_beyond_intervals(_metric_at(grid, most), _metric_at(grid, least))
    if separate is None:
        return f"is {span}, without reliable intervals"
    return f"ranges from {span}" if separate else f"does not differ significantly: {span}"


def _always_largest_curve(metric_name: str, grids: Sequence[MetricGrid], key: SweptKey) -> str:
    """Return the curve (text or engine) that is largest at every value of the key, or ""."""
    lead = next((each.engine for each in grids if each.is_simulated), grids[0].engine)
    curves = [each for each in grids if each.engine == lead]
    if len(curves) < 2 or not all(_trusted_mask(each).all() for each in curves):
        return ""
    for best in curves:
        others = [each for each in curves if each is not best]
        pairs = [(best, each, row) for each in others for row in range(len(best.value))]
        if all(
            one.value[row] > other.value[row]
            and differ_beyond_intervals(_metric_at(one, row), _metric_at(other, row))
            for one, other, row in pairs
        ):
            by = f", by {lead}" if len({each.engine for each in grids}) > 1 else ""
            return f"{best.text_value} has the largest {metric_name} at each {key.label}{by}"
    return ""
