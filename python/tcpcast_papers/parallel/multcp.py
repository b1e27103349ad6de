"""One connection instead of n flows: MulTCP, and TFRC with algorithm 2 (MulTFRC).

MulTFRC is the application of the paper's authors (Damjanovic and Welzl, *MulTFRC: Providing
Weighted Fairness for Multimedia Applications*, 2009): a sender whose rate is that of algorithm 2
for its own loss events, with T = 4 RTT. Here its loss is independent, so that the rate is a fixed
point.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from tcpcast.models.parallel import cumulative_throughput

from tcpcast_papers.parallel.points import OpenChoice, Point
from tcpcast_papers.parallel.predictions import ALGORITHM_1, ALGORITHM_2, PFTK

if TYPE_CHECKING:
    from pathlib import Path

    from tcpcast_papers.parallel.runs import Runs
    from tcpcast_papers.reproduction import Section

TFRC = OpenChoice("TFRC", (("stack", "tfrc"),))
MULTFRC = "MulTFRC(n)"
N_RENO_FLOWS = OpenChoice("n Reno flows with SACK", (("stack", "linux-reno"),))
MULTCP = OpenChoice("MulTCP(n)", (("stack", "multcp"),), is_multcp=True)
FLOWS = (2, 5, 10)
LOSSES = (0.001, 0.01, 0.05)
MODELS = (ALGORITHM_1, ALGORITHM_2, PFTK)


def request(runs: Runs) -> None:
    """Request each point with n flows, and with one connection of MulTCP."""
    for choice in (N_RENO_FLOWS, MULTCP):
        runs.request([Point(n, loss=loss, choice=choice) for n in FLOWS for loss in LOSSES])
    for choice in (N_RENO_FLOWS, TFRC):
        runs.request(Point(1, loss=loss, choice=choice) for loss in LOSSES)


def _section(runs: Runs, _: Path) -> Section:
    section = runs.section(
        "Section I. One connection instead of n flows", ("n", "loss", "sender or model")
    )
    several = (MULTCP.name, MULTFRC, *(model.model for model in MODELS))
    for n, loss in product((1, *FLOWS), LOSSES):
        for name in (TFRC.name, MULTFRC) if n == 1 else several:
            label = (f"n = {n}", f"{100 * loss:g} %", name)
            section.rows += runs.value(label, "%", _rate_difference_percent, runs, n, loss, name)
    section.remarks = [
        "The values are send rates relative to the rate of n simulated flows of Reno with "
        "SACK (linux-reno), with random loss and a shared link of 30 ms. MulTCP(n) is one "
        "connection (multcp) whose window grows by n packets per RTT, and is multiplied by "
        "1 - 1/(2n) after a loss event. The models use the values measured with n flows. "
        "Losses within one RTT are one loss event of MulTCP, but often events of several "
        "of the n flows. During a recovery the window of MulTCP does not grow, but n - 1 "
        "of the n flows grow.",
        "MulTFRC(n) sends at the rate of algorithm 2 for its own loss events, with T = 4 RTT, and "
        "TFRC is the simulated stack tfrc. MulTFRC(1) differs from TFRC in the equation: TFRC uses "
        "(32) of PFTK. With n above 1, several losses of a round are one event of the aggregate, "
        "and p_r/p_e is the number of flows whose windows this event would have halved.",
    ]
    return section


def _rate_difference_percent(runs: Runs, n: int, loss: float, name: str) -> float:
    seen = runs[Point(n, loss=loss, choice=N_RENO_FLOWS)]
    simulated = {choice.name: choice for choice in (MULTCP, TFRC)}
    if name in simulated:
        rate_pps = runs[Point(n, loss=loss, choice=simulated[name])].send_rate_pps
    elif name == MULTFRC:
        rate_pps = multfrc_rate_pps(n, loss, seen.rtt_s)
    else:
        (model,) = (model for model in MODELS if model.model == name)
        rate_pps = model.rate_pps(seen)
    return 100 * (rate_pps / seen.send_rate_pps - 1)


def multfrc_rate_pps(flows: int, loss_ratio: float, rtt_s: float) -> float:
    """Return the packets/s of MulTFRC with an independent loss, from above 0 and below 1.

    The loss events of the sender are at most one per RTT: p_e = (1 - (1 - p)^w)/w for the w packets
    of a round trip. Its rate X is the solution of X = B(p_e(X)), B by algorithm 2.
    """
    rate_pps, before = 1 / rtt_s, 0.0
    while abs(rate_pps - before) > 1e-9 * rate_pps:
        before, window = rate_pps, max(rate_pps * rtt_s, 1.0)
        result = cumulative_throughput(
            flows=flows,
            rtt_s=rtt_s,
            t0_s=4 * rtt_s,
            packets_per_ack=1,
            loss_event_ratio_cumulative=(1 - (1 - loss_ratio) ** window) / window,
            loss_ratio=loss_ratio,
        )
        rate_pps = float(result.rate_pps)
    return rate_pps


SECTIONS = (_section,)
