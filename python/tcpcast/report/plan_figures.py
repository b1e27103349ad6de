"""The figure of a plan: the model's curve around the answer, and simulated points."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.answer import Metric
from tcpcast.engines.registry import FORMULA_BY_CONTROL
from tcpcast.readable_units import count_text
from tcpcast.report import streams_figure, user_plan_figure
from tcpcast.report.chart import (
    FIGURE_SIZE_IN,
    Axis,
    Band,
    Chart,
    Panel,
    Points,
    ReferenceLine,
    Series,
    TextNote,
    plan_answer_line,
    points_from_metrics,
    scenario_subtitle,
)
from tcpcast.report.palette import BLACK, OBSERVED, engine_style
from tcpcast.report.plan import plan_verdict
from tcpcast.report.quantity import (
    amount_text,
    is_count,
    metric_label,
    scale_for_metric,
    scale_for_unit,
    three_digit_text,
)
from tcpcast.units import digits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from tcpcast.plan import Plan
    from tcpcast.report.chart import Drawable, Style
    from tcpcast.report.quantity import Scale
    from tcpcast.scenario import Scenario

    Floats = NDArray[np.float64]

_LOG_AXIS_RATIO = 10.0
"""Ratio of the largest to the smallest value from which an axis is logarithmic."""
_MIN_SHARE_OF_TARGET = 1e-3
"""Curve values below this share of the target are not drawn."""

_MODEL_LABELS = {
    "pftk": "PFTK",
    "parallel": "algorithm 1",
    "mathis": "square root",
    "cubic": "CUBIC response",
    "bbr": "BBR\u2019s bound",
}
"""Labels of the model curves in plans for one path, by column."""
_ANSWER_POINT_STYLE: Style = {"color": BLACK, "marker": "D", "linestyle": "none", "zorder": 20}
_SIMULATED_LABEL = "packet (simulated), 95 % interval"


def plan_figure(plan: Plan, scenario: Scenario) -> Figure:
    """Return the figure of a plan, drawn by matplotlib.

    Models are lines, simulated values are points with 95 % intervals. The answers are marked where
    they meet the target. If the planned quantity is a loss probability, a second panel shows the
    pairs of round-trip time and loss that give exactly the target goodput.

    Raises
    ------
    MachineError
        matplotlib is not installed.
    """
    if plan.target is None:
        chart = (
            streams_figure.streams_chart if plan.unit == "flows" else user_plan_figure.users_chart
        )
        return chart(plan, scenario).draw()
    panels = [_target_metric_panel(plan, *plan.target)]
    if "isoline" in plan.tables:
        panels.append(_isoline_panel(plan, plan.target[1], scenario))
    return Chart(
        title=plan_verdict(plan).rstrip("."),
        panels=panels,
        subtitle=scenario_subtitle(scenario),
        size=(FIGURE_SIZE_IN[0], FIGURE_SIZE_IN[1] if len(panels) == 1 else 6.4),
        height_ratios=(4, 3)[: len(panels)],
    ).draw()


def _target_metric_panel(plan: Plan, metric: str, target: float) -> Panel:
    """Return the panel with the target metric against the planned quantity, and both answers."""
    curve = plan.tables["curve"]
    name, *columns = curve
    x, y = _scale_of_key(plan, curve[name]), scale_for_metric(metric, target)
    series: list[Drawable] = [
        Series(
            curve[name] / x.factor,
            curve[column] / y.factor,
            style=_curve_style(column),
            name=_MODEL_LABELS.get(column.removesuffix("_bps"), "model").replace(" ", "\n"),
        )
        for column in columns
        if np.isfinite(curve[column]).any()
    ]
    shown_target = target / y.factor
    series.append(ReferenceLine(shown_target, name=f"target,\n{digits(shown_target)} {y.unit}"))
    series += _answer_marks(plan, x, shown_target)
    seen = {name: np.empty(0) for name in (name, metric, "low", "high")}
    seen |= plan.tables.get("simulated", {})
    values = [*(curve[column] for column in columns), seen[metric], np.array([target])]
    name_of_metric = f"{metric_label(metric)} ({y.unit})"
    up = _value_axis(name_of_metric, np.concatenate(values) / y.factor, shown_target)
    rows = np.array([seen[each] / y.factor for each in (metric, "low", "high")])
    series += _simulated_points(seen[name] / x.factor, rows, up.low or 0.0)
    across = Axis(f"{plan.axis} ({x.unit})" if x.unit else plan.axis)
    if plan.unit == "1":
        across = replace(across, log=True, ticks=lambda value, _: digits(value))
    return Panel(series, across, up)


def _curve_style(column: str) -> Style:
    """Return the style of a model curve: the style of its engine, or the first for populations."""
    name = column.removesuffix("_bps")
    engine = FORMULA_BY_CONTROL.get(name, name)
    return engine_style(engine if name in _MODEL_LABELS else "engset", is_observed=False)


def _scale_of_key(plan: Plan, values: Any) -> Scale:
    if plan.unit == "1":
        return scale_for_unit("ratio", 0.01)
    return scale_for_unit("1" if is_count(plan.unit) else plan.unit, float(values.max()))


def _answer_marks(plan: Plan, x: Scale, target: float) -> Iterator[Drawable]:
    """Yield marks for the model's answer, and for the simulated answer with its interval."""
    if plan.has_model:
        value = plan.value / x.factor
        yield plan_answer_line(value)
        doubt = " (not to be trusted)" if plan.untrusted else ""
        text = f"by the model: {_answer_text(plan.value, plan)}{doubt}"
        yield Series([value], [target], text, _ANSWER_POINT_STYLE)
    if plan.simulated is None:
        return
    text = f"by simulation: {_answer_text(plan.simulated, plan)}"
    solid = {"color": OBSERVED[0], "linewidth": 0.8, "linestyle": "-"}
    yield ReferenceLine(plan.simulated / x.factor, text, solid, axis="x")
    if plan.simulated_low is not None and plan.simulated_high is not None:
        ends = plan.simulated_low / x.factor, plan.simulated_high / x.factor
        yield ReferenceLine(ends[0], style={"color": OBSERVED[0]}, axis="x", span_end=ends[1])


