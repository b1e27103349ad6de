"""Where text goes: a console that respects the terminal's width and ``NO_COLOR``."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NoReturn, TextIO

from rich.console import Console

if TYPE_CHECKING:
    from rich.console import RenderableType

PIPE_WIDTH = 100
"""Columns of a report that goes to a file or a pipe and was given no ``COLUMNS``."""


class _Console(Console):
    def on_broken_pipe(self) -> NoReturn:
        """Leave it to the command line: rich itself would exit with 1."""
        raise BrokenPipeError


def console(stream: TextIO | None = None) -> Console:
    """Return a console on a stream (standard output unless told).

    ``NO_COLOR`` takes away bold and dim as well as colours: whoever sets it reads the report
    with something that does not want escapes. Untrusted figures carry a mark of their own.
    """
    target = stream if stream is not None else sys.stdout
    piped = not target.isatty() and "COLUMNS" not in os.environ
    return _Console(
        file=target,
        width=PIPE_WIDTH if piped else None,
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=False,
    )


def plain(renderable: RenderableType, width: int = PIPE_WIDTH) -> str:
    """Return what a renderable looks like without colours, ``width`` columns wide."""
    paper = Console(
        width=width, color_system=None, force_terminal=False, highlight=False, markup=False
    )
    with paper.capture() as capture:
        paper.print(renderable)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())
