"""Detects whether the window grows per acknowledged packet or per ACK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.congestion_control import BBR, CUBIC
from tcpcast.captures.link_estimate import growth_per_round_by_direction_pkts

if TYPE_CHECKING:
    from tcpcast.array_types import Table

    Column = np.ndarray[Any, Any]

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
