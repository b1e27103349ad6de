"""Sections on simulated traces that Tables 2 and 3 have in common: scatter plots and errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from tcpcast import statistics

from tcpcast_papers import drawing
from tcpcast_papers.pftk.paths import LOSS_KINDS, path_of_printed_trace, simulated_windows
from tcpcast_papers.pftk.predictions import FULL, PLOTTED_MODELS, TD_ONLY, fitted_windows
from tcpcast_papers.pftk.published import traces
from tcpcast_papers.pftk.scatter_plots import draw_error_panels, draw_scatter, piece_errors
from tcpcast_papers.reproduction import Row, Section

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from tcpcast_papers.pftk.paths import Path
    from tcpcast_papers.pftk.published import Trace
    from tcpcast_papers.pftk.runs import Runs, SimulatedTrace, TraceJob
    from tcpcast_papers.simulations import Job

    Floats = NDArray[np.float64]
    JobsByLoss = dict[str, list[Job[SimulatedTrace]]]


def request_traces(
    runs: Runs, table: int, make_job: Callable[[Runs, Trace, Path], TraceJob]
) -> JobsByLoss:
    """Request simulations of the traces of a table; return them by kind of loss, in its order."""
    rows = traces(table)
    windows = simulated_windows(fitted_windows(rows))
    return {
        loss: [
            runs.request(make_job(runs, row, path_of_printed_trace(row, loss, window)))
            for row, window in zip(rows, windows, strict=True)
        ]
        for loss in LOSS_KINDS
    }


def plotted_jobs(
    table: int, jobs: JobsByLoss, figures: Mapping[int, tuple[str, str]]
) -> list[tuple[Trace, str, Job[SimulatedTrace]]]:
    """Return the printed trace, kind of loss and job of each figure.

    Parameters
    ----------
    table, jobs, figures
        As for :func:`draw_scatter_plots`.
    """
    rows = {row.name: (row, index) for index, row in enumerate(traces(table))}
    return [(rows[name][0], loss, jobs[loss][rows[name][1]]) for name, loss in figures.values()]


def draw_scatter_plots(  # noqa: PLR0913 - Figures 7 to 12 and 13 to 18 differ in all of them
    runs: Runs,
    table: int,
    jobs: JobsByLoss,
    figures: Mapping[int, tuple[str, str]],
    file: pathlib.Path,
    *,
    models: Mapping[int, Sequence[str]] | None = None,
    replications: int = 1,
) -> drawing.Plot:
    """Plot the traces of some figures, one panel each.

    Parameters
    ----------
    table
        Table of the traces.
    jobs
        The jobs of :func:`request_traces`.
    figures
        Trace and kind of loss, by number of the figure.
    file
        File of the plot.
    models
        Models to plot, by number of the figure; other figures plot the full model and "TD only".
    replications
        Number of replications to plot.
    """
    figure, panels = drawing.create_panels(3, 2, width=4.4, height=3.7)
    plotted = plotted_jobs(table, jobs, figures)
    for axes, number, (row, loss, job) in zip(panels, figures, plotted, strict=True):
        done = runs[job]
        shown = (models or {}).get(number, (FULL, TD_ONLY))
        draw_scatter(axes, done.path, done.pieces, shown, replications=replications)
        window = f"W_max = {done.path.window_pkts:.0f}"
        axes.set_title(f"Figure {number}: {row.name}, {loss}, {window}", fontsize=9)
    return drawing.Plot(figure, file)


@dataclass(frozen=True, slots=True)
class Errors:
    """Average errors of the models for the simulated traces of a table.

    Parameters
    ----------
    table
        Table of the traces.
    jobs
        The jobs of :func:`request_traces`.
    per_piece_inputs
        As in :func:`.piece_errors`.
    axis
        1 for averages over the pieces of each replication, 0 for averages over replications.
    """

    table: int
    jobs: JobsByLoss
    per_piece_inputs: bool
    axis: int

    def of(self, runs: Runs, loss: str, model: str) -> Floats:
        """Return errors, ``[traces, replications]`` for axis 1, ``[traces, pieces]`` for axis 0."""
        return np.stack(
            [
                np.nanmean(
                    piece_errors(
                        done.path, done.pieces, model, per_piece_inputs=self.per_piece_inputs
                    ),
                    axis=self.axis,
                )
                for done in (runs[job] for job in self.jobs[loss])
            ]
        )


def error_section(
    runs: Runs,
    title: str,
    errors: Errors,
    create_panels: Callable[[], tuple[Figure, Sequence[Axes]]],
    file: pathlib.Path,
) -> Section:
    """Return a figure and rows of errors by kind of loss."""
    section = runs.section(title, ("loss", "average over", "model"))
    names = [row.name for row in traces(errors.table)]
    for loss in errors.jobs:
        place = (loss, f"{len(names)} traces")
        for model in PLOTTED_MODELS:
            label = (*place, model)
            section.rows += runs.row(label, _error_row, runs, errors, label)
        label = (*place, f"{FULL} nearer than {TD_ONLY}")
        section.rows += runs.value(label, "traces", _count_nearer, runs, errors, loss)
    figure, axes = create_panels()
    by_loss = {
        loss: {model: errors.of(runs, loss, model) for model in PLOTTED_MODELS}
        for loss in errors.jobs
    }
    draw_error_panels(axes, names, by_loss)
    section.figures.append(drawing.Plot(figure, file))
    return section


def _error_row(runs: Runs, errors: Errors, label: tuple[str, ...]) -> Row:
    """Return the mean error of a model, with an interval over replications."""
    loss, _, model = label
    each = errors.of(runs, loss, model)
    of_replications = 100 * each.mean(axis=0)
    estimate = statistics.estimate_replication_mean(
        of_replications, replications=len(of_replications)
    )
    low, high = (None, None) if estimate is None else (estimate.low, estimate.high)
    note = f"median of the traces {100 * np.median(each.mean(axis=1)):.1f} %"
    own = float(of_replications.mean())
    return Row(label, "%", None, own, low=low, high=high, note=note)


def _count_nearer(runs: Runs, errors: Errors, loss: str) -> float:
    """Return the number of traces for which the full model is nearer than "TD only"."""
    full, td_only = (errors.of(runs, loss, model).mean(axis=1) for model in (FULL, TD_ONLY))
    return float((full < td_only).sum())
