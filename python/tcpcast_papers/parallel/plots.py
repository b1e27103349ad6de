"""Plots of the figures: rates against loss by n, and models divided by simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast_papers import drawing
from tcpcast_papers.parallel.predictions import BOTH, PER_FLOW, rate_ratios

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.axes import Axes

    from tcpcast_papers.parallel.predictions import Prediction
    from tcpcast_papers.parallel.runs import Measured

LINE_STYLES = ("-", "--")
MIN_RATIO, MAX_RATIO = 0.02, 50.0
RATIO_TICKS = (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50)


def draw_rates(axes: Axes, models: Sequence[Prediction], seen: Sequence[Measured]) -> None:
    """Draw simulated rates as marks and models as lines; the ratio panels have the legend of n."""
    for style, _, group in _by_flows(models[0], seen):
        loss = [models[0].loss(each) for each in group]
        axes.plot(
            loss,
            [each.send_rate_pps for each in group],
            linestyle="none",
            markersize=5,
            **style,
        )
        for line, model in zip(LINE_STYLES, models, strict=False):
            rates = [model.rate_pps(each) for each in group]
            axes.plot(loss, rates, line, color=style["color"], linewidth=1.2)
    for line, model in zip(LINE_STYLES, models, strict=False):
        axes.plot([], [], line, color="black", linewidth=1.2, label=model.model)
    axes.set(yscale="log", ylabel="packets/s, all flows")
    _set_loss_axis(axes, models[0], seen)
    axes.legend(fontsize=7, framealpha=0.9, edgecolor="none")


def draw_ratios(
    panels: Sequence[Axes], models: Sequence[Prediction], seen: Sequence[Measured]
) -> None:
    """Draw each model divided by the simulation, one panel each, on one logarithmic scale."""
    result = np.concatenate([rate_ratios(model, seen) for model in models])
    low = max(MIN_RATIO, min(0.5, 0.8 * float(np.nanmin(result))))
    high = min(MAX_RATIO, max(2.0, 1.25 * float(np.nanmax(result))))
    shown = [ratio for ratio in RATIO_TICKS if low <= ratio <= high]
    for axes, model in zip(panels, models, strict=True):
        for style, n, group in _by_flows(model, seen):
            loss = [model.loss(each) for each in group]
            axes.plot(
                loss,
                np.clip(rate_ratios(model, group), low, high),
                linewidth=1.0,
                markersize=4.5,
                label=f"n = {n}",
                **style,
            )
        axes.axhline(1.0, color=drawing.REFERENCE_COLOUR, linewidth=1.0)
        axes.set_yscale("log")
        axes.set_yticks(shown, [f"{ratio:g}" for ratio in shown])
        axes.minorticks_off()
        axes.set(ylim=(0.95 * low, 1.05 * high), ylabel="model / simulation")
        axes.set_title(f"{model.model}, fed with {model.measure}", fontsize=10)
        _set_loss_axis(axes, model, seen)
    # The legend goes next to these curves, which leave more space than the rates.
    panels[0].legend(fontsize=7, framealpha=0.9, edgecolor="none", ncols=2)


def draw_by_flows(
    axes: Axes, ratio_axes: Axes, models: Sequence[Prediction], seen: Sequence[Measured]
) -> None:
    """Draw simulated and predicted rates against n, and the models divided by the simulation."""
    flows = [each.point.flows for each in seen]
    rates = np.array([each.send_rate_pps for each in seen])
    axes.plot(flows, rates, linestyle="none", marker="o", color="black", label="simulation")
    for style, model in zip(drawing.series_styles(), models, strict=False):
        label = f"{model.model}, fed with {model.measure}"
        shares = rate_ratios(model, seen)
        axes.plot(flows, shares * rates, label=label, **style)
        ratio_axes.plot(flows, shares, label=label, **style)
    ratio_axes.axhline(1.0, color=drawing.REFERENCE_COLOUR, linewidth=1.0)
    for panel, label in ((axes, "packets/s, all flows"), (ratio_axes, "model / simulation")):
        panel.set(xlabel="n", ylabel=label, ylim=(0, None))
    axes.legend(loc="lower right", fontsize=7, framealpha=0.9, edgecolor="none")


def _by_flows(
    model: Prediction, seen: Sequence[Measured]
) -> Iterator[tuple[dict[str, Any], int, list[Measured]]]:
    """Yield a style, n, and the points with n flows, in the order of the model's loss."""
    kept = [each for each in seen if model.applies(each)]
    flows = sorted({each.point.flows for each in seen})
    for style, n in zip(drawing.series_styles(), flows, strict=False):
        group = [each for each in kept if each.point.flows == n]
        yield style, n, sorted(group, key=model.loss)


def _set_loss_axis(axes: Axes, model: Prediction, seen: Sequence[Measured]) -> None:
    result = [model.loss(each) for each in seen if model.applies(each)]
    low, high = 0.7 * min(result), 1.4 * max(result)
    measure = PER_FLOW if model.measure == PER_FLOW else "p_e"
    whose = "of all flows combined" if model.measure in (BOTH, "p_e") else "of any flow"
    drawing.set_loss_axis(axes, low, high, f"loss events {whose} per packet, {measure}")
