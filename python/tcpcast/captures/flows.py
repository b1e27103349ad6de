"""Which directions of a capture somebody means: by number, by their ends, or all."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.groups import host
from tcpcast.errors import CaptureError

if TYPE_CHECKING:
    from tcpcast.captures import Capture, Table

    Rows = np.ndarray[tuple[int], np.dtype[np.intp]]

ALL = "all"
"""Every connection, each in the direction that carries most data."""

BETWEEN = " > "


def chosen(capture: Capture, connection: int | str | None = None) -> Rows:
    """Return the rows of ``connections`` that somebody means.

    Parameters
    ----------
    capture
        What was read.
    connection
        None: the direction with most data. A number: that connection as the column ``connection``
        counts, in the direction with most data. ``"all"``: every connection, each in the direction
        with most data. Otherwise ends as they are shown, each with or without its port:
        ``"10.0.0.1:5001"``, ``"10.0.0.1"``, ``"10.0.0.1 > 10.0.0.2:80"``; all that is sent from
        the first, to the second. A single end that sends no data stands for all that is sent to it.

    Raises
    ------
    CaptureError
        Nothing in the capture is meant by it.

    Examples
    --------
    >>> import tcpcast
    >>> capture = tcpcast.trace("slow.pcap")  # doctest: +SKIP
    >>> chosen(capture, "10.0.0.2")  # doctest: +SKIP
    array([1])
    """
    table = capture.connections
    if not table["bytes"].size:
        raise CaptureError(f"{capture.file}: no connection carries data; give another capture")
    if connection is None:
        return np.array([np.argmax(table["bytes"])])
    if connection == ALL:
        return _heaviest(table)
    if isinstance(connection, str):
        return _between(capture, connection)
    rows = np.flatnonzero(table["connection"] == connection)
    if not rows.size:
        numbers = np.unique(table["connection"])
        raise CaptureError(
            f"{capture.file}: there is no connection {connection} with data; write one from "
            f"{numbers[0]} to {numbers[-1]}, as --csv numbers them"
        )
    return rows[[np.argmax(table["bytes"][rows])]]


def _heaviest(table: Table) -> Rows:
    order = np.lexsort((-table["bytes"], table["connection"]))
    _, first = np.unique(table["connection"][order], return_index=True)
    return np.sort(order[first])


def _between(capture: Capture, words: str) -> Rows:
    source, arrow, destination = (part.strip() for part in words.partition(BETWEEN.strip()))
    kept = _is(capture.connections["src"], source)
    if arrow:
        kept &= _is(capture.connections["dst"], destination)
    elif not kept.any():  # an end that only receives: a client, for example
        kept = _is(capture.connections["dst"], source)
    if kept.any():
        return np.flatnonzero(kept)
    seen = np.unique(capture.connections["src"]).tolist()
    near = difflib.get_close_matches(source, seen, n=1) or seen[:1]
    raise CaptureError(
        f'{capture.file}: no data are sent from or to "{words}"; write an end such as "{near[0]}", '
        'two of them as "SOURCE > DESTINATION", a number, or "all"'
    )


def _is(ends: np.ndarray[Any, Any], asked: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Say which ends are the one asked for; without a port, all of that address."""
    addresses = np.array([host(end) for end in ends.tolist()], dtype=np.str_)
    return np.asarray((ends == asked) | (addresses == asked.strip("[]")))


def named(capture: Capture, rows: Rows) -> str:
    """Return what some rows are called: both ends of one, else how many."""
    if rows.size != 1:
        return f"{rows.size} flows"
    table = capture.connections
    return f"{table['src'][rows[0]]}{BETWEEN}{table['dst'][rows[0]]}"


def since(times: np.ndarray[Any, Any], first: Any) -> np.ndarray[Any, Any]:
    """Return moments as seconds after a first one."""
    return np.asarray((times - first).astype(np.int64) * 1e-9)
