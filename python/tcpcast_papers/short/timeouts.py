"""Tables 1 and 2: packets whose loss causes a timeout, by the model and by simulation."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from tcpcast.answer import Metric
from tcpcast.models.short import timeout_packets

from tcpcast_papers.reproduction import PRINTED_DIGITS, Z95, Tolerance
from tcpcast_papers.section_definition import (
    Quantity,
    SectionDefinition,
    metric_from_half_width,
    read_column,
)
from tcpcast_papers.short.published import published_table
from tcpcast_papers.short.runs import Job
from tcpcast_papers.short.settings import NEWRENO, Setting

if TYPE_CHECKING:
    from tcpcast.answer import Answer

    from tcpcast_papers.printed import Line
    from tcpcast_papers.short.runs import Runs

SIZE_PKTS = 20
"""File size, larger than y_to + dup_t in every cell, even with delayed acks."""

RARE_LOSS = 3e-4
"""Loss ratio so small that hardly any transfer loses two packets."""

SSTHRESH_PKTS = {"slow start": 30, "congestion avoidance": 1}
"""W_SS of each phase."""

DUP_LT_OF_CELL = {"without": None, "with": 2}
"""dup_LT of the columns without and with limited transmit."""


def sender_of_line(line: Line) -> Setting:
    """Return the sender of a cell of Table 1 or 2."""
    transfer = replace(
        NEWRENO.transfer,
        acked_packets=int(line["acked_packets"]),
        initial_window_pkts=int(line["initial_window_pkts"]),
        initial_ssthresh_pkts=SSTHRESH_PKTS[line["phase"]],
        limited_transmit=DUP_LT_OF_CELL[line["limited_transmit"]],
    )
    return Setting("tables 1 and 2", line["phase"], transfer)


def measured_packets(result: Answer, unprotected_pkts: int) -> Metric:
    """Return y_to of a simulation.

    A loss causes a timeout if it is one of the first y_to or the last ``unprotected_pkts`` packets.
    """
    timeouts, total = result["to_indications"], result["to_indications"] + result["td_indications"]
    share = timeouts / total
    half = Z95 * math.sqrt(share * (1 - share) / total)
    return metric_from_half_width(SIZE_PKTS * share - unprotected_pkts, SIZE_PKTS * half, least=0.0)


def _one_loss_job(runs: Runs, line: Line) -> Job:
    return Job(sender_of_line(line), (SIZE_PKTS,), runs.sample_sizes.table_transfers, RARE_LOSS)


def _within_half_a_packet(line: Line) -> Tolerance | None:
    """Return the tolerance, half a packet, or None for Table 2, which ignores delayed acks."""
    checked = line["acked_packets"] == "1" and not line.misprint
    return Tolerance(absolute=0.5) if checked else None


def _timeout_table_section(number: int, note: str) -> SectionDefinition[Runs, Line]:
    published = read_column("timeout_packets")
    return SectionDefinition(
        published_table(number).title,
        ("W0", "phase", "limited transmit", "by"),
        "packets",
        lambda line: (line["initial_window_pkts"], line["phase"], line["limited_transmit"]),
        lambda _: published_table(number),
        (
            Quantity(
                ("rule",),
                lambda _, line: Metric(timeout_packets(sender_of_line(line).transfer)),
                published,
                lambda line: None if line.misprint else PRINTED_DIGITS,
                note=lambda _, line: line.note,
            ),
            Quantity(
                ("packets",),
                lambda runs, line: measured_packets(
                    runs[_one_loss_job(runs, line)], sender_of_line(line).transfer.unprotected_pkts
                ),
                published,
                _within_half_a_packet,
            ),
        ),
        notes=lambda _: [
            f"The rows *packets* are for files of {SIZE_PKTS} packets with one loss. They contain "
            "the share of files with a timeout, times the number of packets, minus the last three "
            "packets.",
            note,
        ],
        request=lambda runs: [
            runs.request(_one_loss_job(runs, line)) for line in published_table(number)
        ],
    )


SECTION_DEFINITIONS = (
    _timeout_table_section(
        1,
        "Two cells print 1, although the initial window is large enough. The rule of all other "
        "cells gives 0, and so do simulated packets.",
    ),
    _timeout_table_section(
        2,
        "Two cells print 1 although the rule gives 0, as in Table 1. Simulated packets are not "
        "compared with the rule: delayed acks keep the window small for longer, so more losses "
        "cause a timeout than in the table. The paper states that its derivation ignores this "
        "effect.",
    ),
)
