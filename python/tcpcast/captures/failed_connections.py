"""Failed connections: the kind of failure, the stage of the connection, and advice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.quantity_text import format_time
from tcpcast.captures.table import endpoint_text, select_rows, text_column, to_datetimes
from tcpcast.readable_units import count_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tcpcast.array_types import Table

    Row = dict[str, Any]

KINDS = ("unanswered", "refused", "half_open", "silent", "reset")
"""Kinds of failures, in descending order of severity."""

STAGE_PHRASES = {
    "handshake": "during the handshake",
    "before_data": "before any data",
    "in_request": "while a request had no response yet",
    "in_response": "in the middle of a response",
    "idle": "after all data were acknowledged",
    "after_fin": "after a FIN",
}
"""Descriptions of the stage that a connection had reached."""

STAGES_WITHOUT_LOSS = ("idle", "after_fin")
"""Stages at which a reset loses no data."""

MIN_IDLE_TIMEOUT_S = 10.0
"""Idle time before a reset request from which an idle timeout is the likely reason."""
MAX_SENTENCES = 5
"""Maximum number of kinds with a separate line; the table ``failed`` contains all."""


def failed_connections_table(found: Mapping[str, Any]) -> Table:
    """Return the table of failed connections."""
    table: Table = {"connection": found["connection"], "time": to_datetimes(found["time_ns"])}
    for end in ("client", "server"):
        table[end] = text_column(endpoint_text(*given) for given in found[end])
    return table | {
        "failure": text_column(found["failure"]),
        "by": text_column(found["by"]),
        "stage": text_column(found["stage"]),
        "tries": found["tries"],
        "waited_s": found["waited_s"],
    }


def count_failures_with_loss(counts: Mapping[str, int]) -> int:
    """Return the number of failed connections, except for resets without loss of data."""
    return sum(_count_failures_by_kind(counts).values())


def _count_failures_by_kind(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the number of failed connections per kind."""
    failures = {kind: counts.get(kind, 0) for kind in KINDS}
    failures["reset"] -= counts.get("reset_without_loss", 0)
    return failures


def main_failure_clause(table: Table, failures: str) -> str:
    """Return ``failures`` (a clause with their number) and the most severe and frequent failure.

    Examples: ``3 of 5 connections failed: 192.0.2.7:8443 did not respond to the SYN; check ...``.
    """
    groups = [
        rows
        for rows in rows_by_server_and_failure_kind(table)
        if table["failure"][rows[0]] != "reset"
        or table["stage"][rows[0]] not in STAGES_WITHOUT_LOSS
    ]
    if not groups:
        return failures
    part = select_rows(table, groups[0])
    size = len(groups[0])
    reason = _VERDICT_REASONS[str(part["failure"][0])](part)
    return f"{failures}{f', {size:,} of them because' if len(groups) > 1 else ':'} {reason}"


def have_failures_one_kind(counts: Mapping[str, int]) -> bool:
    """Return True if all failures, including those without loss of data, are of one kind."""
    kinds = sum(value > 0 for value in _count_failures_by_kind(counts).values())
    return kinds + (counts.get("reset_without_loss", 0) > 0) == 1


def failure_summary(counts: Mapping[str, int], connections: int) -> str:
    """Return one sentence on all failed connections, or "" if none failed."""
    failures = _count_failures_by_kind(counts)
    harmless = counts.get("reset_without_loss", 0)
    kinds = [f"{count:,} {kind.replace('_', '-')}" for kind, count in failures.items() if count]
    of_all = f"of {count_text(connections, 'connection')}"
    texts = [f"{sum(failures.values()):,} {of_all} failed: {', '.join(kinds)}"] if kinds else []
    if harmless:
        more = "more" if kinds else of_all
        texts.append(f"{harmless:,} {more} closed by a RST without loss of data")
    return "; ".join(texts)


def rows_by_server_and_failure_kind(table: Table) -> list[list[int]]:
    """Return row indices per server and kind, sorted by severity, then frequency.

    A kind consists of the failure, the side that caused it, and the stage.
    """
    keys = list(zip(*(table[key].tolist() for key in ("failure", "by", "stage")), strict=True))
    servers = table["server"].tolist()
    order: dict[tuple[Any, ...], list[int]] = {}
    for row, (key, server) in enumerate(zip(keys, servers, strict=True)):
        order.setdefault((*key, server), []).append(row)

    def rank(rows: list[int]) -> tuple[int, bool, int]:
        failure, _, stage = keys[rows[0]]
        return KINDS.index(failure), stage in STAGES_WITHOUT_LOSS, -len(rows)

    return sorted(order.values(), key=rank)


def failure_sentences(table: Table, max_sentences: int = MAX_SENTENCES) -> list[str]:
    """Return one sentence per server and kind of failure, sorted by severity, then frequency."""
    groups = rows_by_server_and_failure_kind(table)
    lines = [_failure_line(select_rows(table, rows)) for rows in groups[:max_sentences]]
    if len(groups) > max_sentences:
        left = len(groups) - max_sentences
        lines.append(f"{count_text(left, 'more kind')} of failure; to list all, add --table failed")
    return lines


def _failure_line(table: Table) -> str:
    """Return the sentence on connections of one kind to one server."""
    row = select_rows(table, 0)
    count = table["client"].size
    subject = f"{row['client']} > {row['server']}"
    if count > 1:
        subject = f"{count:,} connections to {row['server']}, first from {row['client']}"
    return f"{subject}: {_SENTENCE_OF_KIND[str(row['failure'])](row, table)}"


