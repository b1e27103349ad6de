"""Tables 3 to 6: the local loop, with and without a backbone router on the way."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tcpcast_papers.fixed_point.measures import (
    RTT_CEILING_S,
    SHARES,
    Figures,
    failed,
    missing,
)
from tcpcast_papers.fixed_point.published import (
    BACKBONE_BUFFER_S,
    CASES,
    CONGESTED,
    POPULATIONS,
    apart,
    cell,
    table,
)
from tcpcast_papers.fixed_point.runs import BESIDE, Job, fixed_points, request_fixed_points
from tcpcast_papers.fixed_point.settings import NOISES, LocalLoop
from tcpcast_papers.reproduction import Section

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tcpcast.answer import Answer

    from tcpcast_papers.fixed_point.runs import SampleSizes, Runs
    from tcpcast_papers.reproduction import Row

WITHIN = 0.05
WITHIN_VARIANCE = 0.1
WITHIN_APART = 0.03

SCHEME_COLUMNS = tuple(f"scheme {scheme}" for scheme in BESIDE)

SPREADS = {"1-1": (1, 1), "5-1": (5, 1), "5-5": (5, 5), "10-10": (10, 10)}
"""Standard deviations of burst and think time over their means, in the columns of Table 6."""
THRESHOLD = 5000
"""C I / B: users who ask for just what the link carries."""
FITTED = (2, 2500)
"""Case and N of the RTT that the time scale of the noise is fitted to."""


def loop_job(case: int, sources: int, sample_sizes: SampleSizes) -> Job:
    """Return the simulation of a column of Table 3, 4 or 5."""
    return Job(LocalLoop(sources, noise=NOISES[case]), sample_sizes.checked)


def spread_job(column: str, sample_sizes: SampleSizes, *, start: str = "equilibrium") -> Job:
    """Return the simulation of a column of Table 6."""
    size, think = SPREADS[column]
    setting = LocalLoop(THRESHOLD, size_spread=size, think_spread=think, start=start)
    length = sample_sizes.variance
    if start == "silent":
        length = replace(length, warmup_s=0.0)
    return Job(setting, length)


def request(runs: Runs) -> None:
    """Ask for every column, and for what may account for differences."""
    sample_sizes = runs.sample_sizes
    for case in CASES:
        for sources in POPULATIONS:
            job = loop_job(case, sources, sample_sizes)
            runs.request(job)
            request_fixed_points(runs, job, _schemes(case))
    for column in SPREADS:
        job = spread_job(column, sample_sizes)
        runs.request(job)
        request_fixed_points(runs, job)
        runs.request(spread_job(column, sample_sizes, start="silent"))


def loop_figures(runs: Runs, case: int, sources: int) -> Figures:
    """Return the answers for a column of Table 3, 4 or 5."""
    job = loop_job(case, sources, runs.sample_sizes)
    fixed = fixed_points(runs, job, _schemes(case))
    return Figures(
        runs[job],
        sources,
        others=tuple(fixed.values()),
        one_queue=case == 1,
    )


def sections(runs: Runs, _: Path) -> list[Section]:
    """Return Tables 3 to 6, and what was computed apart beside the first of them."""
    return [*(case_section(runs, case) for case in CASES), _variance(runs), _apart(runs)]


def case_section(runs: Runs, case: int) -> Section:
    """Return Table 3, 4 or 5: the local loop in one of its cases."""
    number = CASES[case]
    figures = {sources: loop_figures(runs, case, sources) for sources in POPULATIONS}
    section = Section(table(number).title, ("quantity", "N"), others=_beside(case, figures))
    for line in table(number):
        for sources in POPULATIONS:
            row = _loop_row(figures[sources], case, line["quantity"], sources)
            if case == 1:
                row = _beside_case_1(row, line["quantity"], sources)
            elif line["quantity"] in {"loss", "send_rate"}:
                row = replace(row, others=tuple(None for _ in row.others))
            section.rows.append(row if section.others else replace(row, others=(), withheld=()))
    section.remarks = [
        *_REMARKS[case],
        *failed(by_scheme({f"N = {sources}": each for sources, each in figures.items()})),
        *missing(*(answer for each in figures.values() for answer in each.others)),
    ]
    return section


def _beside(case: int, figures: Mapping[int, Figures]) -> tuple[str, ...]:
    """Return the names of further columns; none of the fixed point where it does not apply."""
    if case == 1:
        return (*SCHEME_COLUMNS, "computed apart")
    applies = any(a.not_applicable is None for each in figures.values() for a in each.others)
    return tuple(f"scheme {scheme}" for scheme in _schemes(case)) if applies else ()


def _schemes(case: int) -> tuple[str, ...]:
    """Return the fixed points of a case: behind a backbone router only those of scheme 2."""
    return BESIDE if case == 1 else BESIDE[:1]


def by_scheme(figures: Mapping[str, Figures]) -> dict[str, dict[str, Answer]]:
    """Return the fixed points among what stands beside, by scheme and by setting."""
    return {
        name.capitalize(): {where: each.others[index] for where, each in figures.items()}
        for index, name in enumerate(SCHEME_COLUMNS)
        if all(index < len(each.others) for each in figures.values())
    }


def _loop_row(figures: Figures, case: int, quantity: str, sources: int) -> Row:
    column = str(sources)
    overloaded = quantity == "rtt" and sources in CONGESTED
    fitted = quantity == "rtt" and (case, sources) == FITTED
    note = _CEILINGS[case] if overloaded else "fitted" * fitted
    row = figures.row(
        quantity,
        (column,),
        cell(CASES[case], quantity, column),
        relative=None if overloaded or fitted else WITHIN,
    )
    return replace(row, note=note)


def _beside_case_1(row: Row, quantity: str, sources: int) -> Row:
    """Put what was computed apart beside a row of Table 3."""
    result = apart().where(quantity=quantity)
    computed = result[0].value(str(sources)) if result else None
    return replace(row, others=(*row.others, computed))


_CEILINGS = {
    1: f"cannot be: at most {RTT_CEILING_S:.3f} s",
    2: f"at most {RTT_CEILING_S:.3f} s and the wait at the backbone router",
    3: f"cannot be: at most {RTT_CEILING_S + BACKBONE_BUFFER_S:.3f} s, both buffers full",
}
"""Of the RTT in overload, by Little's law."""

