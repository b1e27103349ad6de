"""Captures: what TCP did on each connection of a pcap or pcapng file.

``trace`` reads one; ``table`` makes columns of what the compiled half found, ``beside`` lays what
models say beside what was measured.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast import _native
from tcpcast.captures.beside import modelled
from tcpcast.captures.table import Table, columns, events, intervals
from tcpcast.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Capture", "Table", "document", "rows", "trace"]

STANDARD_INPUT = "-"
ROWS_AT_A_TIME = 1024


@dataclass(slots=True)
class Capture:
    """What a capture says, as tables of equally long numpy columns.

    A table is a dict of columns, as :class:`pandas.DataFrame` and :class:`polars.DataFrame` take
    it. Times are UTC, durations in seconds, missing figures NaN.

    Parameters
    ----------
    file
        Where it came from.
    connections
        A row a direction that carries data, in the order of the connections' first segments.
    intervals
        Stretches of 100 s of each direction; ``direction`` is a row of ``connections``.
    retransmissions
        Each segment sent again, and why.
    loss_indications
        Each loss indication: ``td`` or ``to``.
    frames, segments
        Frames read, and TCP segments among them.
    connection_count
        Connections, those without data too.
    warnings
        What to check before trusting the figures.
    damaged, interrupted
        The file has a fault, or somebody interrupted: the figures are of what came before.
    """

    file: str
    connections: Table
    intervals: Table
    retransmissions: Table
    loss_indications: Table
    frames: int
    segments: int
    connection_count: int
    warnings: list[str]
    damaged: bool = False
    interrupted: bool = False

    def __repr__(self) -> str:
        """One line: what was read."""
        partial = ", partial" if self.damaged or self.interrupted else ""
        return (
            f"<Capture {self.file}: segments={self.segments}, connections={self.connection_count},"
            f" directions={self.connections['src'].size}{partial}>"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form of ``tcpcast trace --json``, for this one capture."""
        return document([self])


def trace(source: str | os.PathLike[str] | bytes) -> Capture:
    """Read a capture and say what TCP did in each direction.

    Parameters
    ----------
    source
        A file in pcap or pcapng format, as it is or compressed by gzip or zstd; ``"-"`` for
        standard input, or the bytes of such a file.

    Returns
    -------
    Capture
        Tables of numpy columns. Of a damaged file, what came before the damage; ``damaged`` and
        ``warnings`` say so.

    Raises
    ------
    CaptureError
        There is no such file, it cannot be read, or is no capture.
    """
    content = isinstance(source, bytes)
    file = "<bytes>" if isinstance(source, bytes) else os.fspath(source)
    try:
        found = _native.read_trace(None if file == STANDARD_INPUT and not content else source)
    except OSError as fault:
        raise CaptureError(f"{file}: {fault.strerror or fault}") from fault
    except ValueError as fault:
        raise CaptureError(f"{file}: {fault}") from fault
    connections = columns(found["connections"])
    connections |= modelled(connections)
    return Capture(
        file=file,
        connections=connections,
        intervals=intervals(found["intervals"]),
        retransmissions=events(found["retransmissions"]),
        loss_indications=events(found["loss_indications"]),
        frames=found["frames"],
        segments=found["segments"],
        connection_count=found["connection_count"],
        warnings=[*found["warnings"], *_warnings(connections, found)],
        damaged=found["damaged"],
        interrupted=found["interrupted"],
    )


def document(captures: Iterable[Capture]) -> dict[str, Any]:
    """Return ``{"captures": [...]}``, the form of ``tcpcast trace --json``; NaN becomes null."""
    return {
        "captures": [
            {
                "file": capture.file,
                "warnings": list(capture.warnings),
                "connections": list(rows(capture.connections)),
            }
            for capture in captures
        ]
    }


def rows(table: Table) -> Iterator[dict[str, Any]]:
    """Yield each row of a table with plain values, a part of the table at a time."""
    length = next(iter(table.values())).size
    for first in range(0, length, ROWS_AT_A_TIME):
        part = [plain(column[first : first + ROWS_AT_A_TIME]) for column in table.values()]
        for row in zip(*part, strict=True):
            yield dict(zip(table, row, strict=True))


def plain(column: np.ndarray[Any, Any]) -> list[Any]:
    """Return a column as plain values: times as ISO 8601 in UTC, NaN as None."""
    if column.dtype.kind == "M":
        return [f"{moment}Z" for moment in column.astype(str)]
    if column.dtype.kind == "f":
        return [value if math.isfinite(value) else None for value in column.tolist()]
    values: list[Any] = column.tolist()
    return values


def _warnings(connections: Table, found: dict[str, Any]) -> list[str]:
    """Say what limits the figures beyond what the reader saw."""
    lines = []

    def say(count: int, one: str) -> None:
        if count:
            lines.append(f"{count} {one}")

    say(int(connections["capture_duplicates"].sum()), "frames captured twice: counted once")
    say(
        int(connections["missing_bytes"].sum()),
        "bytes acknowledged that the capture does not have: retransmissions may be missing, too",
    )
    say(
        int((connections["super_segments"] > 0).sum()),
        "directions with segments larger than the MSS, cut after the tap or joined before it: "
        "packets are fewer than on the wire",
    )
    unplaced = np.isnan(connections["handshake_rtt_s"]) & (connections["tap_side"] == "unknown")
    say(
        int(unplaced.sum()),
        "directions without handshake and timestamps: their RTT is the path's only if the tap "
        "is at the sender",
    )
    say(found["evicted"], "connections cut in two: too many were alive at once")
    say(found["omitted_events"], "retransmissions and losses counted but not kept one by one")
    return lines
