"""Services: latency of all requests to one address and port, and the cause of this latency."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.requests import ANSWERED, CAPTURE_ENDED
from tcpcast.captures.table import select_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tcpcast.array_types import Table

    Column = np.ndarray[Any, Any]

RETRANSMISSION = "retransmission"
HELD = "held"
WINDOW = "window"
INTERRUPTION = "interrupted"
SERVER = "server"
NETWORK = "network"
NO_RESPONSE = "no_response"
CLIENT = "client"
CHAT = "chat"
UNKNOWN = "unknown"
LATENCY_COMPONENTS = (SERVER, NETWORK, RETRANSMISSION, HELD, WINDOW, INTERRUPTION)
"""Components of the latency, in the order of the columns."""
AVOIDABLE_COMPONENTS = (RETRANSMISSION, HELD, WINDOW, INTERRUPTION)
"""Components that have priority over the network, because a round trip cannot be avoided."""

QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
MIN_SEPARABLE_SHARE = 1 / 2
"""Minimum share of the waiting time of answered requests in separable ones for the latency to cover
only these. Losses also delay the acks of responses, so that the next request overlaps. Without
these requests, a small part of the waiting time would decide the verdict."""
MIN_AVOIDABLE_SHARE = 1 / 4
"""Minimum share of the total waiting time for an avoidable component to have priority over the
network."""
MIN_AVOIDABLE_S = 1e-3
"""Minimum mean of an avoidable component over the requests with it, in seconds, for it to be a
cause."""
MIN_WAIT_FOR_RESPONSE_S = 1.0
"""A request without a response at the end of the capture counts as late after this time in
seconds."""
MIN_NO_RESPONSE_SHARE = 0.5
"""Minimum share of requests without a response for this to be the cause, however short they
waited."""
MIN_CLIENT_RATIO = 4.0
"""Minimum ratio of the client's idle time to the latency for the client to be named."""
MAX_PROMPT_LATENCY_S = 0.2
"""Maximum mean latency in seconds of a service for the idle client to be the cause; a slower
service has a cause of its own."""
MIN_CLIENT_IDLE_S = 0.1
"""Minimum mean idle time of the client in seconds for it to be named."""
MIN_CHAT_PAUSES = 2
"""Minimum number of messages that each end of a chat sends again without data from the other."""
MIN_CHAT_PAUSE_RATIO = 0.15
"""Minimum ratio of these messages to the requests, for each end. If each end sends half of the
messages at random, the ratio is 1; a server that only responds has 0."""
MIN_REQUESTS_FOR_SLOWEST = 20
"""Minimum number of requests to analyse the slowest requests separately."""
MIN_RTT_S = 50e-6
"""RTT in seconds below which both end points are near the tap, in one machine or rack."""
MAX_NEAR_RTT_SHARE = 0.1
"""Maximum share of the RTT between the tap and an end point for a tap at this end point."""


def service_table(requests: Table) -> Table:
    """Return one row per service with a separable or late request, sorted by their number."""
    names, service = np.unique(requests["server"], return_inverse=True)
    rows = [
        _service_row(str(name), select_rows(requests, service == at))
        for at, name in enumerate(names.tolist())
    ]
    kept = [row for row in rows if row["separable"] or row["late"]]
    kept.sort(key=lambda row: (-row["requests"], row["server"]))
    empty = _service_row("", select_rows(requests, slice(0)))
    return {
        key: np.array([row[key] for row in kept], dtype=_dtype_for_value(empty[key]))
        for key in empty
    }


def _dtype_for_value(value: Any) -> Any:
    return np.str_ if isinstance(value, str) else np.int64 if isinstance(value, int) else np.float64


