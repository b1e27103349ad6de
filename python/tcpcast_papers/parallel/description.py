"""The paper described: its sections in order, and what each has simulated."""

from __future__ import annotations

from tcpcast_papers.parallel import appendix, claims, figures, loss_events, open_choices
from tcpcast_papers.parallel.published import CITATION
from tcpcast_papers.parallel.runs import QUICK, WHOLE, Runs, SampleSizes
from tcpcast_papers.runner import Paper


def _preface(runs: Runs) -> list[str]:
    quick = (
        "" if runs.sample_sizes == WHOLE else "This is the quick run: fewer points, shorter runs. "
    )
    return [
        f"The paper: {CITATION}. Its results are figures without numbers, so that nearly all rows "
        "are without a verdict, shown to be looked at.",
        "p is the loss events of any flow per packet, p_e those of all flows taken as one (at most "
        "one a round trip), p_r the packets lost. The models are fed with what each simulation "
        "measures, as in the paper: these, RTT, and T, the mean first timeout.",
        f"{quick}{len(runs)} simulated points stand behind it, {runs.sample_sizes.replications} "
        "replications each but where every packet is traced.",
    ]


PAPER: Paper[SampleSizes, Runs] = Paper(
    package="tcpcast_papers.parallel",
    title="Parallel flows: the paper's models and simulated flows",
    simulations=Runs,
    whole=WHOLE,
    quick=QUICK,
    parts=(figures, claims.SHEET, open_choices, loss_events, appendix.SHEET),
    preface=_preface,
)

reproduce = PAPER.reproduce
