"""A report as Markdown without figures, for an issue, a wiki or an e-mail."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tcpcast.process.sanitize import escape_control_characters
from tcpcast.report.document import (
    Code,
    Figure,
    Heading,
    Paragraph,
    ShareBar,
    SideBySide,
    Table,
)
from tcpcast.report.side_by_side import side_by_side_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tcpcast.report.document import Column, Document, Part

# An underscore within a word is not markup, so names of metrics are not escaped.
_MARKUP_PATTERN = re.compile(r"[\\`*\[\]<>|~&]|(?<!\w)_|_(?!\w)|^\s*(?:[#+-]|\d+[.)])(?=\s)")
_CELL_SEPARATOR = "|", r"\|"
"""The cell separator and its escaped form."""
_BACKTICKS = re.compile("`+")


def markdown_page(document: Document, mark: str) -> str:
    """Return a report as Markdown; ``mark`` identifies it as written by tcpcast."""
    blocks = [mark, f"# {escape_markdown(document.title)}", *markdown_blocks(document.parts)]
    return "\n\n".join(blocks) + "\n"


def markdown_blocks(parts: Iterable[Part]) -> Iterator[str]:
    """Yield one block of Markdown per part; figures and blank lines are omitted."""
    for part in parts:
        match part:
            case Heading():
                yield f"{'#' * part.level} {escape_markdown(part.text)}"
            case Paragraph() if part.text or part.lead:
                lead = f"**{escape_markdown(part.lead.rstrip())}** " if part.lead else ""
                mark = f"{escape_markdown(part.mark.strip())} " if part.mark.strip() else ""
                content = f"{mark}{lead}{escape_markdown(part.text)}"
                yield (f"**{content}**" if part.role == "heading" else content)
            case Table():
                yield from _titled_table_lines(part.title, part.all_columns)
            case SideBySide():
                yield from _titled_table_lines(
                    "", side_by_side_columns(part.comparison, part.title)
                )
            case ShareBar():
                yield f"- {escape_markdown(part.name)}: {100 * part.share:.0f} %"
            case Code():
                # A text as a code block; the fence is longer than any sequence of backticks
                # inside.
                text = escape_control_characters(part.text)
                fence = "`" * (1 + max([2, *(len(ticks) for ticks in _BACKTICKS.findall(text))]))
                yield f"{fence}\n{text.rstrip()}\n{fence}"
            case Paragraph() | Figure():
                pass


def markdown_table(columns: Sequence[Column]) -> list[str]:
    """Return a table as lines of Markdown; the cells may contain markup."""
    return _markdown_rows(columns, lambda cell: cell.replace(*_CELL_SEPARATOR))


def escape_markdown(text: str) -> str:
    """Return a text on one line with markup and control characters escaped."""
    whole = escape_control_characters(text).replace("\n", " ")
    return _MARKUP_PATTERN.sub(lambda match: f"{match[0][:-1]}\\{match[0][-1]}", whole)


def _titled_table_lines(title: str, columns: Sequence[Column]) -> Iterator[str]:
    if title:
        yield f"**{escape_markdown(title)}**"
    yield "\n".join(_markdown_rows(columns, escape_markdown))


def _markdown_rows(columns: Sequence[Column], escape: Callable[[str], str]) -> list[str]:
    """Return a table as lines of Markdown; ``escape`` is applied to each cell."""
    rows = [
        [escape(column.heading) for column in columns],
        ["---:" if column.right else "---" for column in columns],
        *zip(*(map(escape, column.cells) for column in columns), strict=True),
    ]
    return [f"| {' | '.join(row)} |" for row in rows]
