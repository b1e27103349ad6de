"""Separates transfers from services: which directions are judged by their rate.

A service is judged by the latency of its requests, a transfer by what limits its rate. A direction
is a transfer if most of its bytes belong to exchanges that are so large, or so one-sided, that
their transmission takes the time: an upload, a download, or a stream without responses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.services import NETWORK, RETRANSMISSION, UNKNOWN, WINDOW

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcpcast.array_types import Table

    Column = np.ndarray[Any, Any]

MAX_RESPONSE_BYTES = 1 << 20
"""Size of a request or response in bytes above which it is a transfer."""
MIN_REPEATED_REQUESTS = 3
"""Number of requests of a service below which messages beyond the initial window are transfers."""
MAX_SINGLE_MESSAGE_BYTES = 10 * 1460
"""Maximum size of a message that is sent in one flight (RFC 6928)."""
MIN_STREAM_PACKETS = 20
"""Minimum number of data packets of a transfer in one exchange: two initial windows (RFC 6928)."""
MIN_STREAM_S = 1.0
"""Minimum time in seconds that the transmission of at most 1 MiB takes in a transfer."""
MIN_UNANSWERED_PACKETS = 100
"""Number of data packets from which a shorter stream without responses is a transfer. Requests
without a response are smaller."""
MIN_STREAM_SHARE = 0.5
"""Minimum share of the bytes of a direction in large exchanges for a transfer."""
MIN_CLOSED_SHARE = 0.5
"""Minimum share of the wait for a response with a closed receive window, for data that are judged
as a transfer: the receiver has not read them."""
MIN_ONE_WAY_SHARE = 0.9
"""Minimum share of the bytes of a connection in one direction, for a transfer whose receiver sends
acknowledgements of the application, such as the blocks of SFTP."""


def service_or_transfer(connections: Table, requests: Table, services: Table) -> Column:
    """Return the row index in ``services`` of each direction, or -1 for transfers and others.

    Parameters
    ----------
    connections
        One row per direction with data.
    requests
        Requests and responses; connections without data in both directions may be missing.
    services
        One row per service of these requests.
    """
    size, sent = connections["src"].size, connections["unique_bytes"]
    if not size:
        return np.zeros(0, dtype=np.int64)
    numbers, connection = np.unique(connections["connection"], return_inverse=True)
    place = np.searchsorted(numbers, requests["connection"])
    known = np.isin(requests["connection"], numbers)
    place, count = place[known], numbers.size

    def total(values: Column) -> Column:
        return np.bincount(place, weights=values[known], minlength=count)

    both = np.bincount(connection, weights=sent, minlength=count)[connection]
    most = sent >= MIN_STREAM_SHARE * both
    waited = total(requests["waited_s"])[connection]
    answered = total(requests["response_bytes"] > 0)[connection]
    # The client of each connection, "" without requests.
    clients = requests["client"][known]
    found = np.zeros(count, dtype=clients.dtype if clients.size else "<U1")
    found[place] = clients
    is_client = connections["src"] == found[connection]
    few = MIN_STREAM_PACKETS * np.bincount(
        connection, weights=connections["segment_bytes"] * most, minlength=count
    )
    least = np.full(known.size, np.inf)
    least[known] = few[place]
    takes = {
        "request": requests["first_byte_s"] - np.nan_to_num(requests["server_s"]),
        "response": requests["last_byte_s"] - requests["first_byte_s"],
    }
    paused = requests.get("interrupted_s", 0.0)  # an interruption is no transmission

    rows = {name: row for row, name in enumerate(services["server"].tolist())}
    row_of = np.array([rows.get(name, -1) for name in requests["server"].tolist()], dtype=np.int64)
    # Messages of several flights, unless their transmission is not the cause.
    sent_few = np.isin(services["cause"], (NETWORK, RETRANSMISSION, WINDOW, UNKNOWN))
    sent_few &= services["requests"] < MIN_REPEATED_REQUESTS
    few_requests = np.append(sent_few, False)[row_of]

    def in_direction(is_part: Callable[[str, Column], Column]) -> Column:
        """Return the sum of the bytes that the direction carries in some exchanges."""
        sums = []
        for name in takes:
            sizes = requests[f"{name}_bytes"]
            sums.append(total(np.where(is_part(name, sizes), sizes, 0))[connection])
        return np.where(is_client, *sums)

    def is_large(name: str, sizes: Column) -> Column:
        lasts = (takes[name] - paused >= MIN_STREAM_S) & (sizes >= least)
        single = few_requests & (sizes > MAX_SINGLE_MESSAGE_BYTES)
        return np.asarray((sizes > MAX_RESPONSE_BYTES) | lasts | single)

    large = in_direction(is_large)
    pipelined = in_direction(lambda _, sizes: ~requests["separable"] & (sizes > 0))
    half = MIN_STREAM_SHARE * np.maximum(sent, 1)
    many = connections["data_packets"] >= MIN_STREAM_PACKETS
    lasts = np.nan_to_num(connections["duration_s"]) >= MIN_STREAM_S
    alone = many & most & (answered == 0)
    alone &= lasts | (connections["data_packets"] >= MIN_UNANSWERED_PACKETS)
    one_way = (sent > MAX_RESPONSE_BYTES) & (sent >= MIN_ONE_WAY_SHARE * both)
    closed = connections["window_closed_s"] >= MIN_CLOSED_SHARE * waited
    closed &= most & (answered == 0) & (connections["zero_window_probes"] > 0)
    transfers = (large >= half) | alone | one_way & (large + pipelined >= half) | closed
    place_of = np.full(count, -1)
    place_of[place] = row_of[known]
    return np.where(transfers, -1, place_of[connection])
