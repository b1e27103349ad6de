"""The figure of one path: rate against loss by every model, what limits shaded."""

from __future__ import annotations

import math
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from tcpcast.compare import is_observed
from tcpcast.output import save_figure
from tcpcast.report.axes import (
    CALCULATED,
    OBSERVED,
    REFERENCE,
    figure_class,
    lay_out,
    points_with_intervals,
)
from tcpcast.report.predict import path_text
from tcpcast.report.prediction import LEADING, is_trusted, loss_ratio, rates
from tcpcast.report.quantity import scale_of_unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from tcpcast.answer import Answer
    from tcpcast.report.prediction import Prediction
    from tcpcast.report.quantity import Scale

FILE = "rate-loss"
_SIZE = (7.2, 4.6)
_DPI = 150
_SHADES = {
    "bottleneck": "#56B4E9",
    "window": "#009E73",
    "triple duplicates": "#F0E442",
    "timeouts": "#D55E00",
}
_NAMES = {
    "bottleneck": "link",
    "triple duplicates": "triple\nduplicates",
    "": "no formula\ntrusted",
}
_LINES = ("-", "--", ":", "-.")


def plot_regimes(  # noqa: PLR0913 - what is drawn, and where to
    predictions: Sequence[Prediction],
    folder: str,
    *,
    mark: float | None,
    asked: Sequence[Prediction] = (),
    force: bool = False,
    form: str = "png",
) -> Path:
    """Write ``rate-loss.png``: goodput of all flows against loss, both logarithmic.

    Parameters
    ----------
    predictions
        Answers of the same path in the order of rising loss.
    folder
        Where the file goes; made if it does not exist. A figure of an earlier run is replaced.
    asked
        Answers at the losses that were asked about; what was simulated there is drawn as points
        with their 95 % intervals.
    mark
        The loss that was asked about, marked; None for a range.
    force
        Whether any other file of the same name is replaced, too.
    form
        ``"png"``, ``"svg"`` or ``"pdf"``, in which the name then ends.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    EnvironmentFault
        matplotlib is not installed, or the folder cannot be written.
    """
    figure = figure_class()(figsize=_SIZE, dpi=_DPI, layout="constrained")
    axes = figure.add_subplot()
    figure.suptitle("Rate against loss, and what limits it", fontsize=12)
    axes.set_title(path_text(predictions[0], without=["loss"]), fontsize=8, color=REFERENCE)
    axes.set_xscale("log")
    axes.set_yscale("log")
    shown = [(p, a) for p in predictions for a in rates(p.steady) if is_trusted(a)]
    unit = scale_of_unit("bit/s", max((a["goodput_bps"] for _, a in shown), default=0.0))
    _curves(axes, shown, unit)
    _shade(axes, predictions)
    _simulated(axes, asked, unit)
    if mark:
        axes.axvline(100 * mark, color=REFERENCE, linewidth=1, linestyle=":")
    axes.set_xlabel("loss (%)")
    for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        axis.set_major_formatter("{x:g}")
        # Between the powers of ten there is room for labels where these are few.
        axis.set_minor_formatter("{x:g}" if high < 8 * low else "")
    lay_out(axes)
    axes.legend(frameon=False, fontsize=8, loc="lower left")
    return save_figure(figure, Path(folder) / f"{FILE}.{form}", force=force)


def _curves(axes: Axes, shown: Sequence[tuple[Prediction, Answer]], unit: Scale) -> None:
    """Draw goodput by each model where it is to be trusted, the leading one thick."""
    names = dict.fromkeys(answer.engine for _, answer in shown)
    colours = (*CALCULATED, *OBSERVED)
    for i, name in enumerate(sorted(names, key=lambda n: n != LEADING)):
        points = [
            (100 * loss_ratio(p.scenario), a["goodput_bps"] / unit.factor)
            for p, a in shown
            if a.engine == name
        ]
        losses, values = zip(*points, strict=True)
        axes.plot(
            losses,
            values,
            color=colours[i % len(colours)],
            linestyle=_LINES[i // 2 % len(_LINES)],
            linewidth=2.4 if i == 0 else 1.2,
            label=name,
            zorder=20 - i,
        )
    axes.set_ylabel(f"goodput, all flows ({unit.unit})")


def _simulated(axes: Axes, asked: Sequence[Prediction], unit: Scale) -> None:
    """Draw the simulated goodputs as points with their intervals."""
    given = [(p, a) for p in asked for a in p.steady if is_observed(a) and is_trusted(a)]
    points = [
        (100 * loss_ratio(p.scenario), a.metrics["goodput_bps"])
        for p, a in given
        if "goodput_bps" in a.metrics and loss_ratio(p.scenario) > 0
    ]
    if not points:
        return
    losses, metrics = [loss for loss, _ in points], [metric for _, metric in points]
    points_with_intervals(axes, losses, metrics, unit.factor, given[0][1].engine)


def _shade(axes: Axes, predictions: Sequence[Prediction]) -> None:
    """Shade what limits by the leading model, and name it at the top."""
    losses = [100 * loss_ratio(p.scenario) for p in predictions]
    edges = [losses[0], *map(_between, losses[:-1], losses[1:]), losses[-1]]
    axes.set_xlim(losses[0], losses[-1])
    for what, group in groupby(range(len(losses)), key=lambda i: predictions[i].regime):
        places = list(group)
        left, right = edges[places[0]], edges[places[-1] + 1]
        colour = _SHADES.get(what, "#bbbbbb")
        axes.axvspan(left, right, color=colour, alpha=0.18, linewidth=0, zorder=0)
        if math.log(right / left) > 0.08 * math.log(losses[-1] / losses[0]):
            axes.text(
                _between(left, right),
                0.985,
                _NAMES.get(what, what),
                transform=axes.get_xaxis_transform(),
                ha="center",
                va="top",
                fontsize=8,
            )


def _between(low: float, high: float) -> float:
    return math.sqrt(low * high)
