"""What is printed: the paper's grid, and values of its algorithms.

"The paper" throughout this package is D. Damjanovic, M. Welzl, M. Telek and W. Heiss, *Extending
the TCP Steady-State Throughput Equation for Parallel TCP Flows*, 2008. It prints no measured
number: its results are figures, whose points are not in the text that this was made from.
"""

from __future__ import annotations

from dataclasses import dataclass

CITATION = (
    "D. Damjanovic, M. Welzl, M. Telek, W. Heiss: Extending the TCP Steady-State Throughput "
    "Equation for Parallel TCP Flows, 2008"
)

BOTTLENECKS_MBIT = (1, 2, 4, 8, 16, 32, 64, 128, 200)
"""Section III-B; a sentence later it speaks of one of 256 Mbit/s."""

HIGHEST_LOSS = 0.1
"""Section III-A: "a high one of 10%"."""

MOST_FLOWS = 100
"""Section III-A: "up to 100 flows"."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value of an algorithm: b = 2, RTT = 60 ms, T = 240 ms.

    Attributes
    ----------
    algorithm
        1 or 2.
    flows
        n.
    loss
        p of algorithm 1, p_e of algorithm 2, whose p_r is twice that.
    rate_pps
        As printed, packets/s.
    """

    algorithm: int
    flows: int
    loss: float
    rate_pps: str


VALUES_RTT_S, VALUES_T0_S, VALUES_PACKETS_PER_ACK = 0.06, 0.24, 2
VALUES_LOST_PER_EVENT = 2

VALUES = tuple(
    Value(algorithm, flows, loss, rate)
    for algorithm, flows, rates in (
        (1, 1, ("446.278", "124.996", "34.810")),
        (1, 10, ("4534.741", "1300.890", "332.811")),
        (1, 100, ("45419.968", "13060.083", "3303.319")),
        (2, 10, ("3228.098", "965.761", "271.153")),
    )
    for loss, rate in zip((0.001, 0.01, 0.05), rates, strict=True)
)
"""Worked from the appendix by hand before the models were written: not the paper's own."""
