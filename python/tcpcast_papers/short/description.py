"""The paper described: its sections in order, and what each has simulated."""

from __future__ import annotations

from tcpcast_papers.runner import BOTH, Paper
from tcpcast_papers.short import errors, expected, figures, timeouts, values
from tcpcast_papers.short.published import CITATION
from tcpcast_papers.short.runs import QUICK, WHOLE, Runs, SampleSizes


def _preface(runs: Runs) -> list[str]:
    quick = "" if runs.sample_sizes == WHOLE else "This is the quick run: wider intervals. "
    return [
        f"The paper: {CITATION}. It prints two tables and a few figures in its text, and plots the "
        "rest.",
        "The path: 100 Mbit/s, RTT 100 ms, each packet of 500 bytes lost with p = 10 %, "
        "W_SS = M = 30. k counts lost transmissions, retransmissions included.",
        "Beside packets stand three models: *as printed, d = 0*, which goes on at once after a "
        "fast retransmit; *d = 1*, in which the duplicates take a round trip to come back; and "
        "*refined*, in which losses of a flight share a recovery and timeouts double. All three "
        "have the integrals as the text, not the print, means them.",
        f"{quick}{runs.transfers:,} transfers were simulated, each alone from fresh state. "
        "Intervals are 95 %.",
    ]


PAPER: Paper[SampleSizes, Runs] = Paper(
    package="tcpcast_papers.short",
    title="Short transfers: initial window, limited transmit and a proposal",
    simulations=Runs,
    whole=WHOLE,
    quick=QUICK,
    parts=(
        *timeouts.SHEETS,
        *figures.SHEETS,
        expected.FIGURE9,
        expected.FIGURE10,
        errors.SHEET,
        values.SHEET,
    ),
    preface=_preface,
    unsettled=BOTH,
)

reproduce = PAPER.reproduce
