"""A report as a list of parts, independent of the output format.

:mod:`tcpcast.report.text` lays out the parts for a terminal; :mod:`tcpcast.report.markdown` and
:mod:`tcpcast.report.html` write files. Parts hold unescaped texts: each output format escapes
markup and control characters itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpcast.comparison.compare import Comparison

Role = Literal["", "heading", "aside", "warning"]

ARROW = " > "
"""Separator between source and destination of a direction."""


@dataclass(frozen=True, slots=True)
class Heading:
    """The heading of a section; level 2 is below the title of the report."""

    text: str
    level: int = 2


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A text, with ``role`` as its style.

    ``mark`` precedes the first line; the other lines are indented to align with the text. ``lead``
    is an emphasized beginning. ``right_margin`` is the number of terminal columns left free at the
    right. A paragraph without text is a blank line, which Markdown and HTML omit.
    """

    text: str = ""
    role: Role = ""
    mark: str = ""
    lead: str = ""
    right_margin: int = 0


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its heading, which may have several lines, and its cells.

    If a table is too wide, columns with a nonzero ``drop_order`` are omitted, starting with 1. If
    ``min_width`` is set, a terminal wraps the cells between words, and places the column next to
    the others if at least this many characters fit.
    """

    heading: str
    cells: Sequence[str]
    right: bool = True
    drop_order: int = 0
    min_width: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """Columns with the same number of cells.

    ``ends`` holds source and destination of each row; a narrow terminal shows them on two lines. If
    the terminal is still too narrow, the remaining columns follow below, after a repetition of the
    first ``repeated_columns`` columns. ``emphasized_rows`` lists rows to highlight.
    """

    columns: Sequence[Column]
    title: str = ""
    ends: Sequence[tuple[str, str]] = ()
    repeated_columns: int = 1
    emphasized_rows: Sequence[int] = ()

    @property
    def all_columns(self) -> list[Column]:
        """The columns, preceded by a column with source and destination of each row."""
        if not self.ends:
            return list(self.columns)
        ends = Column("from > to", [endpoints_text(*pair) for pair in self.ends], right=False)
        return [ends, *self.columns]


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Answers side by side: one row per metric, one column per engine, and their differences."""

    comparison: Comparison
    title: str = ""


@dataclass(frozen=True, slots=True)
class ShareBar:
    """A share (0 to 1), drawn as a bar."""

    name: str
    share: float
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing as SVG, with its caption; ``is_wide`` is True for several panels side by side."""

    svg: str
    caption: str
    is_wide: bool = False


@dataclass(frozen=True, slots=True)
class Code:
    """A command to type, or the text of a file."""

    text: str


Part = Heading | Paragraph | Table | SideBySide | ShareBar | Figure | Code


@dataclass(frozen=True, slots=True)
class Document:
    """A complete report."""

    title: str
    parts: Sequence[Part]


BLANK_LINE = Paragraph()


def endpoints_text(source: str, destination: str) -> str:
    """Return ``source > destination``, or only the source if the destination is empty."""
    return source + (ARROW + destination if destination else "")


def command_parts(command: str) -> list[Part]:
    """Return the section with the command that reproduces a report."""
    return [Heading("Reproduce this report"), Code(command)]
