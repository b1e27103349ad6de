"""Tables 3 to 6: the local loop, with and without a backbone router on the path."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from tcpcast_papers.fixed_point.measures import (
    GOODPUT_LEVELS,
    MAX_RTT_S,
    QUANTITY_LABELS,
    SettingAnswers,
    measure_quantity,
)
from tcpcast_papers.fixed_point.published import (
    BACKBONE_BUFFER_S,
    CONGESTED,
    POPULATIONS,
    TABLE_OF_CASE,
    independent_values,
    printed_cell,
    published_table,
)
from tcpcast_papers.fixed_point.runs import Job, fixed_point_job, reference_flows
from tcpcast_papers.fixed_point.settings import NOISES, LocalLoop
from tcpcast_papers.reproduction import Cause, Section, Tolerance

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tcpcast_papers.fixed_point.runs import Runs, SampleSizes
    from tcpcast_papers.printed import Line
    from tcpcast_papers.reproduction import Row

TOLERANCE = 0.05
VARIANCE_TOLERANCE = 0.1
INDEPENDENT_TOLERANCE = 0.03

SPREADS = {"1-1": (1, 1), "5-1": (5, 1), "5-5": (5, 5), "10-10": (10, 10)}
"""Standard deviations of burst and think time over their means, in the columns of Table 6."""
HEADS_IN_SERVICE = (
    "the reading that the first packet of each flow is in service and occupies no buffer, with the "
    "paper's scheme 2"
)
THRESHOLD_USERS = 5000
"""C I / B: the number of users whose demand equals the capacity of the link."""
FITTED_CASE_AND_USERS = (2, 2500)
"""Case and N of the RTT to which the time scale of the noise is fitted."""


def loop_job(case: int, sources: int, sample_sizes: SampleSizes) -> Job:
    """Return the simulation of a column of Table 3, 4 or 5."""
    return Job(LocalLoop(sources, noise=NOISES[case]), sample_sizes.checked)


def size_and_off_time_job(
    column: str, sample_sizes: SampleSizes, *, start: str = "equilibrium"
) -> Job:
    """Return the simulation of a column of Table 6."""
    size, think = SPREADS[column]
    setting = LocalLoop(THRESHOLD_USERS, size_spread=size, think_spread=think, start=start)
    length = sample_sizes.variance
    if start == "silent":
        length = replace(length, warmup_s=0.0)
    return Job(setting, length)


def request(runs: Runs) -> None:
    """Request every column, and simulations that may explain differences."""
    sample_sizes = runs.sample_sizes
    for case in TABLE_OF_CASE:
        for sources in POPULATIONS:
            runs.request(loop_job(case, sources, sample_sizes))
    for sources in CONGESTED:
        runs.request(_independent_job(sources, sample_sizes))
        runs.request(heads_in_service_job(sources, sample_sizes))
    for column in SPREADS:
        runs.request(size_and_off_time_job(column, sample_sizes))
        runs.request(size_and_off_time_job(column, sample_sizes, start="silent"))


def _independent_job(sources: int, sample_sizes: SampleSizes) -> Job:
    """Return a simulation with the rules of the independent one, which retransmits nothing."""
    job = loop_job(1, sources, sample_sizes)
    if sources not in CONGESTED:
        return job
    return replace(job, setting=LocalLoop(sources, rule="B, no retransmission"))


def loop_answers(runs: Runs, case: int, sources: int) -> SettingAnswers:
    """Return the answers for a column of Table 3, 4 or 5."""
    return SettingAnswers(
        runs[loop_job(case, sources, runs.sample_sizes)], sources, has_one_queue=case == 1
    )


def case_section(runs: Runs, _: Path | None = None, *, case: int) -> Section:
    """Return Table 3, 4 or 5: the local loop in one of its cases."""
    number = TABLE_OF_CASE[case]
    others = ("independent",) if case == 1 else ()
    section = runs.section(published_table(number).title, ("quantity", "N"), others=others)
    for line in published_table(number):
        for sources in POPULATIONS:
            label = (QUANTITY_LABELS[line["quantity"]][0], str(sources))
            compute = partial(_loop_row, runs, case, line["quantity"], sources)
            section.rows += runs.row(label, compute)
    section.remarks = list(_REMARKS[case])
    return section


def _loop_row(runs: Runs, case: int, quantity: str, sources: int) -> Row:
    column = str(sources)
    fitted = quantity == "rtt" and (case, sources) == FITTED_CASE_AND_USERS
    note = "fitted" * fitted
    if quantity == "rtt" and sources in CONGESTED:
        note = _MAX_RTT_NOTES[case]
    row = loop_answers(runs, case, sources).row(
        quantity,
        (column,),
        printed_cell(TABLE_OF_CASE[case], quantity, column),
        relative=None if fitted else TOLERANCE,
    )
    row = replace(row, note=note)
    if case == 1 and quantity == "rtt" and sources in CONGESTED:
        answer = reference_flows(runs[heads_in_service_job(sources, runs.sample_sizes)])
        rtt = measure_quantity("rtt", answer, sources)
        row = replace(row, explained_by=None if rtt is None else Cause(HEADS_IN_SERVICE, rtt.value))
    if case == 1:
        # Add the independent value to a row of Table 3.
        result = independent_values().lines_with(quantity=quantity)
        computed = result[0].value(column) if result else None
        row = replace(row, others=(*row.others, computed))
    return row


def heads_in_service_job(sources: int, sample_sizes: SampleSizes) -> Job:
    """Return the fixed point of scheme 2 in which first packets of flows occupy no buffer."""
    setting = LocalLoop(sources, head_of_line="in service")
    return fixed_point_job(Job(setting, sample_sizes.checked), sample_sizes, "2")


_MAX_RTT_NOTES = {
    1: f"at most {MAX_RTT_S:.3f} s if every packet occupies the buffer",
    2: f"at most {MAX_RTT_S:.3f} s plus the wait at the backbone router",
    3: f"at most {MAX_RTT_S + BACKBONE_BUFFER_S:.3f} s if every packet occupies a buffer",
}
"""Notes on the RTT in overload, by Little's law."""

