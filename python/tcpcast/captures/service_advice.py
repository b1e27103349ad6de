"""The verdict on a service over all its requests, in a few sentences."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tcpcast.captures import services as service
from tcpcast.captures.names import service_label
from tcpcast.captures.quantity_text import (
    format_percent,
    format_size_rounded_up,
    format_time,
    sentence_case,
)
from tcpcast.quantity.readable_units import count_text

if TYPE_CHECKING:
    from tcpcast.array_types import Table

    Row = dict[str, Any]

CAUSE_PHRASES = {
    service.RETRANSMISSION: "retransmission of lost packets",
    service.HELD: "small segments that wait for an ack (Nagle)",
    service.SERVER: "the server's processing time",
    service.NETWORK: "the network",
    service.WINDOW: "the receive window of the client",
    service.INTERRUPTION: "an interruption",
    service.NO_RESPONSE: "requests without a response",
    service.CLIENT: "the client",
    service.CHAT: "both ends, which send when they have data, as in a chat",
    service.UNKNOWN: "unknown",
}
"""Phrases for causes in sentences."""

COMPONENT_PHRASES = {
    service.SERVER: "server",
    service.NETWORK: "network",
    service.RETRANSMISSION: "retransmission",
    service.HELD: "Nagle and delayed acks",
    service.WINDOW: "window of the client",
    service.INTERRUPTION: "interruptions",
}
"""Phrases for the components of a latency in sentences."""

ACTION_OF_CAUSE = {
    service.RETRANSMISSION: "take a second capture at the other end to find out where packets "
    "are lost (--second-capture)",
    service.HELD: "set TCP_NODELAY at the sender, or write each message with one call",
    service.SERVER: "reduce the server's response time; its log shows which requests are slow",
    service.NETWORK: "use fewer or shorter round trips: move the server closer to its clients, or "
    "send requests before earlier responses arrive",
    service.WINDOW: "let the client read faster, or raise its receive buffer",
    service.INTERRUPTION: "find out what interrupted the path or the server at this time",
    service.NO_RESPONSE: "check the server's log for these requests",
    service.CLIENT: "find out what the client waits for",
    service.CHAT: "judge the delivery of messages by the RTT and by retransmissions",
    service.UNKNOWN: "begin the capture before the connections start",
}
"""Clauses that state what to change first, by cause."""

OUTCOME_PHRASES = {
    "client_gave_up": "the client closed the connection after {wait}",
    "reset_by_server": "the server reset the connection after {wait}",
    "server_closed": "the server closed the connection after {wait}",
    "path_dead": "no copy of the request was acknowledged for {wait}",
    "capture_ended": "the capture ended after {wait}",
}
"""Reasons why a request has no response, by outcome."""

MIN_COMPONENT_SHARE = 0.005
"""Minimum share of the mean latency for a component to be named."""
MIN_NAMED_SHARE = 0.05
"""Minimum share of the mean latency for a component to be named in the headline."""
MAX_REQUESTS_PER_CONNECTION = 1.5
"""Maximum number of requests per connection for the advice to reuse connections."""
MIN_ROUND_TRIPS = 1.5
"""Minimum number of round trips in the network for the advice to save round trips."""
MIN_SLOWEST_TO_MEAN_RATIO = 1.5
"""Minimum ratio of the mean of the slowest requests to the overall mean to describe them."""

TAP_LIMITATIONS = {
    "client": "The tap is at the clients. The server's time includes queueing delays on the path. "
    "A packet lost before the tap is visible only as a gap, or from a later ack.",
    "server": "The tap is at the server. The server's time is exact. Requests lost on the path are "
    "visible only when they are retransmitted.",
    "middle": "The tap is between the ends. The server's time includes queueing delays between the "
    "tap and the server. Packets lost before the tap are visible only as gaps.",
    "unknown": "",
}
"""Sentences on the limitations of each location of the tap."""


def service_verdicts(table: Table) -> list[str]:
    """Return the verdict on each row of ``services``, in the style of the advice on directions."""
    rows = zip(*(column.tolist() for column in table.values()), strict=True)
    return [_service_verdict(dict(zip(table, row, strict=True))) for row in rows]


def latency_sentence(row: Row) -> str:
    """Return a sentence with the latency of a service, its components, and what to change.

    ``row`` is a row of ``services``.
    """
    cause = str(row["cause"])
    if cause in SENTENCE_OF_CAUSE:
        return f"{SENTENCE_OF_CAUSE[cause](row)}; {ACTION_OF_CAUSE[cause]}"
    mean = float(row["mean_s"])
    text = (
        f"{count_text(row['measured'], 'request')} to {service_label(row)} {_latency_clause(row)}"
    )
    text += _overlap_clause(row)
    text += _late_clause(row)
    if cause == service.UNKNOWN:
        return f"{text}; the capture does not show the cause; {ACTION_OF_CAUSE[cause]}"
    text += f"; the main cause is {_cause_text(row)}{_without_cause_clause(row)}"
    if cause not in service.AVOIDABLE_COMPONENTS:
        seen = [
            f"{COMPONENT_PHRASES[part]} {format_time(float(row[f'{part}_s']))}"
            for part in service.LATENCY_COMPONENTS
            if row[f"{part}_s"] >= MIN_NAMED_SHARE * mean
        ]
        if cause == service.NETWORK and 0 < row["network_s"] < MIN_ROUND_TRIPS * row["rtt_s"]:
            seen.append("one round trip")
        text += f" ({', '.join(seen)})"
    return f"{text}{_client_clause(row)}; {ACTION_OF_CAUSE[cause]}"


def _latency_clause(row: Row) -> str:
    """Return ``take 35.0 ms on average, and at most 40.1 ms in 95 % of cases``."""
    mean = format_time(float(row["mean_s"]))
    if row["measured"] == 1:
        return f"takes {mean}"
    p95 = format_time(float(row["last_byte_p95_s"]))
    return f"take {mean} on average, and at most {p95} in 95 % of cases"


def _overlap_clause(row: Row) -> str:
    """Return in parentheses which of the requests overlap, and how many are not counted."""
    overlapping = int(row["measured"]) - int(row["separable"])
    left = int(row["requests"]) - int(row["measured"]) - int(row["late"])
    texts = []
    if overlapping > 0:
        overlap = "overlaps" if overlapping == 1 else "overlap"
        texts.append(f"{overlapping:,} of them {overlap} with others")
    if left > 0:
        reason = "has no response" if left == 1 else "have no response"
        if not overlapping:
            reason = f"{'overlaps' if left == 1 else 'overlap'} or {reason}"
        texts.append(f"without {count_text(left, 'request')} that {reason}")
    return f" ({'; '.join(texts)})" if texts else ""


def _late_clause(row: Row) -> str:
    late = int(row["late"])
    if not late:
        return ""
    return f"; {count_text(late, 'more request')} got no response: {_late_reason(row)}"


def _late_reason(row: Row) -> str:
    wait = format_time(float(row["late_wait_p50_s"]))
    text = OUTCOME_PHRASES[str(row["late_outcome"])].format(wait=wait)
    return f"{text} (median)" if row["late"] > 1 else text


def _cause_text(row: Row) -> str:
    """Return the main cause as a phrase; for an avoidable one, with its share of the requests."""
    cause = str(row["cause"])
    if cause not in service.AVOIDABLE_COMPONENTS:
        return CAUSE_PHRASES[cause]
    share = format_percent(row[f"with_{cause}"] / row["measured"])
    text = f"{CAUSE_PHRASES[cause]} ({share} of the requests"
    if cause == service.RETRANSMISSION and row["retransmission_s"] < row["server_s"]:
        lost = format_time(float(row["lost_packets_s"]))
        text += f"; with the interruptions, lost packets cost {lost} on average"
    return f"{text})"


def _without_cause_clause(row: Row) -> str:
    """Return what the mean latency would be without an avoidable cause, or ""."""
    cause = str(row["cause"])
    if cause not in service.AVOIDABLE_COMPONENTS:
        return ""
    without, mean = (format_time(float(row[key])) for key in (f"without_{cause}_mean_s", "mean_s"))
    return f"; without it, the mean would be {without} instead of {mean}"


def _client_clause(row: Row) -> str:
    if not service.waits_client(row):
        return ""
    idle = format_time(float(row["client_idle_s"]))
    average = " on average" if row["measured"] > 1 else ""
    return (
        f"; the client waits {idle}{average} before a request; this wait is not part of the "
        "latency above"
    )


def _others_clause(others: int, mean_s: float) -> str:
    """Return ``; the other 59 requests take 21.9 ms on average``, or "" without others."""
    if others < 1:
        return ""
    if others == 1:
        return f"; the other request takes {format_time(mean_s)}"
    return f"; the other {others:,} requests take {format_time(mean_s)} on average"


def _interruption_sentence(row: Row) -> str:
    count, hit = row["measured"], int(row["with_interrupted"])
    length, copies = format_time(float(row["interruption_s"])), int(row["interruption_copies"])
    start = format_time(float(row["interruption_start_s"]))
    longest = (
        f"{hit:,} interruptions, the longest of {length}"
        if hit > 1
        else (f"an interruption of {length}")
    )
    sent = (
        f" ({count_text(copies, 'copy', 'copies')} of one {row['interrupted_message']})"
        if copies
        else (" (the server was silent)")
    )
    delays = "delay" if hit > 1 else "delays"
    others = _others_clause(int(row["uninterrupted"]), float(row["uninterrupted_mean_s"]))
    return (
        f"{longest}, in a request sent {start} after the start{sent}, {delays} {hit:,} of "
        f"{count_text(count, 'request')} to {service_label(row)}{others}{_late_clause(row)}"
    )


def _no_response_sentence(row: Row) -> str:
    late, count = int(row["late"]), int(row["requests"])
    others = _others_clause(row["measured"], float(row["mean_s"]))
    which = f"{late:,} of {count_text(count, 'request')}" if count > 1 else "the request"
    return f"{which} to {service_label(row)} got no response: {_late_reason(row)}{others}"


def _client_sentence(row: Row) -> str:
    idle, mean = format_time(float(row["client_idle_s"])), format_time(float(row["mean_s"]))
    parts = ", ".join(
        f"{COMPONENT_PHRASES[part]} {format_time(float(row[f'{part}_s']))}"
        for part in service.LATENCY_COMPONENTS
        if row[f"{part}_s"] >= MIN_NAMED_SHARE * row["mean_s"]
    )
    split = f" ({parts})" if parts else ""
    late = _late_clause(row)
    if row["measured"] == 1:
        return (
            f"the client waited {idle} before its request to {service_label(row)}; server and "
            f"network took {mean}{split}{late}"
        )
    return (
        f"the client waits {idle} on average before each of {row['measured']:,} requests to "
        f"{service_label(row)}; server and network take {mean} on average{split}{late}"
    )


def _chat_sentence(row: Row) -> str:
    return (
        f"both ends of {service_label(row)} send without waiting for the other end, as in a chat: "
        f"the client {count_text(int(row['client_pauses']), 'time')}, and the server "
        f"{count_text(int(row['server_pauses']), 'time')}; the time between their messages is "
        f"not a response time{_late_clause(row)}"
    )


SENTENCE_OF_CAUSE = {
    service.INTERRUPTION: _interruption_sentence,
    service.NO_RESPONSE: _no_response_sentence,
    service.CLIENT: _client_sentence,
    service.CHAT: _chat_sentence,
}
"""Functions that return a sentence on causes that are not described by the mean latency."""


def _service_verdict(row: Row) -> str:
    cause = str(row["cause"])
    start = "Limit unknown" if cause == service.UNKNOWN else f"Limited by {_cause_text(row)}"
    if cause in SENTENCE_OF_CAUSE:
        start += f": {SENTENCE_OF_CAUSE[cause](row)}"
    else:
        start += _without_cause_clause(row) + _client_clause(row)
    found = [f"{start}. {sentence_case(ACTION_OF_CAUSE[cause])}."]
    if cause == service.NETWORK:
        found += _ways_to_save_round_trips(row)
    return " ".join(found if cause in SENTENCE_OF_CAUSE else [*found, *_slowest_requests(row)])


def _ways_to_save_round_trips(row: Row) -> list[str]:
    """Return the ways to save round trips that apply to this service."""
    found = []
    if row["requests"] <= MAX_REQUESTS_PER_CONNECTION * row["connections"]:
        found.append(
            "Most connections carry one request, so each request needs an additional RTT for "
            "the handshake. Persistent connections avoid this RTT."
        )
    if row["rtt_s"] > 0 and row["network_s"] > MIN_ROUND_TRIPS * row["rtt_s"]:
        found.append(
            f"Responses of {format_size_rounded_up(row['response_bytes_p50'])} take several round "
            "trips "
            "because of slow start or the link rate. Slow start is shorter with a larger initial "
            "window, or with persistent connections that keep their window."
        )
    return found


def _slowest_requests(row: Row) -> list[str]:
    """Return a sentence on the slowest requests, if they are much slower than the mean."""
    slow = sum(row[f"slowest_{part}_s"] for part in service.LATENCY_COMPONENTS)
    cause = row["slowest_cause"]
    if not (cause and math.isfinite(slow) and slow > MIN_SLOWEST_TO_MEAN_RATIO * row["mean_s"]):
        return []
    part = row[f"slowest_{cause}_s"]
    return [
        f"The slowest 5 % of the requests take {format_time(slow)} on average. The component "
        f'"{COMPONENT_PHRASES[cause]}" increases most, to {format_time(part)}'
        f"{'' if cause == row['cause'] else ', but is not the main cause of the latency'}."
    ]
