"""Where text goes: a console that respects the terminal's width and ``NO_COLOR``."""

from __future__ import annotations

import os
import sys
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TextIO

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from tcpcast.sanitize import escape_control_characters

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import ConsoleOptions, RenderableType

    from tcpcast.report.document import Column

PIPE_WIDTH = 100
"""Columns of a report that goes to a file or a pipe and was given no ``COLUMNS``."""


NARROWEST = 40
"""A terminal that claims fewer columns has longer lines to break, and no number broken."""

_ENDLESS = 10_000


class _Console(Console):
    """Shows nothing hidden, and cuts no number: a table is wider than the terminal before that."""

    def on_broken_pipe(self) -> NoReturn:
        """Leave it to the command line: rich itself would exit with 1."""
        raise BrokenPipeError

    def render_str(self, text: str, **how: Any) -> Text:
        """Return a text as rich shows it, with what is hidden written out."""
        return super().render_str(escape_control_characters(text), **how)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield the segments of what is shown."""
        room = options or self.options
        if isinstance(renderable, Table):
            room = self._room_for(renderable, room)
        for part in super().render(renderable, room):
            hides = part.control is None and escape_control_characters(part.text) != part.text
            yield Segment(escape_control_characters(part.text), part.style) if hides else part

    def _room_for(self, table: Table, options: ConsoleOptions) -> ConsoleOptions:
        """Return options with the width that columns need which are not to be wrapped."""
        endless = options.update(width=_ENDLESS)
        if not any(column.no_wrap for column in table.columns):
            return options
        for column in table.columns:
            cells = [Measurement.get(self, endless, c) for c in (column.header, *column.cells)]
            if column.no_wrap:
                column.min_width = max(cell.maximum for cell in cells)
            else:
                column.overflow = "fold"
        needed = Measurement.get(self, endless, table).minimum
        return options.update(width=needed) if needed > options.max_width else options


def console(stream: TextIO | None = None) -> Console:
    """Return a console on a stream (standard output unless told).

    ``NO_COLOR`` takes away bold and dim as well as colours: whoever sets it reads the report
    with something that does not want escapes. Untrusted figures carry a mark of their own.
    """
    target = stream if stream is not None else sys.stdout
    piped = not target.isatty() and "COLUMNS" not in os.environ
    found = _Console(
        # What the console writes is styled; what is hidden in its texts, it writes out itself.
        file=getattr(target, "styled", target),
        width=PIPE_WIDTH if piped else None,
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=False,
    )
    found.width = max(found.width, NARROWEST)
    return found


def table_of(columns: Sequence[Column], styles: Iterable[str] = ()) -> Table:
    """Return columns as a table that rich prints: texts may be broken over lines, figures not.

    ``styles`` are those of the rows, none where it is empty.
    """
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, collapse_padding=True)
    for column in columns:
        justify: Literal["left", "right"] = "right" if column.right else "left"
        table.add_column(Text(column.heading), justify=justify, no_wrap=column.right)
    rows = zip(*(column.cells for column in columns), strict=True)
    for cells, style in zip_longest(rows, styles):
        table.add_row(*cells, style=style)
    return table


def show(renderable: RenderableType) -> None:
    """Print to standard output, at its width and with its colours; no spaces end a file's lines."""
    out = console()
    if out.is_terminal:
        out.print(renderable, crop=False)
    else:
        print(plain(renderable, out.width))


def plain(renderable: RenderableType, width: int = PIPE_WIDTH) -> str:
    """Return what a renderable looks like without colours, ``width`` columns wide."""
    paper = _Console(
        width=width, color_system=None, force_terminal=False, highlight=False, markup=False
    )
    with paper.capture() as capture:
        paper.print(renderable, crop=False)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())
