"""Requests and responses: the time line of each request.

A request begins with new data from the client; its response begins with the next data from the
server. Times apply to the client: for other taps, the minimum round trip between tap and client is
added. The time line begins when the client could have sent the request, and its parts add up:

``client_idle``
    the client had received the previous response (or the handshake or a greeting) and sent nothing;
    and pauses within the request. This part is not latency
``server``
    time from the end of the request to the first byte of the response, minus the minimum round trip
    to the server; and gaps in the response without data to send
``network``
    ``request`` (transmission of the request) and ``response`` (one round trip, further round trips
    of a response larger than the window, queues and transmission)
``retransmission``
    time until the retransmission of lost data, and additional round trips because losses reduced
    the window
``held``
    time of small segments that waited for the ack of an earlier segment (Nagle, RFC 896), which the
    receiver may have delayed (RFC 1122, 4.2.3.2)
``window``
    time for which the receive window of the client did not allow more of the response
``interrupted``
    time of transmissions without an answer for longer than 1 s and 4 RTOs, and of a server that was
    silent for much longer than usual
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast import _native
from tcpcast.captures.table import endpoint_text, text_column, to_datetimes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tcpcast.array_types import Table

    Column = np.ndarray[Any, Any]

INITIAL_WINDOW = 10
"""Number of segments of a response that fit in one flight if losses have not reduced the window
(RFC 6928)."""
ANSWERED = "answered"
CAPTURE_ENDED = "capture_ended"
LATENCY_PARTS = ("request", "server", "response", "retransmission", "held", "window", "interrupted")
"""Parts of the time line except for the idle time of the client."""
MIN_INTERRUPTION_S = 1.0
"""Minimum length of an interruption in seconds."""
MIN_SILENT_SERVER_RATIO = 10.0
"""Minimum ratio of a server's time to its median for the server to count as silent."""
MIN_REQUESTS_OF_SILENT_SERVER = 5
"""Minimum number of requests to determine the usual time of a server."""
MAX_SILENT_SERVER_SHARE = 0.02
"""Maximum share of requests with a silent server, if there are several; a larger share is the usual
time of the server."""
MIN_EXTRA_ROUND_TRIPS = 0.1
"""Minimum number of additional round trips of a response that indicates a window reduced by losses.
Measured values are 0.3 to 0.5 with 2 % loss (1 with another flight), and 0.01 without loss."""
MIN_REQUESTS_BEFORE_LOSS = 3
"""Minimum number of requests before any loss to determine the usual duration of a response."""
LOSSLESS_QUANTILE = 0.9
"""Quantile of the durations before any loss that is the usual duration; responses differ in
size."""
SIMILAR_SIZE_QUANTILE = 0.05
"""Quantile of all durations that is the usual duration if responses have similar sizes."""
MAX_SIMILAR_SIZE_RATIO = 2
"""Maximum ratio of the largest to the smallest response for responses of similar sizes."""


