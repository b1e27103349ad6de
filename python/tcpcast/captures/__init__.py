"""Analysis of TCP connections in pcap and pcapng files.

``trace`` reads a capture. ``table`` converts the results of the Rust core to columns,
``model_rates`` and ``models`` compute the rates of models from measured inputs, and ``between``
compares a capture with a second one from another capture point (tap).
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast import _native
from tcpcast.array_types import Table
from tcpcast.captures.capture import Capture, iter_plain_rows, trace_document
from tcpcast.captures.cause_rules import cause_columns, correct_columns_by_cause
from tcpcast.captures.congestion_control import BBR, CUBIC, identify_congestion_control
from tcpcast.captures.failed_connections import failed_connections_table
from tcpcast.captures.interruptions import interruption_table
from tcpcast.captures.link_estimate import growth_per_round_by_direction_pkts
from tcpcast.captures.log_formats import read_log
from tcpcast.captures.model_rates import measured_and_model_rate_columns
from tcpcast.captures.names import name_services, server_name_column
from tcpcast.captures.quantity_text import format_time
from tcpcast.captures.requests import request_table
from tcpcast.captures.services import service_table
from tcpcast.captures.table import direction_table, event_table, interval_table, round_table
from tcpcast.captures.tap_comparison import (
    comparison_warnings,
    second_tap_columns,
    totals_by_tap_order,
)
from tcpcast.captures.transfers import service_or_transfer
from tcpcast.process.errors import CaptureError
from tcpcast.quantity.readable_units import count_text, past_clause
from tcpcast.quantity.units import quote

if TYPE_CHECKING:
    Column = np.ndarray[Any, Any]


__all__ = ["Capture", "Table", "iter_plain_rows", "trace", "trace_document"]

STANDARD_INPUT = "-"
SAMPLE = "sample"
"""Name of the packaged capture, unless a file has this name.

