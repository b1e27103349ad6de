"""Services: latency of all requests to one address and port, and the cause of this latency."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.table import select_rows

if TYPE_CHECKING:
    from tcpcast.array_types import Table

    Column = np.ndarray[Any, Any]

RETRANSMISSION = "retransmission"
HELD = "held"
SERVER = "server"
NETWORK = "network"
UNKNOWN = "unknown"
LATENCY_COMPONENTS = (SERVER, NETWORK, RETRANSMISSION, HELD)
"""Components of the latency, in the order of the columns."""

QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
MIN_REQUESTS = 3
"""Minimum number of separable requests for a service to have a row and a verdict."""
MAX_RESPONSE_BYTES = 1 << 20
"""Median response size in bytes above which connections count as transfers instead of a service."""
MIN_AVOIDABLE_SHARE = 0.1
"""Minimum share of the median latency for losses or held segments to be the cause. They have
priority, because they are avoidable, unlike a round trip and the work of the server."""
MIN_REQUESTS_FOR_SLOWEST = 20
"""Minimum number of requests to analyse the slowest requests separately."""
MIN_RTT_S = 50e-6
"""RTT in seconds below which both end points are near the tap, in one machine or rack."""
MAX_NEAR_RTT_SHARE = 0.1
"""Maximum share of the RTT between the tap and an end point for a tap at this end point."""


def service_table(requests: Table) -> Table:
    """Return one row per service with enough separable requests, sorted by number of requests."""
    names, service = np.unique(requests["server"], return_inverse=True)
    rows = [
        _service_row(str(name), select_rows(requests, service == at))
        for at, name in enumerate(names.tolist())
    ]
    kept = [row for row in rows if row["requests"] - row["not_separable"] >= MIN_REQUESTS]
    kept.sort(key=lambda row: (-row["requests"], row["server"]))
    empty = _service_row("", select_rows(requests, slice(0)))
    return {
        key: np.array([row[key] for row in kept], dtype=_dtype_for_value(empty[key]))
        for key in empty
    }


def _dtype_for_value(value: Any) -> Any:
    return np.str_ if isinstance(value, str) else np.int64 if isinstance(value, int) else np.float64


def service_of_each_direction(connections: Table, requests: Table, found: Table) -> Column:
    """Return the row index in ``services`` for each direction, or -1 without a service."""
    shared = found["response_bytes_p50"] <= MAX_RESPONSE_BYTES
    place = {name: at for at, name in enumerate(found["server"].tolist()) if shared[at]}
    numbers, firsts = np.unique(requests["connection"], return_index=True)
    servers = requests["server"][firsts].tolist()
    of_number = {
        number: place.get(server, -1)
        for number, server in zip(numbers.tolist(), servers, strict=True)
    }
    rows = [of_number.get(number, -1) for number in connections["connection"].tolist()]
    return np.array(rows, dtype=np.int64)


def _service_row(name: str, every: Table) -> dict[str, Any]:
    """Return the row of one service."""
    good = select_rows(every, every["separable"])
    whole = good["last_byte_s"]
    row: dict[str, Any] = {
        "server": name,
        "connections": int(np.unique(every["connection"]).size),
        "requests": int(every["server"].size),
        "unanswered": int((every["response_bytes"] == 0).sum()),
        "not_separable": int((~every["separable"]).sum()),
        "request_bytes_p50": _latency_quantile(good["request_bytes"], 0.5),
        "response_bytes_p50": _latency_quantile(good["response_bytes"], 0.5),
    }
    for what in ("first_byte", "last_byte"):
        values = good[f"{what}_s"]
        row |= {
            f"{what}_{at}_s": _latency_quantile(values, share) for at, share in QUANTILES.items()
        }
    row["mean_s"] = _mean_latency(whole)
    row |= {f"{part}_s": _mean_latency(good[f"{part}_s"]) for part in LATENCY_COMPONENTS}
    row["delayed_ack_s"] = _mean_latency(good["delayed_ack_s"])
    row["rtt_s"] = _latency_quantile(good["rtt_s"], 0.5)
    row["tap"] = _tap_location_of_service(good)
    for part in (RETRANSMISSION, HELD):
        row[f"with_{part}"] = int((good[f"{part}_s"] > 0).sum())
        row[f"without_{part}_p50_s"] = _latency_quantile(whole - good[f"{part}_s"], 0.5)
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
    """Return the cause of the median latency; avoidable causes have priority."""
    median = row["last_byte_p50_s"]
    for part in (RETRANSMISSION, HELD):
        if median - row[f"without_{part}_p50_s"] >= MIN_AVOIDABLE_SHARE * median > 0:
            return part
    parts = {part: row[f"{part}_s"] for part in LATENCY_COMPONENTS}
    if not np.isfinite(sum(parts.values())):
        return UNKNOWN
    return max(parts, key=lambda part: parts[part])


def _slowest_requests_component(row: dict[str, Any]) -> str:
    """Return the component that increases most in the slowest requests, or ""."""
    more = {part: row[f"slowest_{part}_s"] - row[f"{part}_s"] for part in LATENCY_COMPONENTS}
    if not np.isfinite(sum(more.values())):
        return ""
    return max(more, key=lambda part: more[part])
