"""Detection of window growth by acknowledged packets or by acks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.congestion_control import BBR, CUBIC
from tcpcast.captures.link_estimate import growth_per_direction_pkts

if TYPE_CHECKING:
    from tcpcast.captures.table import Table

    Column = np.ndarray[Any, Any]

TELLING = 0.75
"""Maximum acks per acknowledged packet; with more acks, both kinds of growth look the same."""


def window_growth_units(table: Table, rounds: Table) -> Table:
    """Return ``window_grows_by`` for each direction: ``packets``, ``acks`` or ``unknown``.

    PFTK's b is the number of packets per ack, because senders of 1997 increased the window by the
    same amount for each ack. Linux and other senders with RFC 3465 increase it by the number of
    acknowledged packets. In this case b = 1, regardless of the number of acks.

    Parameters
    ----------
    table
        The table of directions, with ``looks_like``.
    rounds
        The table of rounds.

    Notes
    -----
    An unrestricted slow start decides, if captured: the flight grows by ``start_growth`` bytes per
    acknowledged byte, which is 1 for growth by packets and ``start_acks`` (acks per packet) for
    growth by acks. Otherwise, congestion avoidance decides: one packet per round, or 1/b. CUBIC
    grows by about half a packet in its Reno-friendly region, so with SACK, less than one packet is
    inconclusive. If neither decides, a sender with SACK that ``looks_like`` CUBIC (RFC 9438,
    section 4) or BBR counts packets. This occurs because Linux receivers acknowledge every packet
    in slow start, for which both kinds of growth are the same.
    """
    found = np.full(table["src"].size, "unknown", dtype="<U7")
    acks = 1 / np.fmax(np.nan_to_num(table["packets_per_ack"], nan=1.0), 1.0)
    each = growth_per_direction_pkts(rounds, table["segment_bytes"])
    with np.errstate(invalid="ignore"):
        slow = (acks <= TELLING) & np.isfinite(each)
        by_packets = each >= (1 + acks) / 2
        found[slow & by_packets] = "packets"
        found[slow & ~by_packets & ~table["sack"]] = "acks"
        start = table["start_acks"] <= TELLING
        by_packets = table["start_growth"] >= (1 + table["start_acks"]) / 2
    found[start & by_packets] = "packets"
    found[start & ~by_packets] = "acks"
    is_modern = table["sack"] & np.isin(table["looks_like"], (CUBIC, BBR))
    found[(found == "unknown") & is_modern] = "packets"
    return {"window_grows_by": found}
