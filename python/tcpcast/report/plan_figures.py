"""The figure of a plan: the metric against the varied quantity, its target, and the answer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tcpcast.report.chart import (
    Points,
    ReferenceLine,
    Series,
    one_panel_chart,
    value_axis,
)
from tcpcast.report.palette import OBSERVED, engine_style
from tcpcast.report.quantity import is_count, metric_label, scale_for_metric, scale_for_unit
from tcpcast.report.verdict import verdict_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tcpcast.plan import Plan
    from tcpcast.report.chart import Drawable
    from tcpcast.scenario import Scenario

MAX_LINEAR_RATIO = 4.0
"""Ratio of the largest to the median value above which an axis is logarithmic."""

MAX_MISS = 1e3
"""Values that miss the target by more than this factor are not drawn."""


def plan_figure(plan: Plan, scenario: Scenario) -> Figure:
    """Return the figure of a plan, drawn by matplotlib.

    A formula is a line, simulated values are points with 95 % intervals. A horizontal line marks
    the target, a vertical line the answer with its interval.

    Raises
    ------
    MachineError
        matplotlib is not installed.
    """
    table = plan.tables["values"]
    seen = table[plan.metric]
    is_drawn = np.isfinite(seen) & (seen > plan.target / MAX_MISS) & (seen < plan.target * MAX_MISS)
    table = {name: column[is_drawn] for name, column in table.items()}
    unit = "ratio" if plan.unit == "1" else plan.unit
    x = scale_for_unit(unit, float(np.median(table[plan.column])) if is_drawn.any() else 1.0)
    y = scale_for_metric(plan.metric, plan.target)
    values = table[plan.column] / x.factor
    rows = [table[name] / y.factor for name in (plan.metric, "low", "high")]
    target = plan.target / y.factor
    series: list[Drawable] = [ReferenceLine(target, f"target, {y.text(plan.target)}")]
    if plan.runs and plan.runs[0].kind == "formula":
        style = engine_style(plan.engine, is_observed=False)
        series.append(Series(values, rows[0], plan.engine, style))
    else:
        series.append(Points(values, rows, f"{plan.engine}, 95 % interval"))
    if plan.value is not None:
        solid = {"color": OBSERVED[0], "linewidth": 0.8, "linestyle": "-"}
        series.append(ReferenceLine(plan.value / x.factor, "answer", solid, axis="x"))
    ends = [end for end in (plan.low, plan.high) if end is not None and math.isfinite(end)]
    if len(ends) == 2 and ends[0] < ends[1]:
        first, last = (end / x.factor for end in ends)
        series.append(ReferenceLine(first, style={"color": OBSERVED[0]}, axis="x", span_end=last))
    name = plan.quantity or metric_label(plan.metric)
    across = plan.axis if is_count(plan.unit) else f"{plan.axis} ({x.unit})"
    return one_panel_chart(
        scenario,
        verdict_text(plan.findings, intervals=False).rstrip("."),
        value_axis(across, [values], MAX_LINEAR_RATIO),
        value_axis(f"{name} ({y.unit})", [rows[0], [target]], MAX_LINEAR_RATIO),
        series,
    ).draw()
