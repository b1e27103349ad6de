"""The figure of a population plan: loss, RTT and goodput against the number of users."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpcast.report.chart import (
    Axis,
    Band,
    Chart,
    Panel,
    Points,
    ReferenceLine,
    Series,
    TextNote,
    plan_answer_line,
    scenario_subtitle,
)
from tcpcast.report.palette import BLACK, COLOURS
from tcpcast.report.plan import plan_verdict
from tcpcast.report.quantity import scale_for_unit

if TYPE_CHECKING:
    from tcpcast.plan import Plan
    from tcpcast.report.chart import Drawable
    from tcpcast.scenario import Scenario

MILLION = 1_000_000
_PANELS = (
    ("loss_ratio", "packets lost (%)", 0.01),
    ("timeout_ratio", "timeouts per packet (%)", 0.01),
    ("rtt_mean_s", "mean RTT (ms)", 1e-3),
)


def users_chart(plan: Plan, scenario: Scenario) -> Chart:
    """Return the chart of five panels against users, from loss to goodput percentiles.

    The panels are loss, timeouts, RTT, mean goodput and goodput percentiles, as in figure 10 of
    INRIA report 4154.
    """
    curve = plan.tables["curve"]
    few = curve["sources"].max() < MILLION
    x = Axis(
        "users" if few else "users (millions)",
        ticks=lambda users, _: f"{users:,.0f}" if few else f"{users / MILLION:g}",
    )
    levels = {
        name: f"exceeded by {name.removeprefix('g_').removesuffix('_bps')} % of files"
        for name in curve
        if name.startswith("g_")
    }
    largest = max(float(np.nanmax(curve[name])) for name in ("mean_bps", *levels))
    scale = scale_for_unit("bit/s", largest)
    top = 1.08 * largest / scale.factor
    rates = _model_curves(plan, levels, scale.factor) + _verification_points(plan, scale.factor)
    files = "goodput, slowest class" if len(scenario.populations) > 1 else "goodput of files"
    panels = [
        *(
            (_model_curves(plan, {name: ""}, factor), Axis(label, 0))
            for name, label, factor in _PANELS
        ),
        (
            _model_curves(plan, {"mean_bps": ""}, scale.factor),
            Axis(f"mean goodput ({scale.unit})", 0, top),
        ),
        (rates, Axis(f"{files} ({scale.unit})", 0, top)),
    ]
    return Chart(
        title=plan_verdict(plan).rstrip("."),
        subtitle=scenario_subtitle(scenario),
        panels=[Panel(_answer_marks(plan) + series, x, y) for series, y in panels],
        size=(6.0, 6.8),
        columns=2,
        shared_axes="x",
        legend_position="beside",
        legend_style={"loc": "upper left"},
        notes=[TextNote("bands: 95 % intervals", (0.03, 0.02), style={"fontsize": 9})],
    )


def _answer_marks(plan: Plan) -> list[Drawable]:
    marks: list[Drawable] = []
    if not plan.undecided:
        marks.append(plan_answer_line(plan.value))
    if plan.low is not None and plan.high is not None:
        marks.append(ReferenceLine(plan.low, style={"color": BLACK}, axis="x", span_end=plan.high))
    return marks


def _model_curves(plan: Plan, names: dict[str, str], factor: float) -> list[Drawable]:
    """Return model curves with labels and, if available, 95 % intervals."""
    curve, ends = plan.tables["curve"], plan.tables.get("curve_intervals", {})
    series: list[Drawable] = []
    for index, (name, label) in enumerate(names.items()):
        colour = {"color": COLOURS[index % len(COLOURS)]}
        values = curve[name] / factor
        series.append(Series(curve["sources"], values, label, colour | {"marker": "."}))
        if f"{name}_low" in ends:
            low, high = (ends[f"{name}_{end}"] / factor for end in ("low", "high"))
            series.append(Band(ends["sources"], low, high, style=colour))
    return series


def _verification_points(plan: Plan, factor: float) -> list[Drawable]:
    """Return the file goodput in verification runs of the packet engine, if any."""
    simulated = plan.tables.get("simulated", {})
    if not len(simulated.get("sources", ())):
        return []
    rows = [simulated[name] / factor for name in ("goodput_bps", "low", "high")]
    return [Points(simulated["sources"], rows, "packet (simulated), 95 % interval")]
