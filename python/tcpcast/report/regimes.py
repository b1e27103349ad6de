"""The figure of one path: rate against loss by every model, what limits shaded."""

from __future__ import annotations

import math
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from tcpcast.compare import is_observed
from tcpcast.output import save_figure
from tcpcast.report.chart import (
    CALCULATED,
    OBSERVED,
    Axis,
    Chart,
    Note,
    Panel,
    Reference,
    Series,
    line_style,
    points_of,
)
from tcpcast.report.predict import path_text
from tcpcast.report.prediction import LEADING, is_trusted, loss_ratio, rates
from tcpcast.report.quantity import scale_of_unit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tcpcast.answer import Answer
    from tcpcast.report.chart import Drawable
    from tcpcast.report.prediction import Prediction
    from tcpcast.report.quantity import Scale

FILE = "rate-loss"
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
    MachineError
        matplotlib is not installed, or the folder cannot be written.
    """
    path = Path(folder) / f"{FILE}.{form}"
    return save_figure(regimes_chart(predictions, mark, asked).draw(), path, force=force)


def regimes_chart(
    predictions: Sequence[Prediction], mark: float | None, asked: Sequence[Prediction]
) -> Chart:
    """Return the chart of :func:`plot_regimes`."""
    shown = [(p, a) for p in predictions for a in rates(p.steady) if is_trusted(a)]
    unit = scale_of_unit("bit/s", max((a["goodput_bps"] for _, a in shown), default=0.0))
    losses = [100 * loss_ratio(p.scenario) for p in predictions]
    series = [*_curves(shown, unit), *_shades(predictions, losses), *_simulated(asked, unit)]
    if mark:
        series.append(Reference(100 * mark, axis="x"))
    x = Axis("loss (%)", losses[0], losses[-1], log=True)
    y = Axis(f"goodput, all flows ({unit.unit})", log=True)
    return Chart(
        title="Rate against loss, and what limits it",
        panels=[Panel(series, x, y, legend={"loc": "lower left"})],
        subtitle=path_text(predictions[0], without=["loss"]),
        size=(7.2, 4.6),
    )


def _curves(shown: Sequence[tuple[Prediction, Answer]], unit: Scale) -> Iterator[Drawable]:
    """Yield goodput by each model within its domain, the leading one thick."""
    names = dict.fromkeys(answer.engine for _, answer in shown)
    for i, name in enumerate(sorted(names, key=lambda n: n != LEADING)):
        points = [
            (100 * loss_ratio(p.scenario), a["goodput_bps"] / unit.factor)
            for p, a in shown
            if a.engine == name
        ]
        style = line_style(i, (*CALCULATED, *OBSERVED))
        style |= {"linewidth": 1.2 if i else 2.4, "zorder": 20 - i}
        losses, goodputs = zip(*points, strict=True)
        yield Series(losses, goodputs, name, style)


def _simulated(asked: Sequence[Prediction], unit: Scale) -> Iterator[Drawable]:
    """Yield the simulated goodputs as points with their intervals."""
    points = [
        (100 * loss_ratio(p.scenario), a.metrics["goodput_bps"], a.engine)
        for p in asked
        for a in p.steady
        if is_observed(a) and is_trusted(a)
        if "goodput_bps" in a.metrics and loss_ratio(p.scenario) > 0
    ]
    if points:
        losses, metrics, engines = zip(*points, strict=True)
        yield points_of(losses, metrics, unit.factor, engines[0])


def _shades(predictions: Sequence[Prediction], losses: Sequence[float]) -> Iterator[Drawable]:
    """Yield the stretch of each limit by the leading model, and its name at the top."""
    edges = [losses[0], *map(_between, losses[:-1], losses[1:]), losses[-1]]
    for what, group in groupby(range(len(losses)), key=lambda i: predictions[i].regime):
        places = list(group)
        left, right = edges[places[0]], edges[places[-1] + 1]
        style = {"color": _SHADES.get(what, "#bbbbbb"), "alpha": 0.18}
        yield Reference(left, style=style, axis="x", end=right)
        if math.log(right / left) > 0.08 * math.log(losses[-1] / losses[0]):
            at = _between(left, right), 0.985
            centred = {"ha": "center", "va": "top", "fontsize": 8}
            yield Note(_NAMES.get(what, what), at, ("data", "axes fraction"), centred)


def _between(low: float, high: float) -> float:
    return math.sqrt(low * high)
