"""Claims of a paper: each statement is a line of ``claims.csv``, tested on rows of the report.

A line has the columns below. A pattern selects rows by the cells of their labels, joined by " | ";
``*`` matches any text.

``runs``
    Reproductions in which the statement is tested: both, whole or quick.
``place``, ``statement``
    Place in the paper, and the statement.
``section``, ``rows``
    Name of the section, and pattern of the rows whose values are tested.
``of``
    Column of the tested values, such as a scheme; empty for the values of tcpcast.
``relative_to``
    Pattern of rows in the same section, by whose statistic the tested value is divided. Optional.
``measure``
    Statistic of the rows, a key of :data:`STATISTICS`.
``low``, ``high``
    Range in which the statement holds; an empty limit does not apply.
``range_reason``
    The reason for these limits.
``after``, ``cause``
    Pattern of rows that are computed after one change, and the name of this change, which explains
    a difference. Optional. Without a ``verdict``, the claim is listed as explained.
``verdict``, ``reason``
    Verdict other than "agrees", with its reason: "differs" for a known difference, "lies between"
    with a ``cause``; "paper inconsistent" and "cannot be settled" apply whatever the value is.
"""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING

from tcpcast.process.errors import DomainError, ScenarioError

from tcpcast_papers.printed import lines_of_runs
from tcpcast_papers.reproduction import Cause, Range, Row, Section, Tolerance, Verdict, section_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tcpcast_papers.printed import Line

_MAX_SUGGESTIONS = 3


@dataclass(slots=True)
class NamedRows:
    """Selection of the rows that a text names; remembers the names of all others.

    Parameters
    ----------
    text
        Section and cells, separated by commas.
    """

    text: str
    _sections: dict[str, None] = field(default_factory=dict)
    _rows: dict[str, None] = field(default_factory=dict)

    def has_section(self, title: str) -> bool:
        """Return whether the text names the section with this title."""
        self._sections[section_name(title)] = None
        words = _words(self.text)
        return _words(section_name(title)) <= words or not words.isdisjoint(_numbers(title))

    def has_row(self, section: Section, label: tuple[str, ...]) -> bool:
        """Return whether the text names the row with this label in a section that it names."""
        name = ", ".join((section_name(section.title), *label))
        self._rows[name] = None
        named = (f"{column} = {cell}" for column, cell in zip(section.columns, label, strict=True))
        known = _words(name, *label, *named) | _numbers(section.title)
        return _words(self.text) <= known

    def unknown(self) -> ScenarioError:
        """Return the error that no row has this name, with the nearest names."""
        words = _words(self.text)
        nearest = sorted(
            self._rows or self._sections,
            key=lambda name: (
                -len(words & _words(name)),
                -difflib.SequenceMatcher(None, _plain(self.text), _plain(name)).ratio(),
            ),
        )
        what = "cell" if self._rows else "section"
        names = "; ".join(nearest[:_MAX_SUGGESTIONS])
        return ScenarioError(f"no {what} '{self.text}'; the nearest names are: {names}")


@dataclass(frozen=True, slots=True)
class RowsOfClaims:
    """Selection of the rows on which claims are tested."""

    lines: tuple[Line, ...]

    def has_section(self, title: str) -> bool:
        """Return whether a claim is tested on rows of the section."""
        return any(line["section"] == section_name(title) for line in self.lines)

    def has_row(self, section: Section, label: tuple[str, ...]) -> bool:
        """Return whether a claim is tested on the row."""
        name = section_name(section.title)
        return any(is_tested_on(line, label) for line in self.lines if line["section"] == name)


def named_claims(rows: NamedRows, lines: Iterable[Line]) -> tuple[Line, ...]:
    """Return the claims that the text names."""
    if not rows.has_section(TITLE):
        return ()
    section = Section(TITLE, COLUMNS)
    return tuple(line for line in lines if rows.has_row(section, label(line)))


def _words(*texts: str) -> set[str]:
    """Return the parts of texts between commas."""
    return {_plain(word) for text in texts for word in text.split(",") if word.strip()}


def _numbers(title: str) -> set[str]:
    """Return the beginnings of a title that end with a full stop, such as ``Section 4.2``."""
    parts = title.split(".")
    return {_plain(".".join(parts[:count])) for count in range(1, len(parts))}


def _plain(text: str) -> str:
    return "".join(text.casefold().replace("–", "-").split())


FILE_NAME = "claims.csv"
TITLE = "Claims of the paper"
COLUMNS = ("place", "statement")
"""Cells of the label of a claim, and columns of its line."""
BETWEEN_LABELS = " | "
FIXED_VERDICTS = (Verdict.INCONSISTENT, Verdict.UNKNOWN)

