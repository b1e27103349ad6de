"""Draws the curve of the page: one line per model, and simulated points with intervals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.report.chart import Axis, Chart, Panel, Points, ReferenceLine, Series
from tcpcast.report.figures import svg_figure
from tcpcast.report.palette import CALCULATED, COLOURS, MARKERS, OBSERVED, line_style
from tcpcast.report.quantity import scale_for_metric

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from tcpcast.report.chart import Drawable
    from tcpcast.report.document import Figure
    from tcpcast.report.quantity import Scale

    Floats = NDArray[np.float64]

_FIGURE_SIZE_IN = (7.2, 4.4)
_LOG_AXIS_RATIO = 30.0
"""Ratio of the largest to the smallest value above which the axis is logarithmic."""
_MAX_INTERVAL_RATIO = 1.5
"""Ratio of the end of the axis to the largest value, above which intervals are cut."""


def curve_figure(curve: Mapping[str, Any], points: Sequence[Mapping[str, Any]]) -> Figure:
    """Return the figure of :func:`curve_chart` as a part of a report.

    Raises
    ------
    MachineError
        matplotlib is not installed.
    """
    name = f"{curve['metric']['name']}-{curve['across']['name']}"
    return svg_figure(name, curve_chart(curve, points).draw())


def curve_chart(curve: Mapping[str, Any], points: Sequence[Mapping[str, Any]]) -> Chart:
    """Return the chart of ``points`` and of :func:`tcpcast.web.evaluation.evaluate_curve`.

    Values outside a model's domain are drawn with a thin line. The axis contains all values, and
    all intervals up to a multiple of the largest value.
    """
    metric, across = curve["metric"], curve["across"]
    shown, scale = _drawn_values(curve, points), curve_scale(curve, points)
    labelled = [(x, text) for x, text in zip(curve["x"], curve["texts"], strict=True) if x > 0]
    ticks = dict(labelled[:: max(1, math.ceil(len(labelled) / 7))])
    label = f"{metric['label'].lower()} ({scale.unit})" if scale.unit else metric["label"]
    y = _value_axis(label, np.array(shown) / scale.factor, points, scale)
    series = [
        *_model_curves(curve, scale),
        *_simulated_points(points, scale, y),
        *(
            ReferenceLine(value / scale.factor, name=name, style={"linestyle": "--"})
            for name, value in curve["references"].items()
        ),
        ReferenceLine(curve["here"], "current value", axis="x"),
    ]
    return Chart(
        title=f"{metric['label']} by {across['label'].lower()}",
        panels=[Panel(series, Axis(across["label"], log=True, ticks=ticks), y)],
        size=_FIGURE_SIZE_IN,
        legend_position="below",
    )


def _value_axis(
    label: str, values: Floats, points: Sequence[Mapping[str, Any]], scale: Scale
) -> Axis:
    """Return an axis for the values and the intervals of points, logarithmic for a wide range."""
    ends = [each["high"] for point in points for each in point["values"]]
    high = float(np.max(values, initial=0.0)) or 1.0
    bounds = [end / scale.factor for end in ends if end is not None]
    top = min(max(high, *bounds), _MAX_INTERVAL_RATIO * high) if bounds else high
    low = float(np.min(values, initial=high))
    if low > 0 and high > _LOG_AXIS_RATIO * low:
        return Axis(label, low / 1.3, 1.3 * top, log=True)
    return Axis(label, min(0.0, 1.05 * low), 1.05 * top)


def curve_scale(curve: Mapping[str, Any], points: Sequence[Mapping[str, Any]]) -> Scale:
    """Return a readable unit for the median of all values."""
    shown = _drawn_values(curve, points)
    return scale_for_metric(
        curve["metric"]["name"], sorted(shown)[len(shown) // 2] if shown else 1.0
    )


def _drawn_values(curve: Mapping[str, Any], points: Sequence[Mapping[str, Any]]) -> list[float]:
    """Return all drawn values except zeros."""
    shown = [value for each in curve["series"] for value in each["values"] if value]
    return shown + [v["value"] for point in points for v in point["values"] if v["value"]]


def _model_curves(curve: Mapping[str, Any], scale: Scale) -> Iterator[Drawable]:
    for index, each in enumerate(curve["series"]):
        known = [
            (x, value / scale.factor, trusted)
            for x, value, trusted in zip(curve["x"], each["values"], each["trusted"], strict=True)
            if value is not None and x > 0
        ]
        style = line_style(index, (*CALCULATED, *OBSERVED)) | _group_colour(each)
        across = [x for x, *_ in known]
        yield Series(across, [y for _, y, _ in known], style=style | {"linewidth": 0.7})
        inside = [y if trusted else math.nan for _, y, trusted in known]
        yield Series(across, inside, each["name"], style | {"linewidth": 1.8})


def _group_colour(each: Mapping[str, Any]) -> dict[str, Any]:
    """Return the colour of the group of flows to which a model or a simulated value belongs."""
    group = each.get("group")
    return {} if group is None else {"color": COLOURS[group % len(COLOURS)]}


def _simulated_points(
    points: Sequence[Mapping[str, Any]], scale: Scale, y: Axis
) -> Iterator[Drawable]:
    """Yield the points of each simulated value; their intervals end at the ends of the axis."""
    names = dict.fromkeys(value["name"] for point in points for value in point["values"])
    for index, name in enumerate(names):
        given = [
            (point["x"], value)
            for point in points
            for value in point["values"]
            if value["name"] == name and value["value"] is not None
        ]
        if not given:
            continue
        rows = [(x, *(value[end] for end in ("value", "low", "high"))) for x, value in given]
        x, *ends = np.array(rows, dtype=float).T
        style = {"marker": MARKERS[index % len(MARKERS)], "color": OBSERVED[index % len(OBSERVED)]}
        interval = ", with 95 % interval" if np.isfinite(ends[1]).any() else ""
        inside = [np.clip(end / scale.factor, y.low, y.high) for end in ends]
        label = f"{name}, simulated{interval}"
        yield Points(x, inside, label, style | _group_colour(given[0][1]))
