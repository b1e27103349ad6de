"""Figures 7 to 12 and 19 with simulated traces of an hour, in 36 intervals of 100 s."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from tcpcast import statistics

from tcpcast_papers import drawing
from tcpcast_papers.pftk.paths import (
    INDEPENDENT,
    LOSS_KINDS,
    REST_OF_ROUND,
    TWO_STATES,
    path_like,
    simulated_windows,
)
from tcpcast_papers.pftk.predictions import FULL, PLOTTED_MODELS, TD_ONLY, fitted_windows
from tcpcast_papers.pftk.published import INTERVAL_S, INTERVALS, traces
from tcpcast_papers.pftk.runs import TraceJob
from tcpcast_papers.pftk.scatter_plots import (
    TIMEOUT_CLASSES,
    draw_error_panels,
    draw_scatter,
    has_prediction,
    piece_errors,
    trace_errors,
)
from tcpcast_papers.reproduction import Row, Section

if TYPE_CHECKING:
    import pathlib

    from numpy.typing import NDArray

    from tcpcast_papers.pftk.paths import Path
    from tcpcast_papers.pftk.published import Trace
    from tcpcast_papers.pftk.runs import Runs, SimulatedTrace
    from tcpcast_papers.simulations import Job

    Floats = NDArray[np.float64]

FIGURES = {
    7: ("manic to baskerville", INDEPENDENT),
    8: ("pif to imagine", REST_OF_ROUND),
    9: ("pif to manic", TWO_STATES),
    10: ("void to alps", TWO_STATES),
    11: ("void to tove", REST_OF_ROUND),
    12: ("babel to alps", INDEPENDENT),
}
"""Trace and kind of loss for each figure."""


def hour_job(runs: Runs, row: Trace, path: Path) -> TraceJob:
    """Return the simulation of a path with the p of a trace, in intervals."""
    sizes = runs.sample_sizes
    return TraceJob(
        path,
        INTERVALS,
        INTERVAL_S,
        sizes.hours,
        weight=row.packets * (sizes.hours + 4 * sizes.calibration_hours),
        p=row.loss_indication_ratio,
        calibration_hours=sizes.calibration_hours,
    )


def request(runs: Runs) -> dict[str, list[Job[SimulatedTrace]]]:
    """Request and return the traces with each kind of loss, in the order of Table 2."""
    rows = traces(2)
    windows = simulated_windows(fitted_windows(rows))
    return {
        loss: [
            runs.request(hour_job(runs, row, path_like(row, loss, window)))
            for row, window in zip(rows, windows, strict=True)
        ]
        for loss in LOSS_KINDS
    }


def sections(runs: Runs, folder: pathlib.Path) -> list[Section]:
    """Return Figures 7 to 12, and Figure 19."""
    return [_scatter_section(runs, folder), _error_section(runs, folder)]


def _scatter_section(runs: Runs, folder: pathlib.Path) -> Section:
    section = Section(
        "Figures 7 to 12. Hours simulated on paths similar to Table 2",
        ("trace", "loss", "quantity"),
    )
    names = [row.name for row in traces(2)]
    requested = request(runs)
    figure, panels = drawing.create_panels(3, 2, width=4.4, height=3.7)
    for axes, (number, (name, loss)) in zip(panels, FIGURES.items(), strict=True):
        at = names.index(name)
        done = runs[requested[loss][at]]
        draw_scatter(axes, done.path, done.pieces)
        window = f"W_max = {done.path.window_pkts:.0f}"
        axes.set_title(f"Figure {number}: {name}, {loss}, {window}", fontsize=9)
        section.rows += _rows(traces(2)[at], loss, done)
    section.figures.append(drawing.Plot(figure, folder / "figures07-12.png"))
    section.remarks = [
        "RTT and minimum timeout are from Table 2. W_max is fitted to the row (at least 4; 32 if "
        "no value fits), and the loss is set to give p. Packets sent, the share of timeouts and "
        "their classes are results of the simulator, compared with the table; the paper does not "
        "print the classes. The paper's hosts and the details of their losses are unknown, so "
        "nothing here is checked.",
        "An interval is in class TD if no timer expired in it, T0 if none expired twice in "
        "sequence, T1 if one expired twice, and so on. Points are the 36 intervals of one hour; "
        "curves use RTT and T0 of the hour.",
    ]
    return section


def _rows(row: Trace, loss: str, done: SimulatedTrace) -> list[Row]:
    seen, label = done.pieces, (row.name, loss)
    depths = np.minimum(seen.deepest, len(TIMEOUT_CLASSES) - 1)
    classes = ", ".join(
        f"{100 * np.mean(depths == depth):.0f} % {name}"
        for depth, name in enumerate(TIMEOUT_CLASSES)
    )
    figures = (
        (
            "loss indications per packet",
            100 * seen.trace_p,
            f"{100 * row.loss_indication_ratio:.2f} % in Table 2",
        ),
        (
            "share of timeouts in them",
            100 * float(seen.sequences.sum() / seen.loss_indications.sum()),
            f"{100 * row.timeout_share:.0f} % in Table 2; intervals: {classes}",
        ),
    )
    return [
        *(Row((*label, name), "%", None, own, note=note) for name, own, note in figures),
        Row(
            (*label, "packets sent in an hour"),
            "packets",
            row.line.printed("packets_sent"),
            float(seen.sent.sum() / len(seen.sent)),
        ),
        Row((*label, "RTT"), "s", row.line.printed("rtt_s"), float(seen.trace_rtt_s.mean())),
        Row((*label, "T0"), "s", row.line.printed("t0_s"), float(np.nanmean(seen.trace_t0_s))),
    ]


def hour_errors(runs: Runs, loss: str) -> dict[str, Floats]:
    """Return the models' errors for the hours with one kind of loss.

    Returns
    -------
    dict
        For each of the models of Figure 19, the average error of each trace and replication over
        its intervals, ``[traces, replications]``.
    """
    requested = request(runs)[loss]
    return {
        model: np.stack(
            [
                trace_errors(piece_errors(done.path, done.pieces, model))
                for done in (runs[each] for each in requested)
            ]
        )
        for model in PLOTTED_MODELS
    }


def _error_section(runs: Runs, folder: pathlib.Path) -> Section:
    section = Section(
        "Figure 19. Comparison of the models for 1hr traces", ("loss", "average over", "model")
    )
    names = [row.name for row in traces(2)]
    figure, panels = drawing.create_panels(1, len(LOSS_KINDS), width=11.0, height=3.4)
    by_loss = {loss: hour_errors(runs, loss) for loss in LOSS_KINDS}
    draw_error_panels(panels, names, by_loss)
    for loss, result in by_loss.items():
        section.rows += error_rows(loss, result)
    section.figures.append(drawing.Plot(figure, folder / "figure19.png"))
    skipped = sum(int((~has_prediction(runs[each].pieces)).sum()) for each in _all_jobs(runs))
    of = sum(has_prediction(runs[each].pieces).size for each in _all_jobs(runs))
    section.remarks = [
        "The average error of section 3: |predicted - sent| / sent over the intervals of a trace, "
        "with p of the interval, RTT and T0 of the hour and W_max; then the mean over the "
        f"{len(names)} traces of Table 2. {skipped} of {of} intervals have no loss indication, or "
        "nothing else; no model applies to them, and they are left out. A few traces with p near "
        "10 % contribute most of a mean, because their intervals have about ten packets and depend "
        "on a timer. The paper's figure has no printed numbers. TD only is (20) here, as in the "
        "paper, and does not use W_max.",
        "With the loss that the model assumes, rest of round, it has a larger error than with "
        "independent loss, and overestimates: Reno then repairs many packets, at one per round "
        "trip or after a timeout, and the model has no recovery time. Reno repairs single losses "
        "in one round trip.",
    ]
    return section


def _all_jobs(runs: Runs) -> list[Job[SimulatedTrace]]:
    return [each for of_loss in request(runs).values() for each in of_loss]


def error_rows(loss: str, result: dict[str, Floats]) -> list[Row]:
    """Return each model's mean error over traces, and how often the full model is more accurate.

    Parameters
    ----------
    loss
        The kind of loss.
    result
        Relative errors of each model, ``[traces, replications]``.
    """
    rows = []
    traces_seen = f"{len(next(iter(result.values())))} traces"
    for model, each in result.items():
        of_replications = 100 * each.mean(axis=0)
        estimate = statistics.estimate_replication_mean(
            of_replications, replications=len(of_replications)
        )
        low, high = (None, None) if estimate is None else (estimate.low, estimate.high)
        own = float(of_replications.mean())
        note = f"median of the traces {100 * np.median(each.mean(axis=1)):.1f} %"
        label = (loss, traces_seen, model)
        rows.append(Row(label, "%", None, own, low=low, high=high, note=note))
    better = int((result[FULL].mean(axis=1) < result[TD_ONLY].mean(axis=1)).sum())
    label = (loss, traces_seen, f"{FULL} nearer than {TD_ONLY}")
    rows.append(Row(label, "traces", None, float(better)))
    return rows
