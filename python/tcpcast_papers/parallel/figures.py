"""Figures 3 to 17: points of a set-up, and models with one measure of loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from tcpcast_papers import drawing
from tcpcast_papers.parallel import plots, predictions
from tcpcast_papers.parallel.loss_events import (
    INDICATIONS_COLUMN,
    LOSS_BINS,
    Group,
    all_points_and_losses,
    request_measurements,
)
from tcpcast_papers.parallel.predictions import (
    ALGORITHM_1,
    ALGORITHM_1_CUMULATIVE_LOSS,
    ALGORITHM_2,
    EQUATION_28,
    EQUATION_48,
    PFTK,
    PFTK_CUMULATIVE_LOSS,
)
from tcpcast_papers.parallel.settings import (
    DROP_TAIL,
    DROP_TAIL_SPREAD_RTTS,
    IRELAND,
    RANDOM_30,
    RANDOM_100,
    REAL_DELAYS_S,
    RTT_SPREADS,
    SETTINGS,
    TEXAS,
    points_of_setup,
)
from tcpcast_papers.reproduction import Row, Section

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tcpcast_papers.parallel.points import Point
    from tcpcast_papers.parallel.predictions import Prediction
    from tcpcast_papers.parallel.runs import Measured, Runs


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of the paper, or two that differ in the number of flows.

    Attributes
    ----------
    name, title
        ``"Figures 3 and 4"`` and a description.
    file
        Name of the image file.
    setting
        One of :data:`~tcpcast_papers.parallel.settings.SETTINGS`.
    plotted_models
        The models that are plotted, the paper's first.
    others
        Models whose errors are only listed.
    """

    name: str
    title: str
    file: str
    setting: str
    plotted_models: tuple[Prediction, ...]
    others: tuple[Prediction, ...] = ()


FIGURES = (
    Figure(
        "Figures 3 and 4",
        "Algorithm 1, random loss, 30 ms",
        "figures03-04.png",
        RANDOM_30,
        (ALGORITHM_1,),
        (EQUATION_28, PFTK),
    ),
    Figure(
        "Figure 5",
        "Algorithm 1, random loss, 100 ms",
        "figure05.png",
        RANDOM_100,
        (ALGORITHM_1,),
        (EQUATION_28, PFTK),
    ),
    Figure(
        "Figures 6 and 7",
        "Algorithm 1, drop-tail",
        "figures06-07.png",
        DROP_TAIL,
        (ALGORITHM_1,),
        (EQUATION_28, PFTK),
    ),
    Figure(
        "Figure 8",
        "Algorithm 1 fed with the loss of the cumulative flow",
        "figure08.png",
        RANDOM_30,
        (ALGORITHM_1_CUMULATIVE_LOSS,),
    ),
    Figure(
        "Figures 9 and 10",
        "Algorithm 2, random loss, 30 ms",
        "figures09-10.png",
        RANDOM_30,
        (ALGORITHM_2, EQUATION_48),
        (PFTK_CUMULATIVE_LOSS,),
    ),
    Figure(
        "Figure 11",
        "Algorithm 2, random loss, 100 ms",
        "figure11.png",
        RANDOM_100,
        (ALGORITHM_2, EQUATION_48),
        (PFTK_CUMULATIVE_LOSS,),
    ),
    Figure(
        "Figures 12 and 13",
        "Algorithm 2, drop-tail",
        "figures12-13.png",
        DROP_TAIL,
        (ALGORITHM_2, EQUATION_48),
        (PFTK_CUMULATIVE_LOSS,),
    ),
    *(
        Figure(
            f"Figure {number}",
            f"Algorithm 2, {setting}",
            f"figure{number}.png",
            setting,
            (ALGORITHM_2,),
            (ALGORITHM_1, PFTK, PFTK_CUMULATIVE_LOSS),
        )
        for number, setting in ((14, IRELAND), (15, TEXAS))
    ),
    Figure(
        "Figure 16",
        "Algorithm 1 and n times PFTK, fed with p",
        "figure16.png",
        RANDOM_30,
        (ALGORITHM_1, PFTK),
    ),
    Figure(
        "Figure 17",
        "Algorithm 2 and n times PFTK, fed with the loss of the cumulative flow",
        "figure17.png",
        RANDOM_30,
        (ALGORITHM_2, PFTK_CUMULATIVE_LOSS),
    ),
    Figure(
        "Figures 6, 7, 12 and 13 with other round trips",
        "Both algorithms, drop-tail",
        "figures-spread.png",
        DROP_TAIL_SPREAD_RTTS,
        (ALGORITHM_1, ALGORITHM_2),
        (EQUATION_28, PFTK, EQUATION_48, PFTK_CUMULATIVE_LOSS),
    ),
)


def request(runs: Runs) -> None:
    """Request the points of all figures."""
    for setting in SETTINGS:
        request_measurements(runs, points_of_setup(setting, runs.sample_sizes))


