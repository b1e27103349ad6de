"""Requests and responses: the latency of each, and its parts.

A request begins with new data of the client, its response with the next data of the server. Times
are those at the client: at another tap, the shortest round trip between tap and client is added.
The latency is the sum of four parts:

``server``
    from the end of the request to the first byte of the response, without the shortest round trip
    to the server; and gaps in the response in which the server had nothing to send;
``retransmission``
    until lost data arrived again, and round trips of a window that losses had reduced;
``held``
    small segments that waited for the ack of an earlier one (Nagle, RFC 896), which the receiver
    may have delayed (RFC 1122, 4.2.3.2);
``network``
    all other time: one round trip, those of a response larger than the window, queues, the link.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.table import endpoint, moments, texts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tcpcast.captures.table import Table

    Column = np.ndarray[Any, Any]

INITIAL_WINDOW = 10
"""Segments of a response that a window not reduced by losses sends in one flight (RFC 6928)."""
STRETCHED = 0.1
"""Round trips by which a response takes longer than before any loss, if losses have reduced the
window. Measured with 2 % loss: 0.3 to 0.5, and 1 for another flight; without: 0.01."""
ENOUGH = 3
"""Requests before any loss that show how long responses are otherwise."""
LONG = 0.9
"""Quantile of these: responses of a service differ in size."""
SHORT = 0.05
"""Quantile of all responses, if they are of similar size."""
SIMILAR = 2
"""Ratio of the largest to the smallest response up to which sizes are similar."""


def requests(talks: Mapping[str, Any], found: Mapping[str, Any]) -> Table:
    """Return the table of requests.

    Parameters
    ----------
    talks
        Connections with requests: ends, round trips between them and the tap.
    found
        Requests as the tap saw them; ``talk`` is a row of ``talks``.
    """
    talk = found["talk"]
    ends = {
        end: texts(endpoint(*given) for given in talks[end])[talk] for end in ("client", "server")
    }
    to_client, to_server = talks["to_client_s"][talk], talks["to_server_s"][talk]
    answered = found["response_bytes"] > 0
    shift = np.where(answered, np.nan_to_num(to_client), np.nan)
    parts = _parts(found, found["last_byte_s"] + shift, to_client, to_server)
    _, service = np.unique(ends["server"], return_inverse=True)
    full = INITIAL_WINDOW * talks["segment_bytes"][talk]
    small = answered & (found["response_bytes"] <= full)
    _reduced(parts, found, to_client + to_server, service, small)
    return {
        "connection": talks["connection"][talk],
        "time": moments(found["time_ns"]),
        **ends,
        "request_bytes": found["request_bytes"],
        "response_bytes": found["response_bytes"],
        "first_byte_s": found["first_byte_s"] + shift,
        "last_byte_s": found["last_byte_s"] + shift,
        **parts,
        "delayed_ack_s": np.where(answered, found["delayed_s"], np.nan),
        "rtt_s": to_client + to_server,
        "to_client_s": to_client,
        "to_server_s": to_server,
        "retransmissions": found["retransmissions"],
        "separable": answered & ~found["overlaps"],
    }


def _parts(found: Mapping[str, Any], whole: Column, to_client: Column, to_server: Column) -> Table:
    """Return the four parts; without round trips server and network cannot be separated."""
    unknown = np.isnan(to_client + to_server)
    left = whole.copy()
    parts: Table = {}
    server = np.maximum(found["answer_s"] - np.nan_to_num(to_server), 0.0) + found["pauses_s"]
    # A needed retransmission and a held segment are seen; the server's time may be a guess.
    wanted = {"retransmission_s": found["repair_s"], "held_s": found["held_s"], "server_s": server}
    for name, value in wanted.items():
        parts[name] = np.minimum(value, left)
        left = left - parts[name]
    parts["network_s"] = np.where(unknown, np.nan, left)
    parts["server_s"] = np.where(unknown, np.nan, parts["server_s"])
    return {name: parts[name] for name in ("server_s", "network_s", "retransmission_s", "held_s")}


def _reduced(
    parts: Table, found: Mapping[str, Any], rtt: Column, service: Column, small: Column
) -> None:
    """Move the time that windows reduced by losses add from the network to losses.

    A response within the initial window leaves in one flight, unless losses have reduced the
    window: then it takes another round trip, or is paced more slowly. Requests of the same service
    before any loss show how far apart its first and last byte are otherwise.
    """
    spread = found["last_byte_s"] - found["first_byte_s"]
    spread = spread - found["repair_s"] - found["held_s"] - found["pauses_s"]
    lossy = found["after_losses"] | (found["retransmissions"] > 0)
    usual = np.full(spread.size, np.nan)
    for one in np.unique(service):
        of_it = (service == one) & small
        usual[of_it] = _usual(spread[of_it & ~lossy], spread[of_it], found["response_bytes"][of_it])
    more = spread - usual
    with np.errstate(invalid="ignore"):
        reduced = small & lossy & (more > STRETCHED * rtt)
    network = parts["network_s"]
    added = np.where(reduced, np.minimum(more, network), 0.0)
    parts["retransmission_s"] = parts["retransmission_s"] + added
    parts["network_s"] = network - added


def _usual(untouched: Column, every: Column, sizes: Column) -> float:
    """Return the time between first and last byte of small responses without losses.

    Away from the server, losses at the end of a response are not seen, so that a window may be
    reduced before the first visible loss: the shortest of similar responses count as well.
    """
    found = []
    if untouched.size >= ENOUGH:
        found.append(float(np.quantile(untouched, LONG)))
    if sizes.size and sizes.max() <= SIMILAR * sizes.min():
        found.append(float(np.quantile(every, SHORT)))
    return min(found, default=float("nan"))
