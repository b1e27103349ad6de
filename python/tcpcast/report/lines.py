"""Styled lines and tables of text, for an answer that is to be there at once.

Importing rich takes as long as asking every formula of a path; these take nothing. They follow
the same rules as :mod:`tcpcast.report.terminal`: the terminal's width, 100 columns into a pipe,
``COLUMNS`` before either, no escapes with ``NO_COLOR`` or where nobody looks.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tcpcast.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Style = Literal["", "bold", "dim", "yellow"]

PIPE_WIDTH = 100
NARROWEST = 20
_ESCAPES = {"bold": "\033[1m", "dim": "\033[2m", "yellow": "\033[33m"}
_RESET = "\033[0m"
_GAP = "  "
_BAR = "|", r"\|"
"""What would end a cell of a Markdown table, and what stands for it."""


@dataclass(frozen=True, slots=True)
class Line:
    """A paragraph: what it says, how it looks, and what stands before its first line.

    What is ``fixed`` is a row of a table and never broken.
    """

    text: str = ""
    style: Style = ""
    mark: str = ""
    fixed: bool = False

    def laid_out(self, width: int) -> list[str]:
        """Return the lines that it takes on ``width`` columns, later ones below the first."""
        whole = self.mark + self.text
        if self.fixed or len(whole) <= width:
            return [whole]
        return textwrap.wrap(
            self.text,
            max(width, NARROWEST),
            initial_indent=self.mark,
            subsequent_indent=" " * len(self.mark),
            break_on_hyphens=False,
            break_long_words=False,  # a number that is cut is another number
        )


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: the lines of its heading, and its cells."""

    heading: str
    cells: Sequence[str]
    right: bool = True

    @property
    def width(self) -> int:
        """How wide it must be."""
        return max(map(len, [*self.heading.split("\n"), *self.cells]))


def table(columns: Sequence[Column]) -> list[Line]:
    """Return a table: headings that end above a rule, and a line a row."""
    heads = [column.heading.split("\n") for column in columns]
    height = max(map(len, heads))
    padded = [[""] * (height - len(head)) + head for head in heads]
    rule = "─" * (table_width(columns))
    rows = [*zip(*padded, strict=True), *zip(*(c.cells for c in columns), strict=True)]
    widths = [column.width for column in columns]  # once: a width looks at every cell
    lines = [Line(_row(columns, widths, row), fixed=True) for row in rows]
    return [*lines[:height], Line(rule, fixed=True), *lines[height:]]


def markdown_table(columns: Sequence[Column]) -> list[str]:
    """Return the same as Markdown, a line of its source each."""
    rows = [
        [column.heading for column in columns],
        ["---:" if column.right else "---" for column in columns],
        *zip(*(column.cells for column in columns), strict=True),
    ]
    return [f"| {' | '.join(cell.replace(*_BAR) for cell in row)} |" for row in rows]


def table_width(columns: Sequence[Column]) -> int:
    """Return how wide a table of these columns is."""
    return 2 + sum(column.width for column in columns) + len(_GAP) * (len(columns) - 1)


def stdout_width() -> int:
    """Return the columns that there are for what goes to standard output."""
    fallback = (shutil.get_terminal_size().columns if sys.stdout.isatty() else PIPE_WIDTH) or 80
    given = os.environ.get("COLUMNS", "")
    return int(given) if given.isdecimal() and int(given) > 0 else fallback


def print_lines(lines: Iterable[Line]) -> None:
    """Print lines to standard output, at its width and with its colours."""
    coloured = (
        sys.stdout.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM", "") not in {"dumb", "unknown"}
    )
    width = stdout_width()
    styled = getattr(sys.stdout, "styled", sys.stdout)
    for line in lines:
        for text in line.laid_out(width):
            shown = visible(text.rstrip())
            if coloured and line.style:
                shown = f"{_ESCAPES[line.style]}{shown}{_RESET}"
            print(shown, file=styled)


def _row(columns: Sequence[Column], widths: Sequence[int], cells: Sequence[str]) -> str:
    shown = (
        cell.rjust(width) if column.right else cell.ljust(width)
        for column, width, cell in zip(columns, widths, cells, strict=True)
    )
    return " " + _GAP.join(shown)
