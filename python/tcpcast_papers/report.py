"""Report of a whole reproduction for the terminal, a page and JSON."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tcpcast.answer import finite_or_none
from tcpcast.report.document import BLANK_LINE, Code, Document, Heading, Paragraph, Table

from tcpcast_papers.claims import TITLE
from tcpcast_papers.page import (
    explained_difference_lines,
    new_difference_lines,
    section_columns,
    summary_text,
)
from tcpcast_papers.reproduction import Range, Verdict, section_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tcpcast.report.document import Column, Part

    from tcpcast_papers.reproduction import Cause, Row, Section


@dataclass(frozen=True, slots=True)
class KnownDifference:
    """Known difference of a row, or of several rows with the same reason.

    Parameters
    ----------
    section
        Name of the section (:func:`section_name`).
    label
        Label of the row; a cell ``*`` matches any text.
    reason
        Reason in a few words.
    """

    section: str
    label: tuple[str, ...]
    reason: str

    def covers(self, title: str, row: Row) -> bool:
        """Return True if this is the known difference of a row in the section with this title."""
        return (
            self.section == section_name(title)
            and len(self.label) == len(row.label)
            and all(cell in {"*", text} for cell, text in zip(self.label, row.label, strict=True))
        )


@dataclass(slots=True)
class Report:
    """Reproduction of a whole paper, with sections in the order of the paper.

    ``interrupted`` is true if only some sections
    were finished and no page was written. ``write_errors`` has a message for each file that could
    not be written, and ``commands`` the command that repeats each simulation with a written
    scenario.
    """

    title: str
    sections: list[Section]
    preface: list[str] = field(default_factory=list)
    known_differences: tuple[KnownDifference, ...] = ()
    page: Path | None = None
    interrupted: bool = False
    write_errors: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)

    @property
    def rows(self) -> Iterator[tuple[str, Row]]:
        """Every row with the title of its section."""
        return ((section.title, row) for section in self.sections for row in section.rows)

    @property
    def differing(self) -> list[tuple[str, Row]]:
        """Rows with an unexplained difference, known or new, with the titles of their sections."""
        return [(title, row) for title, row in self.rows if row.verdict is Verdict.DIFFERS]

    @property
    def new(self) -> list[tuple[str, Row]]:
        """The rows of ``differing`` whose difference is not known."""
        return [each for each in self.differing if self.reason(*each) is None]

    @property
    def gone(self) -> list[KnownDifference]:
        """The known differences whose rows no longer differ; none after an interruption.

        An unsettled row and one between two values count as different.
        """
        doubtful = {Verdict.DIFFERS, Verdict.UNSETTLED, Verdict.BETWEEN}
        there = [(title, row) for title, row in self.rows if row.verdict in doubtful]
        listed = () if self.interrupted else self.known_differences
        return [each for each in listed if not any(each.covers(*at) for at in there)]

    @property
    def explained_rows(self) -> list[tuple[str, Row]]:
        """Rows with a cause of their difference, with the titles of their sections."""
        return [(title, row) for title, row in self.rows if row.cause is not None]

    def reason(self, title: str, row: Row) -> str | None:
        """Return the reason of a known difference; or None for any other row."""
        if row.verdict is not Verdict.DIFFERS:
            return None
        return next((a.reason for a in self.known_differences if a.covers(title, row)), None)

    def count(self, verdict: Verdict, *, claims: bool = False) -> int:
        """Return the number of values with a verdict, or of the paper's statements."""
        return sum(row.verdict is verdict for title, row in self.rows if (title == TITLE) is claims)

    @property
    def has_only_known_differences(self) -> bool:
        """Whether there are no new differences, and no known ones are gone."""
        return not (self.new or self.gone)

    def parts(self) -> list[Part]:
        """Return the report for a terminal, with one table per section.

        The differences are repeated at the end of the long output, where a reader looks first:
        explained and known ones before the summary, new ones after it.
        """
        parts: list[Part] = [Paragraph(self.title, "heading"), BLANK_LINE]
        for section in self.sections:
            parts += [
                Paragraph(section.title, "heading"),
                *_section_parts(self, section),
                BLANK_LINE,
            ]
        for heading, rows in explained_difference_lines(self).items():
            parts += [Paragraph(heading), *(Paragraph(row, mark="  ") for row in rows), BLANK_LINE]
        return [*parts, *_summary_parts(self)]

    def document(self, again: str, figures: bool = False) -> Document:
        """Return the page of a reproduction: the verdict first, then each section.

        Parameters
        ----------
        again
            The command that makes the page.
        figures
            Whether the page contains figures.
        """
        parts: list[Part] = [*map(Paragraph, self.preface), *_summary_parts(self)]
        for heading, rows in explained_difference_lines(self).items():
            parts += [Paragraph(heading), *(Paragraph(row, mark="- ") for row in rows)]
        for section in self.sections:
            parts.append(Heading(section.title))
            if figures:
                parts += _figure_parts(section)
            parts += _section_parts(self, section)
        return Document(self.title, [*parts, Heading("Reproduce"), Code(again)])

    def to_json(self) -> dict[str, Any]:
        """Return the machine-readable report: every row with its published value and tcpcast's."""
        sections = [
            {
                "title": section.title,
                "columns": list(section.columns),
                "remarks": section.remarks,
                "figures": [str(drawn.path) for drawn in section.figures],
                "rows": [_row_json(self, section, row) for row in section.rows],
            }
            for section in self.sections
        ]
        gone = [
            {"section": a.section, "label": list(a.label), "reason": a.reason} for a in self.gone
        ]
        document: dict[str, Any] = {
            "title": self.title,
            "page": None if self.page is None else str(self.page),
            "sections": sections,
            "gone": gone,
        }
        if self.interrupted:
            document["incomplete_reason"] = "interrupted: these sections were finished"
        if self.write_errors:
            document["write_errors"] = self.write_errors
        return document


