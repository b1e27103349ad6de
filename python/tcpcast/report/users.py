"""The figure of a population: what becomes of loss, round trips and goodput as users join."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.answer import Metric
from tcpcast.output import save_figure
from tcpcast.report.axes import (
    CALCULATED,
    OBSERVED,
    REFERENCE,
    figure_class,
    lay_out,
    points_with_intervals,
)
from tcpcast.report.quantity import amount, scale_of_unit
from tcpcast.report.summary import describe

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tcpcast.plan import Plan
    from tcpcast.scenario import Scenario

_SIZE = (9.6, 6.4)
_DPI = 150
MILLION = 1_000_000
_PANELS = (
    ("loss_ratio", "packets lost (%)", 0.01),
    ("timeout_ratio", "timeouts per packet (%)", 0.01),
    ("rtt_mean_s", "mean RTT (s)", 1.0),
)

FILE = "users"


def plot_users(
    plan: Plan, scenario: Scenario, folder: str | Path, *, force: bool = False, form: str = "png"
) -> Path:
    """Write ``users.png``: loss, timeouts, RTT, mean goodput and its levels over the users.

    After Figure 10 of INRIA report 4154, whose panels are five as well.

    Parameters
    ----------
    plan
        What :func:`tcpcast.plan.plan_quality` returned.
    scenario
        Names the figure.
    folder
        Where the file goes; made if it does not exist. A figure of an earlier run is replaced.
    force
        Whether any other file of the same name is replaced, too.
    form
        ``"png"``, ``"svg"`` or ``"pdf"``, in which the name then ends.

    Raises
    ------
    EnvironmentFault
        matplotlib is not installed, or the folder cannot be written.
    """
    figure = users_figure(plan, scenario)
    return save_figure(figure, Path(folder) / f"{FILE}.{form}", force=force)


def users_figure(plan: Plan, scenario: Scenario) -> Figure:
    """Return the same figure, not yet written."""
    figure: Figure = figure_class()(figsize=_SIZE, dpi=_DPI, layout="constrained")
    figure.suptitle(f"{scenario.name}: {plan.question}", fontsize=12)
    panels = figure.subplots(2, 3, sharex=True)
    for axes in panels.flat[:5]:
        lay_out(axes)
        _answer(axes, plan)
    curve = plan.tables["curve"]
    for axes, (name, label, factor) in zip(panels.flat, _PANELS, strict=False):
        axes.plot(curve["sources"], curve[name] / factor, color=OBSERVED[0], marker=".")
        _band(axes, plan, name, factor, OBSERVED[0])
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)
    _rates(panels.flat[3], plan, {"mean_bps": "mean"})
    levels = [name for name in curve if name.startswith("g_")]
    _rates(panels.flat[4], plan, {name: _level(name) for name in levels}, checked=True)
    few = curve["sources"].max() < MILLION
    panels.flat[0].xaxis.set_major_formatter(
        lambda users, _: f"{users:,.0f}" if few else f"{users / MILLION:g}"
    )
    for axes in panels.flat[2:5]:
        axes.tick_params(labelbottom=True)
        axes.set_xlabel("users" if few else "users (millions)")
    _say(panels.flat[5], plan, scenario)
    handles, labels = panels.flat[4].get_legend_handles_labels()
    look: dict[str, Any] = {"frameon": False, "fontsize": 8, "loc": "lower left"}
    panels.flat[5].legend(handles, labels, bbox_to_anchor=(-0.08, -0.05), **look)
    return figure


def _level(name: str) -> str:
    return f"{name.removeprefix('g_').removesuffix('_bps')} % of files above"


def _answer(axes: Axes, plan: Plan) -> None:
    if not plan.undecided:
        axes.axvline(plan.value, color=CALCULATED[0], linewidth=0.8, linestyle="--")
    if plan.low is not None and plan.high is not None:
        axes.axvspan(plan.low, plan.high, color=CALCULATED[0], alpha=0.15, linewidth=0)


def _band(axes: Axes, plan: Plan, name: str, factor: float, colour: str) -> None:
    """Draw the 95 % intervals of a curve, where there are any."""
    ends = plan.tables.get("curve_intervals", {})
    if f"{name}_low" in ends:
        low, high = (ends[f"{name}_{end}"] / factor for end in ("low", "high"))
        look: dict[str, Any] = {"color": colour, "alpha": 0.2, "linewidth": 0}
        axes.fill_between(ends["sources"], low, high, **look)


def _checked(axes: Axes, plan: Plan, factor: float) -> None:
    """Draw the goodput of most files as the packet engine has it, where the plan was checked."""
    told = plan.tables.get("simulated")
    if told is None or not len(told["sources"]):
        return
    metrics = [
        Metric(value, None if math.isnan(low) else low, None if math.isnan(high) else high)
        for value, low, high in zip(told["goodput_bps"], told["low"], told["high"], strict=True)
    ]
    points_with_intervals(axes, told["sources"].tolist(), metrics, factor, "packet, the check")


def _rates(axes: Axes, plan: Plan, names: dict[str, str], *, checked: bool = False) -> None:
    curve = plan.tables["curve"]
    largest = max(float(np.nanmax(curve[name])) for name in names)
    scale = scale_of_unit("bit/s", largest)
    colours = (*OBSERVED, *CALCULATED)
    for at, (name, label) in enumerate(names.items()):
        style: dict[str, Any] = {"color": colours[at % len(colours)], "marker": ".", "label": label}
        axes.plot(curve["sources"], curve[name] / scale.factor, **style)
        _band(axes, plan, name, scale.factor, style["color"])
    if checked:
        _checked(axes, plan, scale.factor)
    axes.set_ylabel(f"goodput while on ({scale.unit})")
    axes.set_ylim(bottom=0)


def _say(axes: Axes, plan: Plan, scenario: Scenario) -> None:
    """Use the place of a sixth panel for the question and its answer."""
    axes.set_axis_off()
    interval = ""
    if plan.low is not None and plan.high is not None:
        interval = f"\nbetween {plan.low:,.0f} and {plan.high:,.0f}"
    rate = amount(scenario.network.bottleneck.rate_bps, "bit/s")
    users = "undecided" if plan.undecided else f"{plan.value:,.0f} users"
    text = f"{users} on {rate}{interval}\nby {plan.engine}\nbands: 95 % intervals"
    axes.text(0, 1.0, text, va="top", color=CALCULATED[0])
    words = describe(scenario).replace(", ", ",\n")
    axes.text(0, 0.68, words, va="top", fontsize=8, color=REFERENCE)
