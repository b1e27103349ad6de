"""The verdict on a service over all its requests, in a few sentences."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tcpcast.captures import services as service
from tcpcast.captures.quantity_text import (
    percent,
    size_rounded_up,
    time,
    times,
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
    service.RETRANSMISSION: "take a second capture at the other end (--second-capture) to find "
    "where packets are lost",
    service.HELD: "set TCP_NODELAY at the sender, or write each message with one call",
    service.SERVER: "reduce the server's response time",
    service.NETWORK: "use fewer or shorter round trips",
    service.UNKNOWN: "capture from the start of connections",
}
"""Clauses that state what to change first, by cause."""

REMEDY_OF_CAUSE = {
    service.RETRANSMISSION: f"First {ACTION_OF_CAUSE[service.RETRANSMISSION]}. Fewer losses help "
    "more than a faster server or link.",
    service.HELD: f"First {ACTION_OF_CAUSE[service.HELD]}.",
    service.SERVER: f"First {ACTION_OF_CAUSE[service.SERVER]}. The server's log shows which "
    "requests are slow.",
    service.NETWORK: f"{ACTION_OF_CAUSE[service.NETWORK].capitalize()}: move the server closer to "
    "its clients, or send requests without waiting for earlier responses.",
    service.UNKNOWN: "The capture contains neither handshakes nor timestamps, so server and "
    f"network time cannot be separated; {ACTION_OF_CAUSE[service.UNKNOWN]}.",
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
    "client": "The tap is at the clients. Therefore, the server's time includes queues on the "
    "path. A packet lost before the tap is visible only as a gap or by a later ack.",
    "server": "The tap is at the server. Therefore, the server's time is exact. A request lost on "
    "the path is visible only if it is retransmitted.",
    "middle": "The tap is between the ends. Therefore, the server's time includes queues between "
    "the tap and the server. Packets lost before the tap are visible only as gaps.",
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
    p95 = time(float(row["last_byte_p95_s"]))
    text = f"{count_text(count, 'request')} to {row['server']}"
    text += f" take{'s' if count == 1 else ''} {time(mean)} on average and at most {p95} in 95 % of"
    text += (
        (
            f" cases ({count_text(left, 'request')} not counted, because they overlap or have no "
            "response)"
        )
        if left
        else " cases"
    )
    if cause == service.UNKNOWN:
        return f"{text}; the capture does not show the cause: {ACTION_OF_CAUSE[cause]}"
    if cause in {service.RETRANSMISSION, service.HELD}:
        without = time(float(row[f"without_{cause}_p50_s"]))
        return (
            f"{text}; without {CAUSE_PHRASES[cause]}, the median latency would be {without} "
            "instead of "
            f"{time(float(row['last_byte_p50_s']))}; {ACTION_OF_CAUSE[cause]}"
        )
    seen = [
        f"{COMPONENT_PHRASES[part]} {time(float(row[f'{part}_s']))}"
        for part in (service.SERVER, service.NETWORK)
        if row[f"{part}_s"] >= MIN_COMPONENT_SHARE * mean
    ]
    return f"{text}, limited by {CAUSE_PHRASES[cause]}: {', '.join(seen)}; {ACTION_OF_CAUSE[cause]}"


def _service_verdict(row: Row) -> str:
    cause = row["cause"]
    found = [f"Limited by: {CAUSE_PHRASES[cause]}{_evidence_text(row)}.", REMEDY_OF_CAUSE[cause]]
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
            f": this cause delays {percent(share)} of the "
            f"requests{_retransmission_reason(cause)}. The mean delay over all requests is "
            f"{time(row[f'{cause}_s'])}. Without this delay, the median latency would be "
            f"{time(row[f'without_{cause}_p50_s'])} instead of "
            f"{time(row['last_byte_p50_s'])}"
            f"{_server_delay_text(row) if cause == service.HELD else ''}"
        )
    if cause == service.NETWORK:
        return (
            f": {time(row['network_s'])} of the mean latency of {time(mean)}. The network time is "
            f"{times(row['network_s'] / row['rtt_s'])} the minimum RTT of {time(row['rtt_s'])}"
            if row["rtt_s"] > 0
            else ""
        )
    if cause == service.SERVER:
        return f": {time(row['server_s'])} of the mean latency of {time(mean)}"
    return ""


def _retransmission_reason(cause: str) -> str:
    if cause == service.HELD:
        return ""
    return ", because these requests wait for lost packets, or losses have reduced their window"


def _ways_to_save_round_trips(row: Row) -> list[str]:
    """Return the ways to save round trips that apply to this service."""
    found = []
    if row["requests"] <= MAX_REQUESTS_PER_CONNECTION * row["connections"]:
        found.append(
            "Most connections carry only one request, so most requests need an additional RTT for "
            "the handshake. Persistent connections avoid this RTT."
        )
    if row["rtt_s"] > 0 and row["network_s"] > MIN_ROUND_TRIPS * row["rtt_s"]:
        found.append(
            f"Responses of {size_rounded_up(row['response_bytes_p50'])} take several round trips "
            "because of "
            "slow start or the link rate. To shorten slow start, use a larger initial window, or "
            "persistent connections that keep their window."
        )
    return found


def _server_delay_text(row: Row) -> str:
    if row["delayed_ack_s"] < MIN_DELAYED_ACK_SHARE * row["held_s"]:
        return ""
    return (
        ". On average over all requests, the receiver delays its acks by "
        f"{time(row['delayed_ack_s'])}"
    )


def _slowest_requests(row: Row) -> list[str]:
    """Return a sentence on the slowest requests, if they are much slower than the mean."""
    slow = sum(row[f"slowest_{part}_s"] for part in service.LATENCY_COMPONENTS)
    cause = row["slowest_cause"]
    if not (cause and math.isfinite(slow) and slow > MIN_SLOWEST_TO_MEAN_RATIO * row["mean_s"]):
        return []
    part = row[f"slowest_{cause}_s"]
    return [
        f"The slowest 5 % of the requests take {time(slow)} on average. Of this time, "
        f"{time(part)} are due to {CAUSE_PHRASES[cause]}"
        f"{'' if cause == row['cause'] else ', which is not the main cause'}."
    ]
