"""The paper described: its sections in order, and what each has simulated."""

from __future__ import annotations

from tcpcast_papers.pftk import bottlenecks, chain_gap, connections, hours, summaries
from tcpcast_papers.pftk.published import CITATION
from tcpcast_papers.pftk.runs import QUICK, WHOLE, Runs, SampleSizes
from tcpcast_papers.runner import Paper, Part


def _preface(runs: Runs) -> list[str]:
    quick = (
        ""
        if runs.sample_sizes == WHOLE
        else "This is the quick run: shorter, with wider intervals. "
    )
    return [
        f"The paper: {CITATION}. Published are the figures of its Tables 2 and 3; "
        "predictions and errors it shows in figures only, without numbers.",
        "So nearly all rows are without a verdict, shown to be looked at. What the tables have "
        "is laid beside the models (b = 2) as it is; the rest is the paper's experiment done again "
        "on simulated traces, of paths like those of the tables.",
        f"{quick}{len(runs)} simulations stand behind it. Intervals are 95 %, over independent "
        "traces of the same paths.",
    ]


PAPER: Paper[SampleSizes, Runs] = Paper(
    package="tcpcast_papers.pftk",
    title="PFTK: the paper's traces and simulated ones",
    simulations=Runs,
    whole=WHOLE,
    quick=QUICK,
    parts=(
        summaries,
        hours,
        connections,
        Part(
            bottlenecks.sections,
            lambda runs: (bottlenecks.request(runs), bottlenecks.lossy_wanted(runs)),
        ),
        chain_gap,
    ),
    preface=_preface,
)

reproduce = PAPER.reproduce
