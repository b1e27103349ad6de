"""Whole reports: a scenario's answers, or captures, with figures and what makes them again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast.report.document import Code, Column, Document, Heading, Paragraph, SideBySide, Table
from tcpcast.report.headline import run_verdict
from tcpcast.report.leading import leading
from tcpcast.report.run import answer_tables, origin, remarks, warned
from tcpcast.report.side_by_side import KINDS
from tcpcast.report.summary import describe
from tcpcast.report.trace import capture_parts
from tcpcast.report.verdict import verdict_parts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tcpcast.captures import Capture
    from tcpcast.compare import Compared
    from tcpcast.report.document import Part
    from tcpcast.scenario import Scenario

MOST_ROWS = 20
"""Directions that a table of a report has."""
MOST_FILES = 40
"""Captures that have a section of their own."""
MOST_DRAWN = 4
"""Directions that are drawn, over all captures; what is worst comes first."""


def run_document(
    compared: Compared, scenario: Scenario, again: str, figures: bool = False
) -> Document:
    """Return the report of a scenario's answers.

    Parameters
    ----------
    compared
        The answers, side by side.
    scenario
        What was asked.
    again
        The command that makes the report again.
    figures
        Whether figures are drawn, by matplotlib.
    """
    parts: list[Part] = [Paragraph(f"{describe(scenario)}.")]
    verdict = run_verdict(compared, scenario)
    parts += [Paragraph(verdict)] if verdict else []
    shown = answer_tables(compared, scenario, others="below")
    parts += [Heading("Answers"), *shown, *_told(compared, scenario)]
    if figures:
        parts += _run_figures(compared, scenario)
    parts += [
        *_every_value(compared, scenario),
        *_other_warnings(compared, scenario),
        Heading("The scenario"),
        Paragraph("Every key, with the defaults that were taken."),
        Code(scenario.to_toml()),
        *_provenance(compared),
        *_again(again),
    ]
    return Document(scenario.name, parts)


def captures_document(captures: Sequence[Capture], again: str, figures: bool = False) -> Document:
    """Return the report of captures: one verdict over all, then each.

    Parameters
    ----------
    captures
        At least one; figures of sequences need them read with ``trail_points``.
    again
        The command that makes the report again.
    figures
        Whether figures are drawn, by matplotlib.
    """
    several = f"{len(captures):,} captures" if len(captures) > 1 else captures[0].file
    parts: list[Part] = [*verdict_parts(captures, MOST_ROWS)]
    if figures:
        parts += _capture_figures(captures)
    if len(captures) > 1:
        parts.append(Heading("Each capture"))
    else:
        parts.append(Heading("In detail"))
    for capture in captures[:MOST_FILES]:
        parts += capture_parts(capture, most=MOST_ROWS)
    left = len(captures) - MOST_FILES
    if left > 0:
        parts.append(Paragraph(f"… and {left:,} more captures: in the verdict, without a section"))
    return Document(f"Why was it slow? {several}", [*parts, *_again(again)])


def _told(compared: Compared, scenario: Scenario) -> Iterator[Part]:
    said = list(remarks(compared, scenario, others="below"))
    if any(part.role == "warning" for part in said):
        yield Heading("What to check before trusting them")
    yield from said


def _every_value(compared: Compared, scenario: Scenario) -> Iterator[Part]:
    """Yield all values where the answers above are those that lead."""
    if len(leading(compared.overall, scenario).rows) == len(compared.overall.rows):
        return
    yield Heading("Every value")
    yield SideBySide(compared.overall)
    yield from (SideBySide(each, f"class {name}") for name, each in compared.classes.items())


def _other_warnings(compared: Compared, scenario: Scenario) -> Iterator[Part]:
    _, rest = warned(compared, scenario)
    if rest:
        yield Heading("More warnings")
        yield from rest


def _run_figures(compared: Compared, scenario: Scenario) -> Iterator[Part]:
    from tcpcast.report.figures import drawn, inline  # noqa: PLC0415 - matplotlib is slow to import

    shown = [inline(name, figure) for name, figure in drawn(compared.answers, scenario)]
    if shown:
        yield Heading("Figures")
        yield Paragraph(
            "Where both are drawn, lines are calculated and points are simulated. Bands and bars "
            "are 95 % intervals.",
            "aside",
        )
        yield from shown


def _capture_figures(captures: Sequence[Capture]) -> Iterator[Part]:
    from tcpcast.report.figures import inline  # noqa: PLC0415 - matplotlib is slow to import
    from tcpcast.report.trace_figures import worst_figures  # noqa: PLC0415

    shown = [inline(name, figure) for name, figure in worst_figures(captures, MOST_DRAWN)]
    if shown:
        yield Heading("The worst transfers, drawn")
        yield from shown


def _provenance(compared: Compared) -> Iterator[Part]:
    answered = [answer for answer in compared.answers if answer.applies]
    if not answered:
        return
    yield Heading("Where it comes from")
    versions = [f"tcpcast {answer.provenance.get('version', '')}".strip() for answer in answered]
    yield Table(
        [
            Column("engine", [answer.engine for answer in answered], right=False),
            Column("is", [KINDS[answer.kind] for answer in answered], right=False),
            Column("by", versions, right=False),
            Column("run with", [", ".join(origin(answer)) for answer in answered], right=False),
        ]
    )
    digests = {answer.provenance.get("scenario") for answer in answered} - {None}
    for digest in sorted(map(str, digests)):
        yield Paragraph(f"Scenario {digest}", "aside")


def _again(command: str) -> list[Part]:
    return [Heading("Make it again"), Code(command)]
