"""A report as lines of text for a terminal, with its width and colours.

This module does not import rich, because the import takes longer than all formulas of ``predict``.
The width is ``COLUMNS``, or else that
of the terminal, or else 96 columns. With ``NO_COLOR`` or without a terminal, the output contains
no escape sequences.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Literal
from unicodedata import east_asian_width

from tcpcast.process.sanitize import escape_control_characters
from tcpcast.report.document import (
    ARROW,
    BLANK_LINE,
    Code,
    Column,
    Figure,
    Heading,
    Paragraph,
    ShareBar,
    SideBySide,
    Table,
)
from tcpcast.report.quantity import difference_text, is_absent_or_untrusted_text, scale_for_row
from tcpcast.report.side_by_side import (
    engines_with_intervals,
    interval_cell,
    row_name,
    side_by_side_columns,
    value_or_mark_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tcpcast.comparison.compare import Comparison
    from tcpcast.report.document import Part, Role

    Style = Literal["", "bold", "dim", "yellow"]
    Span = tuple[str, Style]

PIPE_WIDTH = 96
"""Width in columns of output to a file or a pipe, unless ``COLUMNS`` is set."""
MIN_WIDTH = 20
MAX_BAR_WIDTH = 32
"""Length in characters of a bar for a share of 1."""
MIN_BAR_WIDTH = 8
"""Minimum space in characters for a bar; with less space, only the number is printed."""
BAR_CHARACTERS = " ▏▎▍▌▋▊▉█"
_STYLES: dict[Role, Style] = {"heading": "bold", "aside": "dim", "warning": "yellow"}
_ESCAPES = {"bold": "\033[1m", "dim": "\033[2m", "yellow": "\033[33m"}
_RESET_ESCAPE = "\033[0m"
_COLUMN_GAP = "  "


@dataclass(frozen=True, slots=True)
class Line:
    """A line of output: texts with styles."""

    spans: tuple[Span, ...]

    @property
    def text(self) -> str:
        """The line without styles."""
        return "".join(text for text, _ in self.spans).rstrip()

    @property
    def styled(self) -> str:
        """The line with escape sequences for the styles."""
        return "".join(
            f"{_ESCAPES[style]}{text}{_RESET_ESCAPE}" if style and text else text
            for text, style in self.spans
        ).rstrip()


def layout_lines(parts: Iterable[Part], width: int) -> Iterator[Line]:
    """Yield parts as lines of at most ``width`` columns, if possible; numbers are not split."""
    for part in parts:
        match part:
            case Paragraph():
                yield from _paragraph_lines(part, width)
            case Heading():
                yield from (
                    *_paragraph_lines(BLANK_LINE, width),
                    *_paragraph_lines(Paragraph(part.text, "heading"), width),
                )
            case Table():
                yield from _table_lines(part, width)
            case SideBySide():
                yield from _comparison_table_or_list(part, width)
            case ShareBar():
                mark, name = (
                    escape_control_characters(part.mark),
                    escape_control_characters(part.name),
                )
                text = f"{mark}{name:<18}{100 * part.share:4.0f} %"
                length = min(width - len(text) - len(_COLUMN_GAP), MAX_BAR_WIDTH)
                yield _styled_line(
                    text
                    if length < MIN_BAR_WIDTH
                    else text + _COLUMN_GAP + bar_text(part.share, length)
                )
            case Code():
                yield from (
                    _styled_line(f"  {line}")
                    for line in escape_control_characters(part.text).splitlines()
                )
            case Figure():
                yield from _paragraph_lines(Paragraph(part.caption, "aside"), width)


def plain_text(parts: Iterable[Part], width: int = PIPE_WIDTH) -> str:
    """Return parts without colours, ``width`` columns wide."""
    return "\n".join(line.text for line in layout_lines(parts, width))


def stdout_width() -> int:
    """Return the width of standard output in columns."""
    fallback = (shutil.get_terminal_size().columns if sys.stdout.isatty() else PIPE_WIDTH) or 80
    given = os.environ.get("COLUMNS", "")
    return int(given) if given.isdecimal() and int(given) > 0 else fallback


def print_parts(parts: Iterable[Part]) -> None:
    """Print parts to standard output with its width and colours."""
    coloured = (
        sys.stdout.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM", "") not in {"dumb", "unknown"}
    )
    styled = getattr(sys.stdout, "styled", sys.stdout)
    for line in layout_lines(parts, stdout_width()):
        print(line.styled if coloured else line.text, file=styled)


def table_width(columns: Sequence[Column]) -> int:
    """Return the width of a table of these columns."""
    return _total_width([column_width(column) for column in columns])


def column_width(column: Column) -> int:
    """Return the width of a table's column in terminal columns."""
    return max(map(_terminal_width_of_text, _column_lines(column)))


