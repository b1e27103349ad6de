"""Services of a capture as parts of a report: request latency, its components, and advice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpcast.captures.names import service_label
from tcpcast.captures.quantity_text import format_percent, format_time
from tcpcast.captures.service_advice import (
    COMPONENT_PHRASES,
    MIN_COMPONENT_SHARE,
    TAP_LIMITATIONS,
    service_verdicts,
)
from tcpcast.captures.table import select_rows
from tcpcast.report.document import BLANK_LINE, Column, Paragraph
from tcpcast.report.document import Table as Columns
from tcpcast.report.trace_cells import integer_texts, omitted_rows_parts, scaled_number_texts

if TYPE_CHECKING:
    from typing import Any

    from tcpcast.array_types import Table
    from tcpcast.report.document import Part

    Array = np.ndarray[Any, Any]

MAX_EXPLAINED_SERVICES = 3
"""Number of services with a verdict."""


def service_parts(services: Table, max_rows: int | None, minor: Array) -> list[Part]:
    """Return a table of services, and verdicts on the busiest services, except for minor ones."""
    count = services["server"].size
    if not count:
        return []
    parts: list[Part] = [
        BLANK_LINE,
        Columns(_service_columns(select_rows(services, slice(max_rows))), title=""),
    ]
    parts += omitted_rows_parts(count, count if max_rows is None else max_rows, " services")
    explained = select_rows(services, np.flatnonzero(~minor)[:MAX_EXPLAINED_SERVICES])
    for index, verdict in enumerate(service_verdicts(explained)):
        row = select_rows(explained, index)
        parts += [BLANK_LINE, Paragraph(f"service {service_label(row)}", "heading")]
        texts = (_latency_text(row), verdict, TAP_LIMITATIONS[str(row["tap"])])
        parts += [Paragraph(text, "", "  ") for text in texts if text]
    return parts


def _service_columns(shown: Table) -> list[Column]:
    def ms(name: str) -> list[str]:
        return scaled_number_texts(shown[name], 1e3)

    return [
        Column("\nservice", _service_cells(shown), right=False),
        Column("\nconns", integer_texts(shown["connections"])),
        Column("reqs", integer_texts(shown["requests"])),
        Column("first byte\n50 % ms", ms("first_byte_p50_s")),
        Column("\n95 %", ms("first_byte_p95_s"), drop_order=2),
        Column("\n99 %", ms("first_byte_p99_s"), drop_order=1),
        Column("last byte\n50 % ms", ms("last_byte_p50_s")),
        Column("\n95 %", ms("last_byte_p95_s")),
        Column("\n99 %", ms("last_byte_p99_s")),
    ]


def _service_cells(shown: Table) -> list[str]:
    return [service_label(select_rows(shown, at)) for at in range(shown["server"].size)]


def _latency_text(row: Table) -> str:
    """Return a sentence with the components of the mean latency, and the excluded requests."""
    mean = float(row["mean_s"])
    components = []
    for part, name in COMPONENT_PHRASES.items():
        value = float(row[f"{part}_s"])
        if value > 0 and value >= MIN_COMPONENT_SHARE * mean:
            components.append(f"{name} {format_time(value)} ({format_percent(value / mean)})")
    text = f"Mean latency {format_time(mean)}: {', '.join(components)}." if components else ""
    rtt = float(row["rtt_s"])
    text += f" Shortest RTT {format_time(rtt)}." if rtt > 0 else ""
    unanswered = int(row["unanswered"])
    overlapping = int(row["not_separable"]) - unanswered
    if unanswered:
        have = "request has" if unanswered == 1 else "requests have"
        text += f" {unanswered:,} {have} no response in the capture"
        text += "; the percentiles do not include them."
    if overlapping:
        overlap = "request that overlaps" if overlapping == 1 else "requests that overlap"
        text += (
            f" Not included: {overlapping:,} {overlap} with others on the same"
            f" connection (pipelining or several streams)."
        )
    return text.strip()
