"""The verdict over captures: retransmissions, limits, and the most important changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpcast.captures.advice import REMEDIES_BY_LIMIT, advise_each_direction
from tcpcast.captures.failed_connections import failure_summary
from tcpcast.captures.names import service_label
from tcpcast.captures.quantity_text import format_rate
from tcpcast.captures.service_advice import service_verdicts
from tcpcast.captures.subject import capture_subject, minor_services
from tcpcast.captures.table import select_rows
from tcpcast.captures.verdict import captures_verdict, directions_without_service
from tcpcast.limit_names import LIMIT_NAMES
from tcpcast.readable_units import count_text
from tcpcast.report.document import Column, Heading, Paragraph, ShareBar, endpoints_text
from tcpcast.report.document import Table as Columns
from tcpcast.report.trace import direction_columns, worst_first_order
from tcpcast.vector_products import dot_product

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tcpcast.array_types import Table
    from tcpcast.captures import Capture
    from tcpcast.report.document import Part

MAX_ADVISED_LIMITS = 3
"""Maximum number of limits with advice."""
MAX_ADVISED_SERVICES = 3
"""Maximum number of services with advice."""
MIN_BAR_SHARE = 0.01
"""Minimum share of the total time for a limit to have a bar."""


def summary_parts(captures: Sequence[Capture], max_rows: int) -> list[Part]:
    """Return the summary over several captures, which a terminal shows below their sections."""
    return [
        Heading(f"All {len(captures):,} captures"),
        Paragraph(captures_verdict(captures)),
        *captures_verdict_parts(captures, max_rows),
    ]


def captures_verdict_parts(captures: Sequence[Capture], max_rows: int) -> Iterator[Part]:
    """Yield the verdict over all captures, and the ``max_rows`` worst transfers.

    Shares of the time refer to the total duration of all transfers.
    """
    table = all_directions(captures)
    yield Paragraph(_totals_text(table, len(captures)))
    for capture in captures:
        failures = failure_summary(capture.rest, capture.connection_count)
        if failures:
            yield Paragraph(f"{capture.file}: {failures}.", "warning", "! ")
        if capture.damaged or capture.interrupted:
            yield Paragraph(f"{capture.file} was only partly read", "warning", "! ")
    if not table["src"].size:
        return
    transfers = directions_without_service(table)
    services = all_services(captures)
    limits = time_shares_by_limit(transfers)
    if limits:
        yield Heading("Limits of the transfers")
        yield Paragraph("Shares of the total time of all transfers.", "aside")
        yield from (
            ShareBar(LIMIT_NAMES[limit], share) for limit, share in limits if share >= MIN_BAR_SHARE
        )
    if limits or services["server"].size:
        yield Heading("What to change first")
        worth = np.concatenate([~minor_services(each, capture_subject(each)) for each in captures])
        yield from _advice_parts(
            transfers, select_rows(services, worth), [limit for limit, _ in limits]
        )
    yield Heading("Worst transfers")
    yield from _worst_direction_parts(table, max_rows, several=len(captures) > 1)


def all_directions(captures: Sequence[Capture]) -> Table:
    """Return the directions of all captures in one table with a column ``file``.

    ``service`` is a row index of :func:`all_services`.
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


def all_services(captures: Sequence[Capture]) -> Table:
    """Return the services of all captures in one table."""
    tables = [capture.services for capture in captures]
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}


def time_shares_by_limit(table: Table) -> list[tuple[str, float]]:
    """Return pairs of limit and share of the time with a known limit, largest share first."""
    if "limited_by" not in table:
        return []
    lasted = np.nan_to_num(table["duration_s"])
    spent = {
        name: dot_product(lasted, np.nan_to_num(table[f"share_{name}"]))
        for name in REMEDIES_BY_LIMIT
    }
    total = sum(spent.values())
    if not total > 0:
        return []
    shares = [(name, seconds / total) for name, seconds in spent.items()]
    return sorted(shares, key=lambda each: -each[1])


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


def _advice_parts(transfers: Table, services: Table, limits: Sequence[str]) -> Iterator[Part]:
    """Yield advice for the most frequent limits of transfers, and for the busiest services.

    The advice for a limit is that for the direction of longest duration. ``limits`` is empty if no
    transfer has a known limit.
    """
    number = 0
    for limit in limits:
        rows = np.flatnonzero(transfers["limited_by"] == limit)
        if limit == "unknown" or not rows.size or number == MAX_ADVISED_LIMITS:
            continue
        longest = rows[np.argmax(np.nan_to_num(transfers["duration_s"][rows]))]
        part = select_rows(transfers, [longest])
        count = f"{count_text(rows.size, 'transfer')}, for example "
        several = np.any(transfers["file"] != transfers["file"][0])
        file = f" in {part['file'][0]}" if several else ""
        ends = endpoints_text(str(part["src"][0]), str(part["dst"][0])) + file
        number += 1
        yield Paragraph(f"{count}{ends}", lead=f"{number}. {LIMIT_NAMES[limit].capitalize()}: ")
        yield Paragraph(str(advise_each_direction(part)[0]))
    waited = np.nan_to_num(services["mean_s"]) * services["requests"]
    busiest = select_rows(services, np.argsort(-waited, kind="stable")[:MAX_ADVISED_SERVICES])
    for at, verdict in enumerate(service_verdicts(busiest)):
        number += 1
        label = service_label(select_rows(busiest, at))
        yield Paragraph(label, lead=f"{number}. Service ")
        yield Paragraph(verdict)
    if not number:
        yield Paragraph("The captures do not show what limited the senders.")


def _worst_direction_parts(table: Table, max_rows: int, *, several: bool) -> Iterator[Part]:
    order = worst_first_order(table)[:max_rows]
    shown = select_rows(table, order)
    ends = list(zip(shown["src"].tolist(), shown["dst"].tolist(), strict=True))
    files = [Column("capture", shown["file"].tolist(), right=False)] if several else []
    yield Columns([*files, *direction_columns(shown)], ends=ends)
    left = table["src"].size - order.size
    if left > 0:
        yield Paragraph(f"… and {left:,} more; tcpcast trace --all prints all", "aside")
