"""Models and measurement side by side: a table per direction, and the same for programs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.models import CALLED, OF_LOSS
from tcpcast.captures.words import time
from tcpcast.report.document import ARROW, BLANK, Column, Paragraph
from tcpcast.report.document import Table as Columns
from tcpcast.report.quantity import ABSENT, UNTRUSTED
from tcpcast.report.trace_cells import figure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpcast.captures import Table
    from tcpcast.captures.models import Modelled
    from tcpcast.report.document import Part

MEASURED = "measured"
LEAST_NAME = 16
"""Characters of a name that a narrow terminal shows on a line, at least."""


def model_parts(connections: Table, found: Sequence[Modelled], asked: int) -> list[Part]:
    """Return a table for each direction that has loss; the rest is counted.

    Parameters
    ----------
    connections
        The directions of a capture.
    found
        What models say of those with loss, in the order in which to show them.
    asked
        How many directions were looked at.
    """
    parts: list[Part] = []
    for each in found:
        parts += [BLANK, *_direction(connections, each)]
    without = asked - len(found)
    if without:
        one = "direction has" if without == 1 else "directions have"
        said = f"{without:,} {one} no loss indication: models of loss do not apply"
        parts += [BLANK, Paragraph(said, "aside")]
    return parts


def _direction(connections: Table, said: Modelled) -> list[Part]:
    found, errors = said.rates, said.errors
    measured = float(found["send_rate_pps"])
    rates = {name: float(found[f"{name}_pps"]) for name in CALLED}
    shown = {name: rate for name, rate in rates.items() if math.isfinite(rate)}
    marks = {name: "" if found[f"{name}_trusted"] else UNTRUSTED for name in shown}
    columns = [
        Column("", [MEASURED, *(CALLED[name] for name in shown)], right=False, least=LEAST_NAME),
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
    ends = f"{connections['src'][said.row]}{ARROW}{connections['dst'][said.row]}"
    parts: list[Part] = [
        Paragraph(ends, "heading"),
        Paragraph(_fed(found), "", "  "),
        Columns(columns),
    ]
    if any(marks.values()):
        key = f"{UNTRUSTED} outside the formula's domain (tcpcast engines): never compared"
        parts.append(Paragraph(key, "aside", "  "))
    return [*parts, _classes(said.intervals)]


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