def _section(runs: Runs, folder: Path, *, figure: Figure) -> Section:
    section = runs.section(
        f"{figure.name}. {figure.title}",
        ("model", "fed with", "mean |error| over"),
        others=(INDICATIONS_COLUMN,),
    )
    points = points_of_setup(figure.setting, runs.sample_sizes)
    every, *by_loss = all_points_and_losses(points)
    groups = [
        every,
        *[
            Group(f"n = {n}", tuple(point for point in points if point.flows == n))
            for n in dict.fromkeys(point.flows for point in points)
        ],
        *by_loss,
    ]
    for model, group in product((*figure.plotted_models, *figure.others), groups):
        label = (model.model, model.measure, group.name)
        section.rows += runs.row(label, _error_row, runs, label, model, group)
    seen = [pair.by_losses for pair in every.pairs(runs)]
    drawn, panels = drawing.create_panels(1 + len(figure.plotted_models), width=5.0, height=4.0)
    if figure.setting in REAL_DELAYS_S:
        plots.draw_by_flows(panels[0], panels[1], (*figure.plotted_models, PFTK), seen)
    else:
        plots.draw_rates(panels[0], figure.plotted_models, seen)
        plots.draw_ratios(panels[1:], figure.plotted_models, seen)
    section.figures.append(drawing.Plot(drawn, folder / figure.file))
    section.remarks = [_interval_and_loss_remark(figure, seen)]
    return section


def _error_row(runs: Runs, label: tuple[str, ...], model: Prediction, group: Group) -> Row | None:
    """Return a model's mean absolute error; None if it applies to no point of the group.

    Loss events are counted from lost packets and, in a second column, from loss indications.
    """
    pairs = group.pairs(runs)
    seen = [pair.by_losses for pair in pairs]
    result = 100 * predictions.relative_rate_errors(model, seen)
    if not np.isfinite(result).any():
        return None
    kept = result[np.isfinite(result)]
    worst = int(np.nanargmax(np.abs(result)))
    note = f"{kept.mean():+.1f} % on average"
    if len(kept) > 1:
        note += f", at most {result[worst]:+.0f} % ({point_text(seen[worst].point)})"
    other = predictions.mean_absolute_error(model, [pair.by_indications for pair in pairs])
    own = float(np.abs(kept).mean())
    return Row(label, "%", None, own, note=note, others=(100 * other,))


def point_text(point: Point) -> str:
    """Return a short description of a point: ``n = 100, 5 %``."""
    where = f"{100 * point.loss:g} %" if point.loss else f"{point.rate_mbit} Mbit/s"
    return f"n = {point.flows}, {where}"


def _interval_and_loss_remark(figure: Figure, seen: Sequence[Measured]) -> str:
    widths = np.array([100 * each.half_width for each in seen if math.isfinite(each.half_width)])
    lossless = sum(not figure.plotted_models[0].applies(each) for each in seen)
    text = (
        "The error is (model - simulation) / simulation, where the model uses the measured loss, "
        f"RTT and T. The simulated rates have intervals of {np.median(widths):.1f} % (95 %, median "
        f"of {len(widths)} points; maximum {widths.max():.0f} %)."
    )
    if len(widths) < len(seen):
        text += f" {len(seen) - len(widths)} points have no interval."
    if lossless:
        text += f" The figure omits {lossless} points without a loss."
    if figure.setting in REAL_DELAYS_S:
        text += (
            " The paper prints no values of its measurements. The simulated path has the RTT of "
            "the paper's traceroute, a first link of 10 Mbit/s with a drop-tail queue of one "
            "bandwidth-delay product, and no other loss. Its senders use Reno with SACK and "
            "delayed acks; the paper's Linux 2.6.17 used BIC."
        )
    if figure.setting in RTT_SPREADS:
        timed = 100 * np.array([each.timeout_share for each in seen if each.p <= LOSS_BINS[-2]])
        lost = np.array([each.p_r / each.p for each in seen if each.p > 0])
        text += (
            " The flows always fill the link, so a model is correct if it computes the link's rate "
            "from the measured loss. Packets lost per loss event of a flow: "
            f"{np.median(lost):.2f}; share of timeouts among these events, for p up to "
            f"{100 * LOSS_BINS[-2]:g} %: {np.median(timed):.0f} % (medians of the points)."
        )
    if figure.setting == DROP_TAIL:
        text += (
            " Flows with equal RTTs are synchronised: each flow loses one packet per event, "
            "without the bursts that the paper mentions. At a loss above 5 %, a retransmission "
            "after a timeout meets a queue as full as the first transmission did, and is lost far "
            "more often than other packets. Both effects disappear if the RTTs differ (see the "
            "last figure)."
        )
    if figure.setting == DROP_TAIL_SPREAD_RTTS:
        text += (
            f" Round trips are spread evenly over {100 * RTT_SPREADS[DROP_TAIL_SPREAD_RTTS]:g} % "
            "of their mean, for 2 flows or more. This spread is not in the paper; it breaks the "
            "synchronisation of flows."
        )
    return text


SECTIONS = tuple(partial(_section, figure=figure) for figure in FIGURES)
