"""The figure of ``tcpcast predict``: goodput against loss by each model, with shaded regimes."""

from __future__ import annotations

import math
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from tcpcast.compare import differ_significantly, is_observed
from tcpcast.errors import SuggestionSyntax
from tcpcast.limit_names import limit_name
from tcpcast.output import save_figure
from tcpcast.report.chart import (
    Axis,
    Chart,
    Panel,
    ReferenceLine,
    Series,
    TextNote,
    points_from_metrics,
)
from tcpcast.report.palette import BLUE, GREEN, SKY, VERMILION, YELLOW, engine_style
from tcpcast.report.predict import path_text
from tcpcast.report.prediction import (
    LEADING_FORMULA,
    answers_with_rate,
    is_trusted,
    rate_headline,
    specified_loss_ratio,
)
from tcpcast.report.quantity import scale_for_unit, three_digit_text
from tcpcast.units import digits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tcpcast.answer import Answer
    from tcpcast.report.chart import Drawable
    from tcpcast.report.prediction import Prediction
    from tcpcast.report.quantity import Scale

FILE_NAME = "rate-loss"
_HEADROOM_RATIO = 2.5
"""The goodput axis ends at this multiple of the largest goodput."""
_REGIME_COLOURS = {
    "bottleneck": SKY,
    "window": GREEN,
    "triple duplicates": YELLOW,
    "timeouts": VERMILION,
    "cubic": BLUE,
    "Reno-friendly": YELLOW,
}


def plot_regimes(  # noqa: PLR0913 - what to draw, and where to write it
    predictions: Sequence[Prediction],
    folder: str,
    *,
    requested_loss: float | None,
    requested: Sequence[Prediction] = (),
    force: bool = False,
    form: str = "png",
) -> Path:
    """Write ``rate-loss.png``: total goodput of all flows against loss, on logarithmic axes.

    Parameters
    ----------
    predictions
        Predictions for the same path, in ascending order of loss.
    folder
        Folder for the file, created if it does not exist. A figure of an earlier run is
        overwritten.
    requested
        Predictions at the requested losses; simulated values are points with 95 % intervals.
    requested_loss
        The requested loss, marked by a line; None if a range of losses is requested.
    force
        Overwrite an existing file, even if tcpcast did not create it.
    form
        ``"png"``, ``"svg"`` or ``"pdf"``, which is also the file extension.

    Returns
    -------
    Path
        Path of the file.

    Raises
    ------
    MachineError
        matplotlib is not installed, or the folder cannot be written.
    """
    path = Path(folder) / f"{FILE_NAME}.{form}"
    return save_figure(
        regimes_chart(predictions, requested_loss, requested).draw(), path, force=force
    )


def regimes_chart(
    predictions: Sequence[Prediction], requested_loss: float | None, requested: Sequence[Prediction]
) -> Chart:
    """Return the chart of :func:`plot_regimes`."""
    shown = [(p, a) for p in predictions for a in answers_with_rate(p.steady) if is_trusted(a)]
    unit = scale_for_unit("bit/s", max((a["goodput_bps"] for _, a in shown), default=0.0))
    losses = [100 * specified_loss_ratio(p.scenario) for p in predictions]
    series = [
        *_regime_curves(shown, unit),
        *_shade_regimes(predictions, losses),
        *_simulated_points(requested, unit),
    ]
    if requested_loss:
        series.append(ReferenceLine(100 * requested_loss, axis="x"))
    x = Axis("loss (%)", losses[0], losses[-1], log=True)
    goodputs = [a["goodput_bps"] / unit.factor for _, a in shown if a["goodput_bps"] > 0]
    # The names of the regimes are above all curves.
    top = _HEADROOM_RATIO * max(goodputs) if goodputs else None
    y = Axis(f"total goodput of all flows ({unit.unit})", None, top, log=True)
    title = (
        _title_for_one_loss(requested_loss, requested)
        if requested_loss
        else _title_for_loss_range(shown, requested)
    )
    return Chart(
        title=title or "Goodput against loss, and what limits it",
        panels=[Panel(series, x, y, legend={"loc": "lower left"})],
        subtitle=path_text(predictions[0], without=["loss"]),
    )


