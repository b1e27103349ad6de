"""A report on a terminal: parts as lines of text, at its width and with its colours.

Nothing here imports rich, which takes as long as asking every formula of a path. Like
:mod:`tcpcast.report.terminal`: the terminal's width, 100 columns into a pipe, ``COLUMNS`` before
either, no escapes with ``NO_COLOR`` or where nobody looks.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Literal
from unicodedata import east_asian_width

from tcpcast.report.document import (
    ARROW,
    BLANK,
    Code,
    Column,
    Figure,
    Heading,
    Paragraph,
    Share,
    SideBySide,
    Table,
    ends_text,
)
from tcpcast.report.quantity import ABSENT, UNTRUSTED, difference_text, row_scale
from tcpcast.report.side_by_side import (
    bearing_intervals,
    interval,
    marked_value,
    row_name,
    side_by_side_columns,
)
from tcpcast.sanitize import escape_control_characters

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tcpcast.compare import Comparison
    from tcpcast.report.document import Part, Role

    Style = Literal["", "bold", "dim", "yellow"]
    Span = tuple[str, Style]

PIPE_WIDTH = 100
NARROWEST = 20
WIDE = 110
"""From this width on cells are written in full."""
NARROWEST_END = 9
BAR = 32
"""Characters of a share of all."""
SHORTEST_BAR = 8
"""A terminal with less room for a share of all has none."""
EIGHTHS = " ▏▎▍▌▋▊▉█"
_STYLES: dict[Role, Style] = {"heading": "bold", "aside": "dim", "warning": "yellow"}
_ESCAPES = {"bold": "\033[1m", "dim": "\033[2m", "yellow": "\033[33m"}
_RESET = "\033[0m"
_GAP = "  "


@dataclass(frozen=True, slots=True)
class Line:
    """A line as it is printed: texts, each in a style."""

    spans: tuple[Span, ...]

    @property
    def text(self) -> str:
        """What it says."""
        return "".join(text for text, _ in self.spans).rstrip()

    @property
    def styled(self) -> str:
        """The same with the escapes of its styles."""
        return "".join(
            f"{_ESCAPES[style]}{text}{_RESET}" if style and text else text
            for text, style in self.spans
        ).rstrip()


def laid_out(parts: Iterable[Part], width: int) -> Iterator[Line]:
    """Yield the lines that parts take on ``width`` columns; no number is broken."""
    for part in parts:
        match part:
            case Paragraph():
                yield from _paragraph(part, width)
            case Heading():
                yield from (*_paragraph(BLANK, width), *_paragraph(_of_heading(part), width))
            case Table():
                yield from _table(part, width)
            case SideBySide():
                yield from _side_by_side(part, width)
            case Share():
                yield _line(_share(part, width))
            case Code():
                yield from (
                    _line(f"  {line}") for line in escape_control_characters(part.text).splitlines()
                )
            case Figure():
                yield from _paragraph(Paragraph(part.caption, "aside"), width)


def text(parts: Iterable[Part], width: int = PIPE_WIDTH) -> str:
    """Return parts without colours, ``width`` columns wide."""
    return "\n".join(line.text for line in laid_out(parts, width))


def stdout_width() -> int:
    """Return the columns that there are for what goes to standard output."""
    fallback = (shutil.get_terminal_size().columns if sys.stdout.isatty() else PIPE_WIDTH) or 80
    given = os.environ.get("COLUMNS", "")
    return int(given) if given.isdecimal() and int(given) > 0 else fallback


def print_parts(parts: Iterable[Part]) -> None:
    """Print parts to standard output, at its width and with its colours."""
    coloured = (
        sys.stdout.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM", "") not in {"dumb", "unknown"}
    )
    styled = getattr(sys.stdout, "styled", sys.stdout)
    for line in laid_out(parts, stdout_width()):
        print(line.styled if coloured else line.text, file=styled)


def table_width(columns: Sequence[Column]) -> int:
    """Return how wide a table of these columns is."""
    return _width_of([column_width(column) for column in columns])


def column_width(column: Column) -> int:
    """Return how many columns of a terminal a column of a table takes."""
    return max(map(_columns_of, _seen(column)))


def bar(share: float, length: int = BAR) -> str:
    """Return a bar as long as a share of ``length`` characters, to the eighth."""
    eighths = round(8 * length * share)
    return (EIGHTHS[8] * (eighths // 8) + EIGHTHS[eighths % 8]).rstrip()


def both_ends(source: str, destination: str, room: int) -> str:
    """Return both ends; what does not fit loses its beginning: they differ at the end."""
    whole = ends_text(source, destination)
    if len(whole) <= room or not destination:
        return whole
    each = max((room - len(ARROW)) // 2, NARROWEST_END)
    spare = max(each - min(len(source), len(destination)), 0)
    return ARROW.join(
        end if len(end) <= each + spare else f"…{end[1 - each - spare :]}"
        for end in (source, destination)
    )


def _line(shown: str, style: Style = "") -> Line:
    return Line(((shown, style),))


def _of_heading(part: Heading) -> Paragraph:
    return Paragraph(part.text, "heading")


def _paragraph(part: Paragraph, width: int) -> Iterator[Line]:
    """Yield a paragraph, later lines below the first one's text."""
    style = _STYLES.get(part.role, "")
    mark, lead = escape_control_characters(part.mark), escape_control_characters(part.lead)
    whole = lead + escape_control_characters(part.text).replace("\n", " ")
    room = max(width - part.margin, NARROWEST)
    lines = [mark + whole]
    if len(lines[0]) > room:
        lines = textwrap.wrap(
            whole.replace(" %", "\u00a0%"),  # a number stays with its unit
            room,
            initial_indent=mark,
            subsequent_indent=" " * len(mark),
            break_on_hyphens=False,
            break_long_words=False,  # a number that is cut is another number
        )
    for at, found in enumerate(line.replace("\u00a0%", " %") for line in lines):
        head = len(mark + lead) if at == 0 and found.startswith(mark + lead) else 0
        leading: Style = "bold" if lead else style
        yield Line(((found[:head], leading), (found[head:], style)))


