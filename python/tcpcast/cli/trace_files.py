"""What ``tcpcast trace`` writes into folders: figures, and tables as Parquet files."""

# ruff: noqa: PLC0415 - heavy modules are imported when the command runs
from __future__ import annotations

import difflib
import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tcpcast.errors import EnvironmentFault, TcpcastError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tcpcast.captures import Capture


@contextmanager
def outlived(wanted: bool) -> Iterator[None]:
    """Have ``wanted`` files written though the report's reader leaves (a broken pipe)."""
    try:
        yield
    except BrokenPipeError:
        if not wanted:
            raise
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def check_outputs(table: str | None, plot: str | None, parquet: str | None) -> None:
    """Refuse, before a capture is read, what cannot be written."""
    if table is not None:
        from tcpcast.captures.selection import TABLES

        if table not in TABLES:
            near = difflib.get_close_matches(table, TABLES, n=1)
            said = f"there is no table {table!r}; write {', '.join(TABLES[:-1])} or {TABLES[-1]}"
            raise TcpcastError(said + (f" (did you mean {near[0]!r}?)" if near else ""))
    for option, folder in (("--plot", plot), ("--parquet", parquet)):
        if folder == "":
            raise TcpcastError(f"{option} takes the name of a folder; write figures, say")
        if folder is not None and Path(folder).is_file():
            raise EnvironmentFault(f"cannot write {folder}: it is a file, not a folder")
    if plot is not None:
        from tcpcast.report.figures import figure_class

        figure_class()
    if parquet is not None:
        from tcpcast.report.parquet import parquet_modules

        parquet_modules()


def write_files(captures: Sequence[Capture], plot: str | None, parquet: str | None) -> None:
    """Write figures and Parquet files, and say which."""
    paths = []
    if plot is not None and captures:
        from tcpcast.report.trace_figures import plot as draw

        paths += draw(captures, plot)
        if not paths:
            print("tcpcast: no direction has anything to draw", file=sys.stderr)
    if parquet is not None and captures:
        from tcpcast.report.parquet import write_parquet

        paths += write_parquet(captures, parquet)
    for path in paths:
        print(f"tcpcast: wrote {path}", file=sys.stderr)
