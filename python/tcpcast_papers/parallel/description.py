"""Description of the reproduction: its sections in order, and their sample sizes."""

from __future__ import annotations

from tcpcast_papers.parallel import (
    appendix,
    figures,
    loss_events,
    model_errors,
    multcp,
    open_choices,
)
from tcpcast_papers.parallel.published import CITATION
from tcpcast_papers.parallel.runs import QUICK, WHOLE, Runs, SampleSizes
from tcpcast_papers.runner import Paper

PAPER: Paper[SampleSizes, Runs] = Paper(
    package="tcpcast_papers.parallel",
    title="Parallel flows: the paper's models and simulated flows",
    simulations=Runs,
    whole=WHOLE,
    quick=QUICK,
    parts=(
        figures,
        model_errors.SECTION,
        open_choices,
        multcp,
        loss_events,
        appendix.PRINTED_VALUE_SECTION,
        appendix.ALGORITHM_SECTION,
    ),
    preface=lambda runs: [
        f"The paper is {CITATION}. Its results are figures without numbers, so nearly all rows "
        "have no verdict. The claims of the paper are tested on these rows.",
        "p is the number of loss events of single flows per packet. p_e is the number of loss "
        "events of the aggregate of all flows per packet, at most one per round trip. p_r is the "
        "share of lost packets. As in the paper, the models use the measured values of each "
        "simulation: p, p_e, p_r, RTT, and the mean first timeout T. Loss events are counted from "
        "lost packets, as in the paper; the column *by indications* has the errors if the models "
        "use the senders' loss indications instead.",
        f"The page uses {len(runs)} simulated points with {runs.sample_sizes.replications} "
        "replications each, except for points with traces of every packet.",
    ],
)

reproduce = PAPER.reproduce
