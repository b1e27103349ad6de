"""A reproduction as parts of a report: what the command prints, and a page with its figures."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tcpcast.papers.page import changed, columns, differing, summary
from tcpcast.report.document import BLANK, Code, Document, Heading, Paragraph, Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcpcast.papers.reproduction import Report, Section
    from tcpcast.report.document import Column, Part

_LEAST = 8
"""Characters of a text that stand on a line of a table at the least."""


def reproduction_parts(report: Report) -> list[Part]:
    """Return what ``tcpcast reproduce`` prints, a table a section.

    What differs is told once more at the end, where one looks first after hundreds of rows: with
    a reason before the summary, without one after it.
    """
    parts: list[Part] = [Paragraph(report.title, "heading"), BLANK]
    for section in report.sections:
        parts += [Paragraph(section.title, "heading"), *_section(report, section), BLANK]
    for heading, rows in differing(report).items():
        parts += [Paragraph(heading), *(Paragraph(row, mark="  ") for row in rows), BLANK]
    return [*parts, *_verdict(report)]


def reproduction_document(report: Report, again: str, figures: bool = False) -> Document:
    """Return the page of a reproduction: the verdict first, then each section with its figures.

    Parameters
    ----------
    report
        The reproduction.
    again
        The command that makes the page again.
    figures
        Whether figures are in it.
    """
    parts: list[Part] = [*map(Paragraph, report.preface), *_verdict(report)]
    for heading, rows in differing(report).items():
        parts += [Paragraph(heading), *(Paragraph(row, mark="- ") for row in rows)]
    for section in report.sections:
        parts.append(Heading(section.title))
        if figures:
            parts += _figures(section)
        parts += _section(report, section)
    return Document(report.title, [*parts, Heading("Make it again"), Code(again)])


def _verdict(report: Report) -> Iterator[Part]:
    yield Paragraph(summary(report), "heading")
    yield from (Paragraph(line, "warning", "! ") for line in changed(report))


def _section(report: Report, section: Section) -> Iterator[Part]:
    if section.rows:
        new = {id(row) for _, row in report.new}
        loud = [at for at, row in enumerate(section.rows) if id(row) in new]
        shown = [_spared(section, column) for column in columns(section)]
        yield Table(shown, repeated=len(section.columns), loud=loud)
    yield from map(Paragraph, section.remarks)


def _spared(section: Section, column: Column) -> Column:
    """Return a column as it is where it is too wide: notes go first, then what stands beside."""
    goes = ("note", *section.beside)
    spare = goes.index(column.heading) + 1 if column.heading in goes else 0
    return replace(column, spare=spare, least=0 if column.right else _LEAST)


def _figures(section: Section) -> Iterator[Part]:
    from tcpcast.report.figures import inline  # noqa: PLC0415 - matplotlib is slow to import

    for drawn in section.figures:
        yield replace(inline(drawn.path.stem, drawn.figure), caption=section.title)
