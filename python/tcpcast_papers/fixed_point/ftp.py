"""Tables 1 and 2: 24 bulk flows, individual and shared buffers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

from tcpcast_papers.fixed_point import implied_loss
from tcpcast_papers.fixed_point.measures import (
    QUANTITY_LABELS,
    SettingAnswers,
    failed_test_remarks,
)
from tcpcast_papers.fixed_point.published import published_table
from tcpcast_papers.fixed_point.runs import (
    PAGE_SCHEMES,
    Job,
    fixed_point_answers,
    fixed_point_job,
)
from tcpcast_papers.fixed_point.settings import FTP_FLOWS, Ftp
from tcpcast_papers.reproduction import Section, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tcpcast.answer import Answer

    from tcpcast_papers.fixed_point.runs import Runs, SampleSizes
    from tcpcast_papers.printed import Line
    from tcpcast_papers.reproduction import Row

RELATIVE_TOLERANCE = 0.1
SCHEME_COLUMNS = tuple(f"scheme {scheme}" for scheme in PAGE_SCHEMES)
NEWRENO = "rfc-newreno"
HEADS_IN_SERVICE = "first packets in service"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of Table 1 or 2.

    Attributes
    ----------
    name
        Name as printed.
    description
        Description.
    setting
        Setting of every flow for this column.
    others
        Names and settings of other interpretations of the paper.
    checked
        Whether the setting uses the paper's TCP, as far as it is described.
    """

    name: str
    description: str
    setting: Ftp
    others: tuple[tuple[str, Ftp], ...]
    checked: bool


def _individual_buffer_columns(pkts: int) -> list[Column]:
    ns2, own = Ftp("individual", pkts, NEWRENO), Ftp("individual", pkts)
    others = (
        ("rule C", Ftp("individual", pkts, rule="C")),
        (HEADS_IN_SERVICE, Ftp("individual", pkts, head_of_line="in service")),
    )
    return [
        Column(f"NSWI-{pkts}", "ns-2, individual", ns2, (), checked=False),
        Column(f"FPWI-{pkts}", "fixed point, individual", own, others, checked=True),
    ]


def _shared_buffer_columns(pkts: int) -> list[Column]:
    ns2, own = Ftp("fifo", pkts, NEWRENO), Ftp("shared", pkts)
    others = (
        ("rule C", Ftp("shared", pkts, rule="C")),
        ("dropping the arriving packet", Ftp("shared", pkts, drop="arriving")),
        ("rule C, dropping the arriving packet", Ftp("shared", pkts, rule="C", drop="arriving")),
        (HEADS_IN_SERVICE, Ftp("shared", pkts, head_of_line="in service")),
    )
    return [
        Column(f"NSFS-{pkts}", "ns-2, FIFO", ns2, (), checked=False),
        Column(f"FPWS-{pkts}", "fixed point, shared", own, others, checked=True),
    ]


COLUMNS: dict[int, tuple[Column, ...]] = {
    1: (*_individual_buffer_columns(5), *_individual_buffer_columns(10)),
    2: (*_shared_buffer_columns(150), *_shared_buffer_columns(300)),
}
"""The columns of each table."""


def request(runs: Runs) -> None:
    """Request every column, its other interpretations and its fixed point."""
    for column in (each for columns in COLUMNS.values() for each in columns):
        for setting in (column.setting, *(other for _, other in column.others)):
            runs.request(ftp_job(setting, runs.sample_sizes))
        if column.checked:
            for scheme in PAGE_SCHEMES:
                job = ftp_job(column.setting, runs.sample_sizes)
                runs.request(fixed_point_job(job, runs.sample_sizes, scheme))


def ftp_job(setting: Ftp, sample_sizes: SampleSizes) -> Job:
    """Return the simulation of a setting of Table 1 or 2."""
    return Job(setting, sample_sizes.ftp)


