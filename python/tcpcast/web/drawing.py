"""The curve of the page as a figure: a line a model, simulated points with their intervals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tcpcast.report.axes import (
    CALCULATED,
    LINES,
    MARKERS,
    OBSERVED,
    REFERENCE,
    figure_class,
    lay_out,
)
from tcpcast.report.figures import inline
from tcpcast.report.quantity import scale_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

    from tcpcast.report.document import Figure
    from tcpcast.report.quantity import Scale

_SIZE = (7.2, 4.4)
_WIDE = 30.0
"""From this ratio of the largest to the smallest value on, the axis is logarithmic."""


def curve_figure(drawn: Mapping[str, Any], points: Sequence[Mapping[str, Any]]) -> Figure:
    """Return the drawing of what :func:`tcpcast.web.evaluation.curve` gave, and of ``points``.

    Values outside a model's domain are drawn thin.

    Raises
    ------
    EnvironmentFault
        matplotlib is not installed.
    """
    figure = figure_class()(figsize=_SIZE, layout="constrained")
    axes = figure.add_subplot()
    metric, across = drawn["metric"], drawn["across"]
    figure.suptitle(f"{metric['label']} by {across['label'].lower()}", fontsize=12)
    shown, scale = _values(drawn, points), curve_scale(drawn, points)
    _models(axes, drawn, scale)
    _simulated(axes, points, scale)
    for value in drawn["references"].values():
        axes.axhline(value / scale.factor, color=REFERENCE, linewidth=1, linestyle="--")
    axes.axvline(drawn["here"], color=REFERENCE, linewidth=1, linestyle=":", label="asked")
    axes.set_xscale("log")
    if shown and max(shown) > _WIDE * min(shown) > 0:
        axes.set_yscale("log")
    places = [(x, text) for x, text in zip(drawn["x"], drawn["texts"], strict=True) if x > 0]
    places = places[:: max(1, math.ceil(len(places) / 7))]
    axes.set_xticks([x for x, _ in places], [text for _, text in places])
    axes.tick_params(axis="x", which="minor", labelbottom=False)
    axes.set_xlabel(across["label"])
    axes.set_ylabel(f"{metric['label'].lower()} ({scale.unit})" if scale.unit else metric["label"])
    lay_out(axes)
    axes.legend(frameon=False, fontsize=8)
    return inline(f"{metric['name']}-{across['name']}", figure)


def curve_scale(drawn: Mapping[str, Any], points: Sequence[Mapping[str, Any]]) -> Scale:
    """Return the unit in which the middle of all values reads best."""
    shown = _values(drawn, points)
    return scale_of(drawn["metric"]["name"], sorted(shown)[len(shown) // 2] if shown else 1.0)


def _values(drawn: Mapping[str, Any], points: Sequence[Mapping[str, Any]]) -> list[float]:
    """Return all values above 0 that are drawn."""
    shown = [value for each in drawn["series"] for value in each["values"] if value]
    return shown + [v["value"] for point in points for v in point["values"] if v["value"]]


def _models(axes: Axes, drawn: Mapping[str, Any], scale: Scale) -> None:
    for at, each in enumerate(drawn["series"]):
        known = [
            (x, value / scale.factor, trusted)
            for x, value, trusted in zip(drawn["x"], each["values"], each["trusted"], strict=True)
            if value is not None and x > 0
        ]
        look: dict[str, Any] = {"color": (*CALCULATED, *OBSERVED)[at % 6]}
        look["linestyle"] = LINES[at % len(LINES)]
        axes.plot([x for x, *_ in known], [y for _, y, _ in known], linewidth=0.7, **look)
        inside = [y if trusted else math.nan for _, y, trusted in known]
        axes.plot([x for x, *_ in known], inside, linewidth=1.8, label=each["name"], **look)


def _simulated(axes: Axes, points: Sequence[Mapping[str, Any]], scale: Scale) -> None:
    names = dict.fromkeys(value["name"] for point in points for value in point["values"])
    for at, name in enumerate(names):
        given = [
            (point["x"], value)
            for point in points
            for value in point["values"]
            if value["name"] == name and value["value"] is not None
        ]
        middle = [value["value"] for _, value in given]
        ends = [
            [
                0.0 if value[end] is None else abs(value[end] - value["value"]) / scale.factor
                for _, value in given
            ]
            for end in ("low", "high")
        ]
        axes.errorbar(
            [x for x, _ in given],
            [mean / scale.factor for mean in middle],
            yerr=ends,
            fmt=MARKERS[at % len(MARKERS)],
            color=OBSERVED[at % len(OBSERVED)],
            markersize=5,
            capsize=3,
            zorder=30,
            label=f"{name}, simulated, with 95 % interval",
        )
