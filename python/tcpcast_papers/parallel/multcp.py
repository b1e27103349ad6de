"""MulTCP, which the paper names as an alternative: one connection instead of n flows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast_papers.parallel.points import OpenChoice, Point
from tcpcast_papers.parallel.predictions import ALGORITHM_1, ALGORITHM_2, PFTK
from tcpcast_papers.reproduction import Row, Section

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tcpcast_papers.parallel.runs import Runs

N_RENO_FLOWS = OpenChoice("n Reno flows with SACK", (("stack", "linux-reno"),))
MULTCP = OpenChoice("MulTCP(n)", (("stack", "multcp"),), is_multcp=True)
FLOWS = (2, 5, 10)
LOSSES = (0.001, 0.01, 0.05)


def _points_of_sender(choice: OpenChoice) -> list[Point]:
    return [Point(n, loss=loss, choice=choice) for n in FLOWS for loss in LOSSES]


def request(runs: Runs) -> None:
    """Request each point with n flows, and with one connection of MulTCP."""
    for choice in (N_RENO_FLOWS, MULTCP):
        runs.request(_points_of_sender(choice))


def sections(runs: Runs, _: Path) -> list[Section]:
    """Return the rates of MulTCP and of the models, relative to the simulated n flows."""
    return [
        Section(
            "Section I. MulTCP instead of n flows",
            ("n", "loss", "sender or model"),
            list(_rate_comparison_rows(runs)),
            remarks=[
                "The values are send rates relative to the rate of n simulated flows of Reno with "
                "SACK (linux-reno), with random loss and a shared link of 30 ms. MulTCP(n) is one "
                "connection (multcp) whose window grows by n packets per RTT, and is multiplied by "
                "1 - 1/(2n) after a loss event. The models use the values measured with n flows. "
                "Losses within one RTT are one loss event of MulTCP, but often events of several "
                "of the n flows. During a recovery the window of MulTCP does not grow, but n - 1 "
                "of the n flows grow.",
            ],
        )
    ]


def _rate_comparison_rows(runs: Runs) -> Iterator[Row]:
    for flows, one in zip(_points_of_sender(N_RENO_FLOWS), _points_of_sender(MULTCP), strict=True):
        seen = runs[flows]
        rates = {MULTCP.name: runs[one].send_rate_pps} | {
            model.model: model.rate_pps(seen) for model in (ALGORITHM_1, ALGORITHM_2, PFTK)
        }
        for name, rate_pps in rates.items():
            label = (f"n = {flows.flows}", f"{100 * flows.loss:g} %", name)
            yield Row(label, "%", None, 100 * (rate_pps / seen.send_rate_pps - 1))
