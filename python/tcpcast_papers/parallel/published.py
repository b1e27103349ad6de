"""Printed parameters of the paper, points of its claims, and values of its algorithms.

"The paper" in this package is D. Damjanovic, M. Welzl, M. Telek and W. Heiss, *Extending
the TCP Steady-State Throughput Equation for Parallel TCP Flows*, 2008. It prints no measured
numbers: its results are plots, and their points are not in the available text.

A line of ``model_errors.csv`` is a model and the points of a statement of the paper: those with a
number of flows from ``fewest`` to ``most``, and a loss, p or rate (``among``) from ``lowest`` to
``highest``.
"""

from __future__ import annotations

from functools import cache

from tcpcast_papers.published import PublishedTable, read_lines

_PACKAGE = "tcpcast_papers.parallel"

CITATION = (
    "D. Damjanovic, M. Welzl, M. Telek, W. Heiss: Extending the TCP Steady-State Throughput "
    "Equation for Parallel TCP Flows, 2008"
)

BOTTLENECKS_MBIT = (1, 2, 4, 8, 16, 32, 64, 128, 200)
"""Section III-B; its next sentence mentions 256 Mbit/s."""

VALUES_RTT_S, VALUES_T0_S, VALUES_PACKETS_PER_ACK = 0.06, 0.24, 2
VALUES_LOST_PER_EVENT = 2


@cache
def values() -> PublishedTable:
    """Return values calculated from the appendix before the models were written (not printed)."""
    return PublishedTable("Values of the appendix", read_lines(_PACKAGE, "values.csv"))


@cache
def model_errors() -> PublishedTable:
    """Return models and the points for which the paper makes a statement about their error."""
    return PublishedTable("Model errors", read_lines(_PACKAGE, "model_errors.csv"))