def _title_for_one_loss(requested_loss: float, requested: Sequence[Prediction]) -> str:
    """Return the headline of the prediction at the requested loss."""
    texts = [
        rate_headline(p, SuggestionSyntax()).rstrip(".")
        for p in requested
        if specified_loss_ratio(p.scenario) == requested_loss
    ]
    return f"{digits(100 * requested_loss, 3)} % loss: {texts[0]}" if texts and texts[0] else ""


def _title_for_loss_range(
    trusted_answers: Sequence[tuple[Prediction, Answer]], requested: Sequence[Prediction]
) -> str:
    """Return the title with the goodput at smallest and largest loss, simulated if possible."""
    values = [
        (specified_loss_ratio(p.scenario), a.metrics["goodput_bps"])
        for p in requested
        for a in p.steady
        if _is_simulated(a) and specified_loss_ratio(p.scenario) > 0
    ]
    by = ", by simulation"
    if len(values) < 2:
        by = ""
        values = [
            (specified_loss_ratio(p.scenario), a.metrics["goodput_bps"])
            for p, a in trusted_answers
            if p.leading_answer is not None and a.engine == p.leading_answer.engine
        ]
    if len(values) < 2 or not differ_significantly(values[0][1], values[-1][1]):
        return ""
    ends = [
        f"{three_digit_text(m.value, 'bit/s')} at {digits(100 * p, 3)} % loss"
        for p, m in values[:: len(values) - 1]
    ]
    return f"The goodput falls from {ends[0]} to {ends[1]}{by}"


def _is_simulated(answer: Answer) -> bool:
    return is_observed(answer) and is_trusted(answer) and "goodput_bps" in answer.metrics


def _regime_curves(
    trusted_answers: Sequence[tuple[Prediction, Answer]], unit: Scale
) -> Iterator[Drawable]:
    """Yield the goodput by each model within its domain; the leading model has a thick line."""
    names = dict.fromkeys(answer.engine for _, answer in trusted_answers)
    for i, name in enumerate(sorted(names, key=lambda n: n != LEADING_FORMULA)):
        points = [
            (100 * specified_loss_ratio(p.scenario), a["goodput_bps"] / unit.factor)
            for p, a in trusted_answers
            if a.engine == name
        ]
        style = engine_style(name, is_observed=False)
        style |= {"linewidth": 1.2 if i else 2.4, "zorder": 20 - i}
        losses, goodputs = zip(*points, strict=True)
        yield Series(losses, goodputs, style=style, name=name.replace("-", "-\n"))


def _simulated_points(requested: Sequence[Prediction], unit: Scale) -> Iterator[Drawable]:
    """Yield the simulated goodputs as points with intervals."""
    points = [
        (100 * specified_loss_ratio(p.scenario), a.metrics["goodput_bps"], a.engine)
        for p in requested
        for a in p.steady
        if _is_simulated(a) and specified_loss_ratio(p.scenario) > 0
    ]
    if points:
        losses, metrics, engines = zip(*points, strict=True)
        yield points_from_metrics(losses, metrics, unit.factor, engines[0])


def _shade_regimes(
    predictions: Sequence[Prediction], losses: Sequence[float]
) -> Iterator[Drawable]:
    """Yield a shaded range per regime of the leading model, with its name at the top."""
    edges = [losses[0], *map(_geometric_mean, losses[:-1], losses[1:]), losses[-1]]
    for regime, group in groupby(range(len(losses)), key=lambda i: predictions[i].regime):
        indices = list(group)
        left, right = edges[indices[0]], edges[indices[-1] + 1]
        style = {"color": _REGIME_COLOURS.get(regime, "#bbbbbb"), "alpha": 0.18}
        yield ReferenceLine(left, style=style, axis="x", span_end=right)
        name = limit_name(regime).replace(" (", "\n(") or "no formula\ntrusted"
        width = 0.016 * max(map(len, name.split("\n")))  # as a share of the panel
        if math.log(right / left) > width * math.log(losses[-1] / losses[0]):
            position = _geometric_mean(left, right), 0.985
            centred = {"ha": "center", "va": "top", "fontsize": 8}
            yield TextNote(name, position, ("data", "axes fraction"), centred)


def _geometric_mean(low: float, high: float) -> float:
    return math.sqrt(low * high)
