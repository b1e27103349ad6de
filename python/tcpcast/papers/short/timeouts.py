"""Tables 1 and 2: the packets whose loss makes the sender time out, counted and simulated."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tcpcast.models.short import timeout_packets
from tcpcast.papers.reproduction import PRINTED_DIGITS, Row, Section, Tolerance
from tcpcast.papers.short.published import TABLES, table
from tcpcast.papers.short.runs import Z95, Job
from tcpcast.papers.short.settings import NEWRENO, Setting

if TYPE_CHECKING:
    from tcpcast.answer import Answer
    from tcpcast.papers.published import Line
    from tcpcast.papers.short.runs import Runs

SIZE_PKTS = 20
"""Above y_to + dup_t of every cell, also where delayed acks make more of it."""

RARE_LOSS = 3e-4
"""So few that hardly a transfer loses two packets."""

COLUMNS = {
    "slow_start": ("slow start", 30, None),
    "slow_start_limited": ("slow start", 30, 2),
    "avoidance": ("congestion avoidance", 1, None),
    "avoidance_limited": ("congestion avoidance", 1, 2),
}
"""The phase of each column, W_SS, and dup_LT."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of Table 1 or 2."""

    line: Line
    column: str
    setting: Setting

    @property
    def label(self) -> tuple[str, str, str]:
        """W_0, the phase and the limited transmit of the cell."""
        phase, _, limited = COLUMNS[self.column]
        return self.line["initial_window_pkts"], phase, "with" if limited else "without"

    @property
    def misprinted(self) -> bool:
        """Whether the cell does not follow from the rule of the others."""
        return self.line.misprint == self.column


def cells(number: int) -> tuple[Cell, ...]:
    """Return the cells of Table 1 (b = 1) or 2 (b = 2), row by row."""
    found = []
    for line in table(number):
        for column, (phase, ssthresh, limited) in COLUMNS.items():
            window = line.whole("initial_window_pkts") or 0
            transfer = replace(
                NEWRENO.transfer,
                acked_packets=number,
                initial_window_pkts=window,
                initial_ssthresh_pkts=ssthresh,
                limited_transmit=limited,
            )
            name = f"table {number}, {column}, W0 = {window}"
            found.append(Cell(line, column, Setting(name, phase, transfer)))
    return tuple(found)


def wanted(runs: Runs) -> None:
    """Ask for transfers of each cell that lose a packet now and then."""
    for number in TABLES:
        for cell in cells(number):
            runs.want(_job(runs, cell))


def _job(runs: Runs, cell: Cell) -> Job:
    return Job(cell.setting, (SIZE_PKTS,), runs.effort.counted, RARE_LOSS)


def sections(runs: Runs) -> list[Section]:
    """Return Tables 1 and 2."""
    return [_section(number, runs) for number in TABLES]


def measured_packets(found: Answer, unprotected_pkts: int) -> tuple[float, float]:
    """Return y_to of a simulation and half of its 95 % interval.

    Of the n places of a lost packet, y_to and the last ``unprotected_pkts`` end in a timeout.
    """
    timeouts, quick = found["to_indications"], found["td_indications"]
    share, total = timeouts / (timeouts + quick), timeouts + quick
    half = Z95 * math.sqrt(share * (1 - share) / total)
    return SIZE_PKTS * share - unprotected_pkts, SIZE_PKTS * half


def _section(number: int, runs: Runs) -> Section:
    section = Section(table(number).title, ("W0", "phase", "limited transmit", "by"))
    for cell in cells(number):
        printed = cell.line.printed(cell.column)
        note = cell.line.note if cell.misprinted else ""
        section.rows.append(
            Row(
                (*cell.label, "rule"),
                "packets",
                printed,
                timeout_packets(cell.setting.transfer),
                tolerance=None if cell.misprinted else PRINTED_DIGITS,
                note=note,
            )
        )
        found = runs[_job(runs, cell)]
        own, half = measured_packets(found, cell.setting.transfer.unprotected_pkts)
        low, high = max(own - half, 0.0), own + half
        # A whole number of packets: the next one is as far as half a packet from both.
        tolerance = Tolerance(absolute=0.5) if number == 1 and not cell.misprinted else None
        section.rows.append(
            Row(
                (*cell.label, "packets"),
                "packets",
                printed,
                max(own, 0.0),
                low=low,
                high=high,
                tolerance=tolerance,
                settle=True,
            )
        )
    section.remarks = _remarks(number)
    return section


def _remarks(number: int) -> list[str]:
    told = [
        f"By packets: of files of {SIZE_PKTS} packets that lose one, the share that times out, "
        "times the packets, less the last three.",
    ]
    if number == 1:
        told.append(
            "Two cells print 1 where the window is large enough from the start. There the rule of "
            "all other cells has 0, and so have packets."
        )
    else:
        told.append(
            "Two cells print 1 where the rule has 0, as in Table 1. With delayed acks packets are "
            "not held to the rule: an ack that waits for its second packet, or for the timer, "
            "keeps the window small for longer, so that more packets end in a timeout than the "
            "table has. The paper says that its derivation leaves this out."
        )
    return told
