"""Description of the reproduction: its sections in order, and their sample sizes."""

from __future__ import annotations

from tcpcast_papers.pftk import bottlenecks, connections, hours, senders, summaries, window_chain
from tcpcast_papers.pftk.published import CITATION
from tcpcast_papers.pftk.runs import QUICK, WHOLE, Runs, SampleSizes
from tcpcast_papers.runner import Paper

PAPER: Paper[SampleSizes, Runs] = Paper(
    package="tcpcast_papers.pftk",
    title="PFTK: the paper's traces and simulated ones",
    simulations=Runs,
    whole=WHOLE,
    quick=QUICK,
    parts=(
        summaries,
        senders,
        hours,
        connections,
        bottlenecks,
        window_chain,
    ),
    preface=lambda runs: [
        f"The paper is {CITATION}. Published values are those of its Tables 2 and 3. Predictions "
        "and errors are only plotted in the paper, without numbers, so these rows have no verdict. "
        "The claims of the paper are tested on these rows. The models (b = 2) are compared with "
        "the tables directly. The other sections repeat the paper's experiment with simulated "
        "traces, on paths similar to the paper's.",
        f"The page uses {len(runs)} simulations. Intervals are 95 %, over independent traces of "
        "the same paths.",
    ],
)

reproduce = PAPER.reproduce
