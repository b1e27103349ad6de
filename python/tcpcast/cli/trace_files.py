"""Output folders of ``tcpcast trace``: figures, and tables as Parquet files."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from tcpcast.captures.capture_tables import TABLE_NAMES
from tcpcast.cli.streams import print_message
from tcpcast.errors import TcpcastError
from tcpcast.report.parquet import check_parquet, write_parquet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpcast.captures import Capture


def check_table_name(table: str | None) -> None:
    """Raise before a capture is read if a table does not exist."""
    if table is None:
        return

    if table not in TABLE_NAMES:
        near = difflib.get_close_matches(table, TABLE_NAMES, n=1)
        text = (
            f"there is no table {table!r}; write {', '.join(TABLE_NAMES[:-1])} or {TABLE_NAMES[-1]}"
        )
        raise TcpcastError(text + (f" (did you mean {near[0]!r}?)" if near else ""))


def check_output_folders(plot: str | None, parquet: str | None, *, force: bool) -> None:
    """Raise before a capture is read if an output cannot be written."""
    for option, folder in (("--plot", plot), ("--parquet", parquet)):
        if folder == "":
            raise TcpcastError(
                f"{option}: the name of the folder is empty; write, for example, figures"
            )
    if plot is not None:
        from tcpcast.report.figures import check_figure_files  # noqa: PLC0415

        check_figure_files(plot)
    if parquet is not None:
        check_parquet(parquet, force=force)


def write_figures_and_parquet(
    captures: Sequence[Capture], plot: str | None, form: str, parquet: str | None, *, force: bool
) -> None:
    """Write figures and Parquet files, and print their names."""
    paths = []
    if plot is not None and captures:
        from tcpcast.report.trace_figures import write_capture_figures as draw  # noqa: PLC0415

        paths += draw(captures, plot, force=force, form=form)
        if not paths:
            print_message("no figure was written, because no direction has data")
    if parquet is not None and captures:
        paths += write_parquet(captures, parquet, force=force)
    for path in paths:
        print_message(f"wrote {path}")
