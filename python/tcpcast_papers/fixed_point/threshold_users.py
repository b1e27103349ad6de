"""Threshold of 5000 users: small differences of the load cause large differences of the queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast_papers.fixed_point.measures import GOODPUT_LEVELS
from tcpcast_papers.fixed_point.runs import row_of_jobs
from tcpcast_papers.fixed_point.tables import THRESHOLD_USERS, loop_job

if TYPE_CHECKING:
    from pathlib import Path

    from tcpcast_papers.fixed_point.runs import Runs
    from tcpcast_papers.reproduction import Section

TRIED_USERS = (5050, 5100, 5150)
QUANTITIES = ("loss", "rtt", "goodput", "send_rate", *GOODPUT_LEVELS)


def request(runs: Runs) -> None:
    """Request the threshold, and slightly larger populations."""
    for sources in (THRESHOLD_USERS, *TRIED_USERS):
        runs.request(loop_job(1, sources, runs.sample_sizes))


def _section(runs: Runs, _: Path) -> Section:
    names = tuple(f"{sources} users" for sources in TRIED_USERS)
    result = runs.section("The threshold", ("quantity", "N"), others=names)
    jobs = [loop_job(1, n, runs.sample_sizes) for n in (THRESHOLD_USERS, *TRIED_USERS)]
    for quantity in QUANTITIES:
        label, place = (str(THRESHOLD_USERS),), (3, THRESHOLD_USERS)
        result.rows += row_of_jobs(runs, quantity, label, place, jobs)
    result.remarks = [
        f"At {THRESHOLD_USERS} users the paper prints a longer RTT than the simulation of every "
        "flow gives. The other columns have 1, 2 and 3 % more users. A load found by trial does "
        "not count as an explanation, but the columns show that a small change is enough. Examples "
        "are a slightly different mean file size, or the error of the fixed point, which is "
        "largest at the threshold.",
    ]
    return result


SECTIONS = (_section,)
