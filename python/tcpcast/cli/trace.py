"""``tcpcast trace``: analysis of TCP in packet captures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tcpcast.captures import trace as read
from tcpcast.captures.arrow_tables import to_arrow_table
from tcpcast.captures.capture_tables import TABLE_NAMES, restrict_to_directions, tables_by_name
from tcpcast.captures.direction_selection import select_directions
from tcpcast.captures.groups import GROUPINGS
from tcpcast.cli.options import check_one_format, read_positive_duration
from tcpcast.cli.reports import (
    check_report_files,
    has_figures,
    typed_command_text,
    write_figures,
    write_reports_on_captures,
)
from tcpcast.cli.streams import ignore_broken_pipe, print_message
from tcpcast.process import output
from tcpcast.process.errors import CaptureError, MachineError, TcpcastError, find_nearest_word
from tcpcast.process.interrupts import INTERRUPTED_EXIT_CODE
from tcpcast.process.output import PARQUET_KIND
from tcpcast.process.protected_inputs import protect_inputs
from tcpcast.report.document import BLANK_LINE
from tcpcast.report.text import print_parts
from tcpcast.report.trace import capture_parts, csv_lines, json_lines
from tcpcast.report.trace_verdict import summary_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

    from tcpcast.array_types import Table
    from tcpcast.captures import Capture


def parquet_modules() -> tuple[ModuleType, ModuleType]:
    """Return the modules ``pyarrow`` and ``pyarrow.parquet``.

    A call before a capture is read detects a missing pyarrow early.

    Raises
    ------
    MachineError
        pyarrow is not installed.
    """
    try:
        import pyarrow  # noqa: PLC0415 - optional, and large
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError as missing:
        raise MachineError(
            "Parquet files need pyarrow, which is not installed: pip install pyarrow"
        ) from missing
    return pyarrow, pyarrow.parquet


def check_parquet(folder: str | Path, *, force: bool = False) -> None:
    """Raise, before a capture is read, if :func:`write_parquet` cannot write to a folder.

    Raises
    ------
    TcpcastError
        A file with the name of a table was not written by tcpcast, or the folder is a symbolic
        link.
    MachineError
        pyarrow is not installed, or the folder cannot be written.
    """
    parquet_modules()
    output.check_folder_is_writable(folder)
    for name in TABLE_NAMES:
        output.check_file_is_writable(
            Path(folder) / f"{name}.parquet", kind=PARQUET_KIND, force=force
        )


def write_parquet(
    captures: Sequence[Capture], folder: str | Path, *, force: bool = False
) -> list[Path]:
    """Write each table of captures into a separate file, for example ``connections.parquet``.

    Each table begins with the column ``file``. The table ``connections`` has one row per direction,
    numbered in the column ``direction``; join it with the other tables on ``file`` and
    ``direction``. Times are timestamps in UTC; missing values are null.

    Parameters
    ----------
    captures
        The captures; each table contains the rows of all captures.
    folder
        Folder for the files, created if it does not exist. Parquet files that tcpcast wrote are
        overwritten.
    force
        Overwrite existing files, even if tcpcast did not create them.

    Returns
    -------
    list of Path
        Paths of the files.

    Raises
    ------
    MachineError
        pyarrow is not installed, or the folder cannot be written.
    """
    arrow, parquet = parquet_modules()
    target = Path(folder)
    parts: dict[str, list[Any]] = {}
    for capture in captures:
        by_name = tables_by_name(capture)
        for name in (name for name in TABLE_NAMES if name in by_name):
            parts.setdefault(name, []).append(to_arrow_table(arrow, capture.file, by_name[name]))
    written = []
    for name, several in parts.items():
        path = target / f"{name}.parquet"
        whole = arrow.concat_tables(several).replace_schema_metadata({PARQUET_KIND.mark: name})
        with output.atomic_file(path, kind=PARQUET_KIND, force=force) as temporary:
            parquet.write_table(whole, temporary)
        written.append(path)
    return written


DEFAULT_ROWS = 20
"""Maximum number of rows of a table without ``--all``."""
MAX_DIGITS = 19
"""Maximum number of digits of a connection number."""
PLOT_POINTS = 40_000
"""Points of the sequence plot of a direction in figures of ``--plot``."""
REPORT_POINTS = 8_000
"""Points of the sequence plot of a direction in a report."""


def trace(  # noqa: PLR0913 - one parameter per option
    *,
    context: typer.Context,
    files: list[str],
    second_capture: str | None,
    as_csv: bool,
    as_json: bool,
    table: str | None,
    connection: str | None,
    group_by: str | None,
    rtt: str | None,
    everything: bool,
    worst: int | None,
    max_connections: int | None,
    models: bool,
    scenario: str | None,
    out: list[str] | None,
    plot: str | None,
    form: str,
    parquet: str | None,
    force: bool,
) -> None:
    """Print the analysis of captures, and write figures, tables and reports."""
    _check_format_options(files, second_capture, as_csv=as_csv, as_json=as_json)
    as_csv = as_csv or (table is not None and not as_json)
    _check_rows(worst, table, everything=everything, models=models, as_csv=as_csv, as_json=as_json)
    if any((plot, parquet, scenario, out)):
        ignore_broken_pipe()
    protect_inputs(*(0 if f == "-" else f for f in (*files, second_capture) if f is not None))
    check_report_files(out, force=force)
    check_table_name(table)
    check_output_folders(plot, parquet, force=force)
    check_scenario(scenario, files, force=force)
    grouped = make_grouping(group_by, rtt, table)
    code = 0
    captures: list[Capture] = []
    groups: list[Table] = []
    most = None if everything else worst or DEFAULT_ROWS
    for file in files:
        points = PLOT_POINTS if plot is not None else REPORT_POINTS if has_figures(out) else 0
        capture, own_code = read_capture(file, second_capture, connection, points, max_connections)
        code = max(code, own_code)
        if capture is not None:
            of_packets = {
                "--group-by": group_by,
                "--models": models or None,
                "--plot": plot,
                "--scenario": scenario,
                "--table": table,
            }
            for option in [name for name, value in of_packets.items() if value is not None]:
                if capture.program:
                    raise TcpcastError(
                        f"{option} requires a capture; {capture.file} is a log of {capture.program}"
                    )
            captures.append(capture)
            groups += [] if grouped is None else [grouped(capture)]
            if not (as_csv or as_json):
                table_of_groups = groups[-1] if groups else None
                parts = capture_parts(capture, max_rows=most, groups=table_of_groups)
                print_parts(parts if len(captures) == 1 else [BLANK_LINE, *parts])
                if models:
                    from tcpcast.report.trace_models import capture_model_parts  # noqa: PLC0415

                    print_parts(capture_model_parts(capture, most))
        if code == INTERRUPTED_EXIT_CODE:
            break
    if len(captures) > 1 and not (as_csv or as_json):
        print_parts(summary_parts(captures, DEFAULT_ROWS if most is None else most))
    if captures and (as_csv or as_json):
        tables = None if grouped is None else groups
        _print_json_or_csv(captures, table or "connections", tables, models, worst, as_json=as_json)
    write_figures_and_parquet(captures, plot, form, parquet, force=force)
    write_reports_on_captures(
        captures,
        typed_command_text(context),
        out,
        force=force,
        groups=None if grouped is None else groups,
        models=models,
        max_rows=most,
    )
    write_scenario(captures, scenario, connection, force=force)
    if code:
        raise typer.Exit(code)


def _check_format_options(
    files: Sequence[str], second_capture: str | None, *, as_csv: bool, as_json: bool
) -> None:
    """Raise if inputs or output formats cannot be combined."""
    check_one_format(as_csv=as_csv, as_json=as_json)
    if "" in files:
        raise TcpcastError("the name of a capture is empty; use a pcap or pcapng file")
    if second_capture is not None and len(files) > 1:
        raise TcpcastError(
            "--second-capture requires exactly one FILE: the capture at the first tap"
        )
    if second_capture == "-":
        raise TcpcastError(
            "--second-capture cannot be standard input; use - as FILE instead, or save the "
            "second capture to a file"
        )
    if files.count("-") > 1:
        raise TcpcastError("standard input can be read only once; use - only once")


def _check_rows(  # noqa: PLR0913 - options by name
    worst: int | None,
    table: str | None,
    *,
    everything: bool,
    models: bool,
    as_csv: bool,
    as_json: bool,
) -> None:
    """Raise if options that select rows cannot be combined."""
    if models and as_csv:
        raise TcpcastError(
            "--models cannot be combined with --csv or --table; use --json, or "
            "Capture.models() in Python"
        )
    other = {
        "--all": everything,
        "--table": table is not None,
        "--models --json": models and as_json,
    }
    for name in [name for name, given in other.items() if given and worst is not None]:
        raise TcpcastError(f"--worst and {name} are mutually exclusive; use one")


def read_capture(
    file: str,
    second_capture: str | None,
    connection: str | None,
    trail_points: int,
    max_connections: int | None,
) -> tuple[Capture | None, int]:
    """Read one capture; after an error, print it and return None."""
    try:
        capture = read(
            file, after=second_capture, trail_points=trail_points, max_connections=max_connections
        )
        if connection is not None:
            capture = restrict_to_directions(
                capture,
                select_directions(
                    capture,
                    int(connection)
                    if connection.isdecimal() and len(connection) < MAX_DIGITS
                    else connection,
                ),
            )
    except CaptureError as error:
        print_message(error)
        return None, error.exit_code
    except KeyboardInterrupt:  # the results of the other files are still printed
        print_message(f"{file}: interrupted before a result was available")
        return None, INTERRUPTED_EXIT_CODE
    if capture.interrupted:
        print_message(f"{file}: interrupted; the results cover only the packets read so far")
        return capture, INTERRUPTED_EXIT_CODE
    if capture.damaged:
        which = file if second_capture is None else f"{file} or {second_capture}"
        print_message(f"{which}: damaged; the results cover only the packets before the damage")
    return capture, int(capture.damaged)


def _print_json_or_csv(  # noqa: PLR0913 - what to print
    captures: Sequence[Capture],
    name: str,
    groups: Sequence[Table] | None,
    models: bool,
    most: int | None,
    *,
    as_json: bool,
) -> None:
    """Print a table as JSON or CSV, and warnings on stderr."""
    by_model = None
    if models:
        from tcpcast.captures.models import model_tables  # noqa: PLC0415

        by_model = [model_tables(capture) for capture in captures]
    lines = (
        json_lines(captures, name, groups, by_model, max_rows=most)
        if as_json
        else csv_lines(captures, name, groups, max_rows=most)
    )
    for line in lines:
        print(line)
    for capture in captures:
        for warning in capture.warnings:
            print_message(f"{capture.file}: {warning}")


def make_grouping(
    group_by: str | None, rtt: str | None, table: str | None
) -> Callable[[Capture], Table] | None:
    """Return a function that groups the flows of a capture; None without ``--group-by``.

    Raises before a capture is read if the options are invalid.
    """
    if group_by is None:
        if rtt is not None:
            raise TcpcastError(
                "--rtt sets the minimum time between loss events of a group, so it requires "
                "--group-by; add --group-by"
            )
        return None
    if table is not None:
        raise TcpcastError("--group-by and --table are mutually exclusive; use one")

    if group_by not in GROUPINGS:
        raise TcpcastError(
            f"--group-by {group_by}: must be {', '.join(GROUPINGS[:-1])} or {GROUPINGS[-1]}"
        )
    apart = None if rtt is None else read_positive_duration("--rtt", rtt, "60ms")
    return lambda capture: capture.groups(group_by, rtt_s=apart)


def check_table_name(table: str | None) -> None:
    """Raise before a capture is read if a table does not exist."""
    if table is None:
        return

    if table not in TABLE_NAMES:
        near = find_nearest_word(table, TABLE_NAMES)
        text = (
            f"there is no table {table!r}; use {', '.join(TABLE_NAMES[:-1])} or {TABLE_NAMES[-1]}"
        )
        raise TcpcastError(text + (f" (did you mean {near!r}?)" if near else ""))


def check_output_folders(plot: str | None, parquet: str | None, *, force: bool) -> None:
    """Raise before a capture is read if an output cannot be written."""
    for option, folder in (("--plot", plot), ("--parquet", parquet)):
        if folder == "":
            raise TcpcastError(
                f"{option}: the name of the folder is empty; use figures, for example"
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
    if plot is not None and captures:
        from tcpcast.report.trace_figures import iter_capture_figures  # noqa: PLC0415

        drawn = iter_capture_figures(captures)
        write_figures(drawn, plot, form, "no direction carries data", force=force)
    if parquet is not None and captures:
        for path in write_parquet(captures, parquet, force=force):
            print_message(f"wrote {path}")


def check_scenario(target: str | None, files: Sequence[str], *, force: bool) -> None:
    """Raise before a capture is read if the scenario cannot be written."""
    if target is None:
        return
    if len(files) > 1:
        raise TcpcastError("--scenario requires exactly one FILE")
    if target in {"", "-"}:
        raise TcpcastError(
            f'--scenario: "{target}" is not a file name; use "slow.toml", for '
            "example; the report occupies standard output"
        )
    if not Path(target).parent.is_dir():
        raise MachineError(
            f"cannot write {target}: the folder {Path(target).parent} does not "
            "exist; create it, or use another name"
        )
    output.check_file_is_writable(target, force=force)


def write_scenario(
    captures: Sequence[Capture], target: str | None, connection: str | None, *, force: bool
) -> None:
    """Write the scenario of a capture, and print warnings about differences.

    The scenario covers the direction with the most data or, if ``connection`` is given, all
    directions of the capture, which is already restricted.
    """
    if target is None or not captures:
        return

    (capture,) = captures
    kept = (
        capture
        if connection is not None
        else restrict_to_directions(capture, select_directions(capture))
    )
    from tcpcast.captures.replay import make_replay_scenario  # noqa: PLC0415

    # Bytes that are no UTF-8 are valid in the name of a file, but not in that of a scenario.
    name = Path(target).stem.encode(errors="replace").decode()
    written = make_replay_scenario(kept, name)
    output.write_text(target, written.text, force=force)
    for warning in written.warnings:
        print_message(f"{target}: {warning}")
    print_message(f"wrote {target}; try: tcpcast run {target}")