def _share(part: Share, width: int) -> str:
    """Return a share as a number and, where there is room, as a bar."""
    said = f"{escape_control_characters(part.mark)}{escape_control_characters(part.name):<18}{100 * part.share:4.0f} %"
    length = min(width - len(said) - len(_GAP), BAR)
    return said if length < SHORTEST_BAR else said + _GAP + bar(part.share, length)


def _table(part: Table, width: int) -> Iterator[Line]:
    if part.title:
        yield _line(escape_control_characters(part.title), "bold")
    columns = _fitting(part, width)
    repeated = min(part.repeated, len(columns) - 1)
    first, rest = columns[:repeated], columns[repeated:]
    while rest:
        count = len(rest)
        while count > 1 and _least_width([*first, *rest[:count]]) > width:
            count -= 1
        yield from _grid([*first, *rest[:count]], width, part.loud)
        rest = rest[count:]
        if rest:
            yield _line("")


def _fitting(part: Table, width: int) -> list[Column]:
    """Return the columns as they are shown: short cells, some left out, ends that fit."""
    columns = [
        Column(c.heading, c.narrow, c.right, c.spare) if c.narrow and width < WIDE else c
        for c in part.columns
    ]
    if not part.ends:
        return _without_spare(columns, width)
    need = min(max(len(ends_text(*pair)) for pair in part.ends), part.least_ends)
    for spare in sorted({column.spare for column in columns} - {0}):
        if table_width(columns) <= width - need - 2:
            break
        columns = [column for column in columns if column.spare != spare]
    room = width - table_width([Column("", [""], right=False), *columns])
    cells = [both_ends(*pair, room) for pair in part.ends]
    return [Column(ARROW.join(("from", "to")), cells, right=False), *columns]


def _without_spare(columns: list[Column], width: int) -> list[Column]:
    """Return the columns that fit, as far as some may be left out."""
    for spare in sorted({column.spare for column in columns} - {0}):
        if table_width(columns) <= width:
            break
        columns = [column for column in columns if column.spare != spare]
    return columns


def _least_width(columns: Sequence[Column]) -> int:
    """Return how wide a table is at the least, with cells broken that may be."""
    widths = [max(map(_columns_of, _seen(column))) for column in columns]
    return _width_of([min(w, column.least or w) for column, w in zip(columns, widths, strict=True)])


def _broken(columns: Sequence[Column], widths: list[int], width: int | None) -> list[int]:
    """Return the widths of columns, the widest that may be broken as narrow as they have to be."""
    found = list(widths)
    over = 0 if width is None else _width_of(widths) - width
    headings = [
        max(map(_columns_of, escape_control_characters(c.heading).split("\n"))) for c in columns
    ]
    for least in ([column.least for column in columns], [1] * len(columns)):
        floors = [max(pair) for pair in zip(least, headings, strict=True)]
        while over > 0:
            may = [at for at, c in enumerate(columns) if c.least and found[at] > floors[at]]
            if not may:
                break
            at = max(may, key=found.__getitem__)
            less = min(over, found[at] - floors[at])
            found[at], over = found[at] - less, over - less
    return found


