"""``tcpcast sweep``: a scenario over a grid of values, every cell asked of several engines."""

# ruff: noqa: PLC0415, TC001 - heavy modules are imported when the command runs; typer reads types
from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tcpcast.cli.options import Changes, Engines, Feed, File, Json, Seed
from tcpcast.cli.question import engine_names, read_scenario
from tcpcast.errors import TcpcastError
from tcpcast.interrupts import INTERRUPTED

if TYPE_CHECKING:
    from tcpcast.sweeps.results import Results

EXAMPLE = 'tcpcast sweep path.toml --vary "network.rtt=10ms..200ms log 8" --out DIR'
_VARY_HELP = (
    "What varies: a range such as network.rtt='10ms..200ms log 8', or values separated by commas; "
    "may be repeated."
)


def sweep(  # noqa: PLR0913, PLR0917 - one parameter an option
    file: File,
    vary: Annotated[list[str] | None, typer.Option(metavar="KEY=RANGE", help=_VARY_HELP)] = None,
    engine: Engines = None,
    replications: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="How often each cell is simulated, seed by seed."),
    ] = None,
    changes: Changes = None,
    seed: Seed = None,
    feed: Feed | None = None,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="Write Parquet files into a folder; an interrupted sweep goes on."
        ),
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Processes of this machine; default one per core."),
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Dask scheduler whose workers work: tcp://host:8786."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Answer a scenario for every combination of some values.

    What varies is in the file's table [sweep], or in --vary. The table of the results goes to
    standard output, or with --out into a folder.
    """
    import tcpcast
    from tcpcast.cli.progress import progress_bar

    scenario = read_scenario(file, changes, seed)
    varied = dict(map(_assignment, vary or ()))
    with progress_bar(scenario.name) as progress:
        results = tcpcast.sweep(
            scenario, varied, engines=engine_names(engine), replications=replications, feed=feed,
            out=out, processes=processes, dask=dask, progress=progress,
        )  # fmt: skip
    _report(results, as_json=as_json)
    raise typer.Exit(exit_code(results))


def exit_code(results: Results) -> int:
    """Return 130 if interrupted, 2 if no engine answered any cell, else 1 if a row lacks."""
    if results.interrupted:
        return INTERRUPTED
    statuses = results.statuses
    if statuses and not {"answered", "partial", "failed"} & statuses.keys():
        return 2
    return 1 if {"partial", "failed"} & statuses.keys() else 0


def _assignment(typed: str) -> tuple[str, Any]:
    """Read ``KEY=RANGE``, or ``KEY=A,B,C``."""
    from tcpcast.scenario import parse_assignments
    from tcpcast.units import show

    key, equals, text = typed.partition("=")
    if not equals or not key.strip() or not text.strip():
        raise TcpcastError(
            f"--vary: {show(typed)} varies nothing; write KEY=RANGE, such as "
            "'network.rtt=10ms..200ms log 8'"
        )
    key, text = key.strip(), text.strip()
    if ".." in text:
        quoted = len(text) > 1 and text[0] == text[-1] == '"'  # as a file has it
        return key, text[1:-1] if quoted else text
    ((_, value),) = parse_assignments([f"{key}={text}"]).items()
    if isinstance(value, list):
        return key, value
    if "," not in text:
        raise TcpcastError(
            f"--vary: {show(typed)} is one value; write --set {key}={text}, or several: "
            f"--vary {key}={text},..."
        )
    parts = [part.strip() for part in text.split(",")]
    return key, [parse_assignments([f"{key}={part}"])[key] for part in parts]


def _report(results: Results, *, as_json: bool) -> None:
    if results.folder is None:
        from tcpcast.report.sweep import rows_json, rows_text

        table = results.to_arrow()
        if as_json:
            print(rows_json(table))
        else:
            from tcpcast.report.terminal import show

            show(rows_text(table, results.keys))
    elif as_json:
        from tcpcast.report.json import encode

        print(encode(results.told()))
    else:
        from tcpcast.report.terminal import show

        show(f"{len(results):,} rows in {results.folder}: {results.counts()}")
    _tell(results)


def _tell(results: Results) -> None:
    """Say on standard error what is not answered."""
    statuses = results.statuses
    if results.interrupted:
        more = "; the same command goes on" if results.folder is not None else ""
        said = f"interrupted: {results.done} of {results.batches} parts were answered{more}"
        print(f"tcpcast: {said}", file=sys.stderr)
    for status in ("failed", "partial"):
        if status in statuses:
            said = f"{statuses[status]:,} of {len(results):,} rows are {status}: column reason"
            print(f"tcpcast: {said} says why", file=sys.stderr)
