"""Description of the reproduction: its sections in order, and their sample sizes."""

from __future__ import annotations

from tcpcast_papers.printed import BOTH
from tcpcast_papers.runner import Paper
from tcpcast_papers.short import effects, expected, figures, timeouts, values
from tcpcast_papers.short.published import CITATION
from tcpcast_papers.short.runs import QUICK, WHOLE, Runs, SampleSizes

PAPER: Paper[SampleSizes, Runs] = Paper(
    package="tcpcast_papers.short",
    title="Short transfers: initial window, limited transmit and a proposal",
    simulations=Runs,
    whole=WHOLE,
    quick=QUICK,
    parts=(
        *timeouts.SECTION_DEFINITIONS,
        *figures.SECTION_DEFINITIONS,
        expected.FIGURE9,
        expected.FIGURE10,
        *effects.SECTION_DEFINITIONS,
        figures.ERRORS,
        values.SECTION,
    ),
    preface=lambda runs: [
        f"The paper is {CITATION}. It prints two tables and a few values in its text; its other "
        "results are only plotted.",
        "The path has 100 Mbit/s and an RTT of 100 ms. Each packet of 500 bytes is lost with p = "
        "10 %; W_SS = M = 30 packets. k is the number of lost transmissions, including "
        "retransmissions.",
        "Rows called *packets* are simulations. They are compared with three models: *as printed, "
        "d = 0* resumes immediately after a fast retransmit; in *d = 1*, the duplicate acks take a "
        "round trip; in *refined*, losses of a flight share a recovery and timeouts double. All "
        "three use the integrals according to the text instead of the misprinted ones: the three "
        "integrals meet at n - dup_t (the printed weights exceed 1), the first and the third cost "
        "an RTO, and the data before a loss among the last packets take L_0(y) (otherwise the "
        "other losses count twice). The printed p(k|n) does not sum to 1; theta (theta + k "
        "p)^(k-1) replaces (theta + (k-1) p)^k.",
        f"{runs.transfers:,} single transfers on new connections were simulated. Intervals are 95 "
        "%.",
    ],
    unsettled=BOTH,
)

reproduce = PAPER.reproduce
