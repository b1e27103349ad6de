"""Captures: what TCP did on each connection of a pcap or pcapng file.

``trace`` reads one; ``table`` makes columns of what the compiled half found, ``beside`` lays what
models say beside what was measured, ``between`` what a second tap says of the packets.
"""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast import _native
from tcpcast.captures.advice import advice
from tcpcast.captures.between import doubts, overall, passed
from tcpcast.captures.control import looks_like
from tcpcast.captures.failed import failed
from tcpcast.captures.flows import chosen
from tcpcast.captures.groups import groups as grouped
from tcpcast.captures.growth import growing
from tcpcast.captures.model_rates import modelled
from tcpcast.captures.models import model_errors, model_intervals, models
from tcpcast.captures.requests import requests
from tcpcast.captures.services import of_rows, services
from tcpcast.captures.table import Table, columns, events, intervals, rounds
from tcpcast.captures.verdict import judged, refined
from tcpcast.errors import CaptureError
from tcpcast.units import show

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Capture", "Table", "document", "rows", "trace"]

STANDARD_INPUT = "-"
ROWS_AT_A_TIME = 1024
_MOST_KEPT = 1_000_000_000
"""Most connections that are followed and most points that are kept of each."""
OS_ERROR = re.compile(r" \(os error \d+\)$")
"""What the compiled half adds to the system's own words."""


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
        Each retransmitted segment, and why.
    loss_indications
        Each loss indication: ``td`` or ``to``.
    rounds
        Each round, from the sending of one segment to its acknowledgement, and what limited it;
        at most 2048 of a direction, beyond which several that follow each other are one.
    requests
        Each request and its response: latency at the client, and its parts.
    services
        A row per server address and port with three separable requests or more: latency of all its
        requests, and the cause; ``service`` in ``connections`` is a row of it, or -1.
    failed
        Each connection that failed: ``failure`` is ``unanswered`` (SYNs), ``refused``,
        ``half_open``, ``silent`` or ``reset``; at most 16,384, all are counted in ``rest``.
    frames, segments
        Frames read, and TCP segments among them.
    connection_count
        Connections, those without data too.
    rest
        What has no row, as sums. Of more than 65,536 directions with data those with most bytes
        have a row each: ``directions``, ``packets``, ``data_packets``, ``bytes``,
        ``unique_bytes``, ``retransmissions``, ``td``, ``to`` and ``timeouts`` are of the others.
        ``empty_connections``, ``empty_directions`` and ``empty_packets`` carry no data;
        ``unanswered``, ``refused``, ``half_open``, ``reset`` and ``silent`` connections failed
        as in the table ``failed``, ``reset_without_loss`` of the reset ones after a FIN or after
        all data were acknowledged; ``keep_alives`` are probes of idle connections,
        ``keep_alives_unanswered`` those without an answer;
        ``evicted`` connections were let go of because more than ``max_connections`` were alive,
        ``evicted_single`` of them after one packet. ``uncaptured`` directions were acknowledged
        without any of their data in the capture, ``uncaptured_bytes`` bytes.
    warnings
        What to check before trusting the figures.
    damaged, interrupted
        The file has a fault, or somebody interrupted: the figures are of what came before.
    between
        With a second tap, a row for each way in which data passes the two; else empty.
    trail
        Points of a time-sequence plot, if they were asked for: ``kind`` is ``data``, ``ack``,
        ``window``, ``sacked`` (by the receiver) or the cause of a retransmission; bytes count from
        the direction's first. Of too many, every second, fourth, ... of a kind is there.
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

    def __repr__(self) -> str:
        """One line: what was read."""
        partial = ", partial" if self.damaged or self.interrupted else ""
        return (
            f"<Capture {self.file}: segments={self.segments}, connections={self.connection_count},"
            f" directions={self.connections['src'].size}{partial}>"
        )

    def advice(self) -> np.ndarray[Any, Any]:
        """Return why each direction was slow, and what to change first: a sentence a row.

        The figures in it are those of models fed with what was measured. A sentence is made when it
        is asked for, since there may be many. Directions of a service have its verdict.
        """
        return advice(self.connections, self.services)

    def groups(self, by: str = "pair", rtt_s: float | None = None) -> Table:
        """Return a row for several flows together.

        Parameters
        ----------
        by
            Which directions are together: ``"pair"`` those from one host to one other,
            ``"source"`` and ``"destination"`` those from or to one host, ``"all"`` all.
        rtt_s
            How far loss indications are apart, in seconds, that count as two loss events; above 0.
            Without it, the mean RTT of the group.

        Returns
        -------
        Table
            Columns as in the reference of ``tcpcast trace --group-by``. Rates are of the time in which
            at least one of the flows was alive; ``loss_event_ratio_cumulative`` (p_e) is NaN where
            not every loss indication was kept one by one, ``loss_ratio`` (p_r) unless two captures
            of the same packets tell it.

        Raises
        ------
        DomainError
            Another way to put flows together, or an RTT outside its domain.
        """
        return grouped(self.connections, self.loss_indications, by=by, rtt_s=rtt_s)

    def models(self, connection: int | str | None = None) -> Table:
        """Return what each model of a path says of the whole of each direction.

        Parameters
        ----------
        connection
            Which: as ``--connection`` of ``tcpcast trace``, see
            :func:`tcpcast.captures.flows.chosen`. None: every direction.

        Returns
        -------
        Table
            What the models were fed, ``send_rate_pps`` as measured, and a column for each model in
            packets/s: see :func:`tcpcast.captures.models.models`.

        Raises
        ------
        CaptureError
            There is no such connection.
        """
        return models(self, self._rows(connection))

    def model_intervals(self, connection: int | str | None = None) -> Table:
        """Return each 100 s: packets sent, beside those that models would have sent.

        Parameters
        ----------
        connection
            As for :meth:`models`.

        Returns
        -------
        Table
            See :func:`tcpcast.captures.models.model_intervals`.

        Raises
        ------
        CaptureError
            There is no such connection.
        """
        return model_intervals(self, self._rows(connection))

    def model_errors(self, connection: int | str | None = None) -> Table:
        """Return PFTK's average error of each model over the intervals of 100 s, as a share.

        Parameters
        ----------
        connection
            As for :meth:`models`.

        Returns
        -------
        Table
            See :func:`tcpcast.captures.models.model_errors`.

        Raises
        ------
        CaptureError
            There is no such connection.
        """
        return model_errors(self.model_intervals(connection))

    def _rows(self, connection: int | str | None) -> np.ndarray[Any, Any]:
        if connection is None:
            return np.arange(self.connections["src"].size)
        return chosen(self, connection)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form of ``tcpcast trace --json``, for this one capture."""
        return document([self])


def trace(
    source: str | os.PathLike[str] | bytes,
    *,
    after: str | os.PathLike[str] | bytes | None = None,
    trail_points: int = 0,
    max_connections: int | None = None,
) -> Capture:
    """Read a capture and say what TCP did in each direction.

    Parameters
    ----------
    source
        A file in pcap or pcapng format, as it is or compressed by gzip or zstd; ``"-"`` for
        standard input, or the bytes of such a file.
    after
        A capture of the same packets at a second tap, behind the first: adds to each direction what
        was lost in between (``loss_ratio_between`` is p_r) and how long packets took. Clocks need
        not agree.
    trail_points
        About how many points of a time-sequence plot ``trail`` keeps of a direction; 0 for none.
    max_connections
        How many connections are followed at once, at least 1; None is 65,536, some 3 kB each.
        Beyond, one is evicted: one that is over, of one packet, or idle for longest.

    Returns
    -------
    Capture
        Tables of numpy columns. Of a damaged file, what came before the damage; ``damaged`` and
        ``warnings`` say so.

    Raises
    ------
    CaptureError
        There is no such file, it cannot be read, or is no capture; ``trail_points`` or
        ``max_connections`` is out of range.
    """
    _check_limits(trail_points, max_connections)
    content = isinstance(source, bytes)
    file = _name(source)
    try:
        found = _native.read_trace(
            None if file == STANDARD_INPUT and not content else source,
            after,
            trail_points,
            max_connections,
        )
    except (OSError, ValueError) as fault:
        whose = file if after is None or not getattr(fault, "after", False) else _name(after)
        reason = OS_ERROR.sub("", str(fault))
        if isinstance(fault, IsADirectoryError):
            reason = "a folder, not a capture; `tcpcast report` reads all captures of one"
        raise CaptureError(reason, file=whose) from fault
    connections = columns(found["connections"], found["limits"])
    rounds_found = rounds(found["rounds"], found["limits"])
    lost = events(found["loss_indications"])
    connections |= _verdicts(connections, rounds_found, lost)
    asked = requests(found["talks"], found["requests"])
    served = services(asked)
    connections["service"] = of_rows(connections, asked, served)
    warnings = [*found["warnings"], *_warnings(connections, found)]
    second = found.get("between")
    between: Table = {}
    if second is not None:
        columns_between = passed(second)
        connections |= columns_between
        between = overall(columns_between)
        warnings += doubts(second)
    return Capture(
        file=file,
        connections=connections,
        intervals=intervals(found["intervals"]),
        retransmissions=events(found["retransmissions"]),
        loss_indications=lost,
        rounds=rounds_found,
        frames=found["frames"],
        segments=found["segments"],
        connection_count=found["connection_count"],
        warnings=warnings,
        damaged=found["damaged"] or (second is not None and second["damaged"]),
        interrupted=found["interrupted"],
        rest=found["rest"],
        between=between,
        trail=events(found["trail"]),
        requests=asked,
        services=served,
        failed=failed(found["failed"]),
    )


def _check_limits(trail_points: int, max_connections: int | None) -> None:
    if max_connections is not None and not 1 <= max_connections <= _MOST_KEPT:
        raise CaptureError(
            f"max_connections = {show(max_connections)}: write 65536, or at most {_MOST_KEPT}"
        )
    if not 0 <= trail_points <= _MOST_KEPT:
        raise CaptureError(
            f"trail_points = {show(trail_points)}: write 0 for none, or at most {_MOST_KEPT}"
        )


def _verdicts(connections: Table, rounds: Table, lost: Table) -> Table:
    """Return the columns of congestion control, models and causes."""
    found = connections | looks_like(connections, rounds)
    found |= modelled(found)
    found |= judged(found, rounds, lost)
    found |= refined(found)
    found |= growing(found, rounds)
    return found | modelled(found)


def _of_many(rest: dict[str, int], most: int) -> list[str]:
    """Say which connections have no row in a capture of very many."""
    lines = []
    evicted, single = rest["evicted"], rest["evicted_single"]
    if evicted:
        after_one_packet = f" ({single:,} of them after one packet)" if single else ""
        lines.append(
            f"{evicted:,} connection{'' if evicted == 1 else 's'} evicted{after_one_packet}: "
            f"more than {most:,} were active at once; later packets of an evicted connection "
            "count as a "
            "new one. "
            "--max-connections raises the limit"
        )
    if rest["directions"]:
        lines.append(
            f"{rest['directions']:,} directions with the least data have no row: together "
            f"{rest['data_packets']:,} data packets, {rest['bytes']:,} bytes, "
            f"{rest['retransmissions']:,} packets retransmitted, {rest['timeouts']:,} timeouts"
        )
    if rest["uncaptured"]:
        lines.append(
            f"{rest['uncaptured']:,} direction{'' if rest['uncaptured'] == 1 else 's'} with "
            f"acknowledgements but no data: {rest['uncaptured_bytes']:,} bytes were acknowledged. "
            "Losses, round-trip times and limits do not show: capture both directions"
        )
    return lines


def _name(source: str | os.PathLike[str] | bytes) -> str:
    if isinstance(source, bytes):
        return "<bytes>"
    try:
        return os.fspath(source)
    except TypeError:
        raise CaptureError(f"{source!r} is no capture; write the name of a file") from None


def document(captures: Iterable[Capture]) -> dict[str, Any]:
    """Return ``{"captures": [...]}``, the form of ``tcpcast trace --json``; NaN becomes null."""
    return {
        "captures": [
            {
                "file": capture.file,
                "warnings": list(capture.warnings),
                **({"between": list(rows(capture.between))} if capture.between else {}),
                "rest": dict(capture.rest),
                "services": list(rows(capture.services)),
                "failed": list(rows(capture.failed)),
                "connections": list(advised_rows(capture.connections, capture.services)),
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


def advised_rows(connections: Table, services: Table) -> Iterator[dict[str, Any]]:
    """Yield each row of ``connections`` with plain values, and with ``advice`` as its last."""
    for first in range(0, connections["src"].size, ROWS_AT_A_TIME):
        part = {
            name: column[first : first + ROWS_AT_A_TIME] for name, column in connections.items()
        }
        yield from rows(part | {"advice": advice(part, services)})


def plain(column: np.ndarray[Any, Any]) -> list[Any]:
    """Return a column as plain values: times as ISO 8601 in UTC, NaN as None."""
    if column.dtype.kind == "M":
        return [f"{moment}Z" for moment in column.astype(str)]
    if column.dtype.kind == "f":
        return [value if math.isfinite(value) else None for value in column.tolist()]
    values: list[Any] = column.tolist()
    return values


def _warnings(connections: Table, found: dict[str, Any]) -> list[str]:
    """Say what limits the results, in addition to what the reader found."""
    lines = []

    def say(count: int, several: str) -> None:
        if count:
            first, _, rest = several.partition(" ")
            lines.append(f"{count} {several if count != 1 else f'{first[:-1]} {rest}'}")

    say(int(connections["capture_duplicates"].sum()), "frames captured twice: counted once")
    say(
        int(connections["missing_bytes"].sum()),
        "bytes acknowledged but not captured: retransmissions may be missing, too",
    )
    say(
        int((connections["super_segments"] > 0).sum()),
        "directions with frames of several packets (segmentation offload): the packets in them "
        "are counted, by the MSS",
    )
    unplaced = np.isnan(connections["handshake_rtt_s"]) & (connections["tap_side"] == "unknown")
    say(
        int(unplaced.sum()),
        "directions without handshake and timestamps: their RTT is that of the whole path only if "
        "the tap is at the sender",
    )
    say(
        int(connections["out_of_window"].sum()),
        "segments with sequence numbers more than 1 GiB away, beyond any window: of another "
        "connection between the same ports, or damaged; counted, not followed",
    )
    say(
        int(connections["rtt_withheld"].sum()),
        "directions without RTT: acks without data are missing from the capture, and acks with "
        "data come later than any delayed ack",
    )
    lines += _of_many(found["rest"], found["max_connections"])
    say(found["without_trail"], "directions without the trail requested: there are too many")
    say(found["omitted_events"], "events (retransmissions, losses) counted but not listed")
    say(found["omitted_rounds"], "rounds not listed")
    say(found["omitted_requests"], "requests counted nowhere: there are too many")
    return lines