def _grid(
    columns: Sequence[Column], width: int | None = None, loud: Sequence[int] = ()
) -> Iterator[Line]:
    """Yield a table: headings that end above a rule, and a line a row."""
    seen = [_seen(column) for column in columns]
    widths = _broken(columns, [max(map(_columns_of, cells)) for cells in seen], width)
    heights = [column.heading.count("\n") + 1 for column in columns]
    height = max(heights)
    for at in range(height):
        heads = [
            cells[at - height + own] if at >= height - own else ""
            for cells, own in zip(seen, heights, strict=True)
        ]
        yield _row(columns, widths, heads, heading=True)
    yield _line("─" * _width_of(widths))
    bodies = [cells[own:] for cells, own in zip(seen, heights, strict=True)]
    for at, row in enumerate(zip(*bodies, strict=True)):
        lines = [
            textwrap.wrap(cell, room, break_on_hyphens=False)
            if _columns_of(cell) > room
            else [cell]
            for cell, room in zip(row, widths, strict=True)
        ]
        for cells in zip_longest(*lines, fillvalue=""):
            yield _row(columns, widths, cells, style="yellow" if at in loud else "")


def _width_of(widths: Sequence[int]) -> int:
    """Return how wide a line of a table with columns of these widths is."""
    return 2 + sum(widths) + len(_GAP) * (len(widths) - 1)


def _seen(column: Column) -> list[str]:
    """Return the lines of a column's heading, then its cells, with nothing hidden in them."""
    heading = escape_control_characters(column.heading).split("\n")
    return [
        *heading,
        *(escape_control_characters(cell).replace("\n", " ") for cell in column.cells),
    ]


def _row(
    columns: Sequence[Column],
    widths: Sequence[int],
    cells: Sequence[str],
    *,
    heading: bool = False,
    style: Style = "",
) -> Line:
    spans: list[Span] = [(" ", "")]
    for at, (column, width, cell) in enumerate(zip(columns, widths, cells, strict=True)):
        own: Style = "bold" if heading else "dim" if _is_marked(cell) else style
        spare = " " * (width - _columns_of(cell))
        gap = _GAP if at else ""
        before, after = (gap + spare, "") if column.right else (gap, spare)
        spans += [(before, ""), (cell, own), (after, "")]
    return Line(tuple(spans))


def _is_marked(cell: str) -> bool:
    return cell == ABSENT or cell.endswith(UNTRUSTED)


def _columns_of(shown: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if shown.isascii():
        return len(shown)
    return len(shown) + sum(east_asian_width(letter) in "WF" for letter in shown)


def _side_by_side(part: SideBySide, width: int) -> Iterator[Line]:
    """Yield the table if it fits, and if not a list: a heading a metric, its engines beneath."""
    columns = side_by_side_columns(part.comparison, part.title)
    if table_width(columns) <= width:
        yield from _grid(columns)
        return
    if part.title:
        yield _line(escape_control_characters(part.title), "bold")
    yield from _list(part.comparison, width)
    if bearing_intervals(part.comparison):
        yield _line("± and low–high: 95 % interval", "dim")


def _list(comparison: Comparison, width: int) -> Iterator[Line]:
    blocks = []
    for row in comparison.rows:
        scale = row_scale(row)
        unit = f" ({scale.unit})" if scale.unit else ""
        rows = [
            (f"  {engine}", marked_value(figure, scale), interval(figure, scale), apart)
            for engine, figure, apart in zip(
                comparison.engines, row.metrics, map(difference_text, row.differences), strict=True
            )
            if figure is not None
        ]
        blocks.append((row_name(row) + unit, rows))
    widths = _list_widths(row for _, rows in blocks for row in rows)
    narrow = sum(widths) + 3 * len(_GAP) > width
    for name, rows in blocks:
        yield _line(escape_control_characters(name), "bold")
        if narrow:
            widths = _list_widths(rows)
        # Few have both an interval and a difference: they share their columns where room is short.
        shared = widths[2] + len(_GAP) + widths[3]
        room = min(shared, width - widths[0] - widths[1] - 2 * len(_GAP))
        for engine, value, bounds, apart in rows:
            end = apart and _GAP + apart
            yield Line(
                (
                    (engine.ljust(widths[0]) + _GAP + " " * (widths[1] - len(value)), ""),
                    (value, "dim" if _is_marked(value) else ""),
                    (_GAP + bounds + end.rjust(room - len(bounds)), ""),
                )
            )


def _list_widths(rows: Iterable[tuple[str, ...]]) -> list[int]:
    """Return the width of each of the four columns of a list."""
    return [max(map(len, cells)) for cells in zip(*rows, strict=True)] or [0] * 4
