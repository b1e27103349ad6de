"""``tcpcast sweep``: a scenario over a grid of values, every cell asked of several engines."""

# ruff: noqa: PLC0415, TC001 - heavy modules are imported when the command runs; typer reads types
from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tcpcast.cli.options import Changes, Engines, Feed, File, Force, Format, Json, Seed
from tcpcast.cli.question import engine_names, read_scenario
from tcpcast.errors import TcpcastError
from tcpcast.interrupts import INTERRUPTED

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcpcast.scenario import Scenario
    from tcpcast.sweeps.results import Results

EXAMPLE = 'tcpcast sweep path.toml --vary "network.rtt=10ms..200ms log 8" --out DIR'
_VARY_HELP = (
    "What varies: a range such as network.rtt='10ms..200ms log 8', or values separated by commas; "
    "may be repeated."
)
_LEVEL_HELP = (
    "With --plot: draw where a metric has this value, such as goodput_bps=50mbit; may be repeated."
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
    plot: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Draw one or two keys that vary: curves, or heat maps."),
    ] = None,
    level: Annotated[
        list[str] | None, typer.Option(metavar="METRIC=VALUE", help=_LEVEL_HELP)
    ] = None,
    form: Format = "png",
    force: Force = False,
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
    asked = (scenario, varied, engine_names(engine), replications, feed)
    figures = _figures(asked, plot, level, form, force=force)
    with progress_bar(scenario.name) as progress:
        results = tcpcast.sweep(
            scenario, varied, engines=engine_names(engine), replications=replications, feed=feed,
            out=out, processes=processes, dask=dask, progress=progress,
        )  # fmt: skip
    _report(results, as_json=as_json)
    figures(results)
    raise typer.Exit(exit_code(results))


def _figures(
    asked: tuple[Scenario, dict[str, Any], list[str] | None, int | None, str | None],
    folder: str | None,
    level: list[str] | None,
    form: str,
    *,
    force: bool,
) -> Callable[[Results], None]:
    """Refuse figures that cannot be, before the work, and return what draws them after it."""
    if folder is None:
        if level:
            raise TcpcastError("--level is drawn in a figure; add --plot DIR")
        return lambda _results: None
    from tcpcast.report.sweep_figures import check_sweep_figures, plot_sweep, read_levels
    from tcpcast.sweeps import prepare

    levels = read_levels(level or ())
    scenario, varied, engines, replications, feed = asked
    plan = prepare(scenario, varied, engines=engines, replications=replications, feed=feed)
    groups = [[axis.key for axis in group] for group in plan.grid.groups]
    check_sweep_figures(groups, folder, levels, form, force=force)

    def draw(results: Results) -> None:
        keys = {key: (kind, results.keys[key]) for key, kind in plan.asked.kinds.items()}
        paths = plot_sweep(
            results.to_arrow(), keys, folder, name=scenario.name, levels=levels, form=form,
            force=force,
        )  # fmt: skip
        if not paths:
            print("tcpcast: no engine gave a metric to draw", file=sys.stderr)
        for path in paths:
            print(f"tcpcast: wrote {path}", file=sys.stderr)

    return draw


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
