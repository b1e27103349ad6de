"""Figures 7 to 12 and 19 with simulated traces of an hour, in 36 intervals of 100 s."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tcpcast_papers import drawing
from tcpcast_papers.pftk.paths import INDEPENDENT, LOSS_KINDS, REST_OF_ROUND, TWO_STATES
from tcpcast_papers.pftk.published import INTERVAL_S, INTERVALS, traces
from tcpcast_papers.pftk.runs import TraceJob
from tcpcast_papers.pftk.scatter_plots import TIMEOUT_CLASSES, has_prediction
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
    from collections.abc import Callable

    from tcpcast_papers.pftk.paths import Path
    from tcpcast_papers.pftk.published import Trace
    from tcpcast_papers.pftk.runs import Runs, SimulatedTrace
    from tcpcast_papers.pftk.simulated_traces import TracePieces
    from tcpcast_papers.pftk.trace_sections import JobsByLoss
    from tcpcast_papers.reproduction import Printed
    from tcpcast_papers.simulations import Job

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


def request(runs: Runs) -> JobsByLoss:
    """Request and return the traces with each kind of loss, in the order of Table 2."""
    return request_traces(runs, 2, hour_job)


def _scatter_section(runs: Runs, folder: pathlib.Path) -> Section:
    section = runs.section(
        "Figures 7 to 12. Hours simulated on paths similar to Table 2",
        ("trace", "loss", "quantity"),
    )
    jobs = request(runs)
    for row, loss, job in plotted_jobs(2, jobs, FIGURES):
        for quantity, compute in _QUANTITIES.items():
            label = (row.name, loss, quantity)
            section.rows += runs.row(label, _trace_row, runs, row, job, label, compute)
    file = folder / "figures07-12.png"
    section.figures.append(draw_scatter_plots(runs, 2, jobs, FIGURES, file))
    section.remarks = [
        "RTT and minimum timeout are from Table 2. W_max is fitted to the row of the table (at "
        "least 4 packets; 32 if no value fits), and the loss is chosen such that the simulation "
        "gives p. Packets sent, the share of timeouts and the classes of intervals are results of "
        "the simulation. The paper's hosts and the details of their losses are unknown, so these "
        "rows have no verdict.",
        "An interval is in class TD if it has no timeout, T0 if it has only single timeouts, T1 if "
        "a timer expired twice in sequence, and so on. Points are the 36 intervals of one hour; "
        "curves use RTT and T0 of the hour.",
    ]
    return section


_Values = tuple[str, "Printed | None", float, str]
"""Unit, published value, own value and note."""


def _trace_row(
    runs: Runs,
    row: Trace,
    job: Job[SimulatedTrace],
    label: tuple[str, ...],
    compute: Callable[[Trace, TracePieces], _Values],
) -> Row:
    unit, printed, own, note = compute(row, runs[job].pieces)
    return Row(label, unit, printed, own, note=note)


def _timeout_share(row: Trace, seen: TracePieces) -> _Values:
    depths = np.minimum(seen.deepest, len(TIMEOUT_CLASSES) - 1)
    classes = ", ".join(
        f"{100 * np.mean(depths == depth):.0f} % {name}"
        for depth, name in enumerate(TIMEOUT_CLASSES)
    )
    share = 100 * float(seen.sequences.sum() / seen.loss_indications.sum())
    return "%", None, share, f"{100 * row.timeout_share:.0f} % in Table 2; intervals: {classes}"


_QUANTITIES: dict[str, Callable[[Trace, TracePieces], _Values]] = {
    "loss indications per packet": lambda row, seen: (
        "%",
        None,
        100 * seen.trace_p,
        f"{100 * row.loss_indication_ratio:.2f} % in Table 2",
    ),
    "share of timeouts in them": _timeout_share,
    "packets sent in an hour": lambda row, seen: (
        "packets",
        row.line.printed("packets_sent"),
        float(seen.sent.sum() / len(seen.sent)),
        "",
    ),
    "RTT": lambda row, seen: (
        "s",
        row.line.printed("rtt_s"),
        float(seen.trace_rtt_s.mean()),
        "",
    ),
    "T0": lambda row, seen: (
        "s",
        row.line.printed("t0_s"),
        float(np.nanmean(seen.trace_t0_s)),
        "",
    ),
}


def _error_section(runs: Runs, folder: pathlib.Path) -> Section:
    jobs = request(runs)
    section = error_section(
        runs,
        "Figure 19. Comparison of the models for 1hr traces",
        Errors(2, jobs, per_piece_inputs=False, axis=1),
        partial(drawing.create_panels, 1, len(LOSS_KINDS), width=11.0, height=3.4),
        folder / "figure19.png",
    )
    usable = [has_prediction(runs[job].pieces) for of_loss in jobs.values() for job in of_loss]
    of = sum(each.size for each in usable)
    skipped = of - sum(int(each.sum()) for each in usable)
    section.remarks = [
        "The average error of section 3 is the mean of |predicted - sent| / sent over the "
        "intervals of a trace, with p of the interval, RTT and T0 of the hour, and W_max. The rows "
        f"have the mean of this error over the {len(traces(2))} traces of Table 2. {skipped} of "
        f"{of} intervals are left out, because p is 0 or 1 and no model applies. A few traces with "
        "p near 10 % dominate the mean, because their intervals have about ten packets and depend "
        "on a timer. The paper prints no numbers. TD only is (20), as in the paper, and does not "
        "use W_max.",
        "The model assumes that the rest of a round is lost. With this kind of loss, the model "
        "overestimates, and its error is larger than with independent loss: Reno must retransmit "
        "many packets, one per round trip or after a timeout, and the model includes no recovery "
        "time. From a single loss, Reno recovers in one round trip.",
    ]
    return section


SECTIONS = (_scatter_section, _error_section)
