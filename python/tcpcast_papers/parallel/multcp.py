"""MulTCP, which the paper names as an alternative: one connection instead of n flows."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import TYPE_CHECKING

from tcpcast_papers.parallel.points import OpenChoice, Point
from tcpcast_papers.parallel.predictions import ALGORITHM_1, ALGORITHM_2, PFTK

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tcpcast_papers.parallel.runs import Runs
    from tcpcast_papers.reproduction import Section

N_RENO_FLOWS = OpenChoice("n Reno flows with SACK", (("stack", "linux-reno"),))
MULTCP = OpenChoice("MulTCP(n)", (("stack", "multcp"),), is_multcp=True)
FLOWS = (2, 5, 10)
LOSSES = (0.001, 0.01, 0.05)
MODELS = (ALGORITHM_1, ALGORITHM_2, PFTK)


def _points_of_sender(choice: OpenChoice) -> list[Point]:
    return [Point(n, loss=loss, choice=choice) for n in FLOWS for loss in LOSSES]


def request(runs: Runs) -> None:
    """Request each point with n flows, and with one connection of MulTCP."""
    for choice in (N_RENO_FLOWS, MULTCP):
        runs.request(_points_of_sender(choice))


def sections(runs: Runs, _: Path) -> list[Callable[[], Section]]:
    """Return the rates of MulTCP and of the models, relative to the simulated n flows."""
    return [partial(_section, runs)]


def _section(runs: Runs) -> Section:
    section = runs.section("Section I. MulTCP instead of n flows", ("n", "loss", "sender or model"))
    for n, loss in product(FLOWS, LOSSES):
        for name in (MULTCP.name, *(model.model for model in MODELS)):
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
    ]
    return section


def _rate_difference_percent(runs: Runs, n: int, loss: float, name: str) -> float:
    seen = runs[Point(n, loss=loss, choice=N_RENO_FLOWS)]
    if name == MULTCP.name:
        rate_pps = runs[Point(n, loss=loss, choice=MULTCP)].send_rate_pps
    else:
        (model,) = (model for model in MODELS if model.model == name)
        rate_pps = model.rate_pps(seen)
    return 100 * (rate_pps / seen.send_rate_pps - 1)