def bar_text(share: float, length: int = MAX_BAR_WIDTH) -> str:
    """Return a bar that fills a share of ``length`` characters, rounded to an eighth character."""
    eighths = round(8 * length * share)
    return (BAR_CHARACTERS[8] * (eighths // 8) + BAR_CHARACTERS[eighths % 8]).rstrip()


def _styled_line(shown: str, style: Style = "") -> Line:
    return Line(((shown, style),))


def _paragraph_lines(part: Paragraph, width: int) -> Iterator[Line]:
    """Yield the lines of a paragraph, aligned with the text after the mark."""
    style = _STYLES.get(part.role, "")
    mark, lead = (
        escape_control_characters(part.mark),
        escape_control_characters(part.lead),
    )
    whole = lead + escape_control_characters(part.text).replace("\n", " ")
    room = max(width - part.right_margin, MIN_WIDTH)
    lines = [mark + whole]
    if len(lines[0]) > room:
        lines = textwrap.wrap(
            whole.replace(" %", "\u00a0%"),  # no line break between a number and its unit
            room,
            initial_indent=mark,
            subsequent_indent=" " * len(mark),
            break_on_hyphens=False,
            break_long_words=False,  # a split number would be read as a different number
        )
    for index, shown in enumerate(line.replace("\u00a0%", " %") for line in lines):
        head = len(mark + lead) if index == 0 and shown.startswith(mark + lead) else 0
        leading: Style = "bold" if lead else style
        yield Line(((shown[:head], leading), (shown[head:], style)))


def _table_lines(part: Table, width: int) -> Iterator[Line]:
    if part.title:
        yield _styled_line(escape_control_characters(part.title), "bold")
    columns = _fitting_columns(part, width)
    repeated = min(part.repeated_columns, len(columns) - 1)
    first, rest = columns[:repeated], columns[repeated:]
    while rest:
        count = len(rest)
        while count > 1 and _min_table_width([*first, *rest[:count]]) > width:
            count -= 1
        shown = [*first, *rest[:count]]
        yield from _grid_lines(shown, width, part.emphasized_rows, balanced=not part.ends)
        rest = rest[count:]
        if rest:
            yield _styled_line("")


def _fitting_columns(part: Table, width: int) -> list[Column]:
    """Return the columns of a table without the optional columns that do not fit."""
    columns = list(part.columns)
    if not part.ends:
        return _drop_columns(columns, width)
    ends = part.all_columns[0]
    if table_width([ends, *columns]) > width:  # source and destination on two lines
        two_lines = [f"{source}{ARROW}".rstrip() for source, _ in part.ends]
        room = max(
            map(_terminal_width_of_text, (ends.heading, *two_lines, *(to for _, to in part.ends)))
        )
        ends = replace(ends, min_width=room)
    return _drop_columns([ends, *columns], width)


def _drop_columns(columns: list[Column], width: int) -> list[Column]:
    """Drop columns with a ``drop_order`` until the table fits with wrapped cells."""
    for order in sorted({column.drop_order for column in columns} - {0}):
        if _min_table_width(columns) <= width:
            break
        columns = [column for column in columns if column.drop_order != order]
    return columns


def _min_table_width(columns: Sequence[Column]) -> int:
    """Return the minimum width of a table whose text columns wrap."""
    return _total_width([min(w, c.min_width or w) for c in columns for w in [column_width(c)]])


def _wrapped_widths(
    columns: Sequence[Column], widths: list[int], width: int | None, *, balanced: bool
) -> list[int]:
    """Return column widths; the widest text columns are narrowed until the table fits.

    With ``balanced``, they are narrowed to equal widths. Otherwise, the widest column is first
    narrowed to its minimum width, so that for example addresses take two lines.
    """
    result = list(widths)
    excess = 0 if width is None else _total_width(widths) - width
    headings = [
        max(map(_terminal_width_of_text, escape_control_characters(c.heading).split("\n")))
        for c in columns
    ]
    for minima in ([column.min_width for column in columns], [1] * len(columns)):
        floors = [max(pair) for pair in zip(minima, headings, strict=True)]
        while excess > 0:
            wide = [i for i, c in enumerate(columns) if c.min_width and result[i] > floors[i]]
            if not wide:
                break
            widest = max(wide, key=result.__getitem__)
            level = floors[widest]
            if balanced:
                others = (result[i] for i in wide if i != widest)
                level = min(result[widest] - 1, max([level, *others]))
            cut = min(excess, result[widest] - level)
            result[widest], excess = result[widest] - cut, excess - cut
    return result


def _grid_lines(
    columns: Sequence[Column],
    width: int | None = None,
    emphasized: Sequence[int] = (),
    *,
    balanced: bool = True,
) -> Iterator[Line]:
    """Yield a table: bottom-aligned headings, a rule, and the rows."""
    all_lines = [_column_lines(column) for column in columns]
    full_widths = [max(map(_terminal_width_of_text, lines)) for lines in all_lines]
    widths = _wrapped_widths(columns, full_widths, width, balanced=balanced)
    heights = [column.heading.count("\n") + 1 for column in columns]
    bodies = [
        [_wrapped_cell(cell, room) for cell in lines[own:]]
        for lines, own, room in zip(all_lines, heights, widths, strict=True)
    ]
    widths = [
        max(map(_terminal_width_of_text, [*lines[:own], *(line for cell in body for line in cell)]))
        for lines, own, body in zip(all_lines, heights, bodies, strict=True)
    ]
    height = max(heights)
    for index in range(height):
        heads = [
            lines[index - height + own] if index >= height - own else ""
            for lines, own in zip(all_lines, heights, strict=True)
        ]
        yield _row_line(columns, widths, heads, heading=True)
    yield _styled_line("─" * _total_width(widths))
    for index, wrapped in enumerate(zip(*bodies, strict=True)):
        for cells in zip_longest(*wrapped, fillvalue=""):
            yield _row_line(columns, widths, cells, style="yellow" if index in emphasized else "")


def _wrapped_cell(cell: str, width: int) -> list[str]:
    """Return the lines of a cell; words, numbers and addresses are not split."""
    if _terminal_width_of_text(cell) <= width:
        return [cell]
    lines = textwrap.wrap(
        cell.replace(" %", "\u00a0%"), width, break_on_hyphens=False, break_long_words=False
    )
    return [line.replace("\u00a0%", " %") for line in lines]


def _total_width(widths: Sequence[int]) -> int:
    """Return the width of a table with columns of these widths."""
    return 2 + sum(widths) + len(_COLUMN_GAP) * (len(widths) - 1)


def _column_lines(column: Column) -> list[str]:
    """Return the lines of a column's heading and its cells, with control characters escaped."""
    heading = escape_control_characters(column.heading).split("\n")
    return [
        *heading,
        *(escape_control_characters(cell).replace("\n", " ") for cell in column.cells),
    ]


def _row_line(
    columns: Sequence[Column],
    widths: Sequence[int],
    cells: Sequence[str],
    *,
    heading: bool = False,
    style: Style = "",
) -> Line:
    spans: list[Span] = [(" ", "")]
    for index, (column, width, cell) in enumerate(zip(columns, widths, cells, strict=True)):
        own: Style = "bold" if heading else "dim" if is_absent_or_untrusted_text(cell) else style
        padding = " " * (width - _terminal_width_of_text(cell))
        gap = _COLUMN_GAP if index else ""
        before, after = (gap + padding, "") if column.right else (gap, padding)
        spans += [(before, ""), (cell, own), (after, "")]
    return Line(tuple(spans))


def _terminal_width_of_text(shown: str) -> int:
    """Return the width of a text in terminal columns; wide East Asian characters count as two."""
    if shown.isascii():
        return len(shown)
    return len(shown) + sum(east_asian_width(letter) in "WF" for letter in shown)


def _comparison_table_or_list(part: SideBySide, width: int) -> Iterator[Line]:
    """Yield a table if it fits, otherwise a list with one heading per metric."""
    columns = side_by_side_columns(part.comparison, part.title)
    if table_width(columns) <= width:
        yield from _grid_lines(columns)
        return
    if part.title:
        yield _styled_line(escape_control_characters(part.title), "bold")
    yield from _comparison_lines(part.comparison, width)
    if engines_with_intervals(part.comparison):
        yield _styled_line("± and low–high: 95 % interval", "dim")


def _comparison_lines(comparison: Comparison, width: int) -> Iterator[Line]:
    blocks = []
    for row in comparison.rows:
        scale = scale_for_row(row)
        unit = f" ({scale.unit})" if scale.unit else ""
        rows = [
            (
                f"  {engine}",
                value_or_mark_text(figure, scale),
                interval_cell(figure, scale),
                difference,
            )
            for engine, figure, difference in zip(
                comparison.engines, row.metrics, map(difference_text, row.differences), strict=True
            )
            if figure is not None
        ]
        blocks.append((row_name(row) + unit, rows))
    widths = _list_widths(row for _, rows in blocks for row in rows)
    narrow = sum(widths) + 3 * len(_COLUMN_GAP) > width
    for name, rows in blocks:
        yield _styled_line(escape_control_characters(name), "bold")
        if narrow:
            widths = _list_widths(rows)
        # In a narrow table, intervals and differences share a column: few rows have both.
        shared = widths[2] + len(_COLUMN_GAP) + widths[3]
        room = min(shared, width - widths[0] - widths[1] - 2 * len(_COLUMN_GAP))
        for engine, value, bounds, difference in rows:
            end = difference and _COLUMN_GAP + difference
            yield Line(
                (
                    (engine.ljust(widths[0]) + _COLUMN_GAP + " " * (widths[1] - len(value)), ""),
                    (value, "dim" if is_absent_or_untrusted_text(value) else ""),
                    (_COLUMN_GAP + bounds + end.rjust(room - len(bounds)), ""),
                )
            )


def _list_widths(rows: Iterable[tuple[str, ...]]) -> list[int]:
    """Return the widths of the four columns of a list."""
    return [max(map(len, cells)) for cells in zip(*rows, strict=True)] or [0] * 4
