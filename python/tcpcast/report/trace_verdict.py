"""The summary over captures: totals, limits, and the most important changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpcast.answer.limit_names import LIMIT_NAMES
from tcpcast.captures.cause_rules import NO_RESPONSE, UNKNOWN
from tcpcast.captures.failed_connections import failure_sentences
from tcpcast.captures.names import service_label
from tcpcast.captures.quantity_text import format_rate
from tcpcast.captures.service_advice import service_verdicts
from tcpcast.captures.subject import (
    bytes_by_limit,
    capture_subject,
    minor_services,
    relevant_failures,
)
from tcpcast.captures.table import select_rows
from tcpcast.captures.verdict import (
    captures_findings,
    directions_without_service,
    largest_row_limited_by,
    transfer_finding,
)
from tcpcast.quantity.readable_units import count_text
from tcpcast.report.document import Heading, Paragraph
from tcpcast.report.trace import direction_table_parts, failure_total_parts, limit_bar_parts
from tcpcast.report.verdict import verdict_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tcpcast.array_types import Table
    from tcpcast.captures import Capture
    from tcpcast.report.document import Part

MAX_ADVISED = 3
"""Maximum number of kinds of failures, of limits, and of services with advice."""


def summary_parts(captures: Sequence[Capture], max_rows: int) -> list[Part]:
    """Return the summary over several captures, which a terminal shows below their sections."""
    return [
        Heading(f"All {len(captures):,} captures"),
        Paragraph(verdict_text(captures_findings(captures))),
        *captures_verdict_parts(captures, max_rows),
    ]


def captures_verdict_parts(captures: Sequence[Capture], max_rows: int | None) -> Iterator[Part]:
    """Yield the totals of all captures, what to change, and the ``max_rows`` worst transfers."""
    table = all_directions(captures)
    yield Paragraph(_totals_text(table, len(captures)))
    for capture in captures:
        yield from failure_total_parts(capture, f"{capture.file}: ")
        if capture.damaged or capture.interrupted:
            yield Paragraph(f"{capture.file} was only partly read", "warning", "! ")
    if not table["src"].size or len(captures) == 1:
        return  # the sections of a single capture contain the rest
    transfers = directions_without_service(table)
    yield from limit_bar_parts(transfers)
    yield Heading("What to change first")
    worth = np.concatenate([~minor_services(each, capture_subject(each)) for each in captures])
    services = select_rows(_joined([capture.services for capture in captures]), worth)
    failed = _joined([relevant_failures(capture) for capture in captures])
    failed = select_rows(failed, ~failed["harmless"])
    yield from _advice_parts(failed, transfers, services)
    yield Heading("Worst transfers")
    yield from direction_table_parts(table, max_rows)


def all_directions(captures: Sequence[Capture]) -> Table:
    """Return the directions of all captures in one table with a column ``file``.

    ``service`` is a row index of the services of all captures in one table.
    """
    tables, before = [], 0
    for capture in captures:
        table = capture.connections
        service = np.where(table["service"] < 0, -1, table["service"] + before)
        file = np.full(table["src"].size, capture.file)
        tables.append({"file": file, **table, "service": service})
        before += capture.services["server"].size
    shared = [name for name in tables[0] if all(name in table for table in tables)]
    return {name: np.concatenate([table[name] for table in tables]) for name in shared}


def _joined(tables: Sequence[Table]) -> Table:
    """Return the rows of the same table of several captures in one table."""
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}


def _totals_text(table: Table, files: int) -> str:
    data, again = (int(np.nansum(table[name])) for name in ("data_packets", "retransmissions"))
    known, count = np.isfinite(table["timeouts"]), table["src"].size
    text = f"{count_text(count, 'direction')} with data"
    text += f" in {files:,} captures" if files > 1 else ""
    text += f": {int(table['bytes'].sum()):,} bytes in {data:,} packets"
    if again:
        text += f", {again:,} of them retransmitted ({100 * again / data:.2g} %)"
    if known.any() or not count:
        text += f", {count_text(int(table['timeouts'][known].sum()), 'timeout')}"
    text += "."
    known = table["throughput_bps"][np.isfinite(table["throughput_bps"])]
    return (
        f"{text} Median throughput {format_rate(float(np.median(known)))}." if known.size else text
    )


def _advice_parts(failed: Table, transfers: Table, services: Table) -> Iterator[Part]:
    """Yield failures, the largest transfer of each of the main limits, and the busiest services."""
    for sentence in failure_sentences(failed, MAX_ADVISED):
        yield Paragraph(f"{sentence}.", lead="Failure: ")
    found = bytes_by_limit(transfers)
    said = {UNKNOWN, NO_RESPONSE if (failed["failure"] == "silent").any() else UNKNOWN}
    limits = [limit for limit in found["limit"].tolist() if limit not in said][:MAX_ADVISED]
    for limit in limits:
        count = int(found["directions"][found["limit"] == limit][0])
        row = largest_row_limited_by(transfers, limit)
        lead = f"{LIMIT_NAMES[limit].capitalize()}: {count_text(count, 'transfer')}. "
        yield Paragraph(verdict_text([transfer_finding(transfers, row, 1)]), lead=lead)
    waited = np.nan_to_num(services["mean_s"]) * services["requests"]
    busiest = select_rows(services, np.argsort(-waited, kind="stable")[:MAX_ADVISED])
    for at, verdict in enumerate(service_verdicts(busiest)):
        label = service_label(select_rows(busiest, at))
        yield Paragraph(verdict, lead=f"Service {label}. ")
    if not (limits or services["server"].size or failed["failure"].size):
        yield Paragraph("The captures do not show what limited the senders.")
