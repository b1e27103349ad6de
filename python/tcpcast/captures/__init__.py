"""Analysis of TCP connections in pcap and pcapng files.

``trace`` reads a capture. ``table`` converts the results of the Rust core to columns,
``model_rates`` and ``models`` compute the rates of models from measured inputs, and ``between``
compares a capture with a second one from another capture point (tap).
"""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast import _native
from tcpcast.array_types import Table
from tcpcast.captures.advice import advise_each_direction
from tcpcast.captures.arrow_tables import to_arrow_table
from tcpcast.captures.capture_warnings import capture_warnings
from tcpcast.captures.cause_rules import cause_columns, correct_columns_by_cause
from tcpcast.captures.congestion_control import identify_congestion_control
from tcpcast.captures.direction_selection import select_directions
from tcpcast.captures.failed_connections import failed_connections_table
from tcpcast.captures.groups import group_directions as grouped
from tcpcast.captures.interruptions import interruption_table
from tcpcast.captures.log_formats import read_log
from tcpcast.captures.model_rates import measured_and_model_rate_columns
from tcpcast.captures.models import (
    model_errors,
    model_intervals,
    model_rates_by_direction,
)
from tcpcast.captures.names import name_services, server_name_column
from tcpcast.captures.requests import request_table
from tcpcast.captures.services import service_table
from tcpcast.captures.subject import bytes_by_limit, capture_subject
from tcpcast.captures.table import direction_table, event_table, interval_table, round_table
from tcpcast.captures.tap_comparison import (
    comparison_warnings,
    second_tap_columns,
    totals_by_tap_order,
)
from tcpcast.captures.transfers import service_or_transfer
from tcpcast.captures.verdict import (
    capture_findings,
    captures_findings,
    directions_without_service,
)
from tcpcast.captures.window_growth import window_growth_units
from tcpcast.errors import CaptureError
from tcpcast.extras import TabularResult, verdict_text
from tcpcast.units import quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import ModuleType

__all__ = ["Capture", "Table", "iter_plain_rows", "trace", "trace_document"]

STANDARD_INPUT = "-"
ROWS_PER_CHUNK = 1024
_MAX_ARGUMENT = 1_000_000_000
"""Upper bound of ``max_connections`` and of ``trail_points``."""
OS_ERROR_SUFFIX = re.compile(r" \(os error \d+\)$")
"""Suffix of messages of the operating system in errors from the Rust core."""


@dataclass(slots=True)
class Capture(TabularResult):
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

    def __repr__(self) -> str:
        """Return a summary on one line."""
        partial = ", partial" if self.damaged or self.interrupted else ""
        return (
            f"<Capture {self.file}: segments={self.segments}, connections={self.connection_count},"
            f" directions={self.connections['src'].size}{partial}>"
        )

    def _make_arrow_table(self, arrow: ModuleType) -> Any:
        """Return the directions."""
        return to_arrow_table(arrow, self.file, self.connections)

    def advice(self) -> np.ndarray[Any, Any]:
        """Return one sentence per direction: why it was slow, and what to change first.

        Predicted values in the sentences come from models with measured inputs. For directions of a
        service, the sentence is the verdict on the service.
        """
        return advise_each_direction(self.connections, self.services)

    def verdict(self) -> str:
        """Return the main result of the capture as a sentence."""
        return verdict_text(capture_findings(self))

    def groups(self, by: str = "pair", rtt_s: float | None = None) -> Table:
        """Return one row per group of flows.

        Parameters
        ----------
        by
            How to group directions: ``"pair"`` by source and destination host, ``"source"`` or
            ``"destination"`` by one host, ``"all"`` into one group.
        rtt_s
            Minimum distance in seconds between loss indications that count as separate loss events;
            above 0. Default: the mean RTT of the group.

        Returns
        -------
        Table
            Columns as in the reference of ``tcpcast trace --group-by``. Rates refer to the time in
            which at least one flow was active. ``loss_event_ratio_cumulative`` (p_e) is NaN if not
            every loss indication is listed; ``loss_ratio`` (p_r) is NaN without a second capture of
            the same packets.

        Raises
        ------
        DomainError
            ``by`` or ``rtt_s`` is outside its domain.
        """
        return grouped(self.connections, self.loss_indications, by=by, rtt_s=rtt_s)

    def models(self, connection: int | str | None = None) -> Table:
        """Return the rate of each path model for each direction.

        Parameters
        ----------
        connection
            Selection of directions as for ``--connection`` of ``tcpcast trace``, see
            :func:`tcpcast.captures.direction_selection.select_directions`. None: all directions.

        Returns
        -------
        Table
            Inputs of the models, the measured ``send_rate_pps``, and one column per model in
            packets/s: see :func:`tcpcast.captures.models.model_rates_by_direction`.

        Raises
        ------
        CaptureError
            The connection does not exist.
        """
        return model_rates_by_direction(self, self._select_direction_rows(connection))

    def model_intervals(self, connection: int | str | None = None) -> Table:
        """Return the packets sent and the packets predicted by models in each interval of 100 s.

        Parameters
        ----------
        connection
            As for :meth:`model_rates_by_direction`.

        Returns
        -------
        Table
            See :func:`tcpcast.captures.models.model_intervals`.

        Raises
        ------
        CaptureError
            The connection does not exist.
        """
        return model_intervals(self, self._select_direction_rows(connection))

    def model_errors(self, connection: int | str | None = None) -> Table:
        """Return the average error (as PFTK defines it) of each model over intervals of 100 s.

        Parameters
        ----------
        connection
            As for :meth:`model_rates_by_direction`.

        Returns
        -------
        Table
            See :func:`tcpcast.captures.models.model_errors`.

        Raises
        ------
        CaptureError
            The connection does not exist.
        """
        return model_errors(self.model_intervals(connection))

    def _select_direction_rows(self, connection: int | str | None) -> np.ndarray[Any, Any]:
        if connection is None:
            return np.arange(self.connections["src"].size)
        return select_directions(self, connection)

    def to_json(self) -> dict[str, Any]:
        """Return the output of ``tcpcast trace --json`` for this capture."""
        return trace_document([self])