def _unanswered_syn_text(_: Row, table: Table) -> str:
    tries, waited = int(table["tries"].sum()), float(table["waited_s"].max())
    over = f" in {format_time(waited)}" if waited > 0 else ""
    return (
        f"{count_text(tries, 'SYN')}{over} got no response. A firewall drops the SYNs, "
        "the host is down, or the responses take another path; check the address, the port and the "
        "firewall"
    )


def _refused_text(row: Row, _: Table) -> str:
    return (
        f"the {row['by']} responded to the SYN with a RST after "
        f"{format_time(float(row['waited_s']))}. "
        "No process listens on the port, the accept queue overflowed, or a firewall rejects "
        "the connection"
    )


def _half_open_text(_: Row, table: Table) -> str:
    tries = int(table["tries"].sum())
    return (
        f"{count_text(tries, 'SYN-ACK')} got no ack from the client. The ack was "
        "lost or took another path, the client has terminated, or the source address of the SYN is "
        "forged (a SYN flood)"
    )


def _silent_text(row: Row, _: Table) -> str:
    other = "client" if row["by"] == "server" else "server"
    if row["stage"] == "idle":
        return (
            f"for {format_time(float(row['waited_s']))}, the {row['by']} did not respond to "
            f"{int(row['tries']):,} keepalive probes of the {other}. The host or the path failed, "
            "or a firewall dropped the state of the connection"
        )
    return (
        f"the {row['by']} stopped responding {STAGE_PHRASES[str(row['stage'])]}. The {other} sent "
        f"the same data {int(row['tries']):,} times in {format_time(float(row['waited_s']))}, but "
        "got no "
        "response. The path or the host failed, or a firewall dropped the state of the connection"
    )


def _reset_text(row: Row, table: Table) -> str:
    stage, waited = str(row["stage"]), float(np.max(table["waited_s"]))
    text = f"reset by the {row['by']} {STAGE_PHRASES[stage]}"
    if stage == "in_request" and waited >= MIN_IDLE_TIMEOUT_S:
        return (
            f"{text}. The request was sent after {format_time(waited)} of inactivity. The server, "
            "a "
            "load balancer or a firewall has a shorter idle timeout than the client. Keepalives "
            "prevent this reset"
        )
    return text + _RESET_REASONS.get((stage, str(row["by"])), "")


_RESET_REASONS = {
    (
        "in_request",
        "server",
    ): ". The server closed the connection with unread data or crashed, or a "
    "load balancer reset the connection; check the server's log at that time",
    ("in_request", "client"): ". The client stopped waiting; compare its timeout with the "
    "server's response time",
    ("in_response", "client"): ". The client stopped reading, for example because the request was "
    "cancelled or timed out",
    ("in_response", "server"): ". The server aborted the response; check its log at that time",
    ("handshake", "client"): ". The client gave up, or is a port scanner",
    ("before_data", "server"): ". The server accepted the connection and closed it immediately, "
    "for example because of a connection limit or an access list",
    ("idle", "client"): ". No data are lost. Probably, the client is a health check, or closes "
    "connections with RST (SO_LINGER 0)",
    (
        "idle",
        "server",
    ): ". No data are lost. Probably, an idle timeout expired, or the server closes connections "
    "with RST",
    ("after_fin", "client"): ". No data from the client are lost. The client closed the "
    "connection before it had read all data",
}
"""Likely reasons of a reset, by stage of the connection and side that sent the RST."""

_SENTENCE_OF_KIND = {
    "unanswered": _unanswered_syn_text,
    "refused": _refused_text,
    "half_open": _half_open_text,
    "silent": _silent_text,
    "reset": _reset_text,
}


def _failing_side_text(table: Table) -> str:
    """Return the side that caused a kind of failure, with its address if it is unique."""
    side = str(table["by"][0])
    ends = set(table[side].tolist())
    return f"the {side} {ends.pop()}" if len(ends) == 1 else f"the {side}s"


_VERDICT_REASONS = {
    "unanswered": lambda table: (
        f"{table['server'][0]} did not respond to the SYN; check the address, the port and the "
        "firewall"
    ),
    "refused": lambda table: (
        f"{_failing_side_text(table)} responded to the SYN with a RST; check the firewall, and "
        "that a process listens on the port"
    ),
    "half_open": lambda table: (
        f"the SYN-ACK of {table['server'][0]} got no ack; check the return path, and whether the "
        "source address of the SYN is forged"
    ),
    "silent": lambda table: (
        f"{_failing_side_text(table)} stopped responding {STAGE_PHRASES[str(table['stage'][0])]}; "
        "check the path, the host and the firewall"
    ),
    "reset": lambda table: (
        f"{_failing_side_text(table)} sent a RST {STAGE_PHRASES[str(table['stage'][0])]}; check "
        f"the log of the {table['by'][0]} at that time"
    ),
}
"""Reason and first check for each kind of failure, as clauses of the verdict."""


def keepalive_sentence(counts: Mapping[str, int]) -> list[str]:
    """Return a sentence on keepalive probes (RFC 9293, 3.8.4), if there are any."""
    probes, lost = counts.get("keep_alives", 0), counts.get("keep_alives_unanswered", 0)
    if not probes:
        return []
    result = (
        f"{lost:,} without a response: the other end is down, or a firewall dropped the state of "
        "the connection"
        if lost
        else "all answered: the connections are idle but alive"
    )
    return [f"{count_text(probes, 'keepalive probe')}, {result}"]
