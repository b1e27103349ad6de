"""Tables 1 and 2: 24 bulk flows, individual and shared buffers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcpcast.answer import Answer

from tcpcast_papers.fixed_point.measures import Figures, failed, missing
from tcpcast_papers.fixed_point.published import table
from tcpcast_papers.fixed_point.runs import Job, fixed_points, request_fixed_points
from tcpcast_papers.fixed_point.settings import FTP_FLOWS, Ftp
from tcpcast_papers.fixed_point.tables import SCHEME_COLUMNS, by_scheme
from tcpcast_papers.reproduction import Section

if TYPE_CHECKING:
    from pathlib import Path

    from tcpcast_papers.fixed_point.runs import SampleSizes, Runs

_NOTHING = Answer("packet")

WITHIN = 0.1
NEWRENO = "rfc-newreno"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of Table 1 or 2.

    Attributes
    ----------
    name
        As printed.
    words
        What it is.
    setting
        What every flow does that is to be the same.
    others
        Other readings of what the paper leaves open, by name.
    checked
        Whether the two are the same TCP, as far as the paper says.
    """

    name: str
    words: str
    setting: Ftp
    others: tuple[tuple[str, Ftp], ...]
    checked: bool


def _individual(pkts: int) -> list[Column]:
    ns2, own = Ftp("individual", pkts, NEWRENO), Ftp("individual", pkts)
    simpler = ("rule C", Ftp("individual", pkts, rule="C"))
    return [
        Column(f"NSWI-{pkts}", "ns-2, individual", ns2, (), checked=False),
        Column(f"FPWI-{pkts}", "fixed point, individual", own, (simpler,), checked=True),
    ]


def _shared(pkts: int) -> list[Column]:
    ns2, own = Ftp("fifo", pkts, NEWRENO), Ftp("shared", pkts)
    others = (
        ("rule C", Ftp("shared", pkts, rule="C")),
        ("dropping what arrives", Ftp("shared", pkts, drop="arriving")),
        ("rule C, dropping what arrives", Ftp("shared", pkts, rule="C", drop="arriving")),
    )
    return [
        Column(f"NSFS-{pkts}", "ns-2, FIFO", ns2, (), checked=False),
        Column(f"FPWS-{pkts}", "fixed point, shared", own, others, checked=True),
    ]


COLUMNS: dict[int, tuple[Column, ...]] = {
    1: (*_individual(5), *_individual(10)),
    2: (*_shared(150), *_shared(300)),
}
"""The columns of each table."""


def request(runs: Runs) -> None:
    """Ask for every column, its other readings, and its fixed point."""
    for column in (each for columns in COLUMNS.values() for each in columns):
        for setting in (column.setting, *(other for _, other in column.others)):
            runs.request(_job(setting, runs.sample_sizes))
        if column.checked:
            request_fixed_points(runs, _job(column.setting, runs.sample_sizes))


def _job(setting: Ftp, sample_sizes: SampleSizes) -> Job:
    return Job(setting, sample_sizes.ftp)


def sections(runs: Runs, _: Path) -> list[Section]:
    """Return Tables 1 and 2."""
    return [_section(number, runs) for number in COLUMNS]


def _section(number: int, runs: Runs) -> Section:
    readings = [name for name, _ in COLUMNS[number][1].others]
    section = Section(
        table(number).title,
        ("quantity", "column", "of"),
        others=(*SCHEME_COLUMNS, *readings),
    )
    figures = {column.name: _figures(column, len(readings), runs) for column in COLUMNS[number]}
    for line in table(number):
        for column in COLUMNS[number]:
            row = figures[column.name].row(
                line["quantity"],
                (column.name, column.words),
                line.printed(column.name),
                relative=WITHIN if column.checked else None,
            )
            section.rows.append(row)
    answers = [each for f in figures.values() for each in f.others]
    section.remarks = [*_REMARKS, *_MORE[number], *failed(by_scheme(figures)), *missing(*answers)]
    return section


def _figures(column: Column, readings: int, runs: Runs) -> Figures:
    exact = runs[_job(column.setting, runs.sample_sizes)]
    if not column.checked:
        return Figures(exact, FTP_FLOWS, others=(_NOTHING,) * (len(SCHEME_COLUMNS) + readings))
    job = _job(column.setting, runs.sample_sizes)
    fixed = fixed_points(runs, job).values()
    others = [runs[_job(setting, runs.sample_sizes)] for _, setting in column.others]
    return Figures(exact, FTP_FLOWS, others=(*fixed, *others))


_REMARKS = [
    "24 bulk flows share 100 packets/s over 11 ms of propagation, from starts spread over 20 s. "
    "Beside the paper's ns-2 stands NewReno that finds losses by duplicate acks: which TCP ns-2 "
    "ran, and with which window, it does not say, so these rows have no verdict. Beside its fixed "
    "point stands every flow by the paper's own TCP, rule B, which hears of each loss at once.",
]

_MORE = {
    1: [
        "With a buffer of its own each flow is alone in it: all of them do the same, shifted in "
        "time, and the figures are those of a saw-tooth. 24 x 4 / 100 = 0.96 s is a mean window of "
        "four packets. The paper's fixed point has a shorter round trip at 5 packets, .85 s, than "
        "its ns-2, which is nearer to this; no rule that was tried gives it.",
    ],
    2: [
        "With a shared buffer of 150 packets RTTs of every flow are those of a buffer that is "
        "nearly always full, at 100 packets/s. One of 300 is so with rule C; rule B has timeouts "
        "there, which the paper has not, and is less full for a while after each. The paper's "
        "fixed point has shorter RTTs than any reading of the rules, as if its flows lost packets "
        "together and the buffer then ran half empty. Some reading comes near each of the two "
        "losses, not the same one for both buffers, so none of them is an explanation.",
    ],
}
