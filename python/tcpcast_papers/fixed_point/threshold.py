"""The threshold of 5000 users, where small differences of the load make large ones of the queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast_papers.fixed_point.measures import SHARES, Figures
from tcpcast_papers.fixed_point.published import cell
from tcpcast_papers.fixed_point.tables import THRESHOLD, loop_job
from tcpcast_papers.reproduction import Section

if TYPE_CHECKING:
    from pathlib import Path

    from tcpcast_papers.fixed_point.runs import Runs

TRIED = (5050, 5100, 5150)
QUANTITIES = ("loss", "rtt", "goodput", "send_rate", *SHARES)


def request(runs: Runs) -> None:
    """Ask for the threshold, and for a little more."""
    for sources in (THRESHOLD, *TRIED):
        runs.request(loop_job(1, sources, runs.sample_sizes))


def sections(runs: Runs, _: Path) -> list[Section]:
    """Return the paper's column at the threshold beside some more users."""
    names = tuple(f"{sources} users" for sources in TRIED)
    result = Section("The threshold", ("quantity", "N"), others=names)
    exact, *more = (runs[loop_job(1, n, runs.sample_sizes)] for n in (THRESHOLD, *TRIED))
    figures = Figures(exact, THRESHOLD, others=tuple(more))
    for quantity in QUANTITIES:
        printed = cell(3, quantity, str(THRESHOLD))
        result.rows.append(figures.row(quantity, (str(THRESHOLD),), printed, relative=None))
    result.remarks = [
        f"The paper's column at {THRESHOLD} users has a longer round trip than every flow has. "
        "Which load would give it was found by trying the three numbers of users beside: 1, 2 and "
        "3 % more. One that is found so explains nothing, and so Table 3 has its rows as they "
        "are. It tells how little would do: a mean size of files that is off by so much, say, "
        "or the fixed point's own error, which at the threshold is larger than anywhere else.",
    ]
    return [result]
