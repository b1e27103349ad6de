"""The results of one capture, and their JSON document."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.array_types import Table
from tcpcast.captures.advice import advise_each_direction
from tcpcast.captures.arrow_tables import to_arrow_table
from tcpcast.captures.capture_tables import CaptureTables
from tcpcast.captures.direction_selection import select_directions
from tcpcast.captures.groups import group_directions as grouped
from tcpcast.captures.models import model_errors, model_intervals, model_rates_by_direction
from tcpcast.captures.subject import bytes_by_limit, capture_subject
from tcpcast.captures.verdict import (
    capture_findings,
    captures_findings,
    directions_without_service,
)
from tcpcast.process.extras import TabularResult, verdict_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import ModuleType

ROWS_PER_CHUNK = 1024


class Capture(CaptureTables, TabularResult):
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
        met an old connection, ``old_connection``. The table has at most 16,384 rows of each
        kind; ``rest`` counts all failed connections, and a warning those without a row.
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

    __slots__ = ()

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
