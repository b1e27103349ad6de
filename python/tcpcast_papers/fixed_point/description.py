"""The paper described: its sections in order, and what each has simulated."""

from __future__ import annotations

from tcpcast_papers.fixed_point import (
    curves,
    distributions,
    formulas,
    ftp,
    little,
    open_choices,
    tables,
    threshold,
    validity,
)
from tcpcast_papers.fixed_point.published import CITATION
from tcpcast_papers.fixed_point.runs import QUICK, WHOLE, SampleSizes, Runs
from tcpcast_papers.runner import BOTH, Paper


def _preface(runs: Runs) -> list[str]:
    quick = "" if runs.sample_sizes == WHOLE else "This is the quick run: wider intervals. "
    return [
        f"The paper: {CITATION}. It prints seven tables, and plots the rest.",
        "Its figures are those of one exact flow among simplified ones, because in 2001 all of "
        "them could not be simulated. *Own* is every flow, packet by packet, by the paper's TCP, "
        "with a 95 % interval. Beside it are our own fixed points of the same scenario, by the "
        "paper's schemes 2 and 1. In brackets is what does not pass its own tests, or lies above "
        "the threshold.",
        f"{quick}{len(runs)} simulations of about {runs.packets / 1e6:,.0f} million packets stand "
        "behind it.",
        "What counts as agreement: uncongested columns and the levels g within 5 %, within 10 % in "
        "Tables 1 and 6, Table 7 from the paper's own tables within 3 %, values computed apart "
        "within 3 %. A figure outside by less than its own interval is unsettled. A difference is "
        "explained if the same run measured in another way gives the printed figure. What was "
        "found by trying other settings stands beside and explains nothing. RTTs in overload have "
        "no verdict.",
    ]


PAPER: Paper[SampleSizes, Runs] = Paper(
    package="tcpcast_papers.fixed_point",
    title="Fixed point methods: many TCP connections on one local loop",
    simulations=Runs,
    whole=WHOLE,
    quick=QUICK,
    parts=(ftp, tables, threshold, formulas, distributions, curves, little, validity, open_choices),
    preface=_preface,
    unsettled=BOTH,
)

reproduce = PAPER.reproduce
