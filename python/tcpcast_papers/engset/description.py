"""The paper described: its sections in order, and what each has simulated."""

from __future__ import annotations

from tcpcast_papers.engset import (
    buffer_rule,
    buffer_size,
    file_sizes,
    lone_connection,
    losses,
    phase,
    queue,
    rates,
    states,
)
from tcpcast_papers.engset.published import CITATION
from tcpcast_papers.engset.runs import FULL, QUICK, SampleSizes, Runs
from tcpcast_papers.runner import QUICK as QUICK_RUNS
from tcpcast_papers.runner import Paper


def _preface(runs: Runs) -> list[str]:
    length = (
        "Every setting is simulated with the paper's number of connections, about 10 million "
        f"packets; where a figure is checked, {runs.sample_sizes.replications} times."
        if runs.sample_sizes.whole
        else f"This is the quick run: {100 * runs.sample_sizes.checked:.0f} % of the paper's connections "
        f"where a figure is checked, {100 * runs.sample_sizes.drawn:.0f} % where it is only drawn, and "
        "fewer curves; a figure outside its tolerance by less than its own interval is called "
        "unsettled."
    )
    return [
        f"The paper: {CITATION}. Published figures are those it prints, own figures come from the "
        "model's formulas (theory) and the packet-level simulator.",
        f"{length} {len(runs)} simulations with {runs.packets / 1e6:,.0f} million data packets "
        "stand behind it.",
        "What counts as agreement: theory to the printed digits; connection rate, and ON time "
        "divided by the run's own mean file size, within 1 %; loss within 0.3 percentage points "
        "or 8 % of the value; rates of size intervals with at least 1 % of the files within 5 %, "
        "rarer ones within 10 % or between two printed values. Rows without a verdict are shown "
        "for comparison only. Intervals are 95 %, of our figures; the paper's are of one run each "
        "and scatter by about twice as much.",
    ]


PAPER: Paper[SampleSizes, Runs] = Paper(
    package="tcpcast_papers.engset",
    title="TCP-Engset revisited: published and own",
    simulations=Runs,
    whole=FULL,
    quick=QUICK,
    parts=(
        file_sizes,
        lone_connection,
        rates,
        states,
        buffer_rule,
        queue,
        losses,
        buffer_size,
        phase,
    ),
    preface=_preface,
    unsettled=QUICK_RUNS,
)

reproduce = PAPER.reproduce
