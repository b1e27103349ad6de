"""A report as Markdown: the same parts without the figures, for an issue, a wiki or a mail."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tcpcast.report.document import (
    Code,
    Figure,
    Heading,
    Paragraph,
    Share,
    SideBySide,
    Table,
)
from tcpcast.report.side_by_side import side_by_side_columns
from tcpcast.sanitize import escape_control_characters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tcpcast.report.document import Column, Document, Part

# An underscore within a word begins nothing, so that names of metrics stay as they are.
_MARKUP = re.compile(r"[\\`*\[\]<>|~&]|(?<!\w)_|_(?!\w)|^\s*(?:[#+-]|\d+[.)])(?=\s)")
_BAR = "|", r"\|"
"""What would end a cell, and what stands for it."""
_TICKS = re.compile("`+")


def markdown_page(document: Document, mark: str) -> str:
    """Return a report as Markdown; ``mark`` says who wrote it."""
    blocks = [mark, f"# {escaped(document.title)}", *markdown(document.parts)]
    return "\n\n".join(blocks) + "\n"


def markdown(parts: Iterable[Part]) -> Iterator[str]:
    """Yield a block of Markdown for each part that has a form in it; a figure has none."""
    for part in parts:
        match part:
            case Heading():
                yield f"{'#' * part.level} {escaped(part.text)}"
            case Paragraph() if part.text or part.lead:
                yield _paragraph(part)
            case Table():
                yield from _titled(part.title, part.all_columns)
            case SideBySide():
                yield from _titled("", side_by_side_columns(part.comparison, part.title))
            case Share():
                yield f"- {escaped(part.name)}: {100 * part.share:.0f} %"
            case Code():
                yield _fenced(escape_control_characters(part.text))
            case Paragraph() | Figure():
                pass


def markdown_table(columns: Sequence[Column]) -> list[str]:
    """Return columns, in which there may be markup, as a line of Markdown's source each."""
    return _rows(columns, lambda cell: cell.replace(*_BAR))


def escaped(text: str) -> str:
    """Return a text in which nothing is markup and nothing is hidden."""
    whole = escape_control_characters(text).replace("\n", " ")
    return _MARKUP.sub(lambda found: f"{found[0][:-1]}\\{found[0][-1]}", whole)


def _paragraph(part: Paragraph) -> str:
    lead = f"**{escaped(part.lead.rstrip())}** " if part.lead else ""
    mark = f"{escaped(part.mark.strip())} " if part.mark.strip() else ""
    said = f"{mark}{lead}{escaped(part.text)}"
    return f"**{said}**" if part.role == "heading" else said


def _titled(title: str, columns: Sequence[Column]) -> Iterator[str]:
    if title:
        yield f"**{escaped(title)}**"
    yield "\n".join(_rows(columns, escaped))


def _rows(columns: Sequence[Column], written: Callable[[str], str]) -> list[str]:
    """Return a table; ``written`` makes of a cell what stands in the source."""
    rows = [
        [written(column.heading) for column in columns],
        ["---:" if column.right else "---" for column in columns],
        *zip(*(map(written, column.cells) for column in columns), strict=True),
    ]
    return [f"| {' | '.join(row)} |" for row in rows]


def _fenced(text: str) -> str:
    """Return a text as code, between more ticks than it has in a row."""
    fence = "`" * (1 + max([2, *(len(ticks) for ticks in _TICKS.findall(text))]))
    return f"{fence}\n{text.rstrip()}\n{fence}"
