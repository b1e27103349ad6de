"""Connections that failed: what happened, at which point, and what to check."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.table import endpoint, moments, texts
from tcpcast.captures.words import time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tcpcast.captures.table import Table

    Row = dict[str, Any]

KINDS = {
    "unanswered": "unanswered",
    "refused": "refused",
    "half_open": "half-open",
    "silent": "silent",
    "reset": "reset",
}
"""Each way in which connections fail, as a sentence counts them, the worst first."""

STAGES = {
    "handshake": "during the handshake",
    "before_data": "before any data",
    "in_request": "while a request had no response yet",
    "in_response": "in the middle of a response",
    "idle": "after all data were acknowledged",
    "after_fin": "after a FIN",
}
"""How far a connection had come."""

WITHOUT_LOSS = ("idle", "after_fin")
"""Stages at which a reset loses no data."""

IDLE_S = 10.0
"""Idle time before a reset request, at and above which an idle timeout is the likely reason."""
MOST_LINES = 5
"""Kinds of failures with a line of their own; more are in the table ``failed``."""


def failed(found: Mapping[str, Any]) -> Table:
    """Return the table of connections that failed."""
    table: Table = {"connection": found["connection"], "time": moments(found["time_ns"])}
    for end in ("client", "server"):
        table[end] = texts(endpoint(*given) for given in found[end])
    return table | {
        "failure": texts(found["failure"]),
        "by": texts(found["by"]),
        "stage": texts(found["stage"]),
        "tries": found["tries"],
        "waited_s": found["waited_s"],
    }


def summary(counts: Mapping[str, int], connections: int) -> str:
    """Return one sentence on all connections that failed; empty if none did."""
    failures = {kind: counts.get(kind, 0) for kind in KINDS}
    over = counts.get("reset_without_loss", 0)
    failures["reset"] -= over
    found = [f"{count:,} {KINDS[kind]}" for kind, count in failures.items() if count]
    of_all = f"of {connections:,} connection{_s(connections)}"
    said = [f"{sum(failures.values()):,} {of_all} failed: {', '.join(found)}"] if found else []
    if over:
        said.append(f"{over:,} {'more' if found else of_all} closed by a RST without loss of data")
    return "; ".join(said)


def explained(table: Table, most: int = MOST_LINES) -> list[str]:
    """Return a sentence for each kind of failure of a server, the most frequent first.

    A kind is a failure, the side that caused it and the point at which it happened.
    """
    keys = list(zip(*(table[key].tolist() for key in ("failure", "by", "stage")), strict=True))
    servers = table["server"].tolist()
    order: dict[tuple[Any, ...], list[int]] = {}
    for at, (key, server) in enumerate(zip(keys, servers, strict=True)):
        order.setdefault((*key, server), []).append(at)
    worst = list(KINDS)

    def rank(rows: list[int]) -> tuple[int, bool, int]:
        failure, _, stage = keys[rows[0]]
        return worst.index(failure), stage in WITHOUT_LOSS, -len(rows)

    groups = sorted(order.values(), key=rank)
    lines = [
        _line({name: column[rows] for name, column in table.items()}) for rows in groups[:most]
    ]
    if len(groups) > most:
        left = len(groups) - most
        lines.append(f"{left:,} more kind{_s(left)} of failure: --table failed lists them")
    return lines


def _line(table: Table) -> str:
    """Return the sentence on connections of one kind to one server."""
    row = {name: column[0] for name, column in table.items()}
    count = table["client"].size
    who = f"{row['client']} > {row['server']}"
    if count > 1:
        who = f"{count:,} connections to {row['server']}, first from {row['client']}"
    return f"{who}: {_SENTENCES[str(row['failure'])](row, table)}"


def _unanswered(_: Row, table: Table) -> str:
    tries, waited = int(table["tries"].sum()), float(table["waited_s"].max())
    over = f" over {time(waited)}" if waited > 0 else ""
    return (
        f"{tries:,} SYN{_s(tries)}{over} without an answer. A firewall drops them, the host is "
        "down, or the answers take another path: check the address, the port and the firewall"
    )


def _refused(row: Row, _: Table) -> str:
    return (
        f"a RST from the {row['by']} answered the SYN after {time(float(row['waited_s']))}. "
        "Nothing listens at that port, its queue of connections overflowed, or a firewall rejects "
        "it"
    )


def _half_open(_: Row, table: Table) -> str:
    tries = int(table["tries"].sum())
    return (
        f"{tries:,} SYN-ACK{_s(tries)} without the client's ack. The ack is lost, the client has "
        "gone, the SYN's address is forged (a SYN flood), or the ack takes another path"
    )


def _silent(row: Row, _: Table) -> str:
    other = "client" if row["by"] == "server" else "server"
    if row["stage"] == "idle":
        return (
            f"the {row['by']} did not answer {int(row['tries']):,} keepalive probes of the {other},"
            f" silent for {time(float(row['waited_s']))}. The host went down, the path "
            "broke, or a firewall forgot the connection"
        )
    return (
        f"the {row['by']} fell silent {STAGES[str(row['stage'])]}: the {other} sent the same data "
        f"{int(row['tries']):,} times without an answer, the last {time(float(row['waited_s']))} "
        "after the first retransmission. The path broke, the host went down, or a firewall forgot "
        "the connection"
    )


def _reset(row: Row, table: Table) -> str:
    stage, waited = str(row["stage"]), float(np.max(table["waited_s"]))
    text = f"reset by the {row['by']} {STAGES[stage]}"
    if stage == "in_request" and waited >= IDLE_S:
        return (
            f"{text}, which came after {time(waited)} of silence: an idle timeout of the server, a "
            "load balancer or a firewall is shorter than the client's; keepalives prevent it"
        )
    return text + _REASONS.get((stage, str(row["by"])), "")


_REASONS = {
    ("in_request", "server"): ". The server closed it with unread data, crashed, or a load "
    "balancer cut it: look at its log at that time",
    ("in_request", "client"): ". The client gave up waiting: compare its timeout with the "
    "server's time",
    ("in_response", "client"): ". The client stopped reading: a cancelled request, or its timeout",
    ("in_response", "server"): ". The server aborted the response: look at its log at that time",
    ("handshake", "client"): ". The client gave up, or scans ports",
    ("before_data", "server"): ". The server accepted it and closed immediately: a limit of "
    "connections or an access list",
    ("idle", "client"): ". No data are lost: a client that closes by RST (SO_LINGER 0), or a "
    "health check",
    ("idle", "server"): ". No data are lost: an idle timeout, or a server that closes by RST",
    ("after_fin", "client"): ". No data of the client are lost: it closed before it had read all",
}
"""Likely reasons of a reset at a point, by the side that sent it."""

_SENTENCES = {
    "unanswered": _unanswered,
    "refused": _refused,
    "half_open": _half_open,
    "silent": _silent,
    "reset": _reset,
}


def keepalives(counts: Mapping[str, int]) -> list[str]:
    """Return a sentence on keepalive probes (RFC 9293, 3.8.4), if there are any."""
    probes, lost = counts.get("keep_alives", 0), counts.get("keep_alives_unanswered", 0)
    if not probes:
        return []
    answers = "all answered" if not lost else f"{lost:,} without an answer"
    meaning = (
        ": the other end is gone, or a firewall forgot the connection"
        if lost
        else ": the connections are idle, and alive"
    )
    return [f"{probes:,} keepalive probe{_s(probes)}, {answers}{meaning}"]


def _s(count: int) -> str:
    return "" if count == 1 else "s"