def trace(
    source: str | os.PathLike[str] | bytes,
    *,
    after: str | os.PathLike[str] | bytes | None = None,
    trail_points: int = 0,
    max_connections: int | None = None,
) -> Capture:
    """Read a capture and analyse TCP in each direction.

    Parameters
    ----------
    source
        Path of a pcap or pcapng file, optionally compressed by gzip or zstd; ``"-"`` for standard
        input; or the content of such a file as bytes. Also a log of ``iperf3 -J`` or ``ss -tin``.
    after
        A capture of the same packets at a second tap; clocks may differ. Directions then have the
        loss between the taps (``loss_ratio_between``, p_r) and transit times.
    trail_points
        Approximate number of points per direction in ``trail`` for a time-sequence plot; 0 for
        none.
    max_connections
        Maximum number of connections followed at the same time, at least 1; None means 65,536
        (about 3 kB each). Above this number, connections are evicted: closed ones first, then
        connections with a single packet, then the longest idle.

    Returns
    -------
    Capture
        Tables of numpy columns. If the file is damaged (``damaged``, ``warnings``), the tables
        cover only the part before the damage.

    Raises
    ------
    CaptureError
        The file does not exist, cannot be read, or is not a capture; or ``trail_points`` or
        ``max_connections`` is out of range.
    """
    _check_argument_ranges(trail_points, max_connections)
    content = isinstance(source, bytes)
    file = _file_name(source)
    log = None if file == STANDARD_INPUT and not content else read_log(source, file, trace)
    if log is not None:
        if after is not None:
            raise CaptureError(
                f"a log of {log.program}; a second capture requires a capture", file=file
            )
        return log
    try:
        found = _native.read_trace(
            None if file == STANDARD_INPUT and not content else source,
            after,
            trail_points,
            max_connections,
        )
    except (OSError, ValueError) as error:
        whose = file if after is None or not getattr(error, "after", False) else _file_name(after)
        reason = OS_ERROR_SUFFIX.sub("", str(error))
        if isinstance(error, IsADirectoryError):
            reason = "a folder, not a capture; to read all captures in it, use `tcpcast report`"
        raise CaptureError(reason, file=whose) from error
    if "text" in found:
        return _read_log_text(found["text"], file)
    connections = direction_table(found["connections"], found["limits"])
    rounds_found = round_table(found["rounds"], found["limits"])
    lost = event_table(found["loss_indications"])
    connections |= _add_cause_columns(connections, rounds_found, lost)
    asked = request_table(found["talks"], found["requests"], found["first_ns"], found["last_ns"])
    served = service_table(asked)
    connections["service"] = service_or_transfer(connections, asked, served)
    connections["server_name"] = server_name_column(connections, found["names"])
    served["server_name"] = name_services(served, connections)
    warnings = [*found["warnings"], *capture_warnings(connections, found)]
    second = found.get("between")
    between: Table = {}
    if second is not None:
        columns_between = second_tap_columns(second)
        connections |= columns_between
        between = totals_by_tap_order(columns_between)
        warnings += comparison_warnings(second)
    return Capture(
        file=file,
        connections=connections,
        intervals=interval_table(found["intervals"]),
        retransmissions=event_table(found["retransmissions"]),
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
        trail=event_table(found["trail"]),
        requests=asked,
        services=served,
        failed=failed_connections_table(found["failed"]),
        interruptions=interruption_table(found["interruptions"], asked, found["first_ns"]),
    )


