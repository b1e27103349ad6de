"""Sections on simulated traces that Tables 2 and 3 have in common: scatter plots and errors."""

from __future__ import annotations

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


def draw_scatter_plots(  # noqa: PLR0913 - Figures 7 to 12 and 13 to 18 differ in all of them
    runs: Runs,
    table: int,
    jobs: JobsByLoss,
    figures: Mapping[int, tuple[str, str]],
    file: pathlib.Path,
    *,
    models: Mapping[int, Sequence[str]] | None = None,
    replications: int = 1,
) -> tuple[drawing.Plot, list[tuple[Trace, str, SimulatedTrace]]]:
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

    Returns
    -------
    tuple
        The plot, and the printed trace, kind of loss and simulated trace of each figure.
    """
    rows = traces(table)
    names = [row.name for row in rows]
    plotted = []
    figure, panels = drawing.create_panels(3, 2, width=4.4, height=3.7)
    for axes, (number, (name, loss)) in zip(panels, figures.items(), strict=True):
        at = names.index(name)
        done = runs[jobs[loss][at]]
        shown = (models or {}).get(number, (FULL, TD_ONLY))
        draw_scatter(axes, done.path, done.pieces, shown, replications=replications)
        window = f"W_max = {done.path.window_pkts:.0f}"
        axes.set_title(f"Figure {number}: {name}, {loss}, {window}", fontsize=9)
        plotted.append((rows[at], loss, done))
    return drawing.Plot(figure, file), plotted


def errors_by_model(
    runs: Runs, jobs: Sequence[Job[SimulatedTrace]], *, per_piece_inputs: bool, axis: int
) -> dict[str, Floats]:
    """Return the average error of each plotted model for simulated traces.

    Parameters
    ----------
    jobs
        The traces.
    per_piece_inputs
        As in :func:`.piece_errors`.
    axis
        1 for averages over the pieces of each replication, 0 for averages over replications.

    Returns
    -------
    dict
        Errors by model, ``[traces, replications]`` for axis 1, ``[traces, pieces]`` for axis 0.
    """
    simulated = [runs[job] for job in jobs]
    return {
        model: np.stack(
            [
                np.nanmean(
                    piece_errors(done.path, done.pieces, model, per_piece_inputs=per_piece_inputs),
                    axis=axis,
                )
                for done in simulated
            ]
        )
        for model in PLOTTED_MODELS
    }


def error_section(
    title: str,
    table: int,
    by_loss: dict[str, dict[str, Floats]],
    panels: tuple[Figure, Sequence[Axes]],
    file: pathlib.Path,
) -> Section:
    """Return a figure and rows of errors by kind of loss, as :func:`errors_by_model` computes."""
    figure, axes = panels
    draw_error_panels(axes, [row.name for row in traces(table)], by_loss)
    return Section(
        title,
        ("loss", "average over", "model"),
        [row for loss, errors in by_loss.items() for row in _error_rows(loss, errors)],
        [drawing.Plot(figure, file)],
    )


def _error_rows(loss: str, errors: dict[str, Floats]) -> list[Row]:
    """Return each model's mean error, and how often the full model is nearer than "TD only"."""
    rows = []
    traces_seen = f"{len(errors[FULL])} traces"
    for model, each in errors.items():
        of_replications = 100 * each.mean(axis=0)
        estimate = statistics.estimate_replication_mean(
            of_replications, replications=len(of_replications)
        )
        low, high = (None, None) if estimate is None else (estimate.low, estimate.high)
        own = float(of_replications.mean())
        note = f"median of the traces {100 * np.median(each.mean(axis=1)):.1f} %"
        rows.append(Row((loss, traces_seen, model), "%", None, own, low=low, high=high, note=note))
    better = int((errors[FULL].mean(axis=1) < errors[TD_ONLY].mean(axis=1)).sum())
    label = (loss, traces_seen, f"{FULL} nearer than {TD_ONLY}")
    return [*rows, Row(label, "traces", None, float(better))]
