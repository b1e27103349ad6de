"""Cells of a reproduction by name: rows that a text such as ``Table 6, N = 82, rate`` selects.

The name of a row consists of the name of its section and the cells of its label, separated by
commas. A text selects all rows whose names contain its words: the section, and any of the cells, as
``82`` or as ``N = 82``. Case, spaces and the kind of dash do not matter.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tcpcast.errors import ScenarioError

from tcpcast_papers import claims
from tcpcast_papers.reproduction import Section, section_name

if TYPE_CHECKING:
    from collections.abc import Iterable

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
        return any(
            claims.is_tested_on(line, label) for line in self.lines if line["section"] == name
        )


def named_claims(rows: NamedRows, lines: Iterable[Line]) -> tuple[Line, ...]:
    """Return the claims that the text names."""
    if not rows.has_section(claims.TITLE):
        return ()
    section = Section(claims.TITLE, claims.COLUMNS)
    return tuple(line for line in lines if rows.has_row(section, claims.label(line)))


def _words(*texts: str) -> set[str]:
    """Return the parts of texts between commas."""
    return {_plain(word) for text in texts for word in text.split(",") if word.strip()}


def _numbers(title: str) -> set[str]:
    """Return the beginnings of a title that end with a full stop, such as ``Section 4.2``."""
    parts = title.split(".")
    return {_plain(".".join(parts[:count])) for count in range(1, len(parts))}


def _plain(text: str) -> str:
    return "".join(text.casefold().replace("–", "-").split())
