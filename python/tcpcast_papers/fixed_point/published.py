"""The paper's printed values as data, and values of an independent simulation.

"The paper" in this package is F. Baccelli, D. Hong and Z. Liu, *Fixed point methods for the
simulation of the sharing of a local loop by a large number of interacting TCP connections*, INRIA
report 4154. Its Tables 1 to 7 are CSV files in ``data`` with one line per quantity, one column per
population or setting, and the digits as printed. The values in Figures 7, 8, 10 and 11 are not
printed.

``independent.csv`` is not from the paper. It holds results of another simulator for every flow of
Table 3: 16 replications of each population, rule B, drops from the longest queue.
"""

from __future__ import annotations

from functools import cache

from tcpcast_papers.printed import PublishedTable, printed_table, read_lines
from tcpcast_papers.reproduction import Printed

_PACKAGE = "tcpcast_papers.fixed_point"

CITATION = (
    "F. Baccelli, D. Hong, Z. Liu: Fixed Point Methods for the Simulation of the Sharing of a "
    "Local Loop by a Large Number of Interacting TCP Connections, INRIA report 4154, 2001"
)

TABLES: dict[int, str] = {
    1: "24 bulk flows, individual buffers",
    2: "24 bulk flows, shared buffers",
    3: "Local loop (case 1)",
    4: "Backbone router at 80 % load (case 2)",
    5: "Backbone router at 100 % load (case 3)",
    6: "Impact of variance, N = 5000",
    7: "Equation (1)",
}
"""Captions of the tables; some are not from the paper, which has none there."""

TABLE_OF_CASE: dict[int, int] = {1: 3, 2: 4, 3: 5}
"""The table of each case."""

POPULATIONS = (2500, 5000, 7500, 10000)
CONGESTED = (7500, 10000)
"""Populations whose demand exceeds the capacity of the link: the threshold is C I / B = 5000."""

PACKET_KBIT = 12.0
"""Size of a packet: 1500 bytes."""
LINK_PPS = 100e3 / PACKET_KBIT
"""C: the capacity of the shared router, packets/s."""
BUFFER_PKTS = 10_000
BACKBONE_BUFFER_S = BUFFER_PKTS * PACKET_KBIT / 80e3
"""Delay of the backbone router's full buffer at 80 Mbit/s; the buffer is as large as the shared
router's."""
MEAN_SIZE_PKTS, MEAN_THINK_S = 50, 30
IDLE_RTT_S = 0.10265
"""RTT of the idle path, including transmission (reconstructed)."""

IDLE_RESTART_RATIO = 0.0165
"""p_idle of equation (1) (reconstructed): restarts after idle times per packet (Table 6)."""

PRINTED_RTT_S: dict[int, dict[int, float]] = {
    1: {2500: 0.1028, 5000: 0.212},
    2: {2500: 0.163, 5000: 0.247},
    3: {2500: 0.587, 5000: 0.607},
}
"""RTTs that tables print with two digits only, derived from Table 7 with equation (1)."""

LEVEL_STEP_KBIT = 10
"""Step to which the paper rounds goodput levels (rows g_95 to g_50) up (section 7.1)."""


@cache
def published_table(number: int) -> PublishedTable:
    """Return one of Tables 1 to 7.

    Raises
    ------
    DomainError
        The paper has no such table.
    """
    return printed_table(_PACKAGE, TABLES, number)


def printed_cells(number: int) -> dict[str, dict[str, Printed]]:
    """Return the cells of a table by quantity and column."""
    return {
        line["quantity"]: {
            column: Printed(text) for column, text in line.cells.items() if column != "quantity"
        }
        for line in published_table(number)
    }


@cache
def independent_values() -> PublishedTable:
    """Return the independently simulated values of every flow of Table 3."""
    return PublishedTable("Independent values", read_lines(_PACKAGE, "independent.csv"))


def printed_cell(number: int, quantity: str, column: str) -> Printed | None:
    """Return a cell of Tables 1 to 6, or None if the table has no such line."""
    lines = published_table(number).lines_with(quantity=quantity)
    return lines[0].printed(column) if lines else None
