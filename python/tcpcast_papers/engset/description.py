"""Description of the reproduction: its sections in order, and their sample sizes."""

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
from tcpcast_papers.engset.runs import FULL, QUICK, Runs, SampleSizes
from tcpcast_papers.published import QUICK as QUICK_RUNS
from tcpcast_papers.runner import Paper


def _preface(runs: Runs) -> list[str]:
    length = (
        "Every setting is simulated with the paper's number of connections, about 10 million "
        f"packets; settings with checked values {runs.sample_sizes.replications} times."
        if runs.sample_sizes.whole
        else "This is the quick run: "
        f"{100 * runs.sample_sizes.checked:.0f} % of the paper's connections for settings with "
        f"checked values, {100 * runs.sample_sizes.drawn:.0f} % for settings that are only "
        "plotted, and fewer curves. If a value is outside its tolerance by less than its interval, "
        "the verdict is unsettled."
    )
    return [
        f"The paper: {CITATION}. Published values are printed there; own values are computed "
        "with the model's formulas (theory) or the packet-level simulator.",
        f"{length} The page uses {len(runs)} simulations with {runs.packets / 1e6:,.0f} million "
        "data packets.",
        "Tolerances: printed digits for theory; 1 % for the connection rate, and for the ON time "
        "divided by the run's own mean file size; 0.3 percentage points or 8 % of the value for "
        "loss; 5 % for the rates of size intervals with at least 1 % of the files; 10 %, or the "
        "range between two printed values, for rarer sizes. Rows without a verdict are shown for "
        "comparison only. Intervals are 95 % intervals of the own values. Each published value is "
        "from one run, and varies about twice as much.",
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
