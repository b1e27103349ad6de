"""Description of the reproduction: its sets and sample sizes."""

from __future__ import annotations

from functools import partial

from tcpcast_papers.homes.sets import PACKAGE, SETS
from tcpcast_papers.published import description as published
from tcpcast_papers.published.runs import PublishedRuns, SampleSizes
from tcpcast_papers.published.sections import SetSections
from tcpcast_papers.runner import Paper

WHOLE = SampleSizes(seeds=3, packets=1e10)
QUICK = SampleSizes(seeds=3, packets=7.5e7)


PAPER: Paper[SampleSizes, PublishedRuns] = Paper(
    package=PACKAGE,
    title="Homes under load, measured and simulated",
    simulations=partial(PublishedRuns, sets=SETS),
    whole=WHOLE,
    quick=QUICK,
    parts=(SetSections(SETS),),
    preface=lambda runs: [
        "The page compares the latency under load of home lines, measured with flent, with "
        "simulations of the packet engine under the published conditions. No constant of the "
        "simulator is fitted to them.",
        "A value agrees if the measured and the simulated value differ by at most the sum of the "
        "tolerance and the half-width of the simulated value's 95 % interval. This interval is "
        f"computed from {runs.sample_sizes.seeds} runs with different seeds. The tolerance is 10 % "
        "or 2 ms for the ping, 5 % for rates, 8 points for shares, and 15 % for the ack filter.",
    ],
)

reproduce = partial(published.reproduce, paper=PAPER, sets=SETS)
"""Like :func:`tcpcast_papers.published.description.reproduce`, for homes."""
