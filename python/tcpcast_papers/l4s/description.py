"""Description of the reproduction: its sections in order, and their sample sizes."""

from __future__ import annotations

from functools import partial

from tcpcast_papers.l4s.sets import SETS
from tcpcast_papers.published import description as published
from tcpcast_papers.published.runs import QUICK, WHOLE, PublishedRuns, SampleSizes
from tcpcast_papers.published.sections import SetSections
from tcpcast_papers.runner import Paper

PAPER: Paper[SampleSizes, PublishedRuns] = Paper(
    package="tcpcast_papers.l4s",
    title="L4S measured by others, and simulated",
    simulations=partial(PublishedRuns, sets=SETS),
    whole=WHOLE,
    quick=QUICK,
    parts=(SetSections(SETS),),
    preface=published.preface,
)

reproduce = partial(published.reproduce, paper=PAPER, sets=SETS)
"""Like :func:`tcpcast_papers.published.description.reproduce`, for measurements of L4S."""
