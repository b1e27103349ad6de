"""Failed connections: the kind of failure, the stage of the connection, and advice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tcpcast.captures.quantity_text import format_percent, format_time
from tcpcast.captures.table import endpoint_text, select_rows, text_column, to_datetimes
from tcpcast.quantity.readable_units import count_text

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

    Example: ``3 of 5 connections failed (2 connections to ...): 2 SYNs got no response; ...``.
    """
    harmless = table["harmless"]
    groups = [rows for rows in rows_by_server_and_failure_kind(table) if not harmless[rows[0]]]
    if not groups:
        return failures
    subject, failure = _describe_failure(select_rows(table, groups[0]))
    return f"{failures} ({subject}): {failure.fact}; {failure.check}"


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
        texts.append(
            f"{harmless:,} {more} {'was' if harmless == 1 else 'were'} closed by a harmless RST"
        )
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
        lines.append(
            f"{count_text(left, 'more kind')} of failure occurred; to list all, add --table failed"
        )
    return lines


class Failure(NamedTuple):
    """A kind of failure: the fact as a clause, likely reasons, and what to check as a clause."""

    fact: str
    reasons: str
    check: str


def _failure_line(table: Table) -> str:
    """Return the sentence on connections of one kind to one server."""
    subject, failure = _describe_failure(table)
    reasons = "; ".join(filter(None, failure[1:]))
    return f"{subject}: {failure.fact}. {reasons}".removesuffix(". ")


def _describe_failure(table: Table) -> tuple[str, Failure]:
    """Return the ends of connections with one kind of failure, and this failure."""
    row = select_rows(table, 0)
    count = table["client"].size
    subject = f"{row['client']} > {row['server']}"
    if count > 1:
        subject = f"{count:,} connections to {row['server']}, first from {row['client']}"
    return subject, _FAILURES[str(row["failure"])](row, table)


def _unanswered(row: Row, table: Table) -> Failure:
    tries, waited = int(table["tries"].sum()), float(table["waited_s"].max())
    sent = count_text(tries, "SYN") + (f" in {format_time(waited)}" if waited > 0 else "")
    if row["stage"] == "old_connection":
        return Failure(
            f"{sent} received only acks of an old connection between the same ports (TIME_WAIT, or "
            "half-open)",
            "The port cannot be used again until that connection has ended",
            "check that the client's RSTs reach the server, and use other source ports",
        )
    return Failure(
        f"{sent} got no response",
        "A firewall drops the SYNs, the host is down, or the responses take another path",
        "check the address, the port and the firewall",
    )


def _refused(row: Row, _: Table) -> Failure:
    return Failure(
        f"the {row['by']} responded to the SYN with a RST after "
        f"{format_time(float(row['waited_s']))}",
        "No process listens on the port, the accept queue overflowed, or a firewall rejects the "
        "connection",
        "check the firewall, and whether a process listens on the port",
    )


def _half_open(_: Row, table: Table) -> Failure:
    return Failure(
        f"{count_text(int(table['tries'].sum()), 'SYN-ACK')} got no ack from the client",
        "The ack was lost or took another path, the client has terminated, or the source address "
        "of the SYN is forged (a SYN flood)",
        "check the return path",
    )


def _silent(row: Row, _: Table) -> Failure:
    by, other = str(row["by"]), "client" if row["by"] == "server" else "server"
    waited, tries = format_time(float(row["waited_s"])), int(row["tries"])
    failed = "The path or the host failed, or a firewall dropped the state of the connection"
    check = "check the path, the host and the firewall"
    if row["stage"] == "idle":
        probed = f"{tries:,} keepalive probes from the {other}"
        return Failure(f"for {waited}, the {by} did not respond to {probed}", failed, check)
    silence = format_time(float(row["silence_s"]))
    phrase = STAGE_PHRASES[str(row["stage"])]
    fact = f"the {by} stopped responding {silence} before the last packet, {phrase}"
    largest, last = int(row["window_max_bytes"]), int(row["window_last_bytes"])
    if has_shrunk_window(largest, last):
        fact += f", {shrunk_window_clause(largest, last, unscaled=bool(row['window_unscaled']))}"
    if row["stage"] == "closed_window":
        reasons = (
            f"The {other} sent {tries:,} window probes and received no response. The {by} had "
        )
        reasons += "stopped reading its data"
        return Failure(fact, reasons, f"first check the {by}, then the path")
    again = (
        f"The {other} retransmitted for {waited} and sent the same data {tries:,} times without a "
        f"response; {int(row['lost_bytes']):,} B were never acknowledged. "
    )
    if has_shrunk_window(largest, last):
        reasons = f"{again}The {by} did not read its data in time"
        return Failure(fact, reasons, f"first check the {by}, then the path")
    return Failure(fact, again + failed, check)


