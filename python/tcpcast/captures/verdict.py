"""The findings on a capture: its main transfer, service or failure.

They are built from the tables of the capture. Their values are also in the report and in the JSON
document.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.answer import Metric
from tcpcast.answer.finding import Finding
from tcpcast.answer.limit_names import LIMIT_NAMES, limit_name_with_article
from tcpcast.captures.advice import cause_or_limit_keys, limit_of_each_direction, limit_shares_text
from tcpcast.captures.failed_connections import (
    count_failures_with_loss,
    main_failure_clause,
    old_connection_clause,
)
from tcpcast.captures.groups import ANY_HOST
from tcpcast.captures.interruptions import interruption_clause
from tcpcast.captures.limit_remedies import FASTER_LINK
from tcpcast.captures.quantity_text import format_digits, format_percent, format_rate, format_volume
from tcpcast.captures.service_advice import latency_sentence
from tcpcast.captures.subject import (
    MIN_MAIN_SHARE,
    TRANSFER_KINDS,
    bytes_by_limit,
    capture_subject,
    relevant_failure_counts,
    relevant_failures,
)
from tcpcast.captures.table import select_rows
from tcpcast.quantity.readable_units import count_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpcast.array_types import Table
    from tcpcast.captures.capture_tables import CaptureTables
    from tcpcast.captures.subject import Subject

MIN_SECOND_LIMIT_SHARE = 0.2
"""Minimum share of the bytes for a second limit to be named."""
UNKNOWN = "unknown"


def captures_findings(
    captures: Sequence[CaptureTables], groups: Sequence[Table] | None = None
) -> list[Finding]:
    """Return the findings on the capture with the most data; they name the file among several."""
    if not captures:
        return []
    largest = int(np.argmax([int(capture.connections["bytes"].sum()) for capture in captures]))
    main = captures[largest]
    first, *rest = capture_findings(main, None if groups is None else groups[largest])
    if len(captures) == 1:
        return [first, *rest]
    others = [
        each
        for each in captures
        if each is not main and count_failures_with_loss(relevant_failure_counts(each))
    ]
    text = f"connections of {count_text(len(others), 'other capture')} failed" if others else ""
    first = replace(first, subject=f"most data are in {main.file}: {first.subject}")
    return [first, *rest, *_texts(text)]


def capture_findings(capture: CaptureTables, groups: Table | None = None) -> list[Finding]:
    """Return the findings on a capture, on its :class:`Subject` first.

    An unknown cause is not stated.

    Parameters
    ----------
    capture
        The results of one capture.
    groups
        Groups of flows of this capture; the subject is then the group with the most bytes.
    """
    if not capture.segments:
        return _texts("the capture contains no TCP packets")
    subject = capture_subject(capture, groups)
    failures, left = subject.failures, capture.rest.get("directions", 0)
    of_all = (
        f"{failures:,} of {capture.connection_count:,} connections failed"
        if capture.connection_count > 1
        else "the connection failed"
    )
    leads = subject.kind == "failures"
    return [
        *(
            _texts(main_failure_clause(relevant_failures(capture), of_all))
            if leads
            else _data_findings(capture, subject)
        ),
        *_texts(
            _interruption_clause(capture, subject),
            _loss_between_clause(capture.between),
            of_all if failures and not leads else "",
            f"{left:,} directions with less data are not included" if left else "",
            "only part of the capture was read" if capture.damaged or capture.interrupted else "",
        ),
    ]


def _texts(*clauses: str) -> list[Finding]:
    return [Finding(clause, claim="text") for clause in clauses if clause]


def _interruption_clause(capture: CaptureTables, subject: Subject) -> str:
    """Return a long silence during the transfers of the verdict, or ""."""
    if subject.kind not in TRANSFER_KINDS:
        return ""
    part = select_rows(capture.connections, list(subject.directions))
    lasted = float(np.nan_to_num(part["duration_s"]).max(initial=0.0))
    return interruption_clause(capture.interruptions, part["connection"].tolist(), lasted)


def directions_without_service(table: Table) -> Table:
    """Return the directions that do not belong to a service."""
    return select_rows(table, table["service"] < 0)


def _data_findings(capture: CaptureTables, subject: Subject) -> list[Finding]:
    """Return the findings on the data of a capture."""
    table, rows = capture.connections, list(subject.directions)
    match subject.kind:
        case "old_connection":
            return _texts(old_connection_clause(capture.failed))
        case "none":
            return _texts(_no_data_clause(capture))
        case "service":
            return _texts(latency_sentence(select_rows(capture.services, subject.row)))
        case "transfer":
            return [transfer_finding(table, rows[0], capture.connection_count)]
        case "transfers":
            return _all_transfers_findings(select_rows(table, rows))
    return [_flows_finding(subject, select_rows(table, rows), table)]


def _no_data_clause(capture: CaptureTables) -> str:
    uncaptured = capture.rest.get("uncaptured_bytes", 0)
    if uncaptured:
        return (
            f"the capture contains acks for {uncaptured:,} bytes, but not the data; capture both "
            "directions"
        )
    count = capture.connection_count
    return f"the {f'{count:,} connections carry' if count > 1 else 'connection carries'} no data"


def transfer_finding(table: Table, row: int, connections: int) -> Finding:
    """Return the finding on one direction: bytes, rate, limit and action."""
    sent = format_volume(float(table["bytes"][row]))
    is_most = table["bytes"][row] == table["bytes"].max()
    most = f" ({'the most data ' if is_most else 'one '}of {connections:,} connections)"
    name = str(table["server_name"][row])
    server = f" (server {name})" if name else ""
    bps, goodput = float(table["throughput_bps"][row]), float(table["goodput_bps"][row])
    found = limit_of_each_direction(select_rows(table, [row]))[0]
    evidence, _, action = found.remedy
    return _rate_finding(
        f"{table['src'][row]} sends {sent} to {table['dst'][row]}{server}"
        f"{most if connections > 1 else ''}",
        bps,
        # With retransmissions, the throughput exceeds the goodput.
        metric="throughput_bps" if format_rate(bps) == format_rate(goodput) else "send_rate_bps",
        limit=found.limit,
        evidence=limit_shares_text(found) + evidence,
        action="; ".join(filter(None, (action, found.second_action))),
    )


def _rate_finding(subject: str, bps: float, *, limit: str, **fields: Any) -> Finding:
    """Return a finding on the rate of transfers with its limit, if they are known."""
    if limit == UNKNOWN:
        limit, fields["evidence"] = "", "; the capture does not show what limits the rate"
    fields |= {"value": Metric(bps), "claim": "value" if math.isfinite(bps) else "text"}
    return Finding(subject, kind="measurement", limit=limit, **fields)


def _all_transfers_findings(table: Table) -> list[Finding]:
    """Return the shares of the bytes per limit, and the largest transfer with the main limit."""
    found = bytes_by_limit(table)
    limits, shares = found["limit"].tolist(), found["byte_share"].tolist()
    texts = [
        f"{table['src'].size:,} transfers send {format_volume(float(table['bytes'].sum()))}",
        *(
            f"for {format_percent(share)} of these bytes, the capture does not show the limit"
            if limit == UNKNOWN
            else f"{format_percent(share)} of these bytes are limited by "
            f"{limit_name_with_article(limit)}"
            for limit, share in list(zip(limits, shares, strict=True))[:2]
            if limit == limits[0]
            or (limit != UNKNOWN != limits[0] and share >= MIN_SECOND_LIMIT_SHARE)
        ),
    ]
    example = transfer_finding(table, largest_row_limited_by(table, limits[0]), 1)
    return [*_texts(*texts), replace(example, subject=f"for example, {example.subject}")]


def largest_row_limited_by(table: Table, limit: str) -> int:
    """Return the row with the most bytes among those with a limit."""
    rows = [LIMIT_NAMES[key] == LIMIT_NAMES[limit] for key in cause_or_limit_keys(table).tolist()]
    return int(np.argmax(np.where(rows, table["bytes"], -1)))


def _flows_finding(subject: Subject, part: Table, table: Table) -> Finding:
    """Return the finding on the flows of a group, or on parallel flows.

    ``part`` holds the rows of the subject, ``table`` all rows.
    """
    parallel = "parallel " if subject.kind == "parallel" else ""
    who = count_text(subject.flows, f"{parallel}flow") + "".join(
        f" {word} {end}"
        for word, end in (("from", subject.source), ("to", subject.destination))
        if end != ANY_HOST
    )
    is_largest_group = subject.kind == "group" and part["src"].size < table["src"].size
    most = " (the most data of all groups)" if is_largest_group else ""
    verb = "sends" if subject.flows == 1 else "together send" if parallel else "send"
    found, limit, action = bytes_by_limit(part), subject.limit, ""
    if found["byte_share"][0] < MIN_MAIN_SHARE:
        limit = UNKNOWN
    if limit != UNKNOWN:
        row = largest_row_limited_by(part, limit)
        action = limit_of_each_direction(select_rows(part, [row]))[0].remedy.action
        is_of_one = subject.flows > 1 and action != FASTER_LINK
        action = f"for the largest flow, {action}" if is_of_one else action
    return _rate_finding(
        f"{who} {verb} {format_volume(float(subject.bytes))}{most}",
        subject.throughput_bps,
        metric="throughput_bps",
        limit=limit,
        evidence=" for most of the bytes" if found["limit"].size > 1 else "",
        action=action,
    )


def _loss_between_clause(between: Table) -> str:
    """Return the loss between the two taps in the direction with the largest loss ratio."""
    if not between:
        return ""
    if not np.isfinite(between["loss_ratio_between"]).any():
        return "the loss between the taps is unknown, because most packets cannot be matched"
    row = int(np.nanargmax(between["loss_ratio_between"]))
    lost, ratio = int(between["lost_between"][row]), float(between["loss_ratio_between"][row])
    if not lost:
        return "no packet was lost between the taps"
    verb = "packet was" if lost == 1 else "packets were"
    return f"between the taps, {lost:,} {verb} lost ({format_digits(100 * ratio)} %)"
