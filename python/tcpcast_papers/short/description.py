"""Description of the reproduction: its sections in order, and their sample sizes."""

from __future__ import annotations

from tcpcast_papers.published import BOTH
from tcpcast_papers.runner import Paper
from tcpcast_papers.short import effects, errors, expected, figures, timeouts, values
from tcpcast_papers.short.published import CITATION
from tcpcast_papers.short.runs import QUICK, WHOLE, Runs, SampleSizes


def _preface(runs: Runs) -> list[str]:
    quick = "" if runs.sample_sizes == WHOLE else "This is the quick run: wider intervals. "
    return [
        f"The paper: {CITATION}. It prints two tables and a few values in its text, and plots the "
        "rest.",
        "The path: 100 Mbit/s, RTT 100 ms, each packet of 500 bytes lost with p = 10 %, W_SS = M = "
        "30. k counts lost transmissions, retransmissions included.",
        "Packets are compared with three models: *as printed, d = 0*, which resumes immediately "
        "after a fast retransmit; *d = 1*, in which the duplicate acks take a round trip; and "
        "*refined*, in which losses of a flight share a recovery and timeouts double. All three "
        "use the integrals according to the text instead of the misprinted ones.",
        f"{quick}{runs.transfers:,} single transfers on new connections were simulated. Intervals "
        "are 95 %.",
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
        *effects.SHEETS,
        errors.SHEET,
        values.SHEET,
    ),
    preface=_preface,
    unsettled=BOTH,
)

reproduce = PAPER.reproduce
