"""Captures as parts of a report, as CSV and as JSON, one row per direction with data."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.advice import (
    advise_each_direction,
    cause_or_limit_keys,
    share_of_main_limit,
)
from tcpcast.captures.capture import (
    capture_json_before_tables,
    iter_plain_rows,
    iter_rows_with_advice,
)
from tcpcast.captures.capture_tables import tables_by_name
from tcpcast.captures.failed_connections import (
    failure_sentences,
    failure_summary,
    have_failures_one_kind,
    keepalive_sentence,
)
from tcpcast.captures.interruptions import interruption_sentences
from tcpcast.captures.quantity_text import format_volume, sentence_case
from tcpcast.captures.subject import (
    TRANSFER_KINDS,
    Subject,
    bytes_by_limit,
    capture_subject,
    minor_services,
)
from tcpcast.captures.table import select_rows
from tcpcast.captures.verdict import (
    capture_findings,
    captures_findings,
    directions_without_service,
)
from tcpcast.limit_names import LIMIT_NAMES
from tcpcast.readable_units import count_text
from tcpcast.report import csv
from tcpcast.report.document import ARROW, BLANK_LINE, Column, Paragraph, ShareBar
from tcpcast.report.document import Table as Columns
from tcpcast.report.trace_cells import (
    integer_texts,
    omitted_rows_parts,
    rate_scale,
    scaled_number_texts,
)
from tcpcast.report.trace_detail import MIN_BAR_SHARE, detail_parts, log_detail_parts
from tcpcast.report.trace_groups import group_parts
from tcpcast.report.trace_services import service_parts
from tcpcast.report.verdict import verdict_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tcpcast.array_types import Table
    from tcpcast.captures import Capture
    from tcpcast.report.document import Part

    Array = np.ndarray[Any, Any]


DIRECTION_TEXTS = {
    "before-after": "towards the second tap",
    "after-before": "back to the first tap",
}


def tap_comparison_parts(between: Table) -> list[Paragraph]:
    """Return one paragraph per direction between the two capture points."""
    parts = []
    for row in iter_plain_rows(between):
        first = "before" if row["passes"] == "before-after" else "after"
        ratio = row["loss_ratio_between"]
        in_flight = f", {row['under_way']:,} in flight at the end" if row["under_way"] else ""
        lost = "" if ratio is None else f", {row['lost_between']:,.0f} lost, p_r = {ratio:.4%}"
        parts.append(
            Paragraph(
                f"{DIRECTION_TEXTS[row['passes']]}: {row[f'packets_seen_{first}']:,} packets"
                f"{lost}{in_flight}; transit time "
                f"{row['transit_min_s'] * 1e3:.3f} to {row['transit_max_s'] * 1e3:.3f} ms, "
                f"{row['transit_mean_s'] * 1e3:.3f} ms on average",
                mark="between: ",
            )
        )
    return parts


SORT_COLUMNS = ("timeouts", "retransmissions", "zero_windows", "bytes")
"""Sort keys for the worst directions first: these columns, in descending order."""
MAX_EXPLAINED_DIRECTIONS = 3
"""Number of directions with advice on why they were slow."""
MIN_LIMIT_COLUMN_WIDTH = 11
"""Minimum width of the column of limits; the longest name fits in two lines of this width."""
MIN_TRANSFERS_FOR_BARS = 3
"""Minimum number of transfers for bars of bytes per limit."""
MIN_DETAIL_BYTE_SHARE = 0.1
"""Minimum share of the bytes of the larger direction for a detailed report."""


def capture_parts(
    capture: Capture,
    *,
    max_rows: int | None = None,
    groups: Table | None = None,
    verdict: bool = True,
) -> list[Part]:
    """Return the report on a capture: verdict, contents, table, reasons for slowness, and warnings.

    At most ``max_rows`` rows are shown (None: all). The table shows the groups of flows in
    ``groups``, if given, instead of directions. ``verdict`` is False if another part shows the
    verdict.
    """
    findings = capture_findings(capture, groups) if verdict else []
    parts: list[Part] = [Paragraph(verdict_text(findings), "heading")] if findings else []
    subject = capture_subject(capture, groups)
    parts += [BLANK_LINE, Paragraph(_capture_size_text(capture)), *_failure_parts(capture, subject)]
    parts += [
        Paragraph(f"{sentence_case(text)}.", "warning", "! ")
        for text in interruption_sentences(capture.interruptions)
    ]
    services = (
        []
        if groups is not None
        else service_parts(capture.services, max_rows, minor_services(capture, subject))
    )
    if subject.kind not in TRANSFER_KINDS:
        parts += services
    if capture.connections["src"].size:
        if groups is not None:
            parts += [BLANK_LINE, *group_parts(groups, max_rows)]
        else:
            parts += [
                BLANK_LINE,
                *direction_table_parts(capture.connections, max_rows),
                *_omitted_paragraphs(capture.rest),
            ]
            parts += limit_bar_parts(directions_without_service(capture.connections))
            parts += _advice_or_detail_parts(capture, subject, MAX_EXPLAINED_DIRECTIONS)
    if subject.kind in TRANSFER_KINDS:
        parts += services
    if capture.between:
        parts += [BLANK_LINE, *tap_comparison_parts(capture.between)]
    if capture.damaged or capture.interrupted:
        reason = "interrupted" if capture.interrupted else "the file is damaged"
        text = f"{reason}; the results cover only the packets read until then"
        parts += [BLANK_LINE, Paragraph(text, "warning", "partial: ")]
    if capture.warnings:
        parts.append(BLANK_LINE)
        parts += [Paragraph(warning, "warning", "check: ") for warning in capture.warnings]
    return parts


def csv_lines(
    captures: Sequence[Capture],
    table_name: str = "connections",
    groups: Sequence[Table] | None = None,
    *,
    max_rows: int | None = None,
) -> Iterator[str]:
    """Yield a header and one line per row with all columns of a table; unknown values are empty.

    ``groups``, if given, holds one table of flow groups per capture, used instead of
    ``table_name``. ``max_rows`` is as for :func:`json_lines`.
    """
    shown = [select_rows(table, slice(max_rows)) for table in groups or ()]
    shown = shown or [
        _worst_rows(tables_by_name(capture)[table_name], max_rows) for capture in captures
    ]
    advised = table_name == "connections" and groups is None
    for index, (capture, table) in enumerate(zip(captures, shown, strict=True)):
        if index == 0:
            yield csv.csv_line(["file", *table, *(["advice"] if advised else [])])
        for row in (
            iter_rows_with_advice(table, capture.services) if advised else iter_plain_rows(table)
        ):
            yield csv.csv_line([capture.file, *row.values()])


def json_lines(
    captures: Sequence[Capture],
    table_name: str = "connections",
    groups: Sequence[Table] | None = None,
    models: Sequence[Mapping[str, Table]] | None = None,
    *,
    max_rows: int | None = None,
) -> Iterator[str]:
    """Yield a table as lines of one JSON document, one line per row.

    ``groups`` (one table of flow groups per capture) and the tables of ``models`` follow. With
    ``max_rows``, each table contains at most this number of rows, worst directions first, and
    ``omitted`` contains the number of omitted rows per table.
    """
    verdict = json.dumps(verdict_text(captures_findings(captures, groups)))
    yield f'{{"verdict": {verdict}, "captures": ['
    for index, capture in enumerate(captures):
        first = capture_json_before_tables(capture, None if groups is None else groups[index])
        table = tables_by_name(capture)[table_name]
        lists = {
            "services": capture.services,
            "failed": capture.failed,
            "interruptions": capture.interruptions,
        }
        if table_name == "connections":
            for each, rows in lists.items():
                first[each] = list(iter_plain_rows(select_rows(rows, slice(max_rows))))
        if max_rows is not None:
            lists |= {table_name: table} | ({} if groups is None else {"groups": groups[index]})
            first["omitted"] = {each: max(0, _row_count(lists[each]) - max_rows) for each in lists}
        yield f'{json.dumps(first)[:-1]}, "{table_name}": ['
        table = _worst_rows(table, max_rows)
        advised = table_name == "connections"
        yield from _json_objects(
            iter_rows_with_advice(table, capture.services) if advised else iter_plain_rows(table)
        )
        if groups is not None:
            yield '], "groups": ['
            yield from _json_objects(iter_plain_rows(select_rows(groups[index], slice(max_rows))))
        for title, more in ({} if models is None else models[index]).items():
            yield f'], "{title}": ['
            yield from _json_objects(iter_plain_rows(more))
        yield "]}" + ("" if capture is captures[-1] else ",")
    yield "]}"


def _json_objects(objects: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield one line per object, separated by commas."""
    line = None
    for row in objects:
        if line is not None:
            yield line + ","
        line = json.dumps(row, allow_nan=False)
    if line is not None:
        yield line


