"""The verdict on a capture: one sentence on its main transfer, service or failure.

The sentence is built from the tables of the capture. Its values are also in the report and in the
JSON document, with the same rounding.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tcpcast.captures.advice import (
    NamedLimit,
    cause_or_limit_keys,
    limit_of_each_direction,
    limit_phrase,
)
from tcpcast.captures.failed_connections import (
    OLD_CONNECTION,
    count_failures_with_loss,
    main_failure_clause,
    old_connection_clause,
)
from tcpcast.captures.groups import ANY_HOST
from tcpcast.captures.interruptions import interruption_clause
from tcpcast.captures.limit_remedies import FASTER_LINK
from tcpcast.captures.quantity_text import (
    format_digits,
    format_percent,
    format_rate,
    format_volume,
    sentence_case,
)
from tcpcast.captures.service_advice import latency_sentence
from tcpcast.captures.subject import (
    MIN_MAIN_SHARE,
    TRANSFER_KINDS,
    bytes_by_limit,
    capture_subject,
)
from tcpcast.captures.table import select_rows
from tcpcast.limit_names import LIMIT_NAMES, limit_name_with_article
from tcpcast.readable_units import count_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpcast.array_types import Table
    from tcpcast.captures.capture_tables import CaptureTables
    from tcpcast.captures.subject import Subject

MIN_SECOND_LIMIT_SHARE = 0.2
"""Minimum share of the bytes for a second limit to be named."""
UNKNOWN = "unknown"


def captures_verdict(
    captures: Sequence[CaptureTables], groups: Sequence[Table] | None = None
) -> str:
    """Return the verdict on the capture with the most data; it names the file among several."""
    if not captures:
        return ""
    sizes = [int(capture.connections["bytes"].sum()) for capture in captures]
    largest = int(np.argmax(sizes))
    main = captures[largest]
    verdict = capture_verdict(main, None if groups is None else groups[largest])
    if len(captures) == 1:
        return verdict
    others = [each for each in captures if each is not main and count_failures_with_loss(each.rest)]
    more = f" In {count_text(len(others), 'other capture')}, connections failed." if others else ""
    return f"Most data are in {main.file}: {verdict}{more}"


def capture_verdict(capture: CaptureTables, groups: Table | None = None) -> str:
    """Return the main result of a capture as a sentence on its :class:`Subject`.

    An unknown cause is not stated.

    Parameters
    ----------
    capture
        The results of one capture.
    groups
        Groups of flows of this capture; the subject is then the group with the most bytes.
    """
    if not capture.segments:
        return "The capture contains no TCP packets."
    subject = capture_subject(capture, groups)
    failures, left = subject.failures, capture.rest.get("directions", 0)
    of_all = (
        f"{failures:,} of {capture.connection_count:,} connections failed"
        if capture.connection_count > 1
        else "the connection failed"
    )
    leads = subject.kind == "failures"
    parts = [
        main_failure_clause(capture.failed, of_all) if leads else _data_statement(capture, subject),
        _interruption_statement(capture, subject),
        _loss_between_statement(capture.between),
        of_all if failures and not leads else "",
        f"{left:,} directions with less data are not included" if left else "",
        "only part of the capture was read" if capture.damaged or capture.interrupted else "",
    ]
    sentence = "; ".join(filter(None, parts)) + "."
    return sentence_case(sentence)


def _interruption_statement(capture: CaptureTables, subject: Subject) -> str:
    """Return a long silence during the transfers of the verdict, or ""."""
    if subject.kind not in TRANSFER_KINDS:
        return ""
    part = select_rows(capture.connections, list(subject.directions))
    lasted = float(np.nan_to_num(part["duration_s"]).max(initial=0.0))
    return interruption_clause(capture.interruptions, part["connection"].tolist(), lasted)


def directions_without_service(table: Table) -> Table:
    """Return the directions that do not belong to a service."""
    return select_rows(table, table["service"] < 0)


def _data_statement(capture: CaptureTables, subject: Subject) -> str:
    """Return the statement on the data of a capture."""
    table, rows = capture.connections, list(subject.directions)
    if subject.kind == OLD_CONNECTION:
        return old_connection_clause(capture.failed, capture.rest[OLD_CONNECTION])
    if subject.kind == "none":
        return _no_data_statement(capture)
    if subject.kind == "service":
        return latency_sentence(select_rows(capture.services, subject.row))
    if subject.kind == "transfer":
        return _transfer_statement(table, rows[0], capture.connection_count)
    if subject.kind == "transfers":
        return _all_transfers_statement(select_rows(table, rows))
    return _flows_statement(subject, select_rows(table, rows), table)


def _no_data_statement(capture: CaptureTables) -> str:
    uncaptured = capture.rest.get("uncaptured_bytes", 0)
    if uncaptured:
        return (
            f"the capture contains acks for {uncaptured:,} bytes, but not the data; capture both "
            "directions"
        )
    count = capture.connection_count
    return f"the {f'{count:,} connections carry' if count > 1 else 'connection carries'} no data"


def _transfer_statement(table: Table, row: int, connections: int) -> str:
    """Return the statement on one direction: bytes, rate, limit and action."""
    source, destination = str(table["src"][row]), str(table["dst"][row])
    sent = format_volume(float(table["bytes"][row]))
    bps = float(table["throughput_bps"][row])
    speed = f" at {format_rate(bps)}" if math.isfinite(bps) else ""
    if speed and format_rate(bps) != format_rate(float(table["goodput_bps"][row])):
        speed += " (including retransmissions)"
    is_most = table["bytes"][row] == table["bytes"].max()
    most = f" ({'the most data ' if is_most else 'one '}of {connections:,} connections)"
    most = most if connections > 1 else ""
    name = str(table["server_name"][row])
    server = f" (server {name})" if name else ""
    return (
        f"{source} sends {sent} to {destination}{server}{most}{speed}"
        f"{_limit_and_action(table, row)}"
    )


def _limit_and_action(table: Table, row: int) -> str:
    """Return the limit of a direction with its evidence, and the action."""
    found = _limit_of_row(table, row)
    evidence, _, action = found.remedy
    if found.limit == UNKNOWN:
        return f"; the capture does not show what limits the rate; {action}"
    actions = "; ".join(filter(None, (action, found.second_action)))
    return f", limited by {limit_phrase(found)}{evidence}; {actions}"


def _limit_of_row(table: Table, row: int) -> NamedLimit:
    return limit_of_each_direction(select_rows(table, [row]))[0]


def _all_transfers_statement(table: Table) -> str:
    """Return the shares of the bytes per limit, and the largest transfer with the main limit."""
    found = bytes_by_limit(table)
    limit, shares = str(found["limit"][0]), found["byte_share"].tolist()
    row = _largest_row_limited_by(table, limit)
    text = f"{table['src'].size:,} transfers send {format_volume(float(table['bytes'].sum()))}"
    if limit == UNKNOWN:
        ends = f"{table['src'][row]} > {table['dst'][row]}"
        return (
            f"{text}; for {format_percent(shares[0])} of these bytes, the capture does not show "
            f"the limit. {ends} is the largest transfer without a known limit; "
            f"{_limit_of_row(table, row).remedy.action}"
        )
    part = ", all" if len(shares) == 1 else f"; {format_percent(shares[0])} of the bytes are"
    text += f"{part} limited by {limit_name_with_article(limit)}"
    if len(shares) > 1 and shares[1] >= MIN_SECOND_LIMIT_SHARE:
        second = limit_name_with_article(str(found["limit"][1]))
        text += f", and {format_percent(shares[1])} are limited by {second}"
    return f"{text}; for example, {_transfer_statement(table, row, 1)}"


def _largest_row_limited_by(table: Table, limit: str) -> int:
    """Return the row with the most bytes among those with a limit."""
    rows = [LIMIT_NAMES[key] == LIMIT_NAMES[limit] for key in cause_or_limit_keys(table).tolist()]
    return int(np.argmax(np.where(rows, table["bytes"], -1)))


def _flows_statement(subject: Subject, part: Table, table: Table) -> str:
    """Return the statement on the flows of a group, or on parallel flows.

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
    sent = f"send{'s' if subject.flows == 1 else ''} {format_volume(float(subject.bytes))}{most}"
    bps = subject.throughput_bps
    speed = f" at {format_rate(bps)}" if math.isfinite(bps) else ""
    speed += " in total" if speed and parallel else ""
    found, limit = bytes_by_limit(part), subject.limit
    if found["byte_share"][0] < MIN_MAIN_SHARE or limit == UNKNOWN:
        return f"{who} {sent}{speed}; the capture does not show a main limit"
    action = _limit_of_row(part, _largest_row_limited_by(part, limit)).remedy.action
    of_one = "for the largest flow, " if subject.flows > 1 and action != FASTER_LINK else ""
    mostly = "mostly " if found["limit"].size > 1 else ""
    name = limit_name_with_article(limit)
    return f"{who} {sent}{speed}, {mostly}limited by {name}; {of_one}{action}"


def _loss_between_statement(between: Table) -> str:
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
