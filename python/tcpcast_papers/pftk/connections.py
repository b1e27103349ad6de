"""Figures 13 to 18 and 20 with simulated connections of 100 s, 100 for each path of Table 3."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tcpcast_papers import drawing
from tcpcast_papers.pftk.paths import INDEPENDENT, LOSS_KINDS, REST_OF_ROUND, TWO_STATES
from tcpcast_papers.pftk.predictions import PLOTTED_MODELS
from tcpcast_papers.pftk.published import CONNECTION_S, CONNECTIONS
from tcpcast_papers.pftk.runs import TraceJob
from tcpcast_papers.pftk.scatter_plots import has_prediction
from tcpcast_papers.pftk.trace_sections import (
    Errors,
    draw_scatter_plots,
    error_section,
    plotted_jobs,
    request_traces,
)
from tcpcast_papers.reproduction import Row, Section

if TYPE_CHECKING:
    import pathlib

    from tcpcast_papers.pftk.paths import Path
    from tcpcast_papers.pftk.published import Trace
    from tcpcast_papers.pftk.runs import Runs, SimulatedTrace
    from tcpcast_papers.pftk.trace_sections import JobsByLoss
    from tcpcast_papers.simulations import Job

FIGURES = {
    13: ("manic to ganef", INDEPENDENT),
    14: ("manic to mafalda", REST_OF_ROUND),
    15: ("manic to spiff", REST_OF_ROUND),
    16: ("manic to baskerville", TWO_STATES),
    17: ("manic to sutton", INDEPENDENT),
    18: ("manic to spiff", REST_OF_ROUND),
}
"""Path and kind of loss for each figure."""


def connection_job(runs: Runs, row: Trace, path: Path) -> TraceJob:
    """Return the simulation of a path with the p of a trace.

    Each replication simulates one connection of 100 s, including slow start, and measures it as one
    piece.
    """
    hours = runs.sample_sizes.calibration_hours
    return TraceJob(
        path,
        1,
        CONNECTION_S,
        CONNECTIONS,
        weight=row.packets * (1 + 1.5 * hours),
        p=row.loss_indication_ratio,
        calibration_hours=hours,
    )


def request(runs: Runs) -> JobsByLoss:
    """Request and return the traces with each kind of loss, in the order of Table 3."""
    return request_traces(runs, 3, connection_job)


def _scatter_section(runs: Runs, folder: pathlib.Path) -> Section:
    section = runs.section(
        "Figures 13 to 18. Connections of 100 s simulated on paths similar to Table 3",
        ("trace", "loss", "quantity"),
    )
    jobs = request(runs)
    for row, loss, job in plotted_jobs(3, jobs, FIGURES):
        label = (row.name, loss, "packets sent by 100 connections")
        section.rows += runs.row(label, _packets_row, runs, row, job, label)
    section.figures.append(
        draw_scatter_plots(
            runs,
            3,
            jobs,
            FIGURES,
            folder / "figures13-18.png",
            models={18: PLOTTED_MODELS},
            replications=CONNECTIONS,
        )
    )
    section.remarks = [
        "Paths are defined as for Figures 7 to 12. Each point is a connection; the curves use the "
        "mean RTT and T0 of all connections, as in the paper.",
    ]
    return section


def _packets_row(runs: Runs, row: Trace, job: Job[SimulatedTrace], label: tuple[str, ...]) -> Row:
    pieces = runs[job].pieces
    note = f"p {100 * pieces.trace_p:.2f} %, {100 * row.loss_indication_ratio:.2f} % in Table 3"
    printed = row.line.printed("packets_sent")
    return Row(label, "packets", printed, float(pieces.sent.sum()), note=note)


def _error_section(runs: Runs, folder: pathlib.Path) -> Section:
    jobs = request(runs)
    section = error_section(
        runs,
        "Figure 20. Comparison of the models for 100s traces",
        Errors(3, jobs, per_piece_inputs=True, axis=0),
        partial(drawing.create_panels, len(LOSS_KINDS), width=4.6, height=3.8, share_y=True),
        folder / "figure20.png",
    )
    usable = [has_prediction(runs[job].pieces) for of_loss in jobs.values() for job in of_loss]
    section.remarks = [
        "The error is defined as in Figure 19, but with p, RTT and T0 of each connection of Table "
        "3. If a connection has no timeout, T0 is the minimum timeout of its path. "
        f"{sum(int((~each).sum()) for each in usable)} of {sum(each.size for each in usable)} "
        "connections have no loss indication and are left out.",
    ]
    return section


SECTIONS = (_scatter_section, _error_section)