STATISTICS: dict[str, Callable[[Sequence[float]], float]] = {
    "mean": fmean,
    "minimum": min,
    "maximum": max,
    "largest size": lambda values: max(map(abs, values)),
    "mean size": lambda values: fmean(map(abs, values)),
    "share above 0": lambda values: 100 * fmean(value > 0 for value in values),
    "last / first": lambda values: values[-1] / values[0],
    "rises": lambda values: 100 * fmean(b >= a for a, b in pairwise(values)),
}
"""Statistics of computed values. Shares of rows, and shares of increases from one row to the next,
are in %."""

_PERCENT_STATISTICS = ("share above 0", "rises")


def read(package: str, runs: str) -> tuple[Line, ...]:
    """Return the claims of a paper for whole or quick reproductions; () if it has none."""
    return lines_of_runs(package, FILE_NAME, runs)


def expected_verdict(line: Line) -> Verdict:
    """Return the expected verdict of a claim: explained, if its line has a cause but no verdict."""
    if line["verdict"]:
        return Verdict(line["verdict"])
    return Verdict.EXPLAINED if line["cause"] else Verdict.AGREES


def section(claims: Iterable[Line], sections: Sequence[Section]) -> Section:
    """Return a section with one row per claim, computed from the rows of other sections.

    Raises
    ------
    DomainError
        A pattern matches no row.
    """
    lines = list(claims)
    rows = [_claim_row(line, sections) for line in lines]
    remarks = [
        _range_remark(reason, lines)
        for reason in dict.fromkeys(line["range_reason"] for line in lines if line["range_reason"])
    ]
    return Section(TITLE, COLUMNS, rows, remarks=remarks)


def label(line: Line) -> tuple[str, ...]:
    """Return the label of a claim."""
    return tuple(line[column] for column in COLUMNS)


def is_tested_on(line: Line, row_label: tuple[str, ...]) -> bool:
    """Return whether a claim is tested on the row with this label, in the section of the claim."""
    name = BETWEEN_LABELS.join(row_label)
    return any(fnmatchcase(name, line[column]) for column in ("rows", "relative_to", "after"))


def _range_remark(reason: str, lines: Iterable[Line]) -> str:
    places = dict.fromkeys(line["place"] for line in lines if line["range_reason"] == reason)
    return f"Range of {', '.join(places)}: {reason}."


def _claim_row(line: Line, sections: Sequence[Section]) -> Row:
    verdict = expected_verdict(line)
    judged = verdict if verdict in FIXED_VERDICTS else None
    note = line["reason"]
    if not line["section"]:
        return Row(label(line), "", None, None, note=note, fixed_verdict=judged)
    there = _matching_rows(line, line["rows"], sections)
    base = 1.0
    if line["relative_to"]:
        bases = _matching_rows(line, line["relative_to"], sections)
        base = _statistic_of_claim(line, [row.own for row in bases])
    own = _statistic_of_claim(line, _values_of_rows(line, there, sections)) / base
    cause = None
    if line["after"]:
        changed = _matching_rows(line, line["after"], sections)
        cause = Cause(
            line["cause"],
            _statistic_of_claim(line, _values_of_rows(line, changed, sections)) / base,
        )
    single = len(there) == 1 and not line["relative_to"] and not line["of"]
    return Row(
        label(line),
        _unit_of_claim(line, there[0]),
        Range(float(line["low"] or -math.inf), float(line["high"] or math.inf)),
        own,
        low=there[0].low if single else None,
        high=there[0].high if single else None,
        missing_interval=there[0].missing_interval if single else None,
        tolerance=Tolerance(),
        note=note,
        explained_by=cause,
        fixed_verdict=judged,
    )


def _unit_of_claim(line: Line, row: Row) -> str:
    if line["measure"] in _PERCENT_STATISTICS:
        return "%"
    return "ratio" if line["relative_to"] or line["measure"] == "last / first" else row.unit


def _values_of_rows(
    line: Line, rows: Sequence[Row], sections: Sequence[Section]
) -> list[float | None]:
    if not line["of"]:
        return [row.own for row in rows]
    (names,) = {part.others for part in sections if section_name(part.title) == line["section"]}
    return [row.others[names.index(line["of"])] for row in rows]


def _statistic_of_claim(line: Line, values: Iterable[float | None]) -> float:
    finite = [value for value in values if value is not None and math.isfinite(value)]
    return STATISTICS[line["measure"]](finite) if finite else math.nan


def _matching_rows(line: Line, pattern: str, sections: Sequence[Section]) -> list[Row]:
    result = [
        row
        for part in sections
        if section_name(part.title) == line["section"]
        for row in part.rows
        if fnmatchcase(BETWEEN_LABELS.join(row.label), pattern)
    ]
    if not result:
        raise DomainError(f"{line['section']} has no row {pattern!r} for: {line['statement']}")
    return result
