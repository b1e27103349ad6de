"""Warnings about a capture: what its tables leave out, and what cannot be measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.readable_units import count_text

if TYPE_CHECKING:
    from tcpcast.array_types import Table


def capture_warnings(connections: Table, found: dict[str, Any]) -> list[str]:
    """Return the warnings that Python adds to the warnings of the Rust core."""
    lines = []

    def add(count: int, noun: str, fact: str) -> None:
        if count:
            lines.append(f"{count_text(count, noun)} {fact}")

    add(
        int(connections["capture_duplicates"].sum()),
        "frame",
        "captured twice, but counted once",
    )
    add(
        int(connections["missing_bytes"].sum()),
        "byte",
        "acknowledged but missing from the capture; retransmissions may also be missing",
    )
    add(
        int((connections["super_segments"] > 0).sum()),
        "direction",
        "with frames larger than the MSS (segmentation offload); each such frame "
        "counts as (bytes / MSS) packets",
    )
    unplaced = np.isnan(connections["handshake_rtt_s"]) & (connections["tap_side"] == "unknown")
    add(
        int(unplaced.sum()),
        "direction",
        "with neither a captured handshake nor TCP timestamps; the measured RTT "
        "covers the whole path only if the tap is at the sender",
    )
    add(
        int(connections["out_of_window"].sum()),
        "segment",
        "with sequence numbers more than 1 GiB outside the window: damaged, or from another "
        "connection between the same ports. Such segments are counted but not analysed",
    )
    add(
        int(connections["rtt_withheld"].sum()),
        "direction",
        "without RTT: the capture lacks pure acks, and acks that the receiver sends "
        "with data are too late to measure the RTT",
    )
    add(
        int(connections["rtt_too_short"].sum()),
        "direction",
        "with round-trip times below 10 µs: such times arise within a host or from inexact "
        "timestamps. They are unknown (null), as are values derived from them",
    )
    lines += _eviction_warnings(found["rest"], found["max_connections"])
    add(found["without_trail"], "direction", "without a time-sequence plot: too many points")
    add(found["omitted_events"], "event", "(retransmissions, losses) counted, but too many to list")
    add(found["omitted_rounds"], "round", "missing from the table of rounds: too many to list")
    add(found["omitted_requests"], "request", "ignored, because the capture has too many requests")
    return lines


def _eviction_warnings(rest: dict[str, int], max_connections: int) -> list[str]:
    """Return warnings about connections without rows in a capture of very many connections."""
    lines = []
    evicted, single = rest["evicted"], rest["evicted_single"]
    if evicted:
        later = ". Later packets of an evicted connection count as a new connection"
        later = later if evicted > single else ""  # a scan rarely sends a second packet
        after_one_packet = f" ({single:,} of them had one packet)" if single else ""
        lines.append(
            f"{count_text(evicted, 'connection')} evicted{after_one_packet}: "
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
            f"{count_text(rest['uncaptured'], 'direction')} with "
            f"acknowledgements but no data: {rest['uncaptured_bytes']:,} bytes were acknowledged. "
            "Losses, round-trip times and limits are unknown; capture both directions"
        )
    return lines
