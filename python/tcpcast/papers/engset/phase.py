"""What the tables of losses owe to the phase of the loop: Tables 7 to 9 with a shorter RTT.

With equal round-trip times every packet that an ack releases arrives at the full buffer at one
phase between two departures: RTT0 less the transmission time, modulo the transmission time. With
RTT0 = 50 ms that is 0.8 ms after a departure (they are 1.2 ms apart), and a retransmission 1 s
later coincides with a departure, which goes first and leaves it a place.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tcpcast.papers.engset import published
from tcpcast.papers.engset.losses import WIDE, recovery_figures
from tcpcast.papers.engset.side_by_side import interval_cells, interval_row
from tcpcast.papers.reproduction import Row, Section

if TYPE_CHECKING:
    from pathlib import Path

    from tcpcast.papers.engset.runs import Runs
    from tcpcast.papers.engset.settings import Setting

ACKS_MS = 0.1952
"""Transmission time of an ack of 40 bytes over links of 2, 10 and 100 Mbit/s."""

_QUANTITIES = (
    "TO per dropped packet",
    "TOTO per TO",
    "TDTO per TO",
    "time TO per TO",
    "time TO per connection",
)
_BUFFERS = (50, 150)


def _setting(buffer_pkts: int, *, shorter: bool) -> Setting:
    rtt_ms = 50 - ACKS_MS if shorter else 50
    return replace(WIDE, buffer_pkts=buffer_pkts, rtt_ms=rtt_ms)


def want(runs: Runs) -> None:
    """Ask for the settings of Tables 7 and 9 with the loop of the paper and a shorter one."""
    for shorter in (False, True):
        runs.want((_setting(b, shorter=shorter) for b in _BUFFERS), checked=True)


def sections(runs: Runs, folder: Path) -> list[Section]:  # noqa: ARG001 - draws nothing
    """Return Tables 7 and 9 at the two phases."""
    section = Section("The phase of the loop", ("RTT", "B", "quantity"))
    for shorter in (False, True):
        each = _setting(150, shorter=shorter)
        own = recovery_figures(runs[each])
        for quantity in _QUANTITIES:
            line = published.table(7).one(quantity=quantity)
            label = (f"{each.rtt_ms:g} ms", "150", quantity)
            printed = line.printed("measured")
            section.rows.append(Row(label, line["unit"], printed, own[quantity]))
    for shorter in (False, True):
        for buffer in _BUFFERS:
            section.rows += _rates(runs, _setting(buffer, shorter=shorter))
    section.remarks = [
        "Only the phase differs between the two: a loop shorter by the 0.195 ms that the acks "
        "take to be sent. At 50 ms exactly a retransmission after 1 s arrives at the instant of a "
        "departure and is hardly ever lost; a little earlier it finds the buffer full, timeouts "
        "follow timeouts, small files lose more and large ones less. The paper's figures lie "
        "between the two or near the shorter loop: its simulator's ties cannot be known, and "
        "figures per size interval under heavy loss mean no more than this.",
    ]
    return [section]


def _rates(runs: Runs, each: Setting) -> list[Row]:
    rows = []
    for line in published.table(9).where(law=each.law, buffer_pkts=each.buffer_pkts):
        cells = interval_cells(runs[each], int(line["low_pkts"]))
        interval = f"{line['low_pkts']}-{line['high_pkts']}"
        label = (f"{each.rtt_ms:g} ms", line["buffer_pkts"], f"rate of {interval}")
        rows.append(interval_row(Row(label, "kbit/s", line.printed("rate_kbps"), None), cells))
    return rows
