"""Figures 13 to 18 and 20 with simulated connections of 100 s, 100 for each path of Table 3."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpcast_papers import drawing
from tcpcast_papers.pftk.hours import error_rows
from tcpcast_papers.pftk.paths import (
    INDEPENDENT,
    LOSS_KINDS,
    REST_OF_ROUND,
    TWO_STATES,
    path_like,
    simulated_windows,
)
from tcpcast_papers.pftk.predictions import (
    APPROXIMATE,
    FULL,
    PLOTTED_MODELS,
    TD_ONLY,
    fitted_windows,
)
from tcpcast_papers.pftk.published import CONNECTION_S, CONNECTIONS, traces
from tcpcast_papers.pftk.runs import TraceJob
from tcpcast_papers.pftk.scatter_plots import (
    draw_error_panels,
    draw_scatter,
    has_prediction,
    piece_errors,
)
from tcpcast_papers.reproduction import Row, Section

if TYPE_CHECKING:
    import pathlib

    from numpy.typing import NDArray

    from tcpcast_papers.pftk.runs import Runs, SimulatedTrace
    from tcpcast_papers.simulations import Job

    Floats = NDArray[np.float64]

FIGURES = {
    13: ("manic to ganef", INDEPENDENT),
    14: ("manic to mafalda", REST_OF_ROUND),
    15: ("manic to spiff", REST_OF_ROUND),
    16: ("manic to baskerville", TWO_STATES),
    17: ("manic to sutton", INDEPENDENT),
    18: ("manic to spiff", REST_OF_ROUND),
}
"""Path and kind of loss for each figure."""


def request(runs: Runs) -> dict[str, list[Job[SimulatedTrace]]]:
    """Request and return the traces with each kind of loss, in the order of Table 3.

    A connection is a replication of 100 s including slow start, in one piece.
    """
    rows = traces(3)
    windows = simulated_windows(fitted_windows(rows))
    return {
        loss: [
            runs.request(
                TraceJob(
                    path_like(row, loss, window),
                    1,
                    CONNECTION_S,
                    CONNECTIONS,
                    weight=row.packets * (1 + 1.5 * runs.sample_sizes.calibration_hours),
                    p=row.loss_indication_ratio,
                    calibration_hours=runs.sample_sizes.calibration_hours,
                )
            )
            for row, window in zip(rows, windows, strict=True)
        ]
        for loss in LOSS_KINDS
    }


def sections(runs: Runs, folder: pathlib.Path) -> list[Section]:
    """Return Figures 13 to 18, and Figure 20."""
    return [_scatter_section(runs, folder), _error_section(runs, folder)]


def _scatter_section(runs: Runs, folder: pathlib.Path) -> Section:
    section = Section(
        "Figures 13 to 18. Connections of 100 s simulated on paths similar to Table 3",
        ("trace", "loss", "quantity"),
    )
    names = [row.name for row in traces(3)]
    requested = request(runs)
    figure, panels = drawing.create_panels(3, 2, width=4.4, height=3.7)
    for axes, (number, (name, loss)) in zip(panels, FIGURES.items(), strict=True):
        at = names.index(name)
        row, done = traces(3)[at], runs[requested[loss][at]]
        models = (FULL, APPROXIMATE, TD_ONLY) if number == 18 else (FULL, TD_ONLY)
        draw_scatter(axes, done.path, done.pieces, models, replications=CONNECTIONS)
        window = f"W_max = {done.path.window_pkts:.0f}"
        axes.set_title(f"Figure {number}: {name}, {loss}, {window}", fontsize=9)
        printed = row.line.printed("packets_sent")
        label = (name, loss, "packets sent by 100 connections")
        note = (
            f"p {100 * done.pieces.trace_p:.2f} %, {100 * row.loss_indication_ratio:.2f} % in "
            "Table 3"
        )
        section.rows.append(
            Row(label, "packets", printed, float(done.pieces.sent.sum()), note=note)
        )
    section.figures.append(drawing.Plot(figure, folder / "figures13-18.png"))
    section.remarks = [
        "Paths are defined as for Figures 7 to 12. Each point is a connection; the curves use the "
        "mean RTT and T0 of all connections, as in the paper. Figure 18 also has the approximate "
        "model.",
    ]
    return section


def connection_errors(runs: Runs, loss: str) -> dict[str, Floats]:
    """Return the models' errors for the connections with one kind of loss.

    Returns
    -------
    dict
        For each of the models of Figure 20, ``[paths, 1]``: the mean over a path's connections,
        each with its own RTT and T0.
    """
    result = {}
    for model in PLOTTED_MODELS:
        of_paths = []
        for each in request(runs)[loss]:
            done = runs[each]
            own = piece_errors(done.path, done.pieces, model, each_its_own=True)
            of_paths.append(float(np.nanmean(own)))
        result[model] = np.array(of_paths)[:, None]
    return result


def _error_section(runs: Runs, folder: pathlib.Path) -> Section:
    section = Section(
        "Figure 20. Comparison of the models for 100s traces", ("loss", "average over", "model")
    )
    names = [row.name for row in traces(3)]
    figure, panels = drawing.create_panels(len(LOSS_KINDS), width=4.6, height=3.8, share_y=True)
    by_loss = {loss: connection_errors(runs, loss) for loss in LOSS_KINDS}
    draw_error_panels(panels, names, by_loss)
    for loss, result in by_loss.items():
        section.rows += error_rows(loss, result)
    section.figures.append(drawing.Plot(figure, folder / "figure20.png"))
    seen = [
        has_prediction(runs[each].pieces) for of_loss in request(runs).values() for each in of_loss
    ]
    section.remarks = [
        "As Figure 19, for the connections of Table 3, with p, RTT and T0 of each single "
        "connection. If no timer expired in it, T0 is the minimum timeout of its path. "
        f"{sum(int((~each).sum()) for each in seen)} of {sum(each.size for each in seen)} "
        "connections have no loss indication and are left out.",
    ]
    return section