def _ftp_table_section(runs: Runs, _: Path, *, number: int) -> Section:
    others = (*SCHEME_COLUMNS, *(name for name, _ in COLUMNS[number][1].others))
    title = published_table(number).title
    section = runs.section(title, ("quantity", "column", "of"), others)
    for line, column in product(published_table(number), COLUMNS[number]):
        label = (QUANTITY_LABELS[line["quantity"]][0], column.name, column.description)
        section.rows += runs.row(label, _row, runs, number, line, column)
    figures = {
        column.name: _answers_of_column(column, runs)
        for column in COLUMNS[number]
        if column.checked
    }
    section.remarks = [
        *_REMARKS,
        *_REMARKS_OF_TABLE[number],
        *failed_test_remarks(group_fixed_points_by_scheme(figures)),
    ]
    return section


def _row(runs: Runs, number: int, line: Line, column: Column) -> Row:
    row = _answers_of_column(column, runs).row(
        line["quantity"],
        (column.name, column.description),
        line.printed(column.name),
        relative=RELATIVE_TOLERANCE if column.checked else None,
    )
    if not column.checked:
        others = len(SCHEME_COLUMNS) + len(COLUMNS[number][1].others)
        return replace(row, others=(None,) * others)
    wrong = (
        implied_loss.contradiction_text(number, column.name) if line["quantity"] == "loss" else ""
    )
    return replace(row, fixed_verdict=Verdict.INCONSISTENT, note=wrong) if wrong else row


def _answers_of_column(column: Column, runs: Runs) -> SettingAnswers:
    exact = runs[ftp_job(column.setting, runs.sample_sizes)]
    if not column.checked:
        return SettingAnswers(exact, FTP_FLOWS)
    job = ftp_job(column.setting, runs.sample_sizes)
    fixed = fixed_point_answers(runs, job).values()
    others = [runs[ftp_job(setting, runs.sample_sizes)] for _, setting in column.others]
    return SettingAnswers(exact, FTP_FLOWS, others=(*fixed, *others))


def group_fixed_points_by_scheme(
    figures: Mapping[str, SettingAnswers],
) -> dict[str, dict[str, Answer]]:
    """Return the fixed points among the further answers, by scheme and by setting."""
    return {
        name.capitalize(): {where: each.others[index] for where, each in figures.items()}
        for index, name in enumerate(SCHEME_COLUMNS)
        if all(index < len(each.others) for each in figures.values())
    }


_REMARKS = [
    "24 bulk flows share a link of 100 packets/s; the propagation RTT is 11 ms, and starts are "
    "spread over 20 s. The paper does not state the TCP or the window of its ns-2 simulation. The "
    "ns-2 columns are compared, without a verdict, with a NewReno that detects losses by duplicate "
    "acks. The columns of the fixed point are compared with a simulation of every flow that uses "
    "rule B of the paper's TCP, which has instantaneous loss feedback.",
]

_REMARKS_OF_TABLE = {
    1: [
        "With individual buffers each flow is alone in its buffer. The windows of all flows have "
        "the same saw-tooth, shifted in time. An RTT of 24 x 4 / 100 = 0.96 s corresponds to a "
        "mean window of four packets. With a buffer of 5 packets the paper's fixed point has an "
        "RTT of .85 s. The RTT of its ns-2 simulation is longer and closer to this result. None of "
        "the simulated rules gives .85 s.",
    ],
    2: [
        "With a shared buffer of 150 packets, the simulated RTTs show that the buffer is nearly "
        "always full. With 300 packets this is also true for rule C. Rule B then has timeouts, "
        "unlike the paper, and the buffer is less full for a while after each timeout. The RTTs of "
        "the paper's fixed point are shorter than with any of the simulated rules, as if the flows "
        "lost packets simultaneously and left the buffer half empty. For each buffer, some rule "
        "gives a loss close to the printed one, but no rule does so for both buffers, so the rules "
        "do not explain the difference.",
    ],
}


SECTIONS = tuple(partial(_ftp_table_section, number=number) for number in COLUMNS)