def _row_count(table: Table) -> int:
    return next(iter(table.values())).size


def _worst_rows(connections: Table, max_rows: int | None) -> Table:
    """Return the ``max_rows`` worst directions, worst first; None: all, in the capture's order."""
    if max_rows is None:
        return connections
    order = worst_first_order(connections)[:max_rows]
    return select_rows(connections, order)


def worst_first_order(connections: Table) -> Array:
    """Return the row indices of a table of directions, worst direction first."""
    keys = [-connections[name] for name in reversed(SORT_COLUMNS)]
    return np.lexsort(keys)


def _capture_size_text(capture: Capture) -> str:
    count = capture.connection_count
    if capture.program:
        return f"{capture.file}: log of {capture.program}, {count_text(count, 'connection')}"
    segments = count_text(capture.segments, "TCP segment")
    part = "the shown directions of " if capture.is_restricted else ""
    text = f"{capture.file}: {segments} in {part}{count_text(count, 'connection')}"
    empty = capture.rest.get("empty_connections", 0)
    return text + (f" ({empty:,} without data)" if empty > 0 else "")


def _failure_parts(capture: Capture, subject: Subject) -> list[Part]:
    """Return sentences on failed connections in total, per kind of failure, and on keepalives.

    The sentence on the total is omitted if the verdict contains it.
    """
    parts: list[Part] = []
    failures = failure_summary(capture.rest, capture.connection_count)
    if failures:
        leads = subject.kind in {"failures", "old_connection"}
        if not (leads and have_failures_one_kind(capture.rest)):
            parts.append(Paragraph(f"{failures}.", "warning", "! "))
        parts += [Paragraph(f"{line}.", "", "  ") for line in failure_sentences(capture.failed)]
    alive = [Paragraph(f"{line}.", "", "  ") for line in keepalive_sentence(capture.rest)]
    return [*parts, *alive]


