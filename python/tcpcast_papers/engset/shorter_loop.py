"""Networks with an RTT shorter by the ack transmission, which moves drops to other packets.

With equal round-trip times each packet that an ack releases reaches the full buffer at the same
phase between two departures: RTT0 minus the transmission time, modulo the transmission time. With
RTT0 = 50 ms that is 0.8 ms after a departure (they are 1.2 ms apart), and a retransmission 1 s
later coincides with a departure, which is processed first and frees a slot. It is unknown whether
the two coincide in the paper's simulator, to the last bit of its clock. A run at another phase
shows how much the result depends on it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tcpcast_papers.engset.side_by_side import interval_cells
from tcpcast_papers.reproduction import Cause

if TYPE_CHECKING:
    from tcpcast_papers.engset.runs import Runs
    from tcpcast_papers.engset.settings import Setting

ACKS_MS = 0.1952
"""Transmission time of an ack of 40 bytes over links of 2, 10 and 100 Mbit/s."""

BUFFERS_PKTS = (50, 150)
"""The buffers of Tables 8 and 9 that overflow; with 750 packets there are hardly any losses."""


def shorter_loop(each: Setting) -> Setting:
    """Return the setting with RTT0 reduced by the transmission times of an ack."""
    assert each.rtt_ms is not None
    return replace(each, rtt_ms=each.rtt_ms - ACKS_MS)


def phase_of_the_loop(runs: Runs, each: Setting, low_pkts: int) -> Cause | None:
    """Return a size interval's rate with the shorter RTT, or None if there are no losses.

    Parameters
    ----------
    runs
        Completed simulations, including the setting with the shorter RTT.
    each
        Setting of the row.
    low_pkts
        Smallest file size of the interval.
    """
    if each.buffer_pkts not in BUFFERS_PKTS:
        return None
    cells = interval_cells(runs[shorter_loop(each)], low_pkts)
    return Cause("the phase of the loop", 1e-3 * cells["transfer_rate_mean_bps"])
