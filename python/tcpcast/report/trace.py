"""Captures as parts of a report, as CSV and JSON: a row per direction that carries data."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures import advised_rows, rows
from tcpcast.captures.advice import CAUSES, SHORT, SHORT_CAUSES, advice, shares
from tcpcast.captures.failed import explained, keepalives, summary
from tcpcast.captures.selection import tables
from tcpcast.report import csv
from tcpcast.report.between import between_parts
from tcpcast.report.document import ARROW, BLANK, Column, Paragraph
from tcpcast.report.document import Table as Columns
from tcpcast.report.trace_cells import counts, figures, rate_scale
from tcpcast.report.trace_detail import detail_parts
from tcpcast.report.trace_groups import group_parts
from tcpcast.report.trace_services import service_parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tcpcast.captures import Capture, Table
    from tcpcast.report.document import Part

    Figures = np.ndarray[Any, Any]

WORST = ("timeouts", "retransmissions", "zero_windows", "bytes")
"""Directions are sorted by these columns, the largest first."""
EXPLAINED = 3
"""Number of directions with advice on why they were slow."""
WORTH_DETAIL = 0.1
"""Least share of the other direction's bytes of a direction that is shown in detail."""


def capture_parts(
    capture: Capture, *, most: int | None = None, groups: Table | None = None
) -> list[Part]:
    """Return the report of a capture: what was read, a table, why, what to check.

    ``most`` rows are shown, all without it; of ``groups`` of flows, if there are any, instead of
    directions.
    """
    parts: list[Part] = [Paragraph(_headline(capture), "heading"), *_failures(capture)]
    if groups is None:
        parts += service_parts(capture.services, most)
    if capture.connections["src"].size:
        if groups is not None:
            parts += [BLANK, *group_parts(groups, most)]
        else:
            parts += [BLANK, *_table(capture.connections, most), *_rest(capture.rest)]
            parts += _reasons(capture, EXPLAINED)
    if capture.between:
        parts += [BLANK, *between_parts(capture.between)]
    if capture.damaged or capture.interrupted:
        why = "interrupted" if capture.interrupted else "the file is damaged"
        said = f"{why}: the results are of the packets before"
        parts += [BLANK, Paragraph(said, "warning", "partial: ")]
    if capture.warnings:
        parts.append(BLANK)
        parts += [Paragraph(warning, "warning", "check: ") for warning in capture.warnings]
    return parts


def csv_lines(
    captures: Sequence[Capture],
    name: str = "connections",
    groups: Sequence[Table] | None = None,
) -> Iterator[str]:
    """Yield a line a row of a table of each capture, every column; what is unknown is empty.

    Of ``groups`` of flows, a table a capture, if there are any.
    """
    found = groups or [tables(capture)[name] for capture in captures]
    advised = name == "connections" and groups is None
    for at, (capture, one) in enumerate(zip(captures, found, strict=True)):
        if at == 0:
            yield csv.line(["file", *one, *(["advice"] if advised else [])])
        for row in advised_rows(one, capture.services) if advised else rows(one):
            yield csv.line([capture.file, *row.values()])


def json_lines(
    captures: Sequence[Capture],
    name: str = "connections",
    groups: Sequence[Table] | None = None,
    models: Sequence[Mapping[str, Table]] | None = None,
) -> Iterator[str]:
    """Yield the JSON document of a table, a line a row: there may be many.

    ``groups`` of flows, a table a capture, come after it, and the tables of ``models``.
    """
    yield '{"captures": ['
    for at, capture in enumerate(captures):
        head: dict[str, Any] = {"file": capture.file, "warnings": capture.warnings}
        if capture.between:
            head["between"] = list(rows(capture.between))
        head["rest"] = capture.rest
        if name == "connections":
            head |= {each: list(rows(getattr(capture, each))) for each in ("services", "failed")}
        yield f'{json.dumps(head)[:-1]}, "{name}": ['
        found = tables(capture)[name]
        advised = name == "connections"
        yield from _objects(advised_rows(found, capture.services) if advised else rows(found))
        if groups is not None:
            yield '], "groups": ['
            yield from _objects(rows(groups[at]))
        for title, more in ({} if models is None else models[at]).items():
            yield f'], "{title}": ['
            yield from _objects(rows(more))
        yield "]}" + ("" if capture is captures[-1] else ",")
    yield "]}"


