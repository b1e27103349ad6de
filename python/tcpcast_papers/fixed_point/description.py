"""Description of the reproduction: its sections in order, and their sample sizes."""

from __future__ import annotations

from tcpcast_papers.fixed_point import (
    curves,
    distributions,
    formulas,
    ftp,
    implied_loss,
    littles_law,
    open_choices,
    schemes,
    tables,
    threshold_users,
    validity,
    variants,
)
from tcpcast_papers.fixed_point.published import CITATION
from tcpcast_papers.fixed_point.runs import QUICK, WHOLE, Runs, SampleSizes
from tcpcast_papers.printed import BOTH
from tcpcast_papers.runner import Paper

PAPER: Paper[SampleSizes, Runs] = Paper(
    package="tcpcast_papers.fixed_point",
    title="Fixed point methods: many TCP connections on one local loop",
    simulations=Runs,
    whole=WHOLE,
    quick=QUICK,
    parts=(
        ftp,
        tables,
        schemes,
        implied_loss,
        threshold_users,
        formulas,
        distributions,
        curves,
        littles_law,
        validity,
        open_choices,
        variants,
    ),
    preface=lambda runs: [
        f"The paper is {CITATION}. It prints seven tables; its other results are only plotted.",
        "In 2001, it was not feasible to simulate all flows, so the paper's values are for one "
        "exact flow among simplified flows. The column *own* contains the results of a simulation "
        "of every flow, packet by packet, with the paper's TCP and a 95 % interval. The sections "
        "*Schemes of Table ...* compare fixed points that tcpcast computed with the tables; their "
        "intervals are over seeds. A value is in brackets if the fixed point failed its tests, or "
        "if the load is above the threshold.",
        f"The page uses {len(runs)} simulations of about {runs.packets / 1e6:,.0f} million "
        "packets.",
        "The tolerance is 5 % in Tables 3 to 5, 10 % in Tables 1, 2 and 6, and 3 % for Table 7 "
        "(computed from the paper's own tables) and for independent values. A difference is "
        "explained if the same run, measured in another way, gives the printed value. The page "
        "shows settings that were found by trial, but does not count them as explanations.",
    ],
    unsettled=BOTH,
)

reproduce = PAPER.reproduce
