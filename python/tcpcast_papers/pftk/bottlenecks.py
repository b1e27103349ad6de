"""Section 4 and Figure 21: queues instead of random loss, and RTT against window."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpcast_papers import drawing
from tcpcast_papers.pftk.paths import (
    DEFAULT_WINDOW_PKTS,
    INDEPENDENT,
    Bottleneck,
    Path,
    path_of_printed_trace,
)
from tcpcast_papers.pftk.predictions import PLOTTED_MODELS
from tcpcast_papers.pftk.published import HOUR_S, INTERVAL_S, INTERVALS, trace
from tcpcast_papers.pftk.runs import RoundsJob, TraceJob
from tcpcast_papers.pftk.scatter_plots import draw_scatter, has_prediction, piece_errors
from tcpcast_papers.reproduction import Row, Section

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Callable

    from tcpcast_papers.pftk.runs import Runs
    from tcpcast_papers.pftk.simulated_traces import TracePieces

_TEMPLATE_TRACE = trace(2, "void to alps")
_RANDOM_LOSS_PATH = path_of_printed_trace(_TEMPLATE_TRACE, INDEPENDENT, DEFAULT_WINDOW_PKTS)

SHARED_QUEUE_PATH = Path(
    "drop-tail with cross flows",
    _TEMPLATE_TRACE.rtt_s,
    _TEMPLATE_TRACE.t0_s,
    24.0,
    bottleneck=Bottleneck(4e6, 50, cross_sources=150),
)
"""Path with the RTT and T0 of void to alps, a link of 4 Mbit/s with a buffer of 50 packets, and 150
sources of short transfers."""

MODEM_RATE_BPS = 28_800.0
MODEM_WINDOWS_AND_BUFFERS_PKTS = ((32, 5), (32, 10), (32, 15), (32, 20), (32, 28), (22, 20))
"""W_max and buffer of the modem in packets; the paper gives only the rate. The window exceeds the
buffer, so that packets are lost."""

MODEM_PATHS = tuple(
    Path(
        f"modem, W_max {window}, buffer {buffer}",
        0.25,
        1.0,
        float(window),
        bottleneck=Bottleneck(MODEM_RATE_BPS, buffer),
    )
    for window, buffer in MODEM_WINDOWS_AND_BUFFERS_PKTS
)
PLOTTED_MODEM_PATH = MODEM_PATHS[MODEM_WINDOWS_AND_BUFFERS_PKTS.index((32, 15))]
"""The modem in the figure; its correlation of RTT and window is as printed."""


def request(runs: Runs) -> None:
    """Request the traces and round-trip samples of both kinds of queue and of random loss."""
    for path in (SHARED_QUEUE_PATH, *MODEM_PATHS):
        runs.request(_trace_job(path))
    for path in (SHARED_QUEUE_PATH, *MODEM_PATHS, _RANDOM_LOSS_PATH):
        runs.request(_rounds_job(path))


def _job_weight(path: Path) -> float:
    return {SHARED_QUEUE_PATH: 4e6, _RANDOM_LOSS_PATH: 1e5}.get(path, 3e4)


def _trace_job(path: Path) -> TraceJob:
    return TraceJob(path, INTERVALS, INTERVAL_S, 1, _job_weight(path))


def _rounds_job(path: Path) -> RoundsJob:
    return RoundsJob(path, HOUR_S, _job_weight(path))


def _section(runs: Runs, folder: pathlib.Path) -> Section:
    section = runs.section(
        "Section 4 and Figure 21. An individual queue and a shared one", ("path", "quantity")
    )
    for path in (SHARED_QUEUE_PATH, *MODEM_PATHS):
        for name, (unit, read) in _QUANTITIES.items():
            section.rows += runs.value((path.name, name), unit, _read_pieces, runs, path, read)
        for model in PLOTTED_MODELS:
            label = (path.name, f"average error, {model}")
            section.rows += runs.row(label, _error_row, runs, path, model, label)
        section.rows += _correlation_rows(runs, path, path.name)
    section.rows += _correlation_rows(runs, _RANDOM_LOSS_PATH, "independent loss")
    figure, panels = drawing.create_panels(2, width=5.0, height=3.8)
    for axes, path in zip(panels, (SHARED_QUEUE_PATH, PLOTTED_MODEM_PATH), strict=True):
        draw_scatter(axes, path, runs[_trace_job(path)].pieces, PLOTTED_MODELS)
        axes.set_title(path.name, fontsize=10)
    section.figures.append(drawing.Plot(figure, folder / "figure21.png"))
    section.remarks = [
        "The correlation is computed from RTT samples: the time from a first transmission to its "
        "ack, and the number of packets in flight when the packet was sent. With random loss, or "
        "with a queue that many flows share, the RTT does not grow with the window. With an "
        "individual queue, the RTT is mainly the waiting time behind the flow's own packets.",
        "The paper does not state the window and the buffer of the modem, so the rows contain a "
        "range of windows and buffers. The claims of the paper are tested on these rows. The "
        "larger the buffer, the higher the correlation, unless the window limits the flow.",
    ]
    return section


_QUANTITIES: dict[str, tuple[str, Callable[[TracePieces], float]]] = {
    "packets sent in an hour": ("packets", lambda seen: float(seen.sent.sum())),
    "loss indications per packet": ("%", lambda seen: 100 * seen.trace_p),
    "RTT": ("s", lambda seen: float(seen.trace_rtt_s.mean())),
}
"""Quantities of a trace: unit, and how to read them."""


def _read_pieces(runs: Runs, path: Path, read: Callable[[TracePieces], float]) -> float:
    return read(runs[_trace_job(path)].pieces)


def _error_row(runs: Runs, path: Path, model: str, label: tuple[str, ...]) -> Row:
    seen = runs[_trace_job(path)].pieces
    left_out = int((~has_prediction(seen)).sum())
    error = 100 * float(np.nanmean(piece_errors(path, seen, model)))
    note = f"{left_out} of {INTERVALS} intervals without loss left out" if left_out else ""
    return Row(label, "%", None, error, note=note)


def _correlation_rows(runs: Runs, path: Path, name: str) -> list[Row]:
    label = (name, "correlation of round and window")
    return runs.value(label, "1", lambda: runs[_rounds_job(path)].correlation)


SECTIONS = (_section,)