def _objects(found: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield an object a line, with commas between them."""
    line = None
    for row in found:
        if line is not None:
            yield line + ","
        line = json.dumps(row, allow_nan=False)
    if line is not None:
        yield line


def worst_first(connections: Table) -> Figures:
    """Return the rows of a table in the order of the report."""
    keys = [-connections[name] for name in reversed(WORST)]
    return np.lexsort(keys)


def _headline(capture: Capture) -> str:
    count = capture.connection_count
    segments = f"{capture.segments:,} TCP segment{'' if capture.segments == 1 else 's'}"
    said = f"{capture.file}: {segments} in {count:,} connection"
    said += "" if count == 1 else "s"
    without = capture.rest.get("empty_connections", 0)
    return said + (f", {without:,} of them without data" if without > 0 else "")


def _failures(capture: Capture) -> list[Part]:
    """Return a sentence on connections that failed, then one for each kind; and on keepalives."""
    parts: list[Part] = []
    said = summary(capture.rest, capture.connection_count)
    if said:
        parts.append(Paragraph(f"{said}.", "warning", "! "))
        parts += [Paragraph(f"{line}.", "", "  ") for line in explained(capture.failed)]
    alive = [Paragraph(f"{line}.", "", "  ") for line in keepalives(capture.rest)]
    return [*parts, *alive]


def _table(connections: Table, most: int | None) -> list[Part]:
    order = worst_first(connections)[:most]
    shown = {name: column[order] for name, column in connections.items()}
    ends = list(zip(shown["src"].tolist(), shown["dst"].tolist(), strict=True))
    parts: list[Part] = [Columns(direction_columns(shown), ends=ends)]
    left = connections["src"].size - order.size
    if left > 0:
        parts.append(Paragraph(f"… and {left:,} more; --all prints all", mark=" "))
    return parts


def _rest(rest: dict[str, int]) -> list[Paragraph]:
    """Return the sums of what has no row, where there is much of it."""
    lines = []
    if rest.get("directions"):
        lines.append(
            Paragraph(
                f"… and {rest['directions']:,} with less data, as sums: {rest['data_packets']:,} "
                f"data packets, {rest['retransmissions']:,} retransmitted, {rest['td']:,} TD, "
                f"{rest['to']:,} TO, {rest['bytes']:,} bytes",
                mark=" ",
            )
        )
    if rest.get("empty_connections"):
        lines.append(
            Paragraph(
                f"… and {rest['empty_directions']:,} directions with no data: "
                f"{rest['empty_packets']:,} packets",
                mark=" ",
            )
        )
    return lines


def direction_columns(shown: Table) -> list[Column]:
    """Return what a table has of each direction beside its ends."""
    rate, model = shown["throughput_bps"], _model_bps(shown)
    scale = rate_scale(np.concatenate([rate, model]))
    found = [
        Column("data\npkts", counts(shown["data_packets"])),
        Column("\nretrans", counts(shown["retransmissions"])),
        Column("\nTD", counts(shown["td"])),
        Column("\nTO", counts(shown["to"])),
        Column("RTT\nms", figures(shown["rtt_mean_s"], 1e3), spare=2),
        Column(f"rate\n{scale.unit}", figures(rate, 1 / scale.factor)),
        Column(f"PFTK\n{scale.unit}", figures(model, 1 / scale.factor), spare=1),
    ]
    if "limited_by" in shown:
        limits, narrow = _limits(shown, wide=True), _limits(shown, wide=False)
        found.append(Column("limited\nby", limits, right=False, narrow=narrow))
    return found


def _limits(shown: Table, *, wide: bool) -> list[str]:
    """Return what limits each row, and for which share of its time.

    A tap that does not show the states of the sender may still show the cause.
    """
    called = zip(
        shown["limited_by"].tolist(), shares(shown).tolist(), shown["cause"].tolist(), strict=True
    )
    return [
        (CAUSES[cause][0] if wide else SHORT_CAUSES.get(cause, CAUSES[cause][0]))
        if limit == "unknown" and cause in CAUSES
        else (limit.replace("_", " ") if wide else SHORT[limit])
        + (f" {100 * part:.0f}%" if math.isfinite(part) and limit != "unknown" else "")
        for limit, part, cause in called
    ]


def _reasons(capture: Capture, most: int) -> list[Part]:
    """Return why each of the worst directions was slow, or all that is known of a connection."""
    connections = capture.connections
    order = worst_first(connections)
    alone = capture.connection_count == 1
    if not alone:
        order = order[~_said_elsewhere(capture)[order]]
    if alone:
        large = connections["bytes"] >= WORTH_DETAIL * connections["bytes"].max()
        order = order[large[order]]
    part = {name: column[order[:most]] for name, column in connections.items()}
    parts: list[Part] = []
    said_of = advice(part, capture.services)
    for row, said in zip(rows(part), said_of.tolist(), strict=True):
        title = Paragraph(row["src"] + ARROW + row["dst"], "heading")
        if alone:
            parts += [BLANK, *([title] if order.size > 1 else []), *detail_parts(row, said)]
        elif said:
            parts += [BLANK, title, Paragraph(said, "", "  ")]
    return parts


def _said_elsewhere(capture: Capture) -> Figures:
    """Return which directions share a verdict, or failed after a single data packet."""
    connections = capture.connections
    failed = np.isin(connections["connection"], capture.failed["connection"])
    few: Figures = failed & (connections["data_packets"] == 1)
    return (connections["service"] >= 0) | few


def _model_bps(shown: Table) -> Figures:
    """Return PFTK's packets/s as payload, of the mean packet that was sent."""
    with np.errstate(divide="ignore", invalid="ignore"):
        model: Figures = shown["pftk_pps"] * shown["throughput_bps"] / shown["send_rate_pps"]
    return model
