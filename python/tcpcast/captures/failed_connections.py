"""Failed connections: the kind of failure, the stage of the connection, and advice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.quantity_text import format_percent, format_time
from tcpcast.captures.table import endpoint_text, select_rows, text_column, to_datetimes
from tcpcast.readable_units import count_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tcpcast.array_types import Table

    Row = dict[str, Any]

FAILURE_KINDS = ("unanswered", "refused", "half_open", "silent", "reset")
"""Kinds of failures, in descending order of severity."""
OLD_CONNECTION = "old_connection"
KINDS = (*FAILURE_KINDS, OLD_CONNECTION)
"""Values of ``failure``: also the connections that an old connection delayed."""

STAGE_PHRASES = {
    "handshake": "during the handshake",
    "old_connection": "while an old connection existed",
    "before_data": "before any data",
    "in_request": "while a request had no response yet",
    "in_upload": "before it had received all data of the client",
    "in_response": "in the middle of a response",
    "closed_window": "with a closed window",
    "idle": "after all data were acknowledged",
    "after_fin": "after a FIN",
}
"""Descriptions of the stage that a connection had reached."""

STAGES_WITHOUT_LOSS = ("idle", "after_fin")
"""Stages at which a reset loses no data, if all data were acknowledged."""

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
        "lost_bytes": found["lost_bytes"],
        "lost_upload_bytes": found["lost_upload_bytes"],
        "harmless": found["harmless"],
        "silence_s": found["silence_s"],
        "window_max_bytes": found["window_max_bytes"],
        "window_last_bytes": found["window_last_bytes"],
        "window_unscaled": found["window_unscaled"],
    }


def count_failures_with_loss(counts: Mapping[str, int]) -> int:
    """Return the number of failed connections, except for resets without loss of data."""
    return sum(_count_failures_by_kind(counts).values())


def _count_failures_by_kind(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the number of failed connections per kind."""
    failures = {kind: counts.get(kind, 0) for kind in FAILURE_KINDS}
    failures["reset"] -= counts.get("reset_without_loss", 0)
    return failures


def main_failure_clause(table: Table, failures: str) -> str:
    """Return ``failures`` (a clause with their number) and the most severe and frequent failure.

    Examples: ``3 of 5 connections failed: 192.0.2.7:8443 did not respond to the SYN; check ...``.
    """
    harmless = table["harmless"]
    groups = [rows for rows in rows_by_server_and_failure_kind(table) if not harmless[rows[0]]]
    if not groups:
        return failures
    part = select_rows(table, groups[0])
    size = len(groups[0])
    reason = _VERDICT_REASONS[str(part["failure"][0])](part)
    return f"{failures}{f', {size:,} of them because' if len(groups) > 1 else ':'} {reason}"


def have_failures_one_kind(counts: Mapping[str, int]) -> bool:
    """Return True if all failures, including those without loss of data, are of one kind."""
    others = (counts.get(key, 0) for key in ("reset_without_loss", "old_connection"))
    return sum(value > 0 for value in (*_count_failures_by_kind(counts).values(), *others)) == 1


def failure_summary(counts: Mapping[str, int], connections: int) -> str:
    """Return one sentence on all failed connections, or "" if none failed."""
    failures = _count_failures_by_kind(counts)
    harmless = counts.get("reset_without_loss", 0)
    kinds = [f"{count:,} {kind.replace('_', '-')}" for kind, count in failures.items() if count]
    of_all = f"of {count_text(connections, 'connection')}"
    texts = [f"{sum(failures.values()):,} {of_all} failed: {', '.join(kinds)}"] if kinds else []
    if harmless:
        more = "more" if texts else of_all
        texts.append(f"{harmless:,} {more} closed by a harmless RST")
    if counts.get("old_connection", 0):
        more = "more" if texts else of_all
        texts.append(
            f"{counts['old_connection']:,} {more} opened late because of an old connection between "
            "the same ports"
        )
    return "; ".join(texts)


