"""Printed parameters and values of the paper, and the points of its claims.

"The paper" in this package is D. Damjanovic, M. Welzl, M. Telek and W. Heiss, *Extending
the TCP Steady-State Throughput Equation for Parallel TCP Flows*, 2008. It prints no measured
numbers: its results are plots, and their points are not in the available text.

A line of ``model_errors.csv`` belongs to a statement of the paper. It names a model and selects
points: number of flows from ``fewest`` to ``most``, and loss, p or rate (``among``) from ``lowest``
to ``highest``.
"""

from __future__ import annotations

from functools import cache

from tcpcast_papers.printed import PublishedTable, read_lines

_PACKAGE = "tcpcast_papers.parallel"

CITATION = (
    "D. Damjanovic, M. Welzl, M. Telek, W. Heiss: Extending the TCP Steady-State Throughput "
    "Equation for Parallel TCP Flows, 2008"
)

BOTTLENECKS_MBIT = (1, 2, 4, 8, 16, 32, 64, 128, 200)
"""Bottleneck rates in section III-B, whose next sentence mentions 256 Mbit/s."""


@cache
def printed_values() -> PublishedTable:
    """Return the values in the text: RTTs, and transmission times at a rate in Mbit/s."""
    return PublishedTable("Printed values", read_lines(_PACKAGE, "printed.csv"))


@cache
def model_errors() -> PublishedTable:
    """Return models and the points for which the paper makes a statement about their error."""
    return PublishedTable("Model errors", read_lines(_PACKAGE, "model_errors.csv"))