def request_table(
    connections: Mapping[str, Any], found: Mapping[str, Any], first_ns: int, last_ns: int
) -> Table:
    """Return the table of requests.

    Parameters
    ----------
    connections
        Connections with requests: addresses, and round trips between the ends and the tap.
    found
        Requests; ``talk`` is a row of ``connections``. Parts of the time line are integers in ns.
    first_ns, last_ns
        Times of the first and the last segment of the capture.
    """
    talk = found["talk"]
    ends = {
        end: text_column(endpoint_text(*given) for given in connections[end])[talk]
        for end in ("client", "server")
    }
    to_client, to_server = connections["to_client_s"][talk], connections["to_server_s"][talk]
    rtt = to_client + to_server
    outcome = text_column(found["outcome"])
    answered = outcome == ANSWERED
    separable = answered & ~found["overlaps"]
    _, service = np.unique(ends["server"], return_inverse=True)
    parts = {part: found[f"{part}_ns"].copy() for part in LATENCY_PARTS}
    # A request without a response waits until the end of the capture.
    remaining = np.maximum(last_ns - connections["last_ns"][talk], 0)
    silent = np.where(parts["interrupted"] > 0, "interrupted", "server")
    for part in ("interrupted", "server"):
        parts[part] += np.where((outcome == CAPTURE_ENDED) & (silent == part), remaining, 0)
    full = INITIAL_WINDOW * connections["segment_bytes"][talk]
    small = answered & (found["response_bytes"] <= full)
    # Move the time that reduced windows cost from ``network`` to ``retransmission``. A response
    # within the initial window is sent in one flight, unless losses have reduced the window; then
    # it takes another round trip, or is paced more slowly. Requests of the same service before any
    # loss show the usual time between first and last byte.
    spread = np.maximum(parts["response"] / 1e9 - rtt, 0.0)
    lossy = found["after_losses"] | (found["retransmissions"] > 0)
    usual = np.full(spread.size, np.nan)
    for one in np.unique(service):
        of_it = (service == one) & small
        usual[of_it] = _lossless_transfer_s(
            spread[of_it & ~lossy], spread[of_it], found["response_bytes"][of_it]
        )
    more = spread - usual
    with np.errstate(invalid="ignore"):
        reduced = small & lossy & (more > MIN_EXTRA_ROUND_TRIPS * rtt)
    added = np.where(reduced, np.nan_to_num(more) * 1e9, 0.0).astype(np.int64)
    added = np.minimum(added, parts["response"])
    parts["retransmission"] += added
    parts["response"] -= added
    _move_silence_of_server(parts, service, answered)
    waited = np.stack([parts[part] for part in LATENCY_PARTS]).sum(axis=0)
    unknown = np.isnan(rtt)

    def seconds(ns: Column, known: Any = True) -> Column:
        return np.where(known, ns / 1e9, np.nan)

    return {
        "connection": connections["connection"][talk],
        "time": to_datetimes(found["time_ns"]),
        **ends,
        "request_bytes": found["request_bytes"],
        "response_bytes": found["response_bytes"],
        "first_byte_s": seconds(found["first_byte_ns"], answered),
        "last_byte_s": seconds(waited, answered),
        "server_s": seconds(parts["server"], ~unknown),
        "network_s": seconds(parts["request"] + parts["response"], ~unknown),
        "retransmission_s": seconds(parts["retransmission"]),
        "held_s": seconds(parts["held"]),
        "window_s": seconds(parts["window"]),
        "interrupted_s": seconds(parts["interrupted"]),
        "delayed_ack_s": seconds(found["delayed_ns"]),
        "client_idle_s": seconds(found["client_ns"]),
        "request_s": seconds(parts["request"], ~unknown),
        "response_s": seconds(parts["response"], ~unknown),
        "waited_s": seconds(waited),
        "rtt_s": np.where(rtt >= _native.MIN_RTT_S, rtt, np.nan),
        "to_client_s": to_client,
        "to_server_s": to_server,
        "retransmissions": found["retransmissions"],
        "copies": found["copies"],
        "client_pauses": found["client_pauses"],
        "server_pauses": found["server_pauses"],
        "separable": separable,
        "outcome": outcome,
        "start_s": seconds(found["time_ns"] - first_ns),
    }


def _move_silence_of_server(parts: Table, service: Column, answered: Column) -> None:
    """Move the time of a server that was silent for much longer than usual to ``interrupted``."""
    server = parts["server"]
    for one in np.unique(service):
        of_it = (service == one) & answered
        usual = int(np.median(server[of_it])) if of_it.any() else 0
        shortest = max(MIN_INTERRUPTION_S * 1e9, MIN_SILENT_SERVER_RATIO * usual)
        silent = of_it & (server >= shortest)
        count = int(of_it.sum())
        most = max(1.0, MAX_SILENT_SERVER_SHARE * count)
        if count >= MIN_REQUESTS_OF_SILENT_SERVER and 0 < silent.sum() <= most:
            parts["interrupted"] += np.where(silent, server - usual, 0)
            server[silent] = usual


def _lossless_transfer_s(untouched: Column, every: Column, sizes: Column) -> float:
    """Return the usual time between first and last byte of small responses without losses.

    A tap that is not at the server misses losses at the end of a response, so the window may be
    reduced before the first visible loss. Therefore, the shortest of similar responses are also
    considered.
    """
    found = []
    if untouched.size >= MIN_REQUESTS_BEFORE_LOSS:
        found.append(float(np.quantile(untouched, LOSSLESS_QUANTILE)))
    if sizes.size and sizes.max() <= MAX_SIMILAR_SIZE_RATIO * sizes.min():
        found.append(float(np.quantile(every, SIMILAR_SIZE_QUANTILE)))
    return min(found, default=float("nan"))
