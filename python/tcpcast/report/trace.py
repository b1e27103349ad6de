"""What captures say, as text and as CSV: one line a direction that carries data."""

from __future__ import annotations

import csv
import io
import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures import rows
from tcpcast.report.between import between_lines
from tcpcast.report.lines import Column, Line, table, table_width
from tcpcast.report.quantity import ABSENT, Scale, scale_of_unit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tcpcast.captures import Capture, Table

    Figures = np.ndarray[Any, Any]

WORST = ("timeouts", "retransmissions", "zero_windows", "bytes")
"""What makes a direction stand before another: the most of the first of these that differs."""
ARROW = " > "
NARROWEST_END = 9


def capture_lines(capture: Capture, width: int) -> list[Line]:
    """Return the report of a capture: what was read, a table, what to check."""
    lines = [Line(_headline(capture), "bold")]
    directions = capture.connections["src"].size
    if directions:
        lines += [Line(), *_table(capture.connections, width)]
    if capture.between:
        lines += [Line(), *between_lines(capture.between)]
    if capture.damaged or capture.interrupted:
        why = "the file is damaged" if capture.damaged else "interrupted"
        lines += [Line(), Line(f"{why}: figures are of what came before", "yellow", "partial: ")]
    if capture.warnings:
        lines.append(Line())
        lines += [Line(warning, "yellow", "check: ") for warning in capture.warnings]
    return lines


def csv_lines(captures: Iterable[Capture]) -> Iterator[str]:
    """Yield a line a direction of each capture, with every column; what is unknown is empty."""
    for at, capture in enumerate(captures):
        if at == 0:
            yield _csv_line(["file", *capture.connections])
        for row in rows(capture.connections):
            yield _csv_line([capture.file, *row.values()])


def json_lines(captures: Sequence[Capture]) -> Iterator[str]:
    """Yield the JSON document, a line a direction: there may be many."""
    yield '{"captures": ['
    for capture in captures:
        head: dict[str, Any] = {"file": capture.file, "warnings": capture.warnings}
        if capture.between:
            head["between"] = list(rows(capture.between))
        yield f'{json.dumps(head, ensure_ascii=False)[:-1]}, "connections": ['
        last = capture.connections["src"].size - 1
        for at, row in enumerate(rows(capture.connections)):
            yield json.dumps(row, allow_nan=False) + ("," if at < last else "")
        yield "]}" + ("" if capture is captures[-1] else ",")
    yield "]}"


def _csv_line(cells: Sequence[Any]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(cells)
    return out.getvalue()


def worst_first(connections: Table) -> Figures:
    """Return the rows of a table in the order of the report."""
    keys = [-connections[name] for name in reversed(WORST)]
    return np.lexsort(keys)


def _headline(capture: Capture) -> str:
    count = capture.connection_count
    said = f"{capture.file}: {capture.segments:,} TCP segments in {count:,} connection"
    said += "" if count == 1 else "s"
    without = count - np.unique(capture.connections["connection"]).size
    return said + (f", {without:,} of them without data" if without > 0 else "")


def _table(connections: Table, width: int) -> list[Line]:
    order = worst_first(connections)
    shown = {name: column[order] for name, column in connections.items()}
    rate, model = shown["throughput_bps"], _model_bps(shown)
    scale = _scale(np.concatenate([rate, model]))
    figures = [
        Column("data\npkts", _counts(shown["data_packets"])),
        Column("sent\nagain", _counts(shown["retransmissions"])),
        Column("\nTD", _counts(shown["td"])),
        Column("\nTO", _counts(shown["to"])),
        Column("RTT\nms", [_figure(value * 1e3) for value in shown["rtt_mean_s"]]),
        Column(f"rate\n{scale.unit}", [_figure(value / scale.factor) for value in rate]),
        Column(f"PFTK\n{scale.unit}", [_figure(value / scale.factor) for value in model]),
    ]
    room = width - table_width([Column("", [""], right=False), *figures])
    ends = list(zip(shown["src"].tolist(), shown["dst"].tolist(), strict=True))
    cells = [_fitted(source, destination, room) for source, destination in ends]
    return table([Column("from > to", cells, right=False), *figures])


def _model_bps(shown: Table) -> Figures:
    """Return PFTK's packets/s as payload, of the mean packet that was sent."""
    with np.errstate(divide="ignore", invalid="ignore"):
        model: Figures = shown["pftk_pps"] * shown["throughput_bps"] / shown["send_rate_pps"]
    return model


def _scale(rates: Figures) -> Scale:
    known = rates[np.isfinite(rates) & (rates > 0)]
    # One unit for all: the one in which the middle of them reads best.
    return scale_of_unit("bit/s", float(np.median(known)) if known.size else 1e6)


def _counts(values: Figures) -> list[str]:
    return [str(value) for value in values.tolist()]


def _figure(value: float) -> str:
    """Return three digits, or all of a large number's whole ones."""
    if not math.isfinite(value):
        return ABSENT
    if value == 0:
        return "0"
    decimals = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{min(decimals, 3)}f}"


def _fitted(source: str, destination: str, room: int) -> str:
    """Return both ends; what does not fit loses its beginning: they differ at the end."""
    if len(source) + len(destination) + len(ARROW) <= room:
        return source + ARROW + destination
    each = max((room - len(ARROW)) // 2, NARROWEST_END)
    spare = max(each - min(len(source), len(destination)), 0)
    return ARROW.join(
        end if len(end) <= each + spare else f"…{end[1 - each - spare :]}"
        for end in (source, destination)
    )