def direction_table_parts(connections: Table, max_rows: int | None) -> list[Part]:
    """Return the worst directions as a table, with a column ``file`` if there are several files."""
    order = worst_first_order(connections)[:max_rows]
    shown = select_rows(connections, order)
    ends = list(zip(shown["src"].tolist(), shown["dst"].tolist(), strict=True))
    files = shown["file"].tolist() if "file" in shown else []
    named = [Column("capture", files, right=False)] if len(set(files)) > 1 else []
    parts: list[Part] = [Columns([*named, *direction_columns(shown)], ends=ends)]
    return [*parts, *omitted_rows_parts(connections["src"].size, order.size)]


def limit_bar_parts(table: Table) -> list[Part]:
    """Return one bar per limit: its share of the bytes of all transfers, if there are several."""
    count = table["src"].size
    if count < MIN_TRANSFERS_FOR_BARS:
        return []
    found = bytes_by_limit(table)
    title = (
        f"Share of the bytes by limit ({count:,} transfers, "
        f"{format_volume(float(table['bytes'].sum()))}):"
    )
    shares = zip(found["limit"].tolist(), found["byte_share"].tolist(), strict=True)
    bars = [
        ShareBar(LIMIT_NAMES[limit], share, "  ")
        for limit, share in shares
        if share >= MIN_BAR_SHARE
    ]
    return [BLANK_LINE, Paragraph(title), *bars]


def _omitted_paragraphs(rest: dict[str, int]) -> list[Paragraph]:
    """Return a paragraph with totals of the directions that the table omits."""
    lines = []
    if rest.get("directions"):
        lines.append(
            Paragraph(
                f"… and {rest['directions']:,} directions with less data. In total, these have "
                f"{rest['data_packets']:,} data packets, {rest['bytes']:,} bytes, "
                f"{rest['retransmissions']:,} retransmissions, {rest['td']:,} TD and "
                f"{rest['to']:,} TO.",
                mark=" ",
            )
        )
    if rest.get("empty_connections"):
        lines.append(
            Paragraph(
                f"… and {rest['empty_directions']:,} directions without data: "
                f"{rest['empty_packets']:,} packets",
                mark=" ",
            )
        )
    return lines


