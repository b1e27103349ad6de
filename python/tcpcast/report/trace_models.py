"""Models and measurements side by side, one table per direction."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tcpcast.captures.models import LOSS_MODELS, MODEL_LABELS, model_results
from tcpcast.captures.quantity_text import format_time
from tcpcast.report.document import ARROW, BLANK_LINE, Column, Paragraph
from tcpcast.report.document import Table as Columns
from tcpcast.report.quantity import ABSENT_MARK, UNTRUSTED_MARK
from tcpcast.report.trace import worst_first_order
from tcpcast.report.trace_cells import number_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpcast.array_types import Table
    from tcpcast.captures.capture_tables import CaptureTables
    from tcpcast.captures.models import ModelResults
    from tcpcast.report.document import Part

MEASURED_LABEL = "measured"
MIN_NAME_WIDTH = 16
"""Minimum width of the column of names; a narrow terminal wraps longer names."""


def capture_model_parts(capture: CaptureTables, max_rows: int | None) -> list[Part]:
    """Return the comparisons for the ``max_rows`` worst directions of a capture (None: all)."""
    order = worst_first_order(capture.connections)[:max_rows]
    return model_parts(capture.connections, model_results(capture, order), order.size)


def model_parts(
    connections: Table, modelled: Sequence[ModelResults], examined_count: int
) -> list[Part]:
    """Return one table per direction with loss, and the number of directions without a table.

    Parameters
    ----------
    connections
        The directions of a capture.
    modelled
        Results of the models for directions with loss, in display order.
    examined_count
        Number of examined directions.
    """
    parts: list[Part] = []
    for each in modelled:
        parts += [BLANK_LINE, *_direction_parts(connections, each)]
    lossless = examined_count - len(modelled)
    if lossless:
        have = "direction has" if lossless == 1 else "directions have"
        text = f"{lossless:,} {have} no loss indication, so models of loss do not apply"
        parts += [BLANK_LINE, Paragraph(text, "aside")]
    return parts


def _direction_parts(connections: Table, modelled: ModelResults) -> list[Part]:
    values, errors = modelled.rates, modelled.errors
    measured = float(values["send_rate_pps"])
    rates = {name: float(values[f"{name}_pps"]) for name in MODEL_LABELS}
    shown = {name: rate for name, rate in rates.items() if math.isfinite(rate)}
    marks = {name: "" if values[f"{name}_trusted"] else UNTRUSTED_MARK for name in shown}
    names = [MEASURED_LABEL, *(MODEL_LABELS[name] for name in shown)]
    columns = [
        Column("", names, right=False, min_width=MIN_NAME_WIDTH),
        Column(
            "\npackets/s",
            [
                number_text(measured),
                *(number_text(rate) + marks[name] for name, rate in shown.items()),
            ],
        ),
        Column(
            "relative\nerror",
            [
                ABSENT_MARK,
                *(
                    ABSENT_MARK if marks[name] else _relative_error_text(rate / measured - 1)
                    for name, rate in shown.items()
                ),
            ],
        ),
        Column(
            "error in\n100 s",
            [
                ABSENT_MARK,
                *(ABSENT_MARK if marks[name] else _error_cell(errors, name) for name in shown),
            ],
        ),
    ]
    ends = f"{connections['src'][modelled.row]}{ARROW}{connections['dst'][modelled.row]}"
    window = values["receiver_window_pkts"]
    w_max = f"{number_text(window)} packets" if math.isfinite(window) else "not advertised"
    loss = number_text(100 * values["loss_indication_ratio"])
    rtt, timer = (
        format_time(values[name]) if math.isfinite(values[name]) else "unknown"
        for name in ("rtt_s", "t0_s")
    )
    b = number_text(values["packets_per_ack"])
    parts: list[Part] = [
        Paragraph(ends, "heading"),
        Paragraph(f"inputs: p = {loss} %, RTT {rtt}, T0 {timer}, b = {b}, W_max {w_max}", "", "  "),
        Columns(columns),
    ]
    if any(marks.values()):
        key = f"{UNTRUSTED_MARK} outside the formula's domain (see tcpcast engines), not compared"
        parts.append(Paragraph(key, "aside", "  "))
    classes, counted = np.unique(modelled.intervals["class"], return_counts=True)
    # The interval classes of PFTK (section 3), such as T0: without loss, TD, then timeouts.
    order = np.lexsort(
        (classes, np.char.startswith(classes, "T0"), ~np.char.startswith(classes, "TD"))
    )
    counts = [
        f"{counted[i]} {'without loss' if classes[i] == '-' else classes[i]}"
        for i in order.tolist()
    ]
    return [*parts, Paragraph(f"intervals of 100 s: {', '.join(counts)}", "aside", "  ")]


def _relative_error_text(share: float) -> str:
    return f"{100 * share:+.0f} %" if math.isfinite(share) else ABSENT_MARK


def _error_cell(errors: Table, name: str) -> str:
    if name not in LOSS_MODELS or not math.isfinite(errors[name][0]):
        return ABSENT_MARK
    return f"{100 * errors[name][0]:.0f} %"
