"""The figure of a population plan: loss, RTT and goodput against the number of users."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpcast.report.chart import (
    CALCULATED,
    COLOURS,
    REFERENCE,
    Axis,
    Band,
    Chart,
    Note,
    Panel,
    Points,
    Reference,
    Series,
)
from tcpcast.report.quantity import amount, scale_of_unit
from tcpcast.report.summary import describe

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tcpcast.plan import Plan
    from tcpcast.report.chart import Drawable
    from tcpcast.report.quantity import Scale
    from tcpcast.scenario import Scenario

MILLION = 1_000_000
_PANELS = (
    ("loss_ratio", "packets lost (%)", 0.01),
    ("timeout_ratio", "timeouts per packet (%)", 0.01),
    ("rtt_mean_s", "mean RTT (s)", 1.0),
)

FILE = "users"


def users_chart(plan: Plan, scenario: Scenario) -> Chart:
    """Return loss, timeouts, RTT, mean goodput and goodput percentiles against users.

    The five panels correspond to figure 10 of INRIA report 4154.
    """
    curve = plan.tables["curve"]
    few = curve["sources"].max() < MILLION
    x = Axis(
        "users" if few else "users (millions)",
        ticks=lambda users, _: f"{users:,.0f}" if few else f"{users / MILLION:g}",
    )
    levels = {
        name: f"{name.removeprefix('g_').removesuffix('_bps')} % of files above"
        for name in curve
        if name.startswith("g_")
    }
    scales = [_scale(plan, names) for names in (("mean_bps",), levels)]
    labels = [f"goodput in ON times ({scale.unit})" for scale in scales]
    rates = _curves(plan, levels, scales[1].factor) + _check(plan, scales[1].factor)
    panels = [
        *((_curves(plan, {name: ""}, factor), label) for name, label, factor in _PANELS),
        (_curves(plan, {"mean_bps": ""}, scales[0].factor), labels[0]),
        (rates, labels[1]),
    ]
    return Chart(
        title=f"{scenario.name}: {plan.question}",
        panels=[Panel(_answer(plan) + series, x, Axis(label, 0)) for series, label in panels],
        size=(9.6, 6.4),
        columns=3,
        share="x",
        legend="beside",
        legend_style={"bbox_to_anchor": (-0.08, -0.05)},
        notes=_notes(plan, scenario),
    )


def _scale(plan: Plan, names: Iterable[str]) -> Scale:
    curve = plan.tables["curve"]
    return scale_of_unit("bit/s", max(float(np.nanmax(curve[name])) for name in names))


def _answer(plan: Plan) -> list[Drawable]:
    marks: list[Drawable] = []
    colour = {"color": CALCULATED[0]}
    if not plan.undecided:
        line = colour | {"linewidth": 0.8, "linestyle": "--"}
        marks.append(Reference(plan.value, style=line, axis="x"))
    if plan.low is not None and plan.high is not None:
        marks.append(Reference(plan.low, style=colour, axis="x", end=plan.high))
    return marks


def _curves(plan: Plan, names: dict[str, str], factor: float) -> list[Drawable]:
    """Return curves with labels and, if available, 95 % intervals."""
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


def _check(plan: Plan, factor: float) -> list[Drawable]:
    """Return the file goodput in verification runs of the packet engine, if any."""
    simulated = plan.tables.get("simulated", {})
    if not len(simulated.get("sources", ())):
        return []
    rows = [simulated[name] / factor for name in ("goodput_bps", "low", "high")]
    return [Points(simulated["sources"], rows, "verified by packet, with 95 % interval")]


def _notes(plan: Plan, scenario: Scenario) -> list[Note]:
    """Return the answer and the scenario as texts for the sixth cell of the grid."""
    interval = ""
    if plan.low is not None and plan.high is not None:
        interval = f"\nbetween {plan.low:,.0f} and {plan.high:,.0f}"
    rate = amount(scenario.network.bottleneck.rate_bps, "bit/s")
    users = "undecided" if plan.undecided else f"{plan.value:,.0f} users"
    text = f"{users} on {rate}{interval}\nby {plan.engine}\nbands: 95 % intervals"
    description = describe(scenario).replace(", ", ",\n")
    return [
        Note(text, (0, 1), style={"va": "top", "color": CALCULATED[0]}),
        Note(description, (0, 0.68), style={"va": "top", "fontsize": 8, "color": REFERENCE}),
    ]
