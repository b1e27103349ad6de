"""One verdict over captures: how much was retransmitted, what limited, what to change first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.advice import LIMITS, advice
from tcpcast.captures.failed import summary
from tcpcast.captures.words import rate
from tcpcast.products import dot
from tcpcast.report.document import Column, Heading, Paragraph, Share, ends_text
from tcpcast.report.document import Table as Columns
from tcpcast.report.trace import direction_columns, worst_first

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tcpcast.captures import Capture, Table
    from tcpcast.report.document import Part

MOST_CHANGES = 3
"""Limits for which it is said what to change."""
LEAST_SHARE = 0.01
"""Of all time; a smaller one has no bar."""


def verdict_parts(captures: Sequence[Capture], most: int) -> Iterator[Part]:
    """Yield the verdict over all captures, and the ``most`` worst transfers.

    A share of the time is that of all directions, each as long as it lasted.
    """
    table = together(captures)
    yield Paragraph(_counted(table, len(captures)))
    for capture in captures:
        failures = summary(capture.rest, capture.connection_count)
        if failures:
            yield Paragraph(f"{capture.file}: {failures}.", "warning", "! ")
        if capture.damaged or capture.interrupted:
            yield Paragraph(f"{capture.file} was read in part", "warning", "! ")
    if not table["src"].size:
        return
    found = limit_shares(table)
    if found:
        yield Heading("What limited the transfers")
        yield Paragraph("Shares of the time of all directions.", "aside")
        yield from (Share(_called(limit), share) for limit, share in found if share >= LEAST_SHARE)
        yield Heading("What to change first")
        yield from _changes(table, all_services(captures), [limit for limit, _ in found])
    yield Heading("The worst transfers")
    yield from _worst(table, most, several=len(captures) > 1)


def together(captures: Sequence[Capture]) -> Table:
    """Return the directions of all captures in one table, with the ``file`` of each.

    ``service`` is a row of :func:`all_services`.
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


def limit_shares(table: Table) -> list[tuple[str, float]]:
    """Return what limited, the longest first, with its share of the known time."""
    if "limited_by" not in table:
        return []
    lasted = np.nan_to_num(table["duration_s"])
    spent = {name: dot(lasted, np.nan_to_num(table[f"share_{name}"])) for name in LIMITS}
    whole = sum(spent.values())
    if not whole > 0:
        return []
    shares = [(name, seconds / whole) for name, seconds in spent.items()]
    return sorted(shares, key=lambda each: -each[1])


def _called(limit: str) -> str:
    return LIMITS[limit][0]


def _counted(table: Table, files: int) -> str:
    data, again = int(table["data_packets"].sum()), int(table["retransmissions"].sum())
    timeouts, count = int(table["timeouts"].sum()), table["src"].size
    said = f"{count:,} direction{'' if count == 1 else 's'} with data"
    said += f" in {files:,} captures" if files > 1 else ""
    said += f": {int(table['bytes'].sum()):,} bytes in {data:,} packets"
    if again:
        said += f", {again:,} of them retransmitted ({100 * again / data:.2g} %)"
    said += f", {timeouts:,} timeout{'' if timeouts == 1 else 's'}."
    known = table["throughput_bps"][np.isfinite(table["throughput_bps"])]
    return (
        f"{said} Their median throughput is {rate(float(np.median(known)))}."
        if known.size
        else said
    )


def _changes(table: Table, services: Table, limits: Sequence[str]) -> Iterator[Part]:
    """Yield what to change for the limits of most time: advice on the longest direction."""
    told = 0
    for limit in limits:
        rows = np.flatnonzero(table["limited_by"] == limit)
        if limit == "unknown" or not rows.size or told == MOST_CHANGES:
            continue
        longest = rows[np.argmax(np.nan_to_num(table["duration_s"][rows]))]
        part = {name: column[[longest]] for name, column in table.items()}
        count = f"{rows.size:,} direction{'' if rows.size == 1 else 's'}, such as "
        where = f" in {part['file'][0]}" if np.any(table["file"] != table["file"][0]) else ""
        ends = ends_text(str(part["src"][0]), str(part["dst"][0])) + where
        told += 1
        yield Paragraph(f"{count}{ends}", lead=f"{told}. {_called(limit).capitalize()}: ")
        yield Paragraph(str(advice(part, services)[0]))
    if not told:
        yield Paragraph("No capture shows what the senders waited for.")


def _worst(table: Table, most: int, *, several: bool) -> Iterator[Part]:
    order = worst_first(table)[:most]
    shown: dict[str, Any] = {name: column[order] for name, column in table.items()}
    ends = list(zip(shown["src"].tolist(), shown["dst"].tolist(), strict=True))
    files = [Column("capture", shown["file"].tolist(), right=False)] if several else []
    yield Columns([*files, *direction_columns(shown)], ends=ends)
    left = table["src"].size - order.size
    if left > 0:
        yield Paragraph(f"… and {left:,} more; tcpcast trace --all prints all", "aside")
