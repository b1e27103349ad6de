"""The tables of a capture by name, and the selection of directions."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tcpcast.captures.names import name_services
from tcpcast.captures.services import service_table
from tcpcast.captures.table import select_rows
from tcpcast.captures.tap_comparison import totals_by_tap_order
from tcpcast.captures.transfers import service_or_transfer

if TYPE_CHECKING:
    from tcpcast.array_types import Table

DIRECTION_COLUMN = "direction"
"""Column with row indices of ``connections``."""


TABLE_NAMES = (
    "connections",
    "requests",
    "services",
    "failed",
    "interruptions",
    "intervals",
    "rounds",
    "retransmissions",
    "loss_indications",
)
"""Names of the tables that every capture has."""


@dataclass(slots=True)
class CaptureTables:
    """The results of one capture as tables of numpy columns.

    A table is a dict of columns of equal length, suitable for :class:`pandas.DataFrame` and
    :class:`polars.DataFrame`. Times are UTC, durations are in seconds, missing values are NaN.

    Parameters
    ----------
    file
        Name of the capture file.
    connections
        One row per direction with data, in the order of the connections' first segments.
    intervals
        One row per direction and interval of 100 s; ``direction`` is an index in ``connections``.
    retransmissions
        One row per retransmitted segment, with the cause.
    loss_indications
        One row per loss indication, ``td`` or ``to``.
    rounds
        One row per round (from the transmission of a segment to its acknowledgement), with the
        limit of the rate. A direction has at most 2048 rows; in longer transfers, a row combines
        several consecutive rounds.
    requests
        One row per request: its time line at the client, with parts that add up, and how it ended
        (``outcome``).
    services
        One row per server address and port with a request: latency over all these requests, and its
        cause. ``service`` in ``connections`` is a row index of this table, or -1.
    failed
        One row per failed connection: ``failure`` is ``unanswered`` (SYNs), ``refused``,
        ``half_open``, ``silent``, ``reset`` or, for a connection that opened late because its SYN
        met an old connection, ``old_connection``. The table has at most 16,384 rows; ``rest``
        counts all failed connections.
    interruptions
        One row per connection and period of at least 1 s and four RTOs in which the path, the
        server or the client was silent while data were outstanding.
    frames, segments
        Number of frames, and of TCP segments among them.
    connection_count
        Number of connections, including those without data.
    rest
        Totals of directions and connections without a row. At most 65,536 directions with data have
        rows, those with the most bytes; ``directions``, ``packets``, ``data_packets``, ``bytes``,
        ``unique_bytes``, ``retransmissions``, ``td``, ``to`` and ``timeouts`` are totals of the
        others. ``empty_connections``, ``empty_directions`` and ``empty_packets`` count connections,
        directions and packets without data. ``unanswered``, ``refused``, ``half_open``, ``reset``
        and ``silent`` count failed connections as in the table ``failed``; ``reset_without_loss``
        counts harmless resets, ``old_connection`` connections that opened late because of an old
        connection between the same ports. ``keep_alives`` counts probes of idle connections,
        ``keep_alives_unanswered`` those without a response. ``evicted`` counts connections that
        were evicted because more than ``max_connections`` were active, ``evicted_single`` those
        with only one packet. ``uncaptured`` counts directions whose data were acknowledged but not
        captured, ``uncaptured_bytes`` their bytes.
    warnings
        Warnings to check before use of the results.
    damaged, interrupted
        True if the file is damaged or the user interrupted the analysis; the results then cover
        only the packets before this point.
    between
        With a second capture, one row per order of the two taps on the path; otherwise empty.
    trail
        Points of a time-sequence plot, if requested: ``kind`` is ``data``, ``ack``, ``window``,
        ``sacked`` (by the receiver) or the cause of a retransmission. Sequence numbers are relative
        to the first byte of the direction. If there are too many points, only every second, fourth
        etc. point of a kind is kept.
    is_restricted
        True if the capture is restricted to some directions; ``segments`` counts only these.
    program
        "" for a capture; ``iperf3`` or ``ss`` for a log of this program. Such a log has one row per
        direction in ``connections``, with NaN for what only packets show; its other tables are
        empty.
    """

    file: str
    connections: Table
    intervals: Table
    retransmissions: Table
    loss_indications: Table
    rounds: Table
    frames: int
    segments: int
    connection_count: int
    warnings: list[str]
    damaged: bool = False
    interrupted: bool = False
    rest: dict[str, int] = field(default_factory=dict)
    between: Table = field(default_factory=dict)
    trail: Table = field(default_factory=dict)
    requests: Table = field(default_factory=dict)
    services: Table = field(default_factory=dict)
    failed: Table = field(default_factory=dict)
    interruptions: Table = field(default_factory=dict)
    is_restricted: bool = False
    program: str = ""


_CaptureTables = TypeVar("_CaptureTables", bound=CaptureTables)


def tables_by_name(capture: CaptureTables) -> dict[str, Table]:
    """Return all tables of a capture by name, except those that were not requested."""
    names = [field.name for field in dataclasses.fields(capture) if field.type == "Table"]
    found = {name: getattr(capture, name) for name in names}
    return {name: value for name, value in found.items() if value}


def restrict_to_directions(
    capture: _CaptureTables, rows: np.ndarray[Any, np.dtype[np.intp]]
) -> _CaptureTables:
    """Return a capture that is restricted to some directions.

    Parameters
    ----------
    capture
        The capture.
    rows
        Distinct rows of ``connections`` in ascending order. Tables with a column ``direction`` are
        restricted to these rows and renumbered; ``segments`` counts only these directions.
    """
    changed: dict[str, Any] = {
        name: _renumber_directions(table, rows)
        for name, table in tables_by_name(capture).items()
        if DIRECTION_COLUMN in table
    }
    connections = select_rows(capture.connections, rows)
    for name in ("requests", "failed", "interruptions"):
        table = getattr(capture, name)
        kept = np.isin(table["connection"], connections["connection"])
        changed[name] = select_rows(table, kept)
    changed["services"] = service_table(changed["requests"])
    connections["service"] = service_or_transfer(
        connections, changed["requests"], changed["services"]
    )
    changed["services"]["server_name"] = name_services(changed["services"], connections)
    if capture.between:
        changed["between"] = totals_by_tap_order(connections)
    return dataclasses.replace(
        capture,
        connections=connections,
        segments=int(connections["packets"].sum()),
        connection_count=int(np.unique(connections["connection"]).size),
        rest={},
        is_restricted=True,
        **changed,
    )


def rows_of_direction(table: Table, direction: int) -> Table:
    """Return the rows of a table for one direction, without the column ``direction``."""
    kept = table[DIRECTION_COLUMN] == direction
    return {name: column[kept] for name, column in table.items() if name != DIRECTION_COLUMN}


def _renumber_directions(table: Table, rows: np.ndarray[Any, np.dtype[np.intp]]) -> Table:
    kept = np.isin(table[DIRECTION_COLUMN], rows)
    part = select_rows(table, kept)
    return part | {DIRECTION_COLUMN: np.searchsorted(rows, part[DIRECTION_COLUMN])}
