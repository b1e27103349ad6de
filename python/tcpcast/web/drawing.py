"""Draws the curve of the page: one line per model, and simulated points with intervals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.report.chart import Axis, Chart, Panel, Points, ReferenceLine, Series
from tcpcast.report.figures import svg_figure
from tcpcast.report.palette import CALCULATED, MARKERS, OBSERVED, line_style
from tcpcast.report.quantity import scale_for_metric

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tcpcast.report.chart import Drawable
    from tcpcast.report.document import Figure
    from tcpcast.report.quantity import Scale

_FIGURE_SIZE_IN = (7.2, 4.4)
_LOG_AXIS_RATIO = 30.0
"""Ratio of the largest to the smallest value above which the axis is logarithmic."""


def curve_figure(curve: Mapping[str, Any], points: Sequence[Mapping[str, Any]]) -> Figure:
    """Return the figure of ``points`` and of :func:`tcpcast.web.evaluation.evaluate_curve`.

    Values outside a model's domain are drawn with a thin line.

    Raises
    ------
    MachineError
        matplotlib is not installed.
    """
    metric, across = curve["metric"], curve["across"]
    shown, scale = _drawn_values(curve, points), curve_scale(curve, points)
    labelled = [(x, text) for x, text in zip(curve["x"], curve["texts"], strict=True) if x > 0]
    ticks = dict(labelled[:: max(1, math.ceil(len(labelled) / 7))])
    wide = bool(shown) and max(shown) > _LOG_AXIS_RATIO * min(shown) > 0
    label = f"{metric['label'].lower()} ({scale.unit})" if scale.unit else metric["label"]
    series = [
        *_model_curves(curve, scale),
        *_simulated_points(points, scale),
        *(
            ReferenceLine(value / scale.factor, style={"linestyle": "--"})
            for value in curve["references"].values()
        ),
        ReferenceLine(curve["here"], "current value", axis="x"),
    ]
    chart = Chart(
        title=f"{metric['label']} by {across['label'].lower()}",
        panels=[Panel(series, Axis(across["label"], log=True, ticks=ticks), Axis(label, log=wide))],
        size=_FIGURE_SIZE_IN,
    )
    return svg_figure(f"{metric['name']}-{across['name']}", chart.draw())


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
        style = line_style(index, (*CALCULATED, *OBSERVED))
        across = [x for x, *_ in known]
        yield Series(across, [y for _, y, _ in known], style=style | {"linewidth": 0.7})
        inside = [y if trusted else math.nan for _, y, trusted in known]
        yield Series(across, inside, each["name"], style | {"linewidth": 1.8})


def _simulated_points(points: Sequence[Mapping[str, Any]], scale: Scale) -> Iterator[Drawable]:
    names = dict.fromkeys(value["name"] for point in points for value in point["values"])
    for index, name in enumerate(names):
        given = [
            (point["x"], *(value[end] for end in ("value", "low", "high")))
            for point in points
            for value in point["values"]
            if value["name"] == name and value["value"] is not None
        ]
        x, *rows = np.array(given, dtype=float).reshape(-1, 4).T
        style = {"marker": MARKERS[index % len(MARKERS)], "color": OBSERVED[index % len(OBSERVED)]}
        label = f"{name}, simulated, with 95 % interval"
        yield Points(x, [row / scale.factor for row in rows], label, style)
