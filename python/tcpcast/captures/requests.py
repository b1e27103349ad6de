"""Requests and responses: latency and its components.

A request begins with new data from the client; its response begins with the next data from the
server. Times apply to the client: for other taps, the minimum round trip between tap and client is
added. The latency is the sum of four components:

``server``
    time from the end of the request to the first byte of the response, minus the minimum round trip
    to the server; and gaps in the response without data to send
``retransmission``
    time until the retransmission of lost data, and additional round trips because losses reduced
    the window
``held``
    time of small segments that waited for the ack of an earlier segment (Nagle, RFC 896), which the
    receiver may have delayed (RFC 1122, 4.2.3.2)
``network``
    remaining time: one round trip, further round trips of a response larger than the window, queues
    and transmission
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.table import endpoint_text, text_column, to_datetimes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tcpcast.array_types import Table

    Column = np.ndarray[Any, Any]

INITIAL_WINDOW = 10
"""Number of segments of a response that fit in one flight if losses have not reduced the window
(RFC 6928)."""
MIN_CREDIBLE_RTT_S = 10e-6
"""Shorter round trips are times within a host, or errors of timestamps."""
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


def request_table(connections: Mapping[str, Any], found: Mapping[str, Any]) -> Table:
    """Return the table of requests.

    Parameters
    ----------
    connections
        Connections with requests: addresses, and round trips between the ends and the tap.
    found
        Requests as seen at the tap; ``talk`` is a row of ``connections``.
    """
    talk = found["talk"]
    ends = {
        end: text_column(endpoint_text(*given) for given in connections[end])[talk]
        for end in ("client", "server")
    }
    to_client, to_server = connections["to_client_s"][talk], connections["to_server_s"][talk]
    answered = found["response_bytes"] > 0
    shift = np.where(answered, np.nan_to_num(to_client), np.nan)
    parts = _latency_parts(found, found["last_byte_s"] + shift, to_client, to_server)
    _, service = np.unique(ends["server"], return_inverse=True)
    full = INITIAL_WINDOW * connections["segment_bytes"][talk]
    small = answered & (found["response_bytes"] <= full)
    _move_window_reduction_time(parts, found, to_client + to_server, service, small)
    return {
        "connection": connections["connection"][talk],
        "time": to_datetimes(found["time_ns"]),
        **ends,
        "request_bytes": found["request_bytes"],
        "response_bytes": found["response_bytes"],
        "first_byte_s": found["first_byte_s"] + shift,
        "last_byte_s": found["last_byte_s"] + shift,
        **parts,
        "delayed_ack_s": np.where(answered, found["delayed_s"], np.nan),
        "rtt_s": np.where(
            to_client + to_server >= MIN_CREDIBLE_RTT_S, to_client + to_server, np.nan
        ),
        "to_client_s": to_client,
        "to_server_s": to_server,
        "retransmissions": found["retransmissions"],
        "separable": answered & ~found["overlaps"],
    }


def _latency_parts(
    found: Mapping[str, Any], whole: Column, to_client: Column, to_server: Column
) -> Table:
    """Return the four components; server and network are NaN if round trips are unknown."""
    unknown = np.isnan(to_client + to_server)
    left = whole.copy()
    parts: Table = {}
    server = np.maximum(found["answer_s"] - np.nan_to_num(to_server), 0.0) + found["pauses_s"]
    # Retransmissions and held segments have priority, because the server time may be inexact.
    wanted = {"retransmission_s": found["repair_s"], "held_s": found["held_s"], "server_s": server}
    for name, value in wanted.items():
        parts[name] = np.minimum(value, left)
        left = left - parts[name]
    parts["network_s"] = np.where(unknown, np.nan, left)
    parts["server_s"] = np.where(unknown, np.nan, parts["server_s"])
    return {name: parts[name] for name in ("server_s", "network_s", "retransmission_s", "held_s")}


def _move_window_reduction_time(
    parts: Table, found: Mapping[str, Any], rtt: Column, service: Column, small: Column
) -> None:
    """Move the time that reduced windows cost from ``network`` to ``retransmission``.

    A response within the initial window is sent in one flight, unless losses have reduced the
    window; then it takes another round trip, or is paced more slowly. Requests of the same service
    before any loss show the usual time between first and last byte.
    """
    spread = found["last_byte_s"] - found["first_byte_s"]
    spread = spread - found["repair_s"] - found["held_s"] - found["pauses_s"]
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
    network = parts["network_s"]
    added = np.where(reduced, np.minimum(more, network), 0.0)
    parts["retransmission_s"] = parts["retransmission_s"] + added
    parts["network_s"] = network - added


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
