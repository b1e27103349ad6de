"""``tcpcast reproduce``: published results of a paper and results of tcpcast side by side."""

# ruff: noqa: PLC0415 - slow modules are imported when the command runs
from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tcpcast.cli.reports import (
    check_report_files,
    split_folder_from_reports,
    typed_command_text,
    write_reports,
)
from tcpcast.cli.streams import print_message
from tcpcast.process.errors import MachineError, TcpcastError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcpcast.papers import Reproduction

MEASUREMENTS = ("kernel", "published", "l4s", "homes")
"""Names of the reproductions of measurements, to which users can add measurement files."""


def reproduce(  # noqa: PLR0913 - one parameter per option
    *,
    context: typer.Context,
    name: str,
    quick: bool,
    cell: str,
    out: list[str] | None,
    scenarios: str | None,
    measurements: list[str] | None,
    as_json: bool,
    threads: int | None,
    force: bool,
) -> None:
    """Print computed and published results of a paper side by side, and write a page."""
    directory, reports = split_folder_from_reports(out)
    if cell and directory:
        raise TcpcastError(
            f"--out {directory} and --cell are mutually exclusive; omit --cell, or use --out "
            "FILE.html"
        )
    folder = Path(directory or f"{name}-paper")
    run = _reproduction_of(name, measurements or [])
    if scenarios is not None:
        run = functools.partial(run, scenarios=Path(scenarios))
    if cell:
        run = functools.partial(run, cell=cell)
    check_report_files(reports, force=force)
    report = _run_reproduction(run, folder, quick=quick, threads=threads, force=force)
    if as_json:
        from tcpcast.report.json import encode

        print(encode(report.to_json()))
    else:
        from tcpcast.report.text import print_parts

        print_parts(report.parts())
    if report.page is not None:
        print_message(f"wrote {report.page}")
    if scenarios is not None and not (report.interrupted or report.write_errors):
        print_message(f"wrote scenarios and their index.csv to {scenarios}")
    if cell and not as_json:
        print("Repeat with:", *(report.commands or [typed_command_text(context)]), sep="\n  ")
    if not report.interrupted:
        document = functools.partial(report.document, typed_command_text(context))
        write_reports(document, reports, force=force)
    for reason in report.write_errors:
        print_message(reason)
    raise typer.Exit(_exit_code(report))


def _exit_code(report: Reproduction) -> int:
    if report.interrupted:
        message = "interrupted: only the sections above are finished; no page was written"
        print_message(message)
        return 130
    if report.write_errors:
        return MachineError.exit_code
    return 0 if report.has_only_known_differences else 1


def _reproduction_of(name: str, measurements: list[str]) -> Callable[..., Reproduction]:
    """Return the function that reproduces a paper, with the measurement files if it uses them."""
    from tcpcast.papers import load_reproduction

    run = load_reproduction(name)
    if not measurements:
        return run
    if name not in MEASUREMENTS:
        raise TcpcastError(
            f"--measurements: the reproduction of {name} already includes the published values; "
            f"omit this option, or use it with one of {', '.join(MEASUREMENTS)}"
        )
    return functools.partial(run, measurements=[Path(each) for each in measurements])


def _run_reproduction(
    run: Callable[..., Reproduction],
    output: Path,
    *,
    quick: bool,
    threads: int | None,
    force: bool,
) -> Reproduction:
    from tcpcast.cli.progress import progress_bar

    with progress_bar("reproducing") as progress:
        return run(output, quick=quick, progress=progress, threads=threads, force=force)
