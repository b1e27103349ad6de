"""Variations of unspecified choices: TCP rules, drop policy, time scale of the noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast_papers.fixed_point.measures import (
    GOODPUT_LEVELS,
)
from tcpcast_papers.fixed_point.published import CONGESTED, TABLE_OF_CASE
from tcpcast_papers.fixed_point.runs import Job, row_of_jobs
from tcpcast_papers.fixed_point.settings import DROP_POLICIES, NOISES, LocalLoop, Noise
from tcpcast_papers.fixed_point.tables import loop_job

if TYPE_CHECKING:
    from pathlib import Path

    from tcpcast.answer import Answer

    from tcpcast_papers.fixed_point.runs import Runs
    from tcpcast_papers.reproduction import Section

RULES_AND_DROPS = tuple((rule, drop) for rule in ("B", "C") for drop in DROP_POLICIES)
OTHER_BINS_S = (0.01, 0.03, 0.3, 1.0)
"""Time scales of the noise other than the default."""

NOISE_SOURCES = 2500
QUANTITIES = ("loss", "timeouts", "rtt", "goodput", "send_rate", *GOODPUT_LEVELS)
DROP_DESCRIPTIONS = {"longest": "longest queue", "arriving": "arriving packet"}


def _rule_job(runs: Runs, sources: int, rule: str, drop: str) -> Job:
    if (rule, drop) == RULES_AND_DROPS[0]:
        return loop_job(1, sources, runs.sample_sizes)
    return Job(LocalLoop(sources, rule=rule, drop=drop), runs.sample_sizes.varied)


def _noise_job(runs: Runs, case: int, bin_s: float) -> Job:
    if bin_s == Noise(0).bin_s:
        return loop_job(case, NOISE_SOURCES, runs.sample_sizes)
    noise = NOISES[case]
    load = noise.load_percent if noise is not None else 0
    setting = LocalLoop(NOISE_SOURCES, noise=Noise(load, bin_s))
    return Job(setting, runs.sample_sizes.varied)


def request(runs: Runs) -> None:
    """Request every interpretation of the rules, and the time scales that Tables 4 and 5 lack."""
    for sources in CONGESTED:
        for rule, drop in RULES_AND_DROPS:
            runs.request(_rule_job(runs, sources, rule, drop))
    for case in (2, 3):
        for bin_s in OTHER_BINS_S:
            runs.request(_noise_job(runs, case, bin_s))


def _rule_section(runs: Runs, _: Path) -> Section:
    names = tuple(f"{rule}, {DROP_DESCRIPTIONS[drop]}" for rule, drop in RULES_AND_DROPS[1:])
    section = runs.section("Rules that the paper leaves open", ("quantity", "N"), others=names)
    for quantity in QUANTITIES:
        for sources in CONGESTED:
            jobs = [_rule_job(runs, sources, *each) for each in RULES_AND_DROPS]
            section.rows += row_of_jobs(runs, quantity, (str(sources),), (3, sources), jobs)
    section.remarks = [
        "The column *own* uses rule B with drops from the longest queue, as in Table 3. *B*: acks "
        "of packets sent before the last halving do not increase the window, windows are halved in "
        "whole packets, and the oldest outstanding packet has a retransmission timeout. *C*: every "
        "ack increases the window, windows are fractional, and there are no timeouts. *Arriving "
        "packet*: the arriving packet is dropped if the shared buffer is full.",
        "In overload, the goodput does not depend on the rules: each user receives an equal share "
        "of the link. The rules change the number of lost packets. With all rules, more packets "
        "are lost than in the paper's fixed point. The longer RTTs of the fixed point allow larger "
        "windows, and thus less loss, at the same rate.",
    ]
    return section


def _noise_section(runs: Runs, _: Path) -> Section:
    section = runs.section(
        "The time scale of the noise",
        ("quantity", "case"),
        others=tuple(f"{1e3 * bin_s:g} ms" for bin_s in OTHER_BINS_S),
    )
    jobs = {
        case: [_noise_job(runs, case, bin_s) for bin_s in (Noise(0).bin_s, *OTHER_BINS_S)]
        for case in (2, 3)
    }
    for quantity in QUANTITIES:
        for case, each in jobs.items():
            place = (TABLE_OF_CASE[case], NOISE_SOURCES)
            section.rows += row_of_jobs(runs, quantity, (str(case),), place, each)
    section.remarks = [
        f"{NOISE_SOURCES} users. The noise keeps each rate for 100 ms in the column *own*, and for "
        "the given time in the other columns. At a load of 80 % (case 2), slower noise exceeds the "
        "router's rate for longer times, so the queue is longer. At 100 % (case 3), the queue is "
        "nearly full for long periods with every time scale, and faster noise causes less loss in "
        "these periods. None of the time scales gives the paper's 0.2 % of loss.",
        _realised_noise_remark({case: runs[each[0]] for case, each in jobs.items()}),
    ]
    return section


def _realised_noise_remark(answers: dict[int, Answer]) -> str:
    """Return the realised mean and deviation of the noise after its negative rates were cut."""
    parts = []
    for case, first in answers.items():
        table = first.tables["cross"]
        mean, spread = (float(table[f"rate_{of}_bps"][0]) / 1e6 for of in ("mean", "sd"))
        cut = 100 * float(table["cut_ratio"][0])
        parts.append(f"case {case}: {mean:.2f} Mbit/s, deviation {spread:.2f}, {cut:.1f} % cut")
    return f"Simulated noise, after rates below 0 were cut: {'; '.join(parts)}."


SECTIONS = (_rule_section, _noise_section)
