"""The figure of parallel flows: what they get together, and what a competing flow is left with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpcast.output import save_figure
from tcpcast.report.axes import CALCULATED, REFERENCE, figure_class, lay_out, points_with_intervals
from tcpcast.report.quantity import amount, scale_of_unit
from tcpcast.report.summary import describe

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tcpcast.plan import Plan
    from tcpcast.scenario import Scenario

_SIZE = (6.4, 5.4)
_DPI = 150

FILE = "streams"

_MODELS = {"parallel_bps": "algorithm 1", "cubic_bps": "n times CUBIC", "bbr_bps": "BBR's bound"}
"""What the line of the model that answers is called, by its column."""


def plot_streams(
    plan: Plan, scenario: Scenario, folder: str | Path, *, force: bool = False, form: str = "png"
) -> Path:
    """Write ``streams.png``: rate against flows above, one competing flow's rate below.

    Parameters
    ----------
    plan
        What :func:`tcpcast.plan.plan_streams` returned.
    scenario
        Names the figure and gives the link's rate.
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
    figure = streams_figure(plan, scenario)
    return save_figure(figure, Path(folder) / f"{FILE}.{form}", force=force)


def streams_figure(plan: Plan, scenario: Scenario) -> Figure:
    """Return the same figure, not yet written."""
    figure: Figure = figure_class()(figsize=_SIZE, dpi=_DPI, layout="constrained")
    figure.suptitle(f"{scenario.name}: how many parallel flows", fontsize=12)
    above, below = figure.subplots(2, sharex=True, height_ratios=(2, 1))
    above.set_title(describe(scenario), fontsize=7.5, color=REFERENCE)
    for axes in (above, below):
        lay_out(axes)
    _rates(above, plan, scenario.network.bottleneck.rate_bps)
    _competing(below, plan)
    below.set_xlabel("parallel flows n")
    return figure


def _rates(axes: Axes, plan: Plan, link_bps: float) -> None:
    curve = plan.tables["curve"]
    scale = scale_of_unit("bit/s", link_bps)
    n = curve["flows"]
    # Where the two agree, the broad line shows on both sides of the other.
    broad: dict[str, Any] = {"linewidth": 5, "alpha": 0.5, "label": "n times PFTK"}
    if "pftk_bps" in curve:
        axes.plot(n, curve["pftk_bps"] / scale.factor, color=CALCULATED[1], **broad)
    (name,) = curve.keys() & _MODELS.keys()
    axes.plot(n, curve[name] / scale.factor, color=CALCULATED[0], label=_MODELS[name])
    label = f"link, {amount(link_bps, 'bit/s')}"
    axes.axhline(link_bps / scale.factor, color=REFERENCE, linewidth=1, linestyle=":", label=label)
    point: dict[str, Any] = {"marker": "o", "linestyle": "none", "zorder": 3}
    words = "1 flow fills the link" if plan.value == 1 else f"{plan.value:,.0f} flows fill the link"
    axes.plot([plan.value], [link_bps / scale.factor], label=words, color=CALCULATED[0], **point)
    axes.axvline(plan.value, color=CALCULATED[0], linewidth=0.8, linestyle="--")
    simulated = plan.tables.get("simulated")
    if simulated is not None and len(simulated["flows"]):
        busy = [answer.metrics["utilisation"] for answer in plan.verified]
        flows, factor = simulated["flows"].tolist(), scale.factor / link_bps
        points_with_intervals(axes, flows, busy, factor, "packet")
    axes.set_ylabel(f"rate of all n ({scale.unit})")
    axes.set_ylim(0, 1.12 * link_bps / scale.factor)
    axes.set_xlim(0, float(n[-1]))
    axes.legend(frameon=False, loc="lower right", fontsize=8.5)


def _competing(axes: Axes, plan: Plan) -> None:
    curve = plan.tables["curve"]
    rate = curve["competing_bps"]
    scale = scale_of_unit("bit/s", float(rate.max()))
    axes.plot(curve["flows"], rate / scale.factor, color=CALCULATED[2], linewidth=1.8)
    axes.axvline(plan.value, color=CALCULATED[0], linewidth=0.8, linestyle="--")
    axes.set_ylim(0, 1.15 * float(rate.max()) / scale.factor)
    axes.set_ylabel(f"left for one\nother flow ({scale.unit})")
