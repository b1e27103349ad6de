"""Models and measurement side by side: a table per direction, and the same for programs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.models import CALLED, OF_LOSS, model_errors, model_intervals, models
from tcpcast.captures.words import time
from tcpcast.report.document import ARROW, BLANK, Column, Paragraph
from tcpcast.report.document import Table as Columns
from tcpcast.report.quantity import ABSENT, UNTRUSTED
from tcpcast.report.trace_cells import figure

if TYPE_CHECKING:
    from tcpcast.captures import Capture, Table
    from tcpcast.report.document import Part

    Figures = np.ndarray[Any, Any]

MEASURED = "measured"


def model_tables(capture: Capture) -> dict[str, Table]:
    """Return ``models``, ``model_intervals`` and ``model_errors`` of every direction.

    ``direction`` is a row of ``connections``.
    """
    every = np.arange(capture.connections["src"].size)
    intervals = model_intervals(capture, every)
    return {
        "models": models(capture, every),
        "model_intervals": intervals,
        "model_errors": model_errors(intervals),
    }


def model_parts(capture: Capture, order: Figures) -> list[Part]:
    """Return a table for each of some directions that have loss; the rest is counted.

    Parameters
    ----------
    capture
        What was read.
    order
        Rows of ``connections``, in the order in which to show them.
    """
    lossy = order[capture.connections["loss_indication_ratio"][order] > 0]
    parts: list[Part] = []
    for row in lossy.tolist():
        parts += [BLANK, *_direction(capture, row)]
    without = order.size - lossy.size
    if without:
        one = "direction has" if without == 1 else "directions have"
        said = f"{without:,} {one} no loss indication: models of loss do not apply"
        parts += [BLANK, Paragraph(said, "aside")]
    return parts


def _direction(capture: Capture, row: int) -> list[Part]:
    rows = np.array([row])
    found = {name: column[0] for name, column in models(capture, rows).items()}
    intervals = model_intervals(capture, rows)
    errors = model_errors(intervals)
    measured = float(found["send_rate_pps"])
    rates = {name: float(found[f"{name}_pps"]) for name in CALLED}
    shown = {name: rate for name, rate in rates.items() if math.isfinite(rate)}
    marks = {name: "" if found[f"{name}_trusted"] else UNTRUSTED for name in shown}
    columns = [
        Column("", [MEASURED, *(CALLED[name] for name in shown)], right=False),
        Column(
            "\npackets/s",
            [figure(measured), *(figure(rate) + marks[name] for name, rate in shown.items())],
        ),
        Column(
            "relative\nerror",
            [
                ABSENT,
                *(
                    ABSENT if marks[name] else _relative_error(rate / measured - 1)
                    for name, rate in shown.items()
                ),
            ],
        ),
        Column(
            "error in\n100 s",
            [ABSENT, *(ABSENT if marks[name] else _error(errors, name) for name in shown)],
        ),
    ]
    table_ = capture.connections
    ends = f"{table_['src'][row]}{ARROW}{table_['dst'][row]}"
    parts: list[Part] = [
        Paragraph(ends, "heading"),
        Paragraph(_fed(found), "", "  "),
        Columns(columns),
    ]
    if any(marks.values()):
        key = f"{UNTRUSTED} outside the formula's domain (tcpcast engines): never compared"
        parts.append(Paragraph(key, "aside", "  "))
    return [*parts, _classes(intervals)]


def _fed(found: dict[str, Any]) -> str:
    window = found["receiver_window_pkts"]
    most = f"{figure(window)} packets" if math.isfinite(window) else "not announced"
    loss = figure(100 * found["loss_indication_ratio"])
    rtt, timer = (
        time(found[name]) if math.isfinite(found[name]) else "unknown" for name in ("rtt_s", "t0_s")
    )
    acknowledged = figure(found["packets_per_ack"])
    return f"fed with p = {loss} %, RTT {rtt}, T0 {timer}, b = {acknowledged}, W_max {most}"


def _relative_error(share: float) -> str:
    return f"{100 * share:+.0f} %" if math.isfinite(share) else ABSENT


def _error(errors: Table, name: str) -> str:
    if name not in OF_LOSS or not math.isfinite(errors[name][0]):
        return ABSENT
    return f"{100 * errors[name][0]:.0f} %"


def _classes(intervals: Table) -> Paragraph:
    """Say how many intervals are of each class, by the deepest sequence of timeouts."""
    names, counted = np.unique(intervals["class"], return_counts=True)
    order = np.lexsort((names, np.char.startswith(names, "T0"), ~np.char.startswith(names, "TD")))
    parts = [
        f"{counted[at]} {'without loss' if names[at] == '-' else names[at]}"
        for at in order.tolist()
    ]
    return Paragraph(f"intervals of 100 s: {', '.join(parts)}", "aside", "  ")