_REMARKS = {
    1: [
        "N users share 100 Mbit/s by fair queueing. The column *own* is a simulation of every flow "
        "with rule B. A full buffer drops a packet of the longest queue (of a random one if "
        "several are longest). 95 % of the files have a goodput above g_95. The paper rounds these "
        "levels up to multiples of 10 kbit/s, so a value agrees if it is in the step of 10 kbit/s "
        "below the printed level, and a difference is measured from this step.",
        "The paper's RTTs at 7500 and 10000 users (1.77 and 2.21 s) are above the maximum by "
        "Little's law if every packet in the router occupies the buffer. The section on the head "
        "of the line describes the reading under which they are possible.",
        "Up to 5000 users there are no losses, and the rules of TCP do not matter. At 5000, the "
        "threshold, small differences of the load cause large differences of the queue: see the "
        "section on the threshold.",
    ],
    2: [
        "The path of each source has its own backbone router of 80 Mbit/s before the shared "
        "router. Its cross traffic has a mean of 80 % of its rate: fractional Gaussian noise with "
        "H = 0.7 and a standard deviation of half the mean, whose rates below 0 are cut. The paper "
        "does not state for how long the noise keeps a rate. The time of 100 ms is fitted to the "
        "RTT at 2500 users, which therefore has no verdict. The section on the time scale of the "
        "noise shows other times. The loss is the total of both routers.",
    ],
    3: [
        "The setting is that of Table 4, but the mean of the cross traffic is 100 % of the rate. "
        "While its buffer is full, packets of the source and of the cross traffic are lost equally "
        "often. The shared router loses no packets at 2500 users, and for more users its "
        "additional losses are close to the paper's. The backbone router loses several times as "
        "many packets as in the paper, and its queue is longer. The paper does not state the time "
        "scale of the noise; none that was tried gives its loss of 0.2 %, so the cause is not "
        "known.",
    ],
}


def _variance_section(runs: Runs, _: Path) -> Section:
    section = runs.section(
        published_table(6).title, ("quantity", "spread"), others=("fresh start",)
    )
    for line in published_table(6):
        for column in SPREADS:
            label = (QUANTITY_LABELS[line["quantity"]][0], column)
            section.rows += runs.row(label, _variance_row, runs, line, column)
    section.remarks = [
        "Columns contain the standard deviations of file size and think time, as multiples of "
        "those in Table 3. There are 5000 users, and the simulation starts in equilibrium, with "
        "residual think times.",
        "The paper prints losses of .03 and .08 % at 5-5 and 10-10; the simulation of every flow "
        f"loses no packets. *Fresh start* is a run of {runs.sample_sizes.variance.measured_s:g} "
        "s that starts with new think times, the default of most simulators. Many think times "
        "are short, so at first more users are active than the link can carry; with a spread of "
        "10 this lasts more than 10,000 s. The loss is far higher than in the paper. The run "
        "does not count as an explanation, because the start and the length of the paper's runs "
        "are unknown.",
    ]
    return section


def _variance_row(runs: Runs, line: Line, column: str) -> Row:
    own, fresh = (
        runs[size_and_off_time_job(column, runs.sample_sizes, start=start)]
        for start in ("equilibrium", "silent")
    )
    answers = SettingAnswers(own, THRESHOLD_USERS, others=(fresh,), has_one_queue=True)
    printed = line.printed(column)
    return answers.row(line["quantity"], (column,), printed, relative=VARIANCE_TOLERANCE)


def _independent_section(runs: Runs, _: Path) -> Section:
    section = runs.section("Independent values", ("quantity", "N"))
    for quantity in ("loss", "timeouts", "rtt", "goodput", *GOODPUT_LEVELS):
        for sources in POPULATIONS:
            label = (QUANTITY_LABELS[quantity][0], str(sources))
            section.rows += runs.row(label, _independent_row, runs, quantity, sources)
    section.remarks = [
        "Published values are from an independent simulator: 16 replications of Table 3 with every "
        "flow and the same rules, except that a timeout retransmits nothing. In overload, "
        "the column *own* also omits these retransmissions. The RTTs of the independent simulator "
        "exclude the wait at the link of the source; the RTTs in *own* include it.",
    ]
    return section


def _independent_row(runs: Runs, quantity: str, sources: int) -> Row:
    answers = SettingAnswers(
        runs[_independent_job(sources, runs.sample_sizes)], sources, has_one_queue=True
    )
    printed = independent_values().line_with(quantity=quantity).printed(str(sources))
    row = answers.row(quantity, (str(sources),), printed, relative=INDEPENDENT_TOLERANCE)
    # Unlike the paper's, these goodput levels are not rounded up.
    nearest = Tolerance(relative=INDEPENDENT_TOLERANCE, printed_digits=True)
    return row if row.tolerance is None else replace(row, tolerance=nearest)


SECTIONS: tuple[Callable[[Runs, Path], Section], ...] = (
    *(partial(case_section, case=case) for case in TABLE_OF_CASE),
    _variance_section,
    _independent_section,
)