def _read_log_text(text: bytes, file: str) -> Capture:
    """Return the results of a text from standard input."""
    log = read_log(text, file, trace)
    if log is None:
        raise CaptureError(
            "not a capture in pcap or pcapng format, but text; write captures with tcpdump -w, and "
            "logs with iperf3 -J or ss -tin",
            file=file,
        )
    return log


def _check_argument_ranges(trail_points: int, max_connections: int | None) -> None:
    if max_connections is not None and not 1 <= max_connections <= _MAX_ARGUMENT:
        raise CaptureError(
            f"max_connections = {quote(max_connections)}: must be between 1 and {_MAX_ARGUMENT}"
        )
    if not 0 <= trail_points <= _MAX_ARGUMENT:
        raise CaptureError(
            f"trail_points = {quote(trail_points)}: must be between 0 and {_MAX_ARGUMENT}"
        )


def _add_cause_columns(connections: Table, rounds: Table, lost: Table) -> Table:
    """Return the columns with congestion control, model rates and causes."""
    found = connections | identify_congestion_control(connections, rounds)
    found |= measured_and_model_rate_columns(found)
    found |= cause_columns(found, rounds, lost)
    found |= correct_columns_by_cause(found)
    found |= window_growth_units(found, rounds)
    return found | measured_and_model_rate_columns(found)


def _file_name(source: str | os.PathLike[str] | bytes) -> str:
    if isinstance(source, bytes):
        return "<bytes>"
    try:
        return os.fspath(source)
    except TypeError:
        raise CaptureError(f"{source!r} is not a capture; pass a file name or bytes") from None


def trace_document(captures: Iterable[Capture]) -> dict[str, Any]:
    """Return ``{"verdict": ..., "captures": [...]}`` as in ``tcpcast trace --json``."""
    shown = list(captures)
    return {
        "verdict": verdict_text(captures_findings(shown)),
        "captures": [
            {
                **capture_json_before_tables(capture),
                "services": list(iter_plain_rows(capture.services)),
                "failed": list(iter_plain_rows(capture.failed)),
                "interruptions": list(iter_plain_rows(capture.interruptions)),
                "connections": list(iter_rows_with_advice(capture.connections, capture.services)),
            }
            for capture in shown
        ],
    }


def capture_json_before_tables(capture: Capture, groups: Table | None = None) -> dict[str, Any]:
    """Return the keys of a capture that precede its tables in the JSON document."""
    limits = bytes_by_limit(directions_without_service(capture.connections))
    findings = capture_findings(capture, groups)
    return {
        "file": capture.file,
        **({"program": capture.program} if capture.program else {}),
        "verdict": verdict_text(findings),
        "findings": [finding.to_json() for finding in findings],
        "subject": capture_subject(capture, groups).to_json(),
        "warnings": list(capture.warnings),
        **({"between": list(iter_plain_rows(capture.between))} if capture.between else {}),
        "rest": dict(capture.rest),
        "limits": list(iter_plain_rows(limits)),
    }


def iter_plain_rows(table: Table) -> Iterator[dict[str, Any]]:
    """Yield each row of a table as a dict of plain values, converting the table in parts."""
    length = next(iter(table.values())).size
    for first in range(0, length, ROWS_PER_CHUNK):
        part = [
            to_plain_values(column[first : first + ROWS_PER_CHUNK]) for column in table.values()
        ]
        for row in zip(*part, strict=True):
            yield dict(zip(table, row, strict=True))


def iter_rows_with_advice(connections: Table, services: Table) -> Iterator[dict[str, Any]]:
    """Yield each row of ``connections`` as a dict of plain values that ends with ``advice``."""
    for first in range(0, connections["src"].size, ROWS_PER_CHUNK):
        part = {
            name: column[first : first + ROWS_PER_CHUNK] for name, column in connections.items()
        }
        yield from iter_plain_rows(part | {"advice": advise_each_direction(part, services)})


def to_plain_values(column: np.ndarray[Any, Any]) -> list[Any]:
    """Return a column as plain values: times as ISO 8601 in UTC, NaN as None."""
    if column.dtype.kind == "M":
        known = (~np.isnat(column)).tolist()
        moments = zip(column.astype(str).tolist(), known, strict=True)
        return [f"{moment}Z" if is_known else None for moment, is_known in moments]
    if column.dtype.kind == "f":
        return [value if math.isfinite(value) else None for value in column.tolist()]
    values: list[Any] = column.tolist()
    return values
