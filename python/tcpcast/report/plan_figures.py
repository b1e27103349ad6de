"""The figure of a plan: what its model says around the answer, and what was simulated there."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.answer import Metric
from tcpcast.report import streams, users
from tcpcast.report.axes import (
    CALCULATED,
    MORE_LINES,
    OBSERVED,
    REFERENCE,
    figure_class,
    lay_out,
    log_ticks,
    points_with_intervals,
    titled,
)
from tcpcast.report.quantity import amount, label, scale_of, scale_of_unit
from tcpcast.units import digits

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from tcpcast.plan import Plan
    from tcpcast.report.quantity import Scale
    from tcpcast.scenario import Scenario

_DPI = 150
_DECADE = 10.0
"""From this ratio of its largest to its smallest value on, an axis has a log scale."""
_DEEP = 1e-3
"""Of what was asked for, so little of a curve is drawn."""

FILES = {
    "packet": "buffer",
    "bit/s": "rate",
    "1": "loss",
    "sources": users.FILE,
    "flows": streams.FILE,
}
"""What the figure of a plan is called, by the unit of its answer."""

_KEYS = {
    "packet": ("buffer", "packets"),
    "bit/s": ("rate of the bottleneck", ""),
    "1": ("loss", "%"),
    "sources": ("sources", ""),
}
_MODELS = {
    "pftk": "PFTK",
    "parallel": "algorithm 1",
    "mathis": "square root",
    "cubic": "CUBIC response",
    "bbr": "BBR\u2019s bound",
}
"""What the lines of the plans of one path are called, by the column."""


def plan_figure(plan: Plan, scenario: Scenario) -> Figure:
    """Return the figure of a plan, drawn by matplotlib.

    A model is a line, what was simulated are points with 95 % intervals; where they meet the
    target stands what each answers. Of a loss a second panel has the isoline: which round-trip
    times and losses still give the goodput.

    Raises
    ------
    EnvironmentFault
        matplotlib is not installed.
    """
    if plan.target is None:
        if plan.unit == "flows":
            return streams.streams_figure(plan, scenario)
        return users.users_figure(plan, scenario)
    isoline = plan.tables.get("isoline")
    height = 4.4 if isoline is None else 7.2
    figure: Figure = figure_class()(figsize=(6.4, height), dpi=_DPI, layout="constrained")
    if isoline is None:
        _crossing(titled(figure, scenario, plan.question, "", ""), plan)
        return figure
    above, below = figure.subfigures(2, 1, squeeze=False, height_ratios=(4, 3))[:, 0]
    _crossing(titled(above, scenario, plan.question, "", ""), plan)
    _isoline(below.add_subplot(), plan, scenario)
    return figure


def _crossing(axes: Axes, plan: Plan) -> None:
    """Draw a metric over what is looked for, and where it meets the target."""
    assert plan.target is not None
    metric, target = plan.target
    name, *columns = plan.tables["curve"]
    curve = plan.tables["curve"]
    x, y = _scale_of_key(plan, curve[name]), scale_of(metric, target)
    lines = zip(columns, (*CALCULATED, REFERENCE), MORE_LINES, strict=False)
    for column, colour, line in lines:
        if not np.isfinite(curve[column]).any():
            continue
        said = _MODELS.get(column.removesuffix("_bps"), "the model")
        look: dict[str, Any] = {"color": colour, "linestyle": line, "linewidth": 1.8}
        axes.plot(curve[name] / x.factor, curve[column] / y.factor, label=said, **look)
    look = {"color": REFERENCE, "linewidth": 1, "linestyle": ":"}
    axes.axhline(target / y.factor, label=f"target, {_said(target, metric)}", **look)
    _answer(axes, plan, x, target / y.factor)
    at, metrics = _simulated(plan, name)
    values = [curve[column] for column in columns]
    values += [np.array([metric.value for metric in metrics]), np.array([target])]
    _frame(axes, plan, np.concatenate(values) / y.factor, target / y.factor)
    _points(axes, at / x.factor, metrics, y.factor)
    title, unit = _KEYS[plan.unit]
    axes.set_xlabel(f"{title} ({x.unit or unit})" if x.unit or unit else title)
    axes.set_ylabel(f"{label(metric)} ({y.unit})")
    axes.legend(frameon=False, fontsize=8)


def _scale_of_key(plan: Plan, values: Any) -> Scale:
    if plan.unit == "1":
        return scale_of("loss_ratio", 0.01)
    if plan.unit == "bit/s":
        return scale_of_unit("bit/s", float(values.max()))
    return scale_of_unit("1", 1.0)


def _said(value: float, metric: str) -> str:
    scale = scale_of(metric, value)
    return f"{digits(value / scale.factor)} {scale.unit}"


def _answer(axes: Axes, plan: Plan, x: Scale, target: float) -> None:
    """Mark the model's answer, and the simulation's with its interval."""
    if plan.has_model:
        at = plan.value / x.factor
        axes.axvline(at, color=CALCULATED[0], linewidth=0.8, linestyle="--")
        doubt = " (not to be trusted)" if plan.untrusted else ""
        said = f"by the model: {_answered(plan.value, plan)}{doubt}"
        look: dict[str, Any] = {"marker": "D", "markersize": 6, "linestyle": "none", "zorder": 20}
        axes.plot([at], [target], color=CALCULATED[0], label=said, **look)
    if plan.simulated is None:
        return
    there = f"by simulation: {_answered(plan.simulated, plan)}"
    axes.axvline(plan.simulated / x.factor, color=OBSERVED[0], linewidth=0.8, label=there)
    if plan.simulated_low is not None and plan.simulated_high is not None:
        ends = plan.simulated_low / x.factor, plan.simulated_high / x.factor
        axes.axvspan(*ends, color=OBSERVED[0], alpha=0.15, linewidth=0)


def _answered(value: float, plan: Plan) -> str:
    """Return an answer with the three digits that can be read in a figure."""
    if plan.unit == "bit/s":
        return amount(float(f"{value:.3g}"), "bit/s")
    if plan.unit == "1":
        return f"{digits(100 * value, 3)} %"
    words = "packets" if plan.unit == "packet" else plan.unit
    return f"{value:,.0f} {words.removesuffix('s') if value == 1 else words}"


def _simulated(plan: Plan, name: str) -> tuple[NDArray[np.float64], list[Metric]]:
    """Return where was simulated, and what."""
    assert plan.target is not None
    told = plan.tables.get("simulated")
    if told is None or not len(told[name]):
        return np.empty(0), []
    columns = (told[plan.target[0]], told["low"], told["high"])
    metrics = [
        Metric(value, None if math.isnan(low) else low, None if math.isnan(high) else high)
        for value, low, high in zip(*(column.tolist() for column in columns), strict=True)
    ]
    return told[name], metrics


def _points(axes: Axes, at: NDArray[np.float64], metrics: list[Metric], factor: float) -> None:
    """Draw what was simulated, down to the end of the axis, where the rest points further down."""
    bottom = axes.get_ylim()[0] * factor
    inside = np.array([metric.value >= bottom for metric in metrics], dtype=bool)
    shown = [
        Metric(metric.value, None if metric.low is None else max(metric.low, bottom), metric.high)
        for metric in metrics
        if metric.value >= bottom
    ]
    if shown:
        points_with_intervals(axes, at[inside].tolist(), shown, factor, "packet")
    if len(shown) < len(metrics):
        below = at[~inside]
        look: dict[str, Any] = {"marker": "v", "linestyle": "none", "color": OBSERVED[0]}
        look |= {"clip_on": False, "zorder": 30, "label": "packet, below this axis"}
        axes.plot(below, np.full(len(below), bottom / factor), **look)


def _frame(axes: Axes, plan: Plan, values: NDArray[np.float64], target: float) -> None:
    """Choose the scales: logarithmic where values span more than a decade."""
    if plan.unit == "1":
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _at: digits(value))
    shown = values[np.isfinite(values) & (values > _DEEP * target)]
    if shown.max() < _DECADE * shown.min():
        axes.set_ylim(0, 1.08 * float(shown.max()))
        axes.margins(x=0.02)
        return
    axes.set_yscale("log")
    axes.set_ylim(float(shown.min()) / 1.3, 1.3 * float(shown.max()))
    log_ticks(axes.yaxis)


def _isoline(axes: Axes, plan: Plan, scenario: Scenario) -> None:
    """Draw which round-trip times and losses still give the goodput."""
    assert plan.target is not None
    found, goodput = plan.tables["isoline"], amount(plan.target[1], "bit/s")
    rtt, loss = 1e3 * found["rtt_s"], 100 * found["loss_ratio"]
    model = _MODELS[list(plan.tables["curve"])[1].removesuffix("_bps")]
    axes.set_xscale("log")
    axes.set_yscale("log")
    floor = float(np.nanmin(loss)) / 3
    look: dict[str, Any] = {"color": CALCULATED[0], "linewidth": 1.8}
    axes.plot(rtt, loss, label=f"{goodput}, {model}", **look)
    here = np.isfinite(loss)
    axes.fill_between(rtt, floor, loss, where=here, color=CALCULATED[0], alpha=0.12, linewidth=0)
    axes.annotate(f"{goodput} and more", (0.03, 0.06), xycoords="axes fraction", fontsize=9)
    own = 1e3 * scenario.populations[0].rtt_s
    axes.axvline(own, color=REFERENCE, linewidth=0.8, linestyle="--")
    axes.plot([own], [100 * plan.value], marker="D", markersize=6, linestyle="none", **look)
    if plan.simulated is not None:
        metric = Metric(plan.simulated, plan.simulated_low, plan.simulated_high)
        points_with_intervals(axes, [own], [metric], 0.01, "packet")
    lay_out(axes)
    axes.set_ylim(bottom=floor)
    for axis in (axes.xaxis, axes.yaxis):
        log_ticks(axis)
    axes.set_xlabel("RTT (ms)")
    axes.set_ylabel("loss (%)")
    axes.legend(frameon=False, fontsize=8, loc="upper right")
