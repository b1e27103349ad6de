"""How the windows of senders grow: by what is acknowledged, or by acks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.control import BBR, CUBIC
from tcpcast.captures.link_estimate import growth_each

if TYPE_CHECKING:
    from tcpcast.captures.table import Table

    Column = np.ndarray[Any, Any]

TELLING = 0.75
"""Acks by packets acknowledged: with more acks than this, both ways to grow look alike."""


def growing(table: Table, rounds: Table) -> Table:
    """Return ``window_grows_by`` of each direction: ``packets``, ``acks`` or ``unknown``.

    PFTK's b is how many packets an ack is for, because the senders of 1997 let the window grow by
    the same for each ack. Linux, and who follows RFC 3465, lets it grow by the packets that an ack
    is for: b = 1 then, however few the acks are.

    Parameters
    ----------
    table
        The table of directions, with ``looks_like``.
    rounds
        The table of rounds.

    Notes
    -----
    Slow start decides where the capture has one that nothing held back: the flight grows by
    ``start_growth`` bytes for each byte acknowledged, which is 1 for one way and ``start_acks``
    (acks by packets) for the other. Otherwise congestion avoidance decides: a packet in a round, or
    1/b. CUBIC grows by about half a packet where it follows Reno; so with SACK, less than a packet
    tells nothing. Where neither tells, who has SACK and ``looks_like`` CUBIC (RFC 9438,
    section 4) or BBR counts packets: Linux acknowledges every packet of a slow start, which is then
    the same for both ways.
    """
    found = np.full(table["src"].size, "unknown", dtype="<U7")
    acks = 1 / np.fmax(np.nan_to_num(table["packets_per_ack"], nan=1.0), 1.0)
    each = growth_each(rounds, table["segment_bytes"])
    with np.errstate(invalid="ignore"):
        slow = (acks <= TELLING) & np.isfinite(each)
        by_packets = each >= (1 + acks) / 2
        found[slow & by_packets] = "packets"
        found[slow & ~by_packets & ~table["sack"]] = "acks"
        start = table["start_acks"] <= TELLING
        by_packets = table["start_growth"] >= (1 + table["start_acks"]) / 2
    found[start & by_packets] = "packets"
    found[start & ~by_packets] = "acks"
    todays = table["sack"] & np.isin(table["looks_like"], (CUBIC, BBR))
    found[(found == "unknown") & todays] = "packets"
    return {"window_grows_by": found}