def _service_row(name: str, every: Table) -> dict[str, Any]:
    """Return the row of one service."""
    good = select_rows(every, _measured_requests(every))
    unanswered = every["outcome"] != ANSWERED
    late = unanswered & (
        (every["outcome"] != CAPTURE_ENDED) | (every["waited_s"] >= MIN_WAIT_FOR_RESPONSE_S)
    )
    lost = select_rows(every, late)
    whole = good["last_byte_s"]
    row: dict[str, Any] = {
        "server": name,
        "connections": int(np.unique(every["connection"]).size),
        "requests": int(every["server"].size),
        "unanswered": int(unanswered.sum()),
        "not_separable": int((~every["separable"]).sum()),
        "separable": int(every["separable"].sum()),
        "measured": int(good["server"].size),
        "request_bytes_p50": _latency_quantile(good["request_bytes"], 0.5),
        "response_bytes_p50": _latency_quantile(good["response_bytes"], 0.5),
    }
    for what in ("first_byte", "last_byte"):
        values = good[f"{what}_s"]
        row |= {
            f"{what}_{at}_s": _latency_quantile(values, share) for at, share in QUANTILES.items()
        }
    row |= {name: int(every[name].sum()) for name in ("client_pauses", "server_pauses")}
    row["mean_s"] = _mean_latency(whole)
    row |= {f"{part}_s": _mean_latency(good[f"{part}_s"]) for part in LATENCY_COMPONENTS}
    row["lost_packets_s"] = _mean_latency(_lost_packets_s(good))
    row["delayed_ack_s"] = _mean_latency(good["delayed_ack_s"])
    row["client_idle_s"] = _mean_latency(good["client_idle_s"])
    row["rtt_s"] = _latency_quantile(good["rtt_s"], 0.5)
    row["tap"] = _tap_location_of_service(good)
    for part in AVOIDABLE_COMPONENTS:
        row[f"with_{part}"] = int((good[f"{part}_s"] > 0).sum())
        row[f"without_{part}_mean_s"] = _mean_latency(whole - good[f"{part}_s"])
    for part in (RETRANSMISSION, HELD):
        row[f"without_{part}_p50_s"] = _latency_quantile(whole - good[f"{part}_s"], 0.5)
    row |= _longest_interruption(good)
    names, counts = np.unique(lost["outcome"], return_counts=True)
    row |= {
        "late": int(late.sum()),
        "late_outcome": (str(names[np.argmax(counts)]) if names.size else ""),
        "late_wait_p50_s": _latency_quantile(lost["waited_s"], 0.5),
        "late_wait_total_s": float(lost["waited_s"].sum()),
    }
    slow = (
        whole >= row["last_byte_p95_s"]
        if whole.size >= MIN_REQUESTS_FOR_SLOWEST
        else np.zeros(0, dtype=bool)
    )
    row |= {
        f"slowest_{part}_s": _mean_latency(good[f"{part}_s"][slow] if slow.size else whole[:0])
        for part in LATENCY_COMPONENTS
    }
    return row | {
        "cause": _cause_of_service(row),
        "slowest_cause": _slowest_requests_component(row),
    }


def _measured_requests(every: Table) -> Column:
    """Return a mask of the requests that the latency covers.

    These are the separable requests, or all answered ones if they waited longer in the others.
    """
    answered = every["outcome"] == ANSWERED
    waited = every["waited_s"]
    separable_s, answered_s = waited[every["separable"]].sum(), waited[answered].sum()
    most = separable_s >= MIN_SEPARABLE_SHARE * answered_s
    return np.asarray(every["separable"] if most else answered)


def _lost_packets_s(good: Table) -> Column:
    """Return the time that lost packets cost each request, in seconds.

    An interruption with copies of the data is a long series of retransmissions.
    """
    interrupted = np.where(good["copies"] > 0, good["interrupted_s"], 0.0)
    return np.asarray(good["retransmission_s"] + interrupted)


