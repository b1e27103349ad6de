"""A report as a tree of parts without a form; text, Markdown and HTML are made of the same tree.

:mod:`tcpcast.report.text` lays it out for a terminal, :mod:`tcpcast.report.markdown` and
:mod:`tcpcast.report.html` write files. Parts hold texts as they are: what is hidden in a name or
would be markup is written out by each form.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpcast.compare import Comparison

Role = Literal["", "heading", "aside", "warning"]

ARROW = " > "
"""Between the ends of a direction."""


@dataclass(frozen=True, slots=True)
class Heading:
    """The heading of a section; level 2 is below the title of the report."""

    text: str
    level: int = 2


@dataclass(frozen=True, slots=True)
class Paragraph:
    """What it says, what it is for, and what stands before it.

    ``mark`` stands before its first line, the others begin below the text; ``lead`` are words that
    it begins with and that stand out. ``margin`` columns of a terminal stay free at the right. One
    without text is a blank line, which Markdown and HTML leave out.
    """

    text: str = ""
    role: Role = ""
    mark: str = ""
    lead: str = ""
    margin: int = 0


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: the lines of its heading, and its cells.

    ``narrow`` are shorter cells for a narrow terminal. Where a table is too wide, the columns with
    a ``spare`` are left out, those of 1 first. On a terminal, a column goes to the
    right of others as soon as ``least`` of its characters fit, and its cells are broken over lines.
    """

    heading: str
    cells: Sequence[str]
    right: bool = True
    spare: int = 0
    narrow: Sequence[str] | None = None
    least: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of equally many cells.

    ``ends`` are source and destination of each row, of which a terminal shows at least
    ``least_ends`` characters. Where a terminal is too narrow, the columns go on below and the first
    ``repeated`` are there again. ``loud`` rows stand out.
    """

    columns: Sequence[Column]
    title: str = ""
    ends: Sequence[tuple[str, str]] = ()
    least_ends: int = 25
    repeated: int = 1
    loud: Sequence[int] = ()

    @property
    def all_columns(self) -> list[Column]:
        """The columns, with both ends of each row in a first one."""
        if not self.ends:
            return list(self.columns)
        ends = Column("from > to", [ends_text(*pair) for pair in self.ends], right=False)
        return [ends, *self.columns]


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Answers side by side: a row a metric, a column an engine, intervals and differences."""

    comparison: Comparison
    title: str = ""


@dataclass(frozen=True, slots=True)
class Share:
    """A share of a whole, drawn as a bar."""

    name: str
    share: float
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing as SVG, with the text that stands for it where there is none."""

    svg: str
    caption: str


@dataclass(frozen=True, slots=True)
class Code:
    """A command to type, or the text of a file."""

    text: str


Part = Heading | Paragraph | Table | SideBySide | Share | Figure | Code


@dataclass(frozen=True, slots=True)
class Document:
    """A whole report: its title and its parts in order."""

    title: str
    parts: Sequence[Part]


BLANK = Paragraph()


def ends_text(source: str, destination: str) -> str:
    """Return both ends of a direction in one cell; the first alone where there is no second."""
    return source + (ARROW + destination if destination else "")
