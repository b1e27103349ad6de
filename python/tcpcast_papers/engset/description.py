"""Description of the reproduction: its sections in order, and their sample sizes."""

from __future__ import annotations

from tcpcast_papers.engset import (
    buffer_rule,
    buffer_size,
    file_sizes,
    lone_connection,
    loop_phase,
    losses,
    paced_and_limited_bursts,
    queue,
    rates,
    states,
)
from tcpcast_papers.engset.published import CITATION
from tcpcast_papers.engset.runs import QUICK, WHOLE, Runs, SampleSizes
from tcpcast_papers.engset.sample import CONFIDENCE
from tcpcast_papers.published import QUICK as QUICK_RUNS
from tcpcast_papers.runner import Paper


def _preface(runs: Runs) -> list[str]:
    sizes = runs.sample_sizes
    quick = (
        " This is the quick run, with fewer curves and phases. If a value is outside its tolerance "
        "by less than its interval, the verdict is unsettled."
        if sizes.sparse
        else ""
    )
    return [
        f"The paper: {CITATION}. Published values are printed there; own values are computed with "
        "the model's formulas (theory) or the packet-level simulator.",
        f"A setting that is only plotted runs once with {100 * sizes.plotted_share:.0f} % of the "
        f"paper's connections. A setting with printed values runs {sizes.seeds} times with "
        f"{100 * sizes.checked_share:.0f} % each.{quick} The page uses {len(runs)} simulations "
        f"with {runs.packets / 1e6:,.0f} million data packets.",
        "Tolerances: printed digits for theory. Each simulated value of the paper is from one run; "
        f"the scatter of the own runs gives the range in which {100 * CONFIDENCE:.0f} % of runs of "
        "the paper's length are, and a value in this range agrees. Rates that two tables print "
        "agree between both values. Intervals are 95 % intervals of the own means.",
    ]


PAPER: Paper[SampleSizes, Runs] = Paper(
    package="tcpcast_papers.engset",
    title="TCP-Engset revisited: published and own",
    simulations=Runs,
    whole=WHOLE,
    quick=QUICK,
    parts=(
        file_sizes,
        lone_connection,
        rates,
        states,
        buffer_rule,
        queue,
        losses,
        paced_and_limited_bursts,
        buffer_size,
        loop_phase,
    ),
    preface=_preface,
    unsettled=QUICK_RUNS,
)

reproduce = PAPER.reproduce
