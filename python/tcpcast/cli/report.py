"""``tcpcast report``: a scenario, saved answers, a sweep or captures as one file."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tcpcast.captures import (
    CAPTURE_SUFFIXES,
    COMPRESSION_SUFFIXES,
    SAMPLE,
    STANDARD_INPUT,
    without_compression_suffix,
)
from tcpcast.cli.reports import (
    check_report_files,
    has_figures,
    reproducing_command,
    write_reports,
    write_reports_on_captures,
    write_reports_on_run,
)
from tcpcast.cli.run import exit_code, run_engines
from tcpcast.cli.scenario_args import read_engine_option, read_scenario
from tcpcast.cli.sweep import exit_code as sweep_exit_code
from tcpcast.cli.trace import REPORT_POINTS, read_capture
from tcpcast.comparison.compare import compare_all
from tcpcast.process.errors import TcpcastError
from tcpcast.process.interrupts import INTERRUPTED_EXIT_CODE
from tcpcast.process.protected_inputs import protect_inputs
from tcpcast.report.load_answers import is_saved_answers_file, read_saved_answers
from tcpcast.report.sweep_report import sweep_document
from tcpcast.sweeps.database import contains_sweep, read_sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def report(  # noqa: PLR0913 - one parameter per option
    *,
    sources: list[str],
    out: list[str] | None,
    engine: list[str] | None,
    changes: list[str] | None,
    feed: str,
    threads: int | None,
    force: bool,
) -> None:
    """Write the report of a scenario, saved answers, a sweep or captures."""
    reports = out or [f"{_source_stem(sources[0])}.html"]
    protect_inputs(*sources)
    check_report_files(reports, force=force)
    given: dict[str, object] = {"--engine": engine, "--set or --seed": changes}
    given |= {"--threads": threads, "--feed": None if feed == "scenario" else feed}
    saved = _find_only_source(sources, is_saved_answers_file, "saved answers")
    if saved is not None:
        _reject_options(given, f"{saved} contains saved answers")
        raise typer.Exit(_write_report_on_answers(saved, reports, force=force))
    folder = _find_only_source(sources, contains_sweep, "a sweep")
    if folder is not None:
        _reject_options(given, f"{folder} contains a finished sweep")
        raise typer.Exit(_write_report_on_sweep(folder, reports, force=force))
    captured = _find_captures(sources)
    if captured is not None:
        _reject_options(given, f"{sources[0]} is a capture")
        # Read captures; after an error in one file, continue with the others.
        trail = has_figures(reports)
        captures, code = [], 0
        for file in captured:
            capture, own_code = read_capture(file, None, None, REPORT_POINTS if trail else 0, None)
            code = max(code, own_code)
            captures += [] if capture is None else [capture]
            if code == INTERRUPTED_EXIT_CODE:
                break
        write_reports_on_captures(
            captures, shlex.join(["tcpcast", "report", *sources]), reports, force=force
        )
        raise typer.Exit(code)

    scenario = read_scenario(sources[0], changes)
    names, drawn = read_engine_option(engine), has_figures(reports)
    answers = run_engines(scenario, names, threads, feed, force=force, over_time=drawn)
    again = reproducing_command(sources[0], answers, changes, feed)
    write_reports_on_run(compare_all(answers), scenario, again, reports, force=force)
    raise typer.Exit(exit_code(answers))


def _reject_options(given: Mapping[str, object], reason: str) -> None:
    """Raise if an option that requires a scenario was given."""
    for option in [name for name, value in given.items() if value is not None]:
        raise TcpcastError(f"{option} requires a scenario, but {reason}; omit {option}")


def _find_only_source(
    sources: Sequence[str], has_kind: Callable[[Path], bool], what: str
) -> Path | None:
    """Return the source of a kind that fills a report alone, or None.

    Raises
    ------
    TcpcastError
        There are other sources as well.
    """
    found = [Path(source) for source in sources if source != "-" and has_kind(Path(source))]
    if found and len(sources) > 1:
        raise TcpcastError(
            f"{found[0]}: {what} and other files cannot be combined in one report; use separate "
            "reports"
        )
    return found[0] if found else None


def _write_report_on_answers(saved: Path, reports: Sequence[str], *, force: bool) -> int:
    """Write the report of saved answers, and return the exit code."""
    answers = read_saved_answers(saved)
    # The answers contain the scenario, but not its file name and the options of the command.
    file = f"{answers.scenario.name}.toml"
    feeds = {answer.provenance.get("feed") for answer in answers}
    rerun = reproducing_command(
        file, answers, None, "measured" if "measured" in feeds else "scenario"
    )
    again = f"{shlex.join(['tcpcast', 'report', str(saved)])}\n"
    again += f"# to recompute the answers, save the scenario above as {file} and run:\n{rerun}"
    write_reports_on_run(compare_all(answers), answers.scenario, again, reports, force=force)
    return 1 if any(answer.incomplete_reason is not None for answer in answers) else 0


def _write_report_on_sweep(folder: Path, reports: Sequence[str], *, force: bool) -> int:
    """Write the report on a sweep in a folder, and return the exit code."""
    results = read_sweep(folder)
    file = f"{results.sweep.scenario.name}.toml"
    again = f"{shlex.join(['tcpcast', 'report', str(folder)])}\n"
    again += f"# to recompute the sweep, save the scenario above as {file} and run:\n"
    again += shlex.join(["tcpcast", "sweep", file, "--out", "NEW"])
    write_reports(partial(sweep_document, results, again), reports, force=force)
    return 1 if results.interrupted else sweep_exit_code(results)


def _source_stem(source: str) -> str:
    """Return the name of a source without its folder and its extensions."""
    path = Path(source).resolve()
    return "report" if source == "-" else without_compression_suffix(path).stem or "report"


def _find_captures(sources: Sequence[str]) -> list[str] | None:
    """Return the captures among the sources, or None for a scenario.

    Raises
    ------
    TcpcastError
        A folder contains no captures, or a scenario is combined with other sources.
    """
    files: list[str] = []
    for source in sources:
        path = Path(source)
        if path.is_dir():
            inside = sorted(
                p
                for p in path.rglob("*")
                if (without_compression_suffix(p).suffix in CAPTURE_SUFFIXES) and p.is_file()
            )
            if not inside:
                raise TcpcastError(
                    f"{source}: this folder contains no captures; names of captures end in "
                    f"{', '.join(CAPTURE_SUFFIXES)}, optionally followed by "
                    f"{' or '.join(COMPRESSION_SUFFIXES)}"
                )
            files += map(str, inside)
        elif source in {STANDARD_INPUT, SAMPLE} or (path.exists() and path.suffix != ".toml"):
            files.append(source)
        elif len(sources) > 1:
            raise TcpcastError(
                f"a report covers captures or one scenario, not both; {source} is not a capture"
            )
        else:
            return None
    return files