def _summary_parts(report: Report) -> Iterator[Part]:
    yield Paragraph(summary_text(report), "heading")
    yield from (Paragraph(line, "warning", "! ") for line in new_difference_lines(report))


def _section_parts(report: Report, section: Section) -> Iterator[Part]:
    if section.rows:
        new = {id(row) for _, row in report.new}
        loud = [at for at, row in enumerate(section.rows) if id(row) in new]
        shown = [_with_drop_order(section, column) for column in section_columns(section)]
        yield Table(shown, repeated_columns=len(section.columns), emphasized_rows=loud)
    yield from map(Paragraph, section.remarks)


def _with_drop_order(section: Section, column: Column) -> Column:
    """Return a column that wide tables may omit: notes first, then further values."""
    goes = ("note", *section.others)
    spare = goes.index(column.heading) + 1 if column.heading in goes else 0
    words = [word for cell in (column.heading, *column.cells) for word in cell.split()]
    widest = max(map(len, words), default=0)
    heading = column.heading
    if len(heading) > max(map(len, column.cells), default=0):
        heading = heading.replace(" ", "\n")
    least = 0 if column.right else widest
    return replace(column, heading=heading, drop_order=spare, min_width=least)


def _figure_parts(section: Section) -> Iterator[Part]:
    from tcpcast.report.figures import svg_figure  # noqa: PLC0415 - matplotlib is slow to import

    for drawn in section.figures:
        yield replace(svg_figure(drawn.path.stem, drawn.figure), caption=section.title)


def _row_json(report: Report, section: Section, row: Row) -> dict[str, Any]:
    others = section.others
    return {
        "label": list(row.label),
        "unit": row.unit,
        "published": None if row.published is None else finite_or_none(row.published.value),
        "claimed": row.published.text if isinstance(row.published, Range) else None,
        "value": finite_or_none(row.own),
        "low": finite_or_none(row.low),
        "high": finite_or_none(row.high),
        "difference": finite_or_none(row.difference),
        "verdict": row.verdict.value or None,
        "accepted": report.reason(section.title, row),
        "note": row.note or None,
        "explained_by": _cause_json(row.explained_by),
        "beside": dict(zip(others, map(finite_or_none, row.others), strict=True))
        if row.others
        else None,
        "withheld": [
            section_name for section_name, so in zip(others, row.withheld, strict=False) if so
        ]
        or None,
    }


def _cause_json(cause: Cause | None) -> dict[str, Any] | None:
    return None if cause is None else {"reason": cause.reason, "value": finite_or_none(cause.own)}