_REMARKS = {
    1: [
        "N users share 100 Mbit/s by fair queueing; own is every flow, by rule B, the longest "
        "queue (ties broken at random) losing a packet when the buffer is full. g_95 is what "
        "95 % of the files exceed; the paper rounds these up to 10 kbit/s, so that anything in the "
        "step below agrees.",
        "The paper's RTTs at 7500 and 10000 users (1.77 and 2.21 s) have no verdict, because they "
        "cannot be: see the section on Little's law.",
        "Up to 5000 users nothing is lost and no rule of TCP matters. At 5000, the threshold, "
        "small differences of the load make large ones of the queue: see the section on it.",
    ],
    2: [
        "Each source has a backbone router of its own at 80 Mbit/s before the shared one, loaded "
        "to 80 % by fractional Gaussian noise with a standard deviation of half the mean, H = 0.7. "
        "Rates below 0 are cut. For how long a rate of the noise stays the paper does not say: "
        "100 ms are fitted to the RTT at 2500 users, which has no verdict therefore; others are in "
        "the section on the time scale of the noise. Loss is that of both routers. A fixed point "
        "tells the losses of the shared one only; its cells of loss and send rate are left out.",
    ],
    3: [
        "As Table 4, with the backbone router loaded to 100 %, where what it adds depends on its "
        "buffer and on its realised load, of which each per cent counts. Where the others keep it "
        "full a packet of the source is lost as often as one of theirs. What the shared router "
        "adds to the losses of 2500 users, at which it loses nothing, is about the paper's; what "
        "the backbone router itself loses is several times as much as there, and its queue longer.",
    ],
}


def _variance(runs: Runs) -> Section:
    section = Section(
        table(6).title, ("quantity", "spread"), others=(*SCHEME_COLUMNS, "fresh start")
    )
    figures = {}
    for column in SPREADS:
        job = spread_job(column, runs.sample_sizes)
        fixed = fixed_points(runs, job)
        fresh = runs[spread_job(column, runs.sample_sizes, start="silent")]
        figures[column] = Figures(
            runs[job],
            THRESHOLD,
            others=(*fixed.values(), fresh),
            one_queue=True,
        )
    for line in table(6):
        for column in SPREADS:
            printed = line.printed(column)
            row = figures[column].row(
                line["quantity"], (column,), printed, relative=WITHIN_VARIANCE
            )
            section.rows.append(row)
    section.remarks = [
        "Standard deviations of burst size and think time over those of Table 3, at 5000 users, "
        "from a start in equilibrium: with residual think times.",
        "The paper loses .03 and .08 % at 5-5 and 10-10, every flow loses nothing. *Fresh start* "
        f"is a run of {runs.sample_sizes.variance.measured_s:g} s that begins with think times drawn "
        "anew, as a simulation does that nobody told otherwise: many short ones come first, more "
        "users than the link carries are on at once, and with a spread of 10 it takes more than "
        "10,000 s to forget. It loses far more than the paper does. So it shows a direction, not "
        "the amount, and counts as no explanation: how the paper's runs began, and how long they "
        "were, is not known.",
        *failed(by_scheme(figures)),
        *missing(*(answer for each in figures.values() for answer in each.others)),
    ]
    return section


def _apart(runs: Runs) -> Section:
    section = Section("Values computed apart", ("quantity", "N"))
    for quantity in ("loss", "timeouts", "rtt", "goodput", *SHARES):
        for sources in POPULATIONS:
            figures = Figures(
                runs[loop_job(1, sources, runs.sample_sizes)], sources, one_queue=True
            )
            printed = apart().one(quantity=quantity).printed(str(sources))
            row = figures.row(quantity, (str(sources),), printed, relative=WITHIN_APART)
            section.rows.append(_unrounded(row, quantity))
    section.remarks = [
        "Published here are values of an independent simulation of every flow of Table 3 with the "
        "same rules, 16 replications of each. Its round trips leave out the wait for the source's "
        "own link, which ours have.",
    ]
    return section


def _unrounded(row: Row, quantity: str) -> Row:
    """Hold a level to its own digits: these were not rounded up as the paper's are."""
    if quantity not in SHARES or row.tolerance is None:
        return row
    return replace(row, tolerance=replace(row.tolerance, between=None))