def _answer_text(value: float, plan: Plan) -> str:
    """Return an answer with three significant digits and its unit."""
    if plan.unit == "1":
        return f"{digits(100 * value, 3)} %"
    if not is_count(plan.unit):
        return three_digit_text(value, plan.unit)
    return count_text(value, plan.unit.removesuffix("s"))


def _simulated_points(x: Floats, rows: Floats, bottom: float) -> Iterator[Drawable]:
    """Yield simulated points; a triangle at the bottom marks a point below the axis range."""
    inside = rows[0] >= bottom
    if inside.any():
        yield Points(x[inside], np.maximum(rows, bottom)[:, inside], _SIMULATED_LABEL)
    if not inside.all():
        style: Style = {"marker": "v", "linestyle": "none", "color": OBSERVED[0]}
        style |= {"clip_on": False, "zorder": 30}
        below = np.full(np.count_nonzero(~inside), bottom)
        yield Series(x[~inside], below, "packet (simulated), below this axis", style)


def _value_axis(label: str, values: Floats, target: float) -> Axis:
    """Return an axis for values near the target, logarithmic if they span a decade or more."""
    shown = values[np.isfinite(values) & (values > _MIN_SHARE_OF_TARGET * target)]
    low, high = float(shown.min()), float(shown.max())
    if high < _LOG_AXIS_RATIO * low:
        return Axis(label, 0, 1.08 * high)
    return Axis(label, low / 1.3, 1.3 * high, log=True)


def _isoline_panel(plan: Plan, target: float, scenario: Scenario) -> Panel:
    """Return the panel with the round-trip times and losses that give the target goodput."""
    isoline, goodput = plan.tables["isoline"], amount_text(target, "bit/s")
    rtt, loss = 1e3 * isoline["rtt_s"], 100 * isoline["loss_ratio"]
    column = list(plan.tables["curve"])[1]
    model = _MODEL_LABELS[column.removesuffix("_bps")]
    floor = float(np.nanmin(loss)) / 3
    colour = {"color": _curve_style(column)["color"]}
    here = np.isfinite(loss)
    own = 1e3 * scenario.populations[0].rtt_s
    bottom = np.full(np.count_nonzero(here), floor)
    series: list[Drawable] = [
        Series(rtt, loss, f"{goodput}, {model}", colour | {"linewidth": 1.8}),
        Band(rtt[here], bottom, loss[here], style=colour | {"alpha": 0.12}),
        TextNote(f"{goodput} or more", (0.03, 0.06), style={"fontsize": 9}),
        ReferenceLine(own, style={"linewidth": 0.8, "linestyle": "--"}, axis="x"),
        Series([own], [100 * plan.value], style=_ANSWER_POINT_STYLE),
    ]
    if plan.simulated is not None:
        metric = Metric(plan.simulated, plan.simulated_low, plan.simulated_high)
        series.append(points_from_metrics([own], [metric], 0.01, "packet"))
    x, y = Axis("round-trip time (ms)", log=True), Axis("loss (%)", floor, log=True)
    return Panel(series, x, y, legend={"loc": "upper right"})