A download through ``tcpcast link`` (20 Mbit/s, 40 ms, 0.2 % loss) by a slow reader, recorded by
``tests/captures/record_sample.py``.
"""
CAPTURE_SUFFIXES = (".pcap", ".pcapng", ".cap")
COMPRESSION_SUFFIXES = (".gz", ".zst")
_MAX_ARGUMENT = 1_000_000_000
"""Upper bound of ``max_connections`` and of ``trail_points``."""
OS_ERROR_SUFFIX = re.compile(r" \(os error \d+\)$")
"""Suffix of messages of the operating system in errors from the Rust core."""


def without_compression_suffix(file: PurePath) -> PurePath:
    """Return the name of a file without the suffix of its compression."""
    return file.with_suffix("") if file.suffix in COMPRESSION_SUFFIXES else file


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
        ``"sample"`` is a packaged capture.
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
    if file == SAMPLE and not os.path.exists(file):
        source = Path(__file__).with_name("sample.pcap")
    log = None if file == STANDARD_INPUT and not content else read_log(source, file, trace)
    if log is not None:
        if after is not None:
            raise CaptureError(
                f"this is a log of {log.program}, but --second-capture requires captures", file=file
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
            reason = (
                "this is a folder; use a capture, or read all captures in the folder with `tcpcast "
                "report`"
            )
        elif isinstance(error, ValueError):
            reason = _reason_by_suffix(whose) or reason
        raise CaptureError(reason, file=whose) from error
    if "text" in found:
        logged = read_log(found["text"], file, trace)
        if logged is None:
            raise CaptureError(
                "not a capture in pcap or pcapng format, but a text file; use tcpdump -w for "
                "captures, and iperf3 -J or ss -tin for logs",
                file=file,
            )
        return logged
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


def _reason_by_suffix(file: str) -> str | None:
    """Return why a file of another program is not a capture, and which command reads it."""
    name = file.lower()
    if name.endswith(".har"):
        from tcpcast.scenario.loading import page_advice  # noqa: PLC0415 - for this error only

        return f"this is a page, not a capture; {page_advice(file)}"
    if name.endswith((".flent", ".flent.gz")):
        return f"this is a flent test, not a capture; use tcpcast compare flent {file}"
    return None


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


def capture_warnings(connections: Table, found: dict[str, Any]) -> list[str]:
    """Return the warnings that Python adds to the warnings of the Rust core."""
    lines = []

    def add(count: int, noun: str, fact: str) -> None:
        if count:
            lines.append(past_clause(count, noun, fact))

    add(
        int(connections["capture_duplicates"].sum()),
        "frame",
        "were captured twice; tcpcast counts each once",
    )
    add(
        int(connections["missing_bytes"].sum()),
        "byte",
        "were acknowledged but not captured; retransmissions may also be missing",
    )
    add(
        int((connections["super_segments"] > 0).sum()),
        "direction",
        "contained frames larger than the MSS (segmentation offload); tcpcast counts each such "
        "frame as (bytes / MSS) packets",
    )
    unplaced = np.isnan(connections["handshake_rtt_s"]) & (connections["tap_side"] == "unknown")
    add(
        int(unplaced.sum()),
        "direction",
        "contained neither a handshake nor TCP timestamps; the measured RTT covers the whole "
        "path only if the tap is at the sender",
    )
    add(
        int(connections["out_of_window"].sum()),
        "segment",
        "had sequence numbers more than 1 GiB outside the window. Such segments are damaged, or "
        "belong to another connection between the same ports. tcpcast counts them, but does not "
        "analyse them",
    )
    add(
        int(connections["untranslated_sacks"].sum()),
        "SACK block",
        "contained sequence numbers that were never sent: a firewall changes the sequence "
        "numbers of segments, but not those in SACK blocks, so the sender cannot use SACK",
    )
    error_s = connections["clock_error_s"]
    if np.isfinite(error_s).any():
        add(
            int(np.isfinite(error_s).sum()),
            "direction",
            "were captured with an unsteady clock: the delays between sender and tap have a "
            f"mean error of up to {format_time(float(np.nanmax(error_s)))}, so tcpcast uses "
            "echoed timestamps instead. The capturing host or the sender may have been paused",
        )
    add(
        int(connections["rtt_withheld"].sum()),
        "direction",
        "yielded no RTT: the capture contains no pure acks, and acks that carry data are too "
        "late to measure the RTT",
    )
    add(
        int(connections["rtt_too_short"].sum()),
        "direction",
        "showed round-trip times below 10 µs. Such times arise within a host or from inexact "
        "timestamps. tcpcast reports them, and values derived from them, as unknown (null)",
    )
    lines += _eviction_warnings(found["rest"], found["max_connections"])
    add(
        found["without_trail"],
        "direction",
        "were left without a time-sequence plot, because there are too many points",
    )
    add(
        found["omitted_events"],
        "event",
        "were counted (retransmissions and losses) but not listed, because there are too many",
    )
    add(
        found["omitted_rounds"],
        "round",
        "were left out of the table of rounds, because there are too many",
    )
    add(
        found["omitted_failures"],
        "failed connection",
        "were counted but left out of the table of failures, because there are too many of one "
        "kind",
    )
    add(
        found["omitted_interruptions"],
        "interruption",
        "were left out of the table of interruptions, because there are too many",
    )
    add(
        found["omitted_requests"],
        "request",
        "were ignored, because the capture contains too many requests",
    )
    return lines


def _eviction_warnings(rest: dict[str, int], max_connections: int) -> list[str]:
    """Return warnings about connections without rows in a capture of very many connections."""
    lines = []
    evicted, single = rest["evicted"], rest["evicted_single"]
    if evicted:
        later = ". Later packets of an evicted connection count as a new connection"
        later = later if evicted > single else ""  # a scan rarely sends a second packet
        after_one_packet = f" ({single:,} of them after one packet)" if single else ""
        lines.append(
            f"{past_clause(evicted, 'connection', 'were evicted')}{after_one_packet}: "
            f"more than {max_connections:,} connections were active at the same time{later}; raise "
            "--max-connections"
        )
    if rest["directions"]:
        lines.append(
            f"the table omits the {rest['directions']:,} directions with the least data. In "
            f"total, they sent {rest['data_packets']:,} data packets ({rest['bytes']:,} bytes), "
            f"with {rest['retransmissions']:,} retransmissions and {rest['timeouts']:,} timeouts"
        )
    if rest["uncaptured"]:
        lines.append(
            f"{count_text(rest['uncaptured'], 'direction')} contained acknowledgements but no "
            f"data: {rest['uncaptured_bytes']:,} bytes were acknowledged. Losses, round-trip "
            "times and limits are unknown; capture both directions"
        )
    return lines


MAX_ACKS_PER_PACKET = 0.75
"""Maximum ACKs per acknowledged packet; with more ACKs, both kinds of growth look alike."""


def window_growth_units(table: Table, rounds: Table) -> Table:
    """Return ``window_grows_by`` for each direction: ``packets``, ``acks`` or ``unknown``.

    In PFTK, b is the number of packets per ACK, because senders of 1997 increased the window by the
    same amount per ACK. Linux and other senders with RFC 3465 increase the window by the number of
    acknowledged packets; then b = 1, regardless of the number of ACKs.

    Parameters
    ----------
    table
        The table of directions, with ``looks_like``.
    rounds
        The table of rounds.

    Notes
    -----
    The first conclusive criterion decides:

    1. An unrestricted slow start: data in flight grow by ``start_growth`` bytes per acknowledged
       byte. This is 1 for growth by packets, and ``start_acks`` (ACKs per packet) for growth by
       ACKs.
    2. Congestion avoidance: growth of one packet per round, or 1/b. With SACK, less than one packet
       is inconclusive, because CUBIC grows by about half a packet in its Reno-friendly region.
    3. A sender with SACK that ``looks_like`` CUBIC (RFC 9438, section 4) or BBR counts packets.

    The third criterion is needed because Linux receivers acknowledge every packet in slow start, so
    that both kinds of growth are equal.
    """
    found = np.full(table["src"].size, "unknown", dtype="<U7")
    acks = 1 / np.fmax(np.nan_to_num(table["packets_per_ack"], nan=1.0), 1.0)
    each = growth_per_round_by_direction_pkts(rounds, table["segment_bytes"])
    with np.errstate(invalid="ignore"):
        slow = (acks <= MAX_ACKS_PER_PACKET) & np.isfinite(each)
        by_packets = each >= (1 + acks) / 2
        found[slow & by_packets] = "packets"
        found[slow & ~by_packets & ~table["sack"]] = "acks"
        start = table["start_acks"] <= MAX_ACKS_PER_PACKET
        by_packets = table["start_growth"] >= (1 + table["start_acks"]) / 2
    found[start & by_packets] = "packets"
    found[start & ~by_packets] = "acks"
    is_modern = table["sack"] & np.isin(table["looks_like"], (CUBIC, BBR))
    found[(found == "unknown") & is_modern] = "packets"
    return {"window_grows_by": found}
