"""A progress bar on stderr, if it is a terminal."""

# ruff: noqa: PLC0415 - rich is needed only with a terminal
from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tcpcast.process.sanitize import escape_control_characters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

listener: Callable[[float], None] | None = None
"""In a worker process, a function that receives the finished share instead of the bar."""


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[float], None] | None]:
    """Yield a function to call with the finished share, 0 to 1, or None if stderr is no terminal.

    The bar appears with the first call, so that fast formulas show no bar. It disappears at the
    end.
    """
    if not sys.stderr.isatty():
        yield listener
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    text = TextColumn("{task.description}", markup=False)
    # Escape sequences go to `styled`, because the stream itself escapes control characters.
    console = Console(file=getattr(sys.stderr, "styled", sys.stderr), highlight=False)
    columns = (text, BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=console, transient=True)
    task = bar.add_task(escape_control_characters(label), total=1.0)

    def advance(share: float) -> None:
        bar.start()
        bar.update(task, completed=share)

    try:
        yield advance
    finally:
        if bar.live.is_started:
            bar.stop()
