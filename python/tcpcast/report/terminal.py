"""Consoles of rich that respect the terminal's width and ``NO_COLOR``."""

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
"""Width in columns of output to a file or a pipe, unless ``COLUMNS`` is set."""


MIN_WIDTH = 40
"""Minimum width in columns; a narrower terminal wraps the lines, but no number is split."""

_UNLIMITED_WIDTH = 10_000


class _Console(Console):
    """Escapes control characters and never truncates numbers; a table may exceed the width."""

    def on_broken_pipe(self) -> NoReturn:
        """Raise, because rich would exit with status 1."""
        raise BrokenPipeError

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a text as rendered by rich, with control characters escaped."""
        return super().render_str(escape_control_characters(text), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield the rendered segments, with control characters escaped."""
        fitted = options or self.options
        if isinstance(renderable, Table):
            fitted = self._options_for(renderable, fitted)
        for part in super().render(renderable, fitted):
            hides = part.control is None and escape_control_characters(part.text) != part.text
            yield Segment(escape_control_characters(part.text), part.style) if hides else part

    def _options_for(self, table: Table, options: ConsoleOptions) -> ConsoleOptions:
        """Return options with at least the width of the columns that must not wrap."""
        unlimited = options.update(width=_UNLIMITED_WIDTH)
        if not any(column.no_wrap for column in table.columns):
            return options
        for column in table.columns:
            cells = [Measurement.get(self, unlimited, c) for c in (column.header, *column.cells)]
            if column.no_wrap:
                column.min_width = max(cell.maximum for cell in cells)
            else:
                column.overflow = "fold"
        needed = Measurement.get(self, unlimited, table).minimum
        return options.update(width=needed) if needed > options.max_width else options


def console(stream: TextIO | None = None) -> Console:
    """Return a console on a stream (default: standard output).

    ``NO_COLOR`` removes all escape sequences, including bold and dim. Untrusted values are also
    marked by a character.
    """
    target = stream if stream is not None else sys.stdout
    piped = not target.isatty() and "COLUMNS" not in os.environ
    result = _Console(
        # Escape sequences go to `styled`, because the console escapes control characters itself.
        file=getattr(target, "styled", target),
        width=PIPE_WIDTH if piped else None,
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=False,
    )
    result.width = max(result.width, MIN_WIDTH)
    return result


def table_of(columns: Sequence[Column], styles: Iterable[str] = ()) -> Table:
    """Return columns as a table of rich, in which texts may wrap, but numbers may not.

    ``styles`` holds the style of each row; rows beyond its end have no style.
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
    """Print to standard output with its width and colours; a file gets no trailing spaces."""
    out = console()
    if out.is_terminal:
        out.print(renderable, crop=False)
    else:
        print(plain(renderable, out.width))


def plain(renderable: RenderableType, width: int = PIPE_WIDTH) -> str:
    """Return a renderable as text without colours, ``width`` columns wide."""
    recorder = _Console(
        width=width, color_system=None, force_terminal=False, highlight=False, markup=False
    )
    with recorder.capture() as capture:
        recorder.print(renderable, crop=False)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())