def rows_by_server_and_failure_kind(table: Table) -> list[list[int]]:
    """Return row indices per server and kind, sorted by severity, then frequency.

    A kind consists of the failure, the side that caused it, the stage, and whether it is harmless.
    """
    names = [table[key].tolist() for key in ("failure", "by", "stage")]
    keys = list(zip(*names, table["harmless"].tolist(), strict=True))
    servers = table["server"].tolist()
    order: dict[tuple[Any, ...], list[int]] = {}
    for row, (key, server) in enumerate(zip(keys, servers, strict=True)):
        order.setdefault((*key, server), []).append(row)

    def rank(rows: list[int]) -> tuple[int, bool, int]:
        failure, _, _, harmless = keys[rows[0]]
        return KINDS.index(failure), harmless, -len(rows)

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


def _unanswered_syn_text(row: Row, table: Table) -> str:
    tries, waited = int(table["tries"].sum()), float(table["waited_s"].max())
    over = f" in {format_time(waited)}" if waited > 0 else ""
    if row["stage"] == "old_connection":
        return (
            f"{count_text(tries, 'SYN')}{over} got only acks of an old connection between the same "
            "ports (TIME_WAIT, or half-open). Each port must wait until that connection has ended; "
            "check that the client's RSTs reach the server, and use other source ports"
        )
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
    text = f"the {row['by']} stopped responding {_silence_text(row)}"
    if row["stage"] == "closed_window":
        return (
            f"{text}. The {other} sent {int(row['tries']):,} window probes without a response. The "
            f"{row['by']} had not read for long: first check it, then the path"
        )
    again = (
        f"The {other} retransmitted for {format_time(float(row['waited_s']))} and sent the same "
        f"data {int(row['tries']):,} times without a response; {int(row['lost_bytes']):,} B were "
        "never acknowledged"
    )
    if has_shrunk_window(row["window_max_bytes"], row["window_last_bytes"]):
        return (
            f"{text}, {_shrunk_window_clause_of(row)}. {again}. The {row['by']} did not read its "
            "data in time: first check it, then the path"
        )
    return (
        f"{text}. {again}. The path or the host failed, or a firewall dropped the state of the "
        "connection"
    )


MAX_SHRUNK_WINDOW_RATIO = 0.5
"""Ratio of the last to the largest window up to which the window of a silent end had shrunk."""


def has_shrunk_window(largest: float, last: float) -> bool:
    """Return True if the last window before the silence was much smaller than the largest."""
    return 0 <= last <= MAX_SHRUNK_WINDOW_RATIO * largest


def shrunk_window_clause(largest: int, last: int, *, unscaled: bool) -> str:
    """Return a clause with both windows in bytes, or with their ratio if their scale is unknown."""
    if unscaled:
        return (
            f"after its window had shrunk to {format_percent(last / max(largest, 1))} of its size"
        )
    return f"after its window had shrunk from {largest:,} to {last:,} B"


def _shrunk_window_clause_of(row: Row) -> str:
    largest, last = int(row["window_max_bytes"]), int(row["window_last_bytes"])
    return shrunk_window_clause(largest, last, unscaled=bool(row["window_unscaled"]))


def _silence_text(row: Row) -> str:
    """Return the time of the silence of one end, and the stage of the connection."""
    phrase = STAGE_PHRASES[str(row["stage"])]
    return f"{format_time(float(row['silence_s']))} before the last packet, {phrase}"


def _reset_text(row: Row, table: Table) -> str:
    stage, waited = str(row["stage"]), float(np.max(table["waited_s"]))
    lost = int(table["lost_bytes"].sum())
    if stage == "in_upload":
        upload = int(table["lost_upload_bytes"].sum())
        return (
            f"the server closed the connection {STAGE_PHRASES[stage]}: {upload:,} B of the client "
            "were never acknowledged. The server rejected the upload or crashed; check its limits "
            "and its log at that time. A server that has to reject an upload should read the rest "
            "of it before it closes"
        )
    text = f"reset by the {row['by']} {STAGE_PHRASES[stage]}"
    if lost and row["harmless"]:
        return (
            f"closed by the client before {lost:,} B of the server reached it. Probably, the "
            "request was cancelled, or the client did not need the data"
        )
    if stage in STAGES_WITHOUT_LOSS and lost:
        return (
            f"{text}, but {lost:,} B were never acknowledged. The {row['by']} closed the "
            "connection before it had read all data; check its log at that time"
        )
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
    ("after_fin", "client"): ". No data are lost",
    ("after_fin", "server"): ". No data are lost",
}
"""Likely reasons of a reset, by stage of the connection and side that sent the RST."""


