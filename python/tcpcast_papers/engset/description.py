"""Description of the reproduction: its sections in order, and their sample sizes."""

from __future__ import annotations

from tcpcast_papers.engset import (
    base_rtt,
    buffer_rule,
    buffer_size,
    file_sizes,
    lone_connection,
    losses,
    paced_and_limited_bursts,
    queue,
    rates,
    states,
)
from tcpcast_papers.engset.published import CITATION
from tcpcast_papers.engset.runs import QUICK, WHOLE, Runs, SampleSizes
from tcpcast_papers.engset.sample import CONFIDENCE
from tcpcast_papers.printed import QUICK as QUICK_RUNS
from tcpcast_papers.runner import Paper


def _preface(runs: Runs) -> list[str]:
    sizes = runs.sample_sizes
    return [
        f"The paper is {CITATION}. Published values are printed in the paper. tcpcast computes the "
        "column *own* with the model's formulas (theory) or the packet-level simulator.",
        f"A setting that is only plotted runs once with {100 * sizes.plotted_share:.0f} % of the "
        f"paper's connections. A setting with printed values runs {sizes.seeds} times, each with "
        f"{100 * sizes.checked_share:.0f} % of these connections. The page uses {len(runs)} "
        f"simulations with {runs.packets / 1e6:,.0f} million data packets.",
        "A theoretical value agrees if its digits are the printed ones. Each simulated value of "
        "the paper is from one run. This value agrees if it is in the range that contains "
        f"{100 * CONFIDENCE:.0f} % of runs of the paper's length, estimated from the scatter of "
        "tcpcast's runs. If two tables print a rate, values between the two agree. Intervals are "
        "95 % intervals of tcpcast's means.",
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
        base_rtt,
    ),
    preface=_preface,
    unsettled=QUICK_RUNS,
)

reproduce = PAPER.reproduce