MAX_SHRUNK_WINDOW_RATIO = 0.5
"""Ratio of the last to the largest window up to which the window of a silent end had shrunk."""


def has_shrunk_window(largest: float, last: float) -> bool:
    """Return True if the last window before the silence was much smaller than the largest.

    A window that was closed in the whole capture did not shrink there.
    """
    return largest > 0 and 0 <= last <= MAX_SHRUNK_WINDOW_RATIO * largest


def shrunk_window_clause(largest: int, last: int, *, unscaled: bool) -> str:
    """Return a clause with both windows in bytes, or with their ratio if their scale is unknown."""
    if unscaled:
        return (
            f"after its window had shrunk to {format_percent(last / max(largest, 1))} of its size"
        )
    return f"after its window had shrunk from {largest:,} to {last:,} B"


def _reset(row: Row, table: Table) -> Failure:
    stage, by, waited = str(row["stage"]), str(row["by"]), float(np.max(table["waited_s"]))
    lost = int(table["lost_bytes"].sum())
    check = f"check the log of the {by} at that time"
    if stage == "in_upload":
        upload = int(table["lost_upload_bytes"].sum())
        return Failure(
            f"the server closed the connection {STAGE_PHRASES[stage]}: {upload:,} B from the "
            "client were never acknowledged",
            "The server rejected the upload or crashed. A server that has to reject an upload "
            "should read the rest of it before it closes the connection",
            f"check its limits, and {check}",
        )
    fact = f"reset by the {by} {STAGE_PHRASES[stage]}"
    if lost and row["harmless"]:
        return Failure(
            f"the client closed the connection before it had received {lost:,} B from the server",
            "Probably, the request was cancelled, or the client did not need the data",
            "",
        )
    if stage in STAGES_WITHOUT_LOSS and lost:
        fact += f", but {lost:,} B were never acknowledged"
        return Failure(fact, f"The {by} closed the connection before it had read all data", check)
    if stage == "in_request" and waited >= MIN_IDLE_TIMEOUT_S:
        return Failure(
            f"{fact}, after {format_time(waited)} of inactivity before the request",
            "The server, a load balancer or a firewall has a shorter idle timeout than the client",
            "keepalives prevent this reset",
        )
    reasons = _RESET_REASONS.get((stage, by), "")
    return Failure(fact, reasons, "" if stage in STAGES_WITHOUT_LOSS else check)


_RESET_REASONS = {
    ("in_request", "server"): "The server closed the connection while data were unread, or "
    "crashed, or a load balancer reset the connection",
    ("in_request", "client"): "The client stopped waiting: its timeout is shorter than the "
    "server's response time",
    ("in_response", "client"): "The client stopped reading, for example because the request was "
    "cancelled or timed out",
    ("in_response", "server"): "The server aborted the response",
    ("handshake", "client"): "The client gave up, or is a port scanner",
    ("before_data", "server"): "The server accepted the connection and closed it immediately, for "
    "example because of a connection limit or an access list",
    ("idle", "client"): "No data are lost. Probably, the client is a health check, or closes "
    "connections with RST (SO_LINGER 0)",
    ("idle", "server"): "No data are lost. Probably, an idle timeout expired, or the server closes "
    "connections with RST",
    ("after_fin", "client"): "No data are lost",
    ("after_fin", "server"): "No data are lost",
}
"""Likely reasons of a reset, by stage of the connection and side that sent the RST."""


def _old_connection(row: Row, table: Table) -> Failure:
    """Return the delay by an old connection between the same ports."""
    cost = format_time(float(table["waited_s"].max()))
    most = "up to " if table["client"].size > 1 else ""
    return Failure(
        f"opened {most}{cost} late, because an old connection between the same ports still existed "
        "(TIME_WAIT, or half-open)",
        f"The {row['by']} answered the first SYN with an ack of the old connection. The other end "
        "reset that connection and sent the SYN again",
        "use other source ports, or keep the connections open",
    )


def old_connection_delay_s(table: Table) -> float:
    """Return the total delay by old connections between the same ports, in seconds."""
    return float(table["waited_s"][table["failure"] == OLD_CONNECTION].sum())


def old_connection_clause(table: Table) -> str:
    """Return the delay of connections by old ones, and what to change."""
    rows = np.flatnonzero(table["failure"] == OLD_CONNECTION)
    subject, failure = _describe_failure(select_rows(table, rows))
    return f"{subject}: {failure.fact}; {failure.check}"


_FAILURES = {
    "unanswered": _unanswered,
    "refused": _refused,
    "half_open": _half_open,
    "silent": _silent,
    "reset": _reset,
    OLD_CONNECTION: _old_connection,
}


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
