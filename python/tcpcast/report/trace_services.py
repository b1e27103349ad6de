"""Services of a capture as parts of a report: latency of requests, its parts, and the verdict."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tcpcast.captures.service_advice import PARTS, TAPS, sentences
from tcpcast.captures.words import percent, time
from tcpcast.report.document import BLANK, Column, Paragraph
from tcpcast.report.document import Table as Columns
from tcpcast.report.trace_cells import counts, figures

if TYPE_CHECKING:
    from tcpcast.captures.table import Table
    from tcpcast.report.document import Part

EXPLAINED = 3
"""Number of services with a verdict."""
LEAST_SHARE = 0.005
"""Share of the mean latency at and above which a part is named."""


def service_parts(services: Table, most: int | None) -> list[Part]:
    """Return a table of services, and a verdict on the busiest."""
    count = services["server"].size
    if not count:
        return []
    parts: list[Part] = [BLANK, Columns(_columns(_first(services, most)), title="")]
    if most is not None and count > most:
        parts.append(Paragraph(f"… and {count - most:,} more services; --all prints all", mark=" "))
    explained = _first(services, EXPLAINED)
    for at, said in enumerate(sentences(explained)):
        row = {name: column[at] for name, column in explained.items()}
        parts += [BLANK, Paragraph(f"service {row['server']}", "heading")]
        parts += [Paragraph(text, "", "  ") for text in (_latency(row), said, _tap(row)) if text]
    return parts


def _first(table: Table, most: int | None) -> Table:
    return {name: column[:most] for name, column in table.items()}


def _columns(shown: Table) -> list[Column]:
    def ms(name: str) -> list[str]:
        return figures(shown[name], 1e3)

    return [
        Column("\nservice", shown["server"].tolist(), right=False),
        Column("\nconns", counts(shown["connections"])),
        Column("re-\nquests", counts(shown["requests"])),
        Column("first byte\n50 % ms", ms("first_byte_p50_s")),
        Column("\n95 %", ms("first_byte_p95_s"), spare=2),
        Column("\n99 %", ms("first_byte_p99_s"), spare=1),
        Column("last byte\n50 % ms", ms("last_byte_p50_s")),
        Column("\n95 %", ms("last_byte_p95_s")),
        Column("\n99 %", ms("last_byte_p99_s")),
    ]


def _latency(row: Table) -> str:
    """Return the parts of the mean latency, and the requests that are not in it."""
    mean = float(row["mean_s"])
    found = []
    for part, name in PARTS.items():
        value = float(row[f"{part}_s"])
        if math.isfinite(value) and value >= LEAST_SHARE * mean:
            found.append(f"{name} {time(value)} ({percent(value / mean)})")
    text = f"Mean latency {time(mean)}: {', '.join(found)}." if found else ""
    rtt = float(row["rtt_s"])
    text += f" Shortest RTT {time(rtt)}." if rtt > 0 else ""
    unanswered = int(row["unanswered"])
    overlapping = int(row["not_separable"]) - unanswered
    if unanswered:
        few = "request has" if unanswered == 1 else "requests have"
        text += f" {unanswered:,} {few} no response in the capture."
    if overlapping:
        text += (
            f" Requests that overlap others on their connection (pipelining or several streams) and"
            f" cannot be separated: {overlapping:,}, not included."
        )
    return text.strip()


def _tap(row: Table) -> str:
    return TAPS[str(row["tap"])]
