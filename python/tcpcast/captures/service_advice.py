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
    format_times,
)
from tcpcast.readable_units import count_text

if TYPE_CHECKING:
    from tcpcast.array_types import Table

    Row = dict[str, Any]

CAUSE_PHRASES = {
    service.RETRANSMISSION: "retransmission of lost packets",
    service.HELD: "small segments that wait for an ack (Nagle)",
    service.SERVER: "the server's processing time",
    service.NETWORK: "the network",
    service.UNKNOWN: "unknown",
}
"""Phrases for causes in sentences."""

COMPONENT_PHRASES = {
    service.SERVER: "server",
    service.NETWORK: "network",
    service.RETRANSMISSION: "retransmission",
    service.HELD: "Nagle and delayed acks",
}
"""Phrases for the components of a latency in sentences."""

ACTION_OF_CAUSE = {
    service.RETRANSMISSION: "find where packets are lost, with a second capture at the other end "
    "(--second-capture)",
    service.HELD: "set TCP_NODELAY at the sender, or write each message with one call",
    service.SERVER: "reduce the server's response time",
    service.NETWORK: "use fewer or shorter round trips",
    service.UNKNOWN: "begin the capture before the connections start",
}
"""Clauses that state what to change first, by cause."""

REMEDY_OF_CAUSE = {
    service.RETRANSMISSION: f"First {ACTION_OF_CAUSE[service.RETRANSMISSION]}. Fewer losses help "
    "more than a faster server or link.",
    service.HELD: f"First {ACTION_OF_CAUSE[service.HELD]}.",
    service.SERVER: f"First {ACTION_OF_CAUSE[service.SERVER]}. The server's log shows which "
    "requests are slow.",
    service.NETWORK: f"First {ACTION_OF_CAUSE[service.NETWORK]}: move the server closer to its "
    "clients, or send requests before earlier responses arrive.",
    service.UNKNOWN: "The capture contains neither handshakes nor timestamps, so server and "
    f"network time cannot be separated. {ACTION_OF_CAUSE[service.UNKNOWN].capitalize()}.",
}

MIN_COMPONENT_SHARE = 0.005
"""Minimum share of the mean latency for a component to be named."""
MIN_DELAYED_ACK_SHARE = 0.25
"""Minimum share of the held time due to delayed ACKs for them to be mentioned."""
MAX_REQUESTS_PER_CONNECTION = 1.5
"""Maximum number of requests per connection for the advice to reuse connections."""
MIN_ROUND_TRIPS = 1.5
"""Minimum number of round trips in the network for the advice to save round trips."""
MIN_SLOWEST_TO_MEAN_RATIO = 1.5
"""Minimum ratio of the mean of the slowest requests to the overall mean to describe them."""

TAP_LIMITATIONS = {
    "client": "The tap is at the clients. The server's time includes queueing delays on the path. "
    "A packet lost before the tap is visible only as a gap or by a later ack.",
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
    count, left, mean = int(row["requests"]), int(row["not_separable"]), float(row["mean_s"])
    cause = str(row["cause"])
    p95 = format_time(float(row["last_byte_p95_s"]))
    text = f"{count_text(count, 'request')} to {service_label(row)}"
    text += f" take{'s' if count == 1 else ''} {format_time(mean)} on average, and at most {p95} "
    text += "in 95 % of cases"
    if left:
        text += f" (without {count_text(left, 'request')} that overlap or have no response)"
    if cause == service.UNKNOWN:
        return f"{text}; the capture does not show the cause; {ACTION_OF_CAUSE[cause]}"
    if cause in {service.RETRANSMISSION, service.HELD}:
        without = format_time(float(row[f"without_{cause}_p50_s"]))
        return (
            f"{text}; without {CAUSE_PHRASES[cause]}, the median would be {without} instead of "
            f"{format_time(float(row['last_byte_p50_s']))}; {ACTION_OF_CAUSE[cause]}"
        )
    seen = [
        f"{COMPONENT_PHRASES[part]} {format_time(float(row[f'{part}_s']))}"
        for part in (service.SERVER, service.NETWORK)
        if row[f"{part}_s"] >= MIN_COMPONENT_SHARE * mean
    ]
    parts = ", ".join(seen)
    return f"{text}; the main cause is {CAUSE_PHRASES[cause]} ({parts}); {ACTION_OF_CAUSE[cause]}"


def _service_verdict(row: Row) -> str:
    cause = row["cause"]
    start = "Limit unknown" if cause == service.UNKNOWN else f"Limited by {CAUSE_PHRASES[cause]}"
    found = [f"{start}{_evidence_text(row)}.", REMEDY_OF_CAUSE[cause]]
    if cause == service.NETWORK:
        found += _ways_to_save_round_trips(row)
    return " ".join([*found, *_slowest_requests(row)])


def _evidence_text(row: Row) -> str:
    """Return a clause with the measured values that prove the cause."""
    cause, mean = row["cause"], row["mean_s"]
    if cause in {service.RETRANSMISSION, service.HELD}:
        separable = row["requests"] - row["not_separable"]
        share = row[f"with_{cause}"] / separable
        return (
            f": this cause delays {format_percent(share)} of the "
            f"requests{_retransmission_reason(cause)}. "
            f"The mean delay over all requests is {format_time(row[f'{cause}_s'])}. Without this "
            "delay, "
            f"the median latency would be {format_time(row[f'without_{cause}_p50_s'])} instead of "
            f"{format_time(row['last_byte_p50_s'])}"
            f"{_server_delay_text(row) if cause == service.HELD else ''}"
        )
    if cause == service.NETWORK:
        return (
            f": {format_time(row['network_s'])} of the mean latency of {format_time(mean)}. The "
            f"network time is {format_times(row['network_s'] / row['rtt_s'])} the minimum RTT of "
            f"{format_time(row['rtt_s'])}"
            if row["rtt_s"] > 0
            else ""
        )
    if cause == service.SERVER:
        return f": {format_time(row['server_s'])} of the mean latency of {format_time(mean)}"
    return ""


def _retransmission_reason(cause: str) -> str:
    if cause == service.HELD:
        return ""
    return ", because they wait for lost packets or because losses have reduced the window"


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


def _server_delay_text(row: Row) -> str:
    if row["delayed_ack_s"] < MIN_DELAYED_ACK_SHARE * row["held_s"]:
        return ""
    return (
        f". The receiver delays its acks by {format_time(row['delayed_ack_s'])} on average over "
        "all requests"
    )


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