def direction_columns(shown: Table) -> list[Column]:
    """Return the columns of a table of directions, except source and destination."""
    rate, model = shown["throughput_bps"], _pftk_bps(shown)
    scale = rate_scale(np.concatenate([rate, model]))
    columns = [
        Column("data\npkts", integer_texts(shown["data_packets"])),
        Column("\nretrans", integer_texts(shown["retransmissions"])),
        Column("\nTD", integer_texts(shown["td"]), drop_order=3),
        Column("\nTO", integer_texts(shown["to"]), drop_order=4),
        Column("RTT\nms", scaled_number_texts(shown["rtt_mean_s"], 1e3), drop_order=2),
        Column(f"rate\n{scale.unit}", scaled_number_texts(rate, 1 / scale.factor)),
        Column(f"PFTK\n{scale.unit}", scaled_number_texts(model, 1 / scale.factor), drop_order=1),
    ]
    if "limited_by" in shown:
        columns.append(
            Column(
                "limited\nby", _limit_cells(shown), right=False, min_width=MIN_LIMIT_COLUMN_WIDTH
            )
        )
    return columns


def _limit_cells(shown: Table) -> list[str]:
    """Return the main limit of each direction, with its share of the time if known."""
    states = shown["limited_by"].tolist()
    limits = zip(
        cause_or_limit_keys(shown).tolist(),
        states,
        share_of_main_limit(shown).tolist(),
        strict=True,
    )
    return [
        LIMIT_NAMES[limit] + (f" {100 * part:.0f}%" if _has_time_share(limit, state, part) else "")
        for limit, state, part in limits
    ]


def _has_time_share(limit: str, state: str, share: float) -> bool:
    """Return True if the limit is a state of the sender with a known share of the time."""
    same = LIMIT_NAMES[limit] == LIMIT_NAMES[state]
    return same and state != "unknown" and math.isfinite(share)


def _advice_or_detail_parts(capture: Capture, subject: Subject, max_rows: int) -> list[Part]:
    """Return all details of a single connection, or advice on the subject and the worst rows."""
    connections = capture.connections
    order = worst_first_order(connections)
    if subject.kind in TRANSFER_KINDS:
        is_subject = np.isin(order, subject.directions)
        order = np.concatenate([order[is_subject], order[~is_subject]])
    detail = log_detail_parts if capture.program else detail_parts
    is_single = capture.connection_count == 1 or bool(capture.program)
    if not is_single:
        order = order[~_is_explained_elsewhere(capture)[order]]
    if is_single:
        large = connections["bytes"] >= MIN_DETAIL_BYTE_SHARE * connections["bytes"].max()
        order = order[large[order]]
    part = select_rows(connections, order[:max_rows])
    parts: list[Part] = []
    for row, text in zip(
        iter_plain_rows(part), advise_each_direction(part, capture.services).tolist(), strict=True
    ):
        title = Paragraph(row["src"] + ARROW + row["dst"], "heading")
        if is_single:
            parts += [BLANK_LINE, *([title] if order.size > 1 else []), *detail(row, text)]
        elif text:
            parts += [BLANK_LINE, title, Paragraph(text, "", "  ")]
    return parts


def _is_explained_elsewhere(capture: Capture) -> Array:
    """Return a mask of directions in services, and of those that failed after one data packet."""
    connections = capture.connections
    failed = np.isin(connections["connection"], capture.failed["connection"])
    few: Array = failed & (connections["data_packets"] == 1)
    return (connections["service"] >= 0) | few


def _pftk_bps(shown: Table) -> Array:
    """Return PFTK's rate in bit/s of payload, using the mean packet size of the direction."""
    with np.errstate(divide="ignore", invalid="ignore"):
        model: Array = shown["pftk_pps"] * shown["throughput_bps"] / shown["send_rate_pps"]
    return model
