"""Analysis of TCP connections in pcap and pcapng files.

``trace`` reads a capture. ``table`` converts the results of the Rust core to columns,
``model_rates`` and ``models`` compute the rates of models from measured inputs, and ``between``
compares a capture with a second one from another capture point (tap).
"""

from __future__ import annotations

import os
import re

from tcpcast import _native
from tcpcast.array_types import Table
from tcpcast.captures.capture import Capture, iter_plain_rows, trace_document
from tcpcast.captures.capture_warnings import capture_warnings
from tcpcast.captures.cause_rules import cause_columns, correct_columns_by_cause
from tcpcast.captures.congestion_control import identify_congestion_control
from tcpcast.captures.failed_connections import failed_connections_table
from tcpcast.captures.interruptions import interruption_table
from tcpcast.captures.log_formats import read_log
from tcpcast.captures.model_rates import measured_and_model_rate_columns
from tcpcast.captures.names import name_services, server_name_column
from tcpcast.captures.requests import request_table
from tcpcast.captures.services import service_table
from tcpcast.captures.table import direction_table, event_table, interval_table, round_table
from tcpcast.captures.tap_comparison import (
    comparison_warnings,
    second_tap_columns,
    totals_by_tap_order,
)
from tcpcast.captures.transfers import service_or_transfer
from tcpcast.captures.window_growth import window_growth_units
from tcpcast.errors import CaptureError
from tcpcast.units import quote

__all__ = ["Capture", "Table", "iter_plain_rows", "trace", "trace_document"]

STANDARD_INPUT = "-"
_MAX_ARGUMENT = 1_000_000_000
"""Upper bound of ``max_connections`` and of ``trail_points``."""
OS_ERROR_SUFFIX = re.compile(r" \(os error \d+\)$")
"""Suffix of messages of the operating system in errors from the Rust core."""


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
    if max_connections is not None and not 1 <= max_connections <= _MAX_ARGUMENT:
        raise CaptureError(
            f"max_connections = {quote(max_connections)}: must be between 1 and {_MAX_ARGUMENT}"
        )
    if not 0 <= trail_points <= _MAX_ARGUMENT:
        raise CaptureError(
            f"trail_points = {quote(trail_points)}: must be between 0 and {_MAX_ARGUMENT}"
        )
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
