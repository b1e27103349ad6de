"""What the paper leaves open, varied: rules of TCP, who loses a packet, the noise's time scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast_papers.fixed_point.measures import SHARES, Figures, missing
from tcpcast_papers.fixed_point.published import CASES, CONGESTED, cell
from tcpcast_papers.fixed_point.runs import Job
from tcpcast_papers.fixed_point.settings import DROPS, NOISES, LocalLoop, Noise
from tcpcast_papers.fixed_point.tables import loop_job
from tcpcast_papers.reproduction import Section

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tcpcast.answer import Answer

    from tcpcast_papers.fixed_point.runs import Runs

READINGS = tuple((rule, drop) for rule in ("B", "C") for drop in DROPS)
BINS_S = (0.01, 0.03, 0.1, 0.3, 1.0)
NOISE_SOURCES = 2500
QUANTITIES = ("loss", "timeouts", "rtt", "goodput", "send_rate", *SHARES)
DROP_WORDS = {"longest": "longest queue", "arriving": "what arrives"}


def _reading(runs: Runs, sources: int, rule: str, drop: str) -> Job:
    if (rule, drop) == READINGS[0]:
        return loop_job(1, sources, runs.sample_sizes)
    return Job(LocalLoop(sources, rule=rule, drop=drop), runs.sample_sizes.varied)


def _scale(runs: Runs, case: int, bin_s: float) -> Job:
    if bin_s == Noise(0).bin_s:
        return loop_job(case, NOISE_SOURCES, runs.sample_sizes)
    noise = NOISES[case]
    load = noise.load_percent if noise is not None else 0
    setting = LocalLoop(NOISE_SOURCES, noise=Noise(load, bin_s))
    return Job(setting, runs.sample_sizes.varied)


def request(runs: Runs) -> None:
    """Ask for every reading of the rules, and every time scale."""
    for sources in CONGESTED:
        for rule, drop in READINGS:
            runs.request(_reading(runs, sources, rule, drop))
    for case in (2, 3):
        for bin_s in BINS_S:
            runs.request(_scale(runs, case, bin_s))


def sections(runs: Runs, _: Path) -> list[Section]:
    """Return the rules of TCP and the time scale of the noise."""
    return [_rules(runs), _scales(runs)]


def _rules(runs: Runs) -> Section:
    names = tuple(f"{rule}, {DROP_WORDS[drop]}" for rule, drop in READINGS[1:])
    section = Section("Rules that the paper leaves open", ("quantity", "N"), others=names)
    for quantity in QUANTITIES:
        for sources in CONGESTED:
            first, *rest = (runs[_reading(runs, sources, *each)] for each in READINGS)
            figures = Figures(first, sources, others=tuple(rest))
            printed = cell(3, quantity, str(sources))
            section.rows.append(figures.row(quantity, (str(sources),), printed, relative=None))
    section.remarks = [
        "Own is rule B with the longest queue losing a packet, as in Table 3. *B*: no growth with "
        "acks of packets sent before the last halving, half a window in whole packets, a timeout "
        "when the oldest packet out is older than the retransmission timeout. *C*: growth with "
        "every ack, halves with fractions, no timeouts. *What arrives*: that packet is lost when "
        "the shared buffer is full.",
        "In overload goodput does not depend on the rules: it is what the link has for each user. "
        "What they change is how much is sent in vain. Every reading loses more than the paper's "
        "fixed point, whose longer round trips allow larger windows for the same rate, and a "
        "larger window goes with less loss.",
    ]
    return section


def _scales(runs: Runs) -> Section:
    section = Section(
        "The time scale of the noise",
        ("quantity", "case"),
        others=tuple(f"{1e3 * bin_s:g} ms" for bin_s in BINS_S if bin_s != Noise(0).bin_s),
    )
    answers = {case: _answers(runs, case) for case in (2, 3)}
    for quantity in QUANTITIES:
        for case, (first, *rest) in answers.items():
            figures = Figures(first, NOISE_SOURCES, others=tuple(rest))
            printed = cell(CASES[case], quantity, str(NOISE_SOURCES))
            section.rows.append(figures.row(quantity, (str(case),), printed, relative=None))
    section.remarks = [
        f"{NOISE_SOURCES} users; own is 100 ms, beside it are other times for which a rate of the "
        "noise stays. At 80 % the slower the noise, the longer the excursions above the router's "
        "rate, and its queue. At 100 % the queue is about full for long whatever the time scale, "
        "and the faster the noise, the less is lost while it is. No time scale tried here brings "
        "the paper's 0.2 % of loss.",
        *_realised(answers),
        *missing(*_flat(answers.values())),
    ]
    if any(answers[case][0].not_applicable for case in answers):
        section.rows = []
    return section


def _realised(answers: dict[int, list[Answer]]) -> list[str]:
    """Say what the noise came to once its negative rates were cut."""
    told = []
    for case, (first, *_) in answers.items():
        table = first.tables.get("cross")
        if table is not None:
            mean, spread = (float(table[f"rate_{of}_bps"][0]) / 1e6 for of in ("mean", "sd"))
            cut = 100 * float(table["cut_ratio"][0])
            told.append(f"case {case}: {mean:.2f} Mbit/s, deviation {spread:.2f}, {cut:.1f} % cut")
    return [f"Realised once rates below 0 are cut, {'; '.join(told)}."] if told else []


def _answers(runs: Runs, case: int) -> list[Answer]:
    own = Noise(0).bin_s
    order = (own, *(bin_s for bin_s in BINS_S if bin_s != own))
    return [runs[_scale(runs, case, bin_s)] for bin_s in order]


def _flat(lists: Iterable[list[Answer]]) -> list[Answer]:
    return [each for result in lists for each in result]
