"""The figure of a plan for parallel flows: their total rate, and the rate of a competing flow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast.report.chart import (
    Axis,
    Chart,
    Panel,
    ReferenceLine,
    Series,
    plan_answer_line,
    points_from_metrics,
    scenario_subtitle,
)
from tcpcast.report.palette import BLACK, GREEN, engine_colour
from tcpcast.report.plan import plan_verdict
from tcpcast.report.quantity import amount_text, scale_for_unit

if TYPE_CHECKING:
    from tcpcast.plan import Plan
    from tcpcast.report.chart import Drawable
    from tcpcast.scenario import Scenario

_MODEL_LABELS = {
    "parallel_bps": "algorithm 1",
    "cubic_bps": "n times CUBIC",
    "bbr_bps": "BBR's bound",
    "window_bps": "n full windows per RTT",
}
"""Labels of the model curves by column."""
_MODEL_ENGINES = {
    "parallel_bps": "parallel",
    "cubic_bps": "cubic-response",
    "bbr_bps": "bbr-bound",
    "window_bps": "pftk",
}
"""Engines whose colours the curves have; PFTK's rate without loss is one window per RTT."""


def streams_chart(plan: Plan, scenario: Scenario) -> Chart:
    """Return two panels against the number of flows: total rate, and rate of a competing flow."""
    flows = plan.tables["curve"]["flows"]
    x = Axis("parallel flows", 0, float(flows[-1]))
    return Chart(
        title=plan_verdict(plan).rstrip("."),
        panels=[
            _rate_panel(plan, scenario.network.bottleneck.rate_bps, x),
            _competing_panel(plan, x),
        ],
        subtitle=scenario_subtitle(scenario),
        size=(5.6, 5.0),
        height_ratios=(2, 1),
        shared_axes="x",
    )


def _rate_panel(plan: Plan, link_bps: float, x: Axis) -> Panel:
    curve = plan.tables["curve"]
    scale = scale_for_unit("bit/s", link_bps)
    n, link = curve["flows"], link_bps / scale.factor
    series: list[Drawable] = []
    if "pftk_bps" in curve:
        # A broad line stays visible if the other curve covers its centre.
        broad = {"color": engine_colour("pftk"), "linewidth": 5, "alpha": 0.5}
        series.append(Series(n, curve["pftk_bps"] / scale.factor, "n times PFTK", broad))
    (name,) = curve.keys() & _MODEL_LABELS.keys()
    words = "1 flow fills the link" if plan.value == 1 else f"{plan.value:,.0f} flows fill the link"
    colour = {"color": engine_colour(_MODEL_ENGINES[name])}
    point = {"color": BLACK, "marker": "o", "linestyle": "none", "zorder": 3}
    series += [
        Series(n, curve[name] / scale.factor, _MODEL_LABELS[name], colour),
        ReferenceLine(link, f"link, {amount_text(link_bps, 'bit/s')}"),
        Series([plan.value], [link], words, point),
        plan_answer_line(plan.value),
    ]
    simulated = plan.tables.get("simulated")
    if simulated is not None and len(simulated["flows"]):
        busy = [answer.metrics["utilisation"] for answer in plan.verified]
        series.append(
            points_from_metrics(simulated["flows"], busy, scale.factor / link_bps, "packet")
        )
    y = Axis(f"total rate of all flows ({scale.unit})", 0, 1.12 * link)
    return Panel(series, x, y, legend={"loc": "lower right"})


def _competing_panel(plan: Plan, x: Axis) -> Panel:
    curve = plan.tables["curve"]
    largest = float(curve["competing_bps"].max())
    scale = scale_for_unit("bit/s", largest)
    style = {"color": GREEN, "linewidth": 1.8}
    rate = Series(curve["flows"], curve["competing_bps"] / scale.factor, style=style)
    y = Axis(f"rate of one\nother flow ({scale.unit})", 0, 1.15 * largest / scale.factor)
    return Panel([rate, plan_answer_line(plan.value)], x, y)
