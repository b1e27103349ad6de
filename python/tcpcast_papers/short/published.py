"""The paper's printed values as data, and independent values of its recursion.

"The paper" in this package is U. Ayesta and K. Avrachenkov, *The effect of the initial
window size and limited transmit algorithm on the transient behavior of TCP transfers*. Its Tables 1
and 2 are CSV files in ``data`` with one line per cell and the digits as printed. ``misprint`` marks
a cell that contradicts the rule of the others, and ``note`` gives the evidence.
``least.csv`` and the column ``percent`` of ``reductions.csv`` hold values in the text.
The values in Figures 4 and 6 to 10 are not printed.

``values.csv`` and the other columns of ``reductions.csv`` are not from the paper. They were
computed independently of this program, and before it, from the corrected recursion, and packet by
packet over all ways to lose k transmissions.
"""

from __future__ import annotations

from functools import cache

from tcpcast_papers.printed import PublishedTable, printed_table, read_lines

_PACKAGE = "tcpcast_papers.short"

CITATION = (
    "U. Ayesta, K. E. Avrachenkov: The effect of the initial window size and limited transmit "
    "algorithm on the transient behavior of TCP transfers"
)

TABLES: dict[int, str] = {
    1: "Numerical results for y_to in the case of b = 1",
    2: "Numerical results for y_to in the case of b = 2",
}
"""The tables, with the paper's captions."""

LOSS = 0.1
"""p of every figure (section 4)."""

MSS_BYTES, HEADER_BYTES = 500, 40
LARGEST_SHORT_BYTES = 10_000
"""Maximum file size for the proposal (Figure 9)."""
REDUCTION_BYTES = 4_000
"""The file size for which section 4.3 gives the reductions of Figure 10."""


@cache
def published_table(number: int) -> PublishedTable:
    """Return Table 1 or 2.

    Raises
    ------
    DomainError
        The paper has no such table.
    """
    return printed_table(_PACKAGE, TABLES, number)


@cache
def min_file_sizes() -> PublishedTable:
    """Return FileSize_min in the text, one line per figure of one sender."""
    return PublishedTable("FileSize_min", read_lines(_PACKAGE, "least.csv"))


@cache
def published_latencies() -> PublishedTable:
    """Return latencies by size and losses: from the recursion, and over all loss patterns."""
    return PublishedTable(
        "Values of the recursion and of packets", read_lines(_PACKAGE, "values.csv")
    )


@cache
def published_reductions() -> PublishedTable:
    """Return the relative reductions of the latency for one loss by both methods."""
    return PublishedTable("Reductions at 8 packets", read_lines(_PACKAGE, "reductions.csv"))
