"""The paper's printed values, as data.

"The paper" in this package is *The TCP-modified Engset Model Revisited*, arXiv:1403.1381 (2014).
Each of its tables 1 to 10 is a CSV file in ``data`` with one line per printed row or cell and the
digits as printed. ``text.csv`` holds values in the text. The column ``misprint`` names an error
in print, ``note`` gives the evidence, and columns that end in ``_corrected`` give the corrected
value (in Table 1, the corrected position of the row).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from tcpcast_papers.printed import PublishedTable, printed_table, read_lines

if TYPE_CHECKING:
    from tcpcast_papers.reproduction import Printed

_PACKAGE = "tcpcast_papers.engset"

CITATION = "The TCP-modified Engset Model Revisited, arXiv:1403.1381 (2014)"

TABLES: dict[int, str] = {
    1: "Measured proportion of file sizes per size intervals",
    2: "Saturation data for different simulation scenarios",
    3: "Data for the calculation of ON0",
    4: "Measured ratios for WR=44 and WR=12",
    5: "Buffer size in packets for RTT=300 ms and P=1500B",
    6: "Comparison of results for different loads",
    7: "Drop analysis for a high load/loss setting",
    8: "Statistics per size interval for a high losses setting",
    9: "Connection rate and proportion of TO in ON time per size interval",
    10: "Measured averages for different buffer sizes",
}
"""Tables with numbers and the paper's captions (Table 11 is a summary in words)."""

INTERVALS: tuple[tuple[int, int | None], ...] = (
    (3, 6),
    (7, 14),
    (15, 30),
    (31, 62),
    (63, 128),
    (129, 256),
    (257, 512),
    (513, 1024),
    (1025, 2048),
    (2049, 4096),
    (4097, None),
)
"""The size intervals of Table 1 in packets, both ends included; the last one is open."""


@cache
def published_table(number: int) -> PublishedTable:
    """Return a table of the paper.

    Raises
    ------
    DomainError
        The paper has no such numeric table.
    """
    return printed_table(_PACKAGE, TABLES, number)


@cache
def values_printed_in_text() -> PublishedTable:
    """Return the values in the text, each with a ``key``."""
    return PublishedTable("Values in the text", read_lines(_PACKAGE, "text.csv"))


def value_printed_in_text(key: str) -> Printed | None:
    """Return the value in the text with this key."""
    return values_printed_in_text().line_with(key=key).printed("value")


def interval_text(low_pkts: int, high_pkts: int | None) -> str:
    """Return an interval as the paper writes it: ``3-6``, ``> 4096``."""
    return f"> {low_pkts - 1}" if high_pkts is None else f"{low_pkts}-{high_pkts}"