def _longest_interruption(good: Table) -> dict[str, Any]:
    """Return the longest interruption of a request, and the mean latency of the other requests."""
    lengths = good["interrupted_s"]
    others = good["last_byte_s"][lengths == 0]
    row = {
        "interruption_s": 0.0,
        "interruption_start_s": float("nan"),
        "interruption_copies": 0,
        "interrupted_message": "",
        "uninterrupted": int(others.size),
        "uninterrupted_mean_s": _mean_latency(others),
    }
    if not (lengths > 0).any():
        return row
    at = int(np.argmax(lengths))
    return row | {
        "interruption_s": float(lengths[at]),
        "interruption_start_s": float(good["start_s"][at]),
        "interruption_copies": int(good["copies"][at]),
        "interrupted_message": (
            "request" if good["first_byte_s"][at] >= lengths[at] else "response"
        ),
    }


def _latency_quantile(values: Column, share: float) -> float:
    return float(np.quantile(values, share)) if values.size else float("nan")


def _mean_latency(values: Column) -> float:
    return float(np.mean(values)) if values.size else float("nan")


def _tap_location_of_service(good: Table) -> str:
    """Return the location of the tap by the minimum round trips to both ends."""
    client, rtt = _latency_quantile(good["to_client_s"], 0.5), _latency_quantile(good["rtt_s"], 0.5)
    if not rtt >= MIN_RTT_S:
        return UNKNOWN
    if client <= MAX_NEAR_RTT_SHARE * rtt:
        return "client"
    return "server" if rtt - client <= MAX_NEAR_RTT_SHARE * rtt else "middle"


def _cause_of_service(row: dict[str, Any]) -> str:
    """Return the component with the largest share of the time that all requests waited.

    Avoidable components have priority over the network. The two components that lost packets cause
    are compared with the server together.
    """
    count = row["measured"]
    late, mean = row["late"], row["mean_s"]
    answered_s = mean * count if count else 0.0
    total = answered_s + row["late_wait_total_s"]
    if late >= MIN_NO_RESPONSE_SHARE * row["requests"] or 2 * row["late_wait_total_s"] > total:
        return NO_RESPONSE
    waits = {part: row[f"{part}_s"] for part in AVOIDABLE_COMPONENTS}
    causes = {
        part: wait
        for part, wait in waits.items()
        if wait * count >= MIN_AVOIDABLE_S * row[f"with_{part}"]
    }
    server, network = row[f"{SERVER}_s"], row[f"{NETWORK}_s"]
    rest = mean - sum(waits.values())
    known = math.isfinite(server + network)
    first = max(causes, key=lambda part: causes[part], default=UNKNOWN)
    longest = causes.get(first, 0.0)
    if first in (RETRANSMISSION, INTERRUPTION):
        longest = max(longest, row["lost_packets_s"])
    least = max(server if known else rest, MIN_AVOIDABLE_SHARE * mean)
    if longest > 0 and longest >= least:
        return first
    if waits_client(row) and mean <= MAX_PROMPT_LATENCY_S:
        return CLIENT
    if not known:
        return UNKNOWN
    if server <= network:
        return NETWORK
    pauses = min(row["client_pauses"], row["server_pauses"])
    sends_alone = pauses >= max(MIN_CHAT_PAUSES, MIN_CHAT_PAUSE_RATIO * row["requests"])
    return CHAT if sends_alone else SERVER


def waits_client(row: Mapping[str, Any]) -> bool:
    """Return True if the client waited much longer than the server and the network."""
    idle: float = row["client_idle_s"]
    return idle >= MIN_CLIENT_IDLE_S and idle >= MIN_CLIENT_RATIO * row["mean_s"]


def _slowest_requests_component(row: dict[str, Any]) -> str:
    """Return the component that increases most in the slowest requests, or ""."""
    more = {part: row[f"slowest_{part}_s"] - row[f"{part}_s"] for part in LATENCY_COMPONENTS}
    if not np.isfinite(sum(more.values())):
        return ""
    return max(more, key=lambda part: more[part])
