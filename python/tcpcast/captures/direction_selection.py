"""Selection of directions of a capture by number, by addresses, or all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.groups import host_address
from tcpcast.process.errors import CaptureError, find_nearest_word

if TYPE_CHECKING:
    from tcpcast.captures.capture_tables import CaptureTables

    Rows = np.ndarray[tuple[int], np.dtype[np.intp]]

ALL_CONNECTIONS = "all"
"""Value that selects every connection in its direction with the most data."""

ENDPOINT_SEPARATOR = " > "


def select_directions(capture: CaptureTables, connection: int | str | None = None) -> Rows:
    """Return the selected rows of ``connections``.

    Parameters
    ----------
    capture
        The capture.
    connection
        None selects the direction with the most data, without retransmissions. A number selects
        the connection with this number in the column ``connection``, and ``"all"`` every
        connection; both select only the direction of a connection with the most data. Addresses
        with or without port, such as ``"10.0.0.1:5001"`` or ``"10.0.0.1 > 10.0.0.2:80"``, select
        all directions from the first and, if given, to the second address. A single address that
        sends no data selects all directions to this address.

    Raises
    ------
    CaptureError
        The selection is empty.

    Examples
    --------
    >>> import tcpcast
    >>> capture = tcpcast.trace("slow.pcap")  # doctest: +SKIP
    >>> chosen(capture, "10.0.0.2")  # doctest: +SKIP
    array([1])
    """
    table = capture.connections
    if not table["unique_bytes"].size:
        raise CaptureError(
            f"{capture.file}: no connection in this capture carries data; use another capture"
        )
    size = table["unique_bytes"]
    if connection is None:
        return np.array([np.argmax(size)])
    if connection == ALL_CONNECTIONS:
        order = np.lexsort((-size, table["connection"]))
        _, first = np.unique(table["connection"][order], return_index=True)
        return np.sort(order[first])
    if isinstance(connection, str):
        return _directions_of_endpoints(capture, connection)
    rows = np.flatnonzero(table["connection"] == connection)
    if not rows.size:
        numbers = np.unique(table["connection"])
        raise CaptureError(
            f"{capture.file}: there is no connection {connection} with data; choose a number from "
            f'{numbers[0]} to {numbers[-1]}; --csv prints these numbers in the column "connection"'
        )
    return rows[[np.argmax(size[rows])]]


def _directions_of_endpoints(capture: CaptureTables, words: str) -> Rows:
    source, arrow, destination = (
        part.strip() for part in words.partition(ENDPOINT_SEPARATOR.strip())
    )
    kept = _matches_address(capture.connections["src"], source)
    if arrow:
        kept &= _matches_address(capture.connections["dst"], destination)
    elif not kept.any():  # the address only receives data, for example a client
        kept = _matches_address(capture.connections["dst"], source)
    if kept.any():
        return np.flatnonzero(kept)
    seen = np.unique(capture.connections["src"]).tolist()
    near = find_nearest_word(source, seen) or seen[0]
    raise CaptureError(
        f'{capture.file}: no data are sent from or to "{words}"; use an address, for example '
        f'"{near}", a pair "SOURCE > DESTINATION", a connection number, or "all"'
    )


def _matches_address(
    ends: np.ndarray[Any, Any], address: str
) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return a mask of the end points that match an address; without a port, any port matches."""
    hosts = np.array([host_address(end) for end in ends.tolist()], dtype=np.str_)
    return np.asarray((ends == address) | (hosts == address.strip("[]")))


def describe_directions(capture: CaptureTables, rows: Rows) -> str:
    """Return a name for directions: the end points of a single one, otherwise their number."""
    if rows.size != 1:
        return f"{rows.size} flows"
    table = capture.connections
    return f"{table['src'][rows[0]]}{ENDPOINT_SEPARATOR}{table['dst'][rows[0]]}"


def seconds_since(times: np.ndarray[Any, Any], first: Any) -> np.ndarray[Any, Any]:
    """Return times in seconds since a first time."""
    return np.asarray((times - first).astype(np.int64) * 1e-9)