def _old_connection_text(row: Row, table: Table) -> str:
    """Return the delay by an old connection between the same ports."""
    count, cost = table["client"].size, float(table["waited_s"].max())
    time = f"up to {format_time(cost)}" if count > 1 else format_time(cost)
    return (
        f"the first SYN met an old connection between the same ports (TIME_WAIT, or half-open): "
        f"the {row['by']} acknowledged the old connection, and the other end reset it and sent "
        f"the SYN again. This cost {time}. Use other source ports, or keep the connections open"
    )


def old_connection_delay_s(table: Table) -> float:
    """Return the total delay by old connections between the same ports, in seconds."""
    return float(table["waited_s"][table["failure"] == OLD_CONNECTION].sum())


def old_connection_clause(table: Table, count: int) -> str:
    """Return the delay of ``count`` connections by old ones, and what to change."""
    rows = table["failure"] == OLD_CONNECTION
    server = str(table["server"][rows][0])
    which = f"1 connection to {server}" if count == 1 else f"{count:,} connections, as to {server},"
    each = "" if count == 1 else "up to "
    return (
        f"{which} opened late, because the first SYN met an old connection between the same ports "
        f"(TIME_WAIT, or half-open); this cost {each}"
        f"{format_time(float(table['waited_s'][rows].max()))}; use other source ports, or keep the "
        "connections open"
    )


_SENTENCE_OF_KIND = {
    "unanswered": _unanswered_syn_text,
    "refused": _refused_text,
    "half_open": _half_open_text,
    "silent": _silent_text,
    "reset": _reset_text,
    "old_connection": _old_connection_text,
}


def _failing_side_text(table: Table) -> str:
    """Return the side that caused a kind of failure, with its address if it is unique."""
    side = str(table["by"][0])
    ends = set(table[side].tolist())
    return f"the {side} {ends.pop()}" if len(ends) == 1 else f"the {side}s"


def _unanswered_reason(table: Table) -> str:
    if table["stage"][0] == "old_connection":
        return (
            f"{table['server'][0]} responded to the SYN only with acks of an old connection "
            "between the same ports; use other source ports, and check that the client's RSTs "
            "arrive"
        )
    return (
        f"{table['server'][0]} did not respond to the SYN; check the address, the port and the "
        "firewall"
    )


def _silent_reason(table: Table) -> str:
    row = select_rows(table, 0)
    shrunk = has_shrunk_window(row["window_max_bytes"], row["window_last_bytes"])
    first = row["stage"] == "closed_window" or (row["stage"] != "idle" and shrunk)
    check = f"first check the {row['by']}" if first else "check the path, the host and the firewall"
    when = STAGE_PHRASES[str(row["stage"])] if row["stage"] == "idle" else _silence_text(row)
    windows = f", {_shrunk_window_clause_of(row)}" if first and shrunk else ""
    return f"{_failing_side_text(table)} stopped responding {when}{windows}; {check}"


def _reset_reason(table: Table) -> str:
    by, stage, lost = table["by"][0], str(table["stage"][0]), int(table["lost_bytes"].sum())
    side = _failing_side_text(table)
    check = f"check the log of the {by} at that time"
    if stage == "in_upload":
        upload = int(table["lost_upload_bytes"].sum())
        closed = f"{side} closed the connection {STAGE_PHRASES[stage]}"
        return f"{closed}, and {upload:,} B of the client were lost; {check}"
    lost_text = f", and {lost:,} B were lost" if stage in STAGES_WITHOUT_LOSS and lost else ""
    return f"{side} sent a RST {STAGE_PHRASES[stage]}{lost_text}; {check}"


_VERDICT_REASONS = {
    "unanswered": _unanswered_reason,
    "refused": lambda table: (
        f"{_failing_side_text(table)} responded to the SYN with a RST; check the firewall, and "
        "that a process listens on the port"
    ),
    "half_open": lambda table: (
        f"the SYN-ACK of {table['server'][0]} got no ack; check the return path, and whether the "
        "source address of the SYN is forged"
    ),
    "silent": _silent_reason,
    "reset": _reset_reason,
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
