"""Variations of unspecified choices: TCP rules, drop policy, time scale of the noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast_papers.fixed_point.measures import (
    GOODPUT_LEVELS,
    SettingAnswers,
    missing_answer_remarks,
)
from tcpcast_papers.fixed_point.published import CONGESTED, TABLE_OF_CASE, printed_cell
from tcpcast_papers.fixed_point.runs import Job
from tcpcast_papers.fixed_point.settings import DROP_POLICIES, NOISES, LocalLoop, Noise
from tcpcast_papers.fixed_point.tables import loop_job
from tcpcast_papers.reproduction import Section

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tcpcast.answer import Answer

    from tcpcast_papers.fixed_point.runs import Runs

RULES_AND_DROPS = tuple((rule, drop) for rule in ("B", "C") for drop in DROP_POLICIES)
BINS_S = (0.01, 0.03, 0.1, 0.3, 1.0)
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
    """Request every interpretation of the rules, and every time scale."""
    for sources in CONGESTED:
        for rule, drop in RULES_AND_DROPS:
            runs.request(_rule_job(runs, sources, rule, drop))
    for case in (2, 3):
        for bin_s in BINS_S:
            runs.request(_noise_job(runs, case, bin_s))


def sections(runs: Runs, _: Path) -> list[Section]:
    """Return the rules of TCP and the time scale of the noise."""
    return [_rule_section(runs), _noise_section(runs)]


def _rule_section(runs: Runs) -> Section:
    names = tuple(f"{rule}, {DROP_DESCRIPTIONS[drop]}" for rule, drop in RULES_AND_DROPS[1:])
    section = Section("Rules that the paper leaves open", ("quantity", "N"), others=names)
    for quantity in QUANTITIES:
        for sources in CONGESTED:
            first, *rest = (runs[_rule_job(runs, sources, *each)] for each in RULES_AND_DROPS)
            figures = SettingAnswers(first, sources, others=tuple(rest))
            printed = printed_cell(3, quantity, str(sources))
            section.rows.append(figures.row(quantity, (str(sources),), printed, relative=None))
    section.remarks = [
        "Own is rule B with drops from the longest queue, as in Table 3. *B*: no growth with acks "
        "of packets sent before the last halving, windows halved in whole packets, a timeout if "
        "the oldest outstanding packet exceeds the retransmission timeout. *C*: growth with every "
        "ack, fractional windows, no timeouts. *Arriving packet*: this packet is dropped if the "
        "shared buffer is full.",
        "In overload the goodput does not depend on the rules: it is each user's share of the "
        "link. The rules change the number of lost packets. Every reading loses more than the "
        "paper's fixed point, whose longer round trips allow larger windows at the same rate. "
        "Larger windows go with less loss.",
    ]
    return section


def _noise_section(runs: Runs) -> Section:
    section = Section(
        "The time scale of the noise",
        ("quantity", "case"),
        others=tuple(f"{1e3 * bin_s:g} ms" for bin_s in BINS_S if bin_s != Noise(0).bin_s),
    )
    answers = {case: _answers(runs, case) for case in (2, 3)}
    for quantity in QUANTITIES:
        for case, (first, *rest) in answers.items():
            figures = SettingAnswers(first, NOISE_SOURCES, others=tuple(rest))
            printed = printed_cell(TABLE_OF_CASE[case], quantity, str(NOISE_SOURCES))
            section.rows.append(figures.row(quantity, (str(case),), printed, relative=None))
    section.remarks = [
        f"{NOISE_SOURCES} users. The noise keeps each rate for 100 ms in column own, and for other "
        "times in the further columns. At 80 % slower noise causes longer excursions above the "
        "router's rate, and a longer queue. At 100 % the queue is nearly full for long periods "
        "with every time scale, and faster noise causes less loss in these periods. No time scale "
        "that was tried gives the paper's 0.2 % of loss.",
        *_realised_noise_remark(answers),
        *missing_answer_remarks(*_flat(answers.values())),
    ]
    if any(answers[case][0].not_applicable for case in answers):
        section.rows = []
    return section


def _realised_noise_remark(answers: dict[int, list[Answer]]) -> list[str]:
    """Return the realised mean and deviation of the noise after its negative rates were cut."""
    parts = []
    for case, (first, *_) in answers.items():
        table = first.tables.get("cross")
        if table is not None:
            mean, spread = (float(table[f"rate_{of}_bps"][0]) / 1e6 for of in ("mean", "sd"))
            cut = 100 * float(table["cut_ratio"][0])
            parts.append(f"case {case}: {mean:.2f} Mbit/s, deviation {spread:.2f}, {cut:.1f} % cut")
    return [f"Realised noise, with rates below 0 cut: {'; '.join(parts)}."] if parts else []


def _answers(runs: Runs, case: int) -> list[Answer]:
    own = Noise(0).bin_s
    order = (own, *(bin_s for bin_s in BINS_S if bin_s != own))
    return [runs[_noise_job(runs, case, bin_s)] for bin_s in order]


def _flat(lists: Iterable[list[Answer]]) -> list[Answer]:
    return [each for result in lists for each in result]
