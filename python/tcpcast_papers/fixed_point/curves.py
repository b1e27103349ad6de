"""Figure 10: loss, timeouts, RTT, send rate and goodput against the number of users."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from tcpcast_papers import drawing
from tcpcast_papers.fixed_point.measures import QUANTITY_LABELS, measure_quantity
from tcpcast_papers.fixed_point.published import POPULATIONS, TABLE_OF_CASE, printed_cell
from tcpcast_papers.fixed_point.runs import Job
from tcpcast_papers.fixed_point.settings import NOISES, LocalLoop
from tcpcast_papers.fixed_point.tables import loop_job

if TYPE_CHECKING:
    from pathlib import Path

    from tcpcast.answer import Answer, Metric

    from tcpcast_papers.fixed_point.runs import Runs, SampleSizes
    from tcpcast_papers.reproduction import Section

PLOTTED_QUANTITIES = ("loss", "timeouts", "rtt", "send_rate", "goodput")
"""Figures 10a to 10e; only the caption of the last (goodput) is legible."""


def _job(case: int, sources: int, sample_sizes: SampleSizes) -> Job:
    if sources in POPULATIONS:
        return loop_job(case, sources, sample_sizes)
    return Job(LocalLoop(sources, noise=NOISES[case]), sample_sizes.varied)


def request(runs: Runs) -> None:
    """Request every point of the three curves."""
    for case in TABLE_OF_CASE:
        for sources in runs.sample_sizes.curve:
            runs.request(_job(case, sources, runs.sample_sizes))


def _section(runs: Runs, folder: Path) -> Section:
    result = runs.section("Figure 10. Against the number of users", ("quantity", "case", "N"))
    curve = runs.sample_sizes.curve
    for quantity, case, sources in product(PLOTTED_QUANTITIES, TABLE_OF_CASE, curve):
        name, unit = QUANTITY_LABELS[quantity]
        label = (name, str(case), str(sources))
        result.rows += runs.metric(label, unit, _point, runs, quantity, case, sources)
    answers = {
        case: {n: runs[_job(case, n, runs.sample_sizes)] for n in curve} for case in TABLE_OF_CASE
    }
    result.figures.append(_draw_figure(answers, folder))
    result.remarks = [
        "Lines are simulations of every flow; marks are values of Tables 3 to 5. Up to the "
        "threshold of 5000 users the shared router has little effect. Above the threshold, the "
        "buffer of the shared router is full, and each user receives a share of the link "
        "proportional to 1/N, independently of the backbone.",
        "Points at the numbers of users of Tables 3 to 5 are from longer runs. The mean of the "
        "simulated noise depends on the length of a run, so the losses of case 3 are not on a "
        "smooth line.",
    ]
    return result


def _point(runs: Runs, quantity: str, case: int, sources: int) -> Metric | None:
    return measure_quantity(quantity, runs[_job(case, sources, runs.sample_sizes)], sources)


def _draw_figure(answers: dict[int, dict[int, Answer]], folder: Path) -> drawing.Plot:
    figure, panels = drawing.create_panels(3, 2, width=4.2, height=3.3)
    for axes, quantity in zip(panels, PLOTTED_QUANTITIES, strict=False):
        for index, (case, points) in enumerate(answers.items()):
            colour = drawing.COLOURS[index]
            result = [(n, measure_quantity(quantity, each, n)) for n, each in points.items()]
            known = [(n, metric.value) for n, metric in result if metric is not None]
            if known:
                axes.plot(*np.array(known).T, color=colour, linewidth=1.3, label=f"case {case}")
            printed = [
                (n, printed_cell(TABLE_OF_CASE[case], quantity, str(n))) for n in POPULATIONS
            ]
            shown = np.array([(n, figure.value) for n, figure in printed if figure is not None])
            axes.plot(*shown.T, "o", color=colour, markersize=4)
        axes.set_title(f"Figure 10{'abcde'[PLOTTED_QUANTITIES.index(quantity)]}", fontsize=10)
        axes.set(ylabel=", ".join(QUANTITY_LABELS[quantity]), xlabel="users", xlim=(0, None))
        if quantity in {"goodput", "send_rate"}:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
    panels[0].plot([], [], "o", color=drawing.REFERENCE_COLOUR, markersize=4, label="printed")
    panels[0].legend(fontsize=8, frameon=False)
    panels[-1].set_axis_off()
    return drawing.Plot(figure, folder / "figure10.png")


SECTIONS = (_section,)
