"""Consoles of rich that respect the terminal's width and ``NO_COLOR``."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from rich.console import Console
from rich.segment import Segment

from tcpcast.report.text import PIPE_WIDTH
from tcpcast.sanitize import escape_control_characters

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import ConsoleOptions, RenderableType
    from rich.text import Text

MIN_WIDTH = 40
"""Minimum width of the layout in columns; a narrower terminal itself wraps the lines."""


class _Console(Console):
    """A console of rich that escapes control characters."""

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
        for part in super().render(renderable, options):
            hides = part.control is None and escape_control_characters(part.text) != part.text
            yield Segment(escape_control_characters(part.text), part.style) if hides else part


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
