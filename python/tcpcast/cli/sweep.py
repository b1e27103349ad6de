"""``tcpcast sweep``: runs several engines for each combination of varied values."""

from __future__ import annotations

import functools
import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from tcpcast import sweeps
from tcpcast.cli.options import check_one_format
from tcpcast.cli.progress import progress_bar
from tcpcast.cli.reports import (
    check_report_files,
    has_figures,
    split_folder_from_reports,
    typed_command_text,
    write_figures,
    write_reports,
)
from tcpcast.cli.scenario_args import read_engine_option, read_scenario
from tcpcast.cli.streams import print_message
from tcpcast.process.errors import TcpcastError
from tcpcast.process.interrupts import INTERRUPTED_EXIT_CODE
from tcpcast.quantity.units import quote
from tcpcast.report.document import Paragraph
from tcpcast.report.json import encode
from tcpcast.report.sweep import (
    rows_csv,
    sweep_json,
    sweep_rows_parts,
    sweep_verdict_parts,
    verdict_json,
)
from tcpcast.report.text import print_parts
from tcpcast.scenario import Sweep, parse_assignments
from tcpcast.sweeps.prepared import prepare_sweep

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from tcpcast.scenario import Scenario
    from tcpcast.sweeps.prepared import PreparedSweep
    from tcpcast.sweeps.results import SweepResults

    Levels = dict[str, list[float]]

_COMMA = re.compile(r',(?=(?:[^"]*"[^"]*")*[^"]*$)')
"""A comma outside of double quotes."""


def sweep(
    *,
    context: typer.Context,
    file: str,
    vary: list[str] | None,
    engine: list[str] | None,
    changes: list[str] | None,
    **how: Any,
) -> None:
    """Run a sweep of a scenario file."""
    scenario = read_scenario(file, changes)
    varied = parse_varied_keys(vary or (), parse_assignments(changes or ()))
    sweep_scenario(scenario, varied, read_engine_option(engine), context=context, **how)


def sweep_scenario(  # noqa: PLR0913 - one parameter per option of `sweep`
    scenario: Scenario,
    varied: Mapping[str, Any],
    engines: Sequence[str] | None,
    *,
    context: typer.Context,
    plot: str | None,
    form: str,
    force: bool,
    as_csv: bool,
    as_json: bool,
    replications: int | None = None,
    feed: str | None = None,
    out: list[str] | None = None,
    processes: int | None = None,
    dask: str | None = None,
    level: list[str] | None = None,
) -> None:
    """Run a sweep, print its table or write it into a folder, write figures and reports; exit."""
    folder, reports = split_folder_from_reports(out)
    check_one_format(as_csv=as_csv, as_json=as_json)
    if as_csv and folder is not None:
        raise TcpcastError(
            "--csv and --out cannot be combined; omit --csv, and print the rows later: tcpcast "
            f'query {shlex.quote(folder)} "SELECT * FROM sweep" --csv'
        )
    how: dict[str, Any] = {"engines": engines, "replications": replications, "feed": feed}
    outputs = _RequestedOutputs(plot, reports, _parse_levels(level, plot, reports), form, force)
    plan = prepare_sweep(scenario, varied, **how) if outputs.are_wanted else None
    outputs.check(plan)
    with progress_bar(scenario.name) as progress:
        results = sweeps.sweep(
            scenario, varied, out=folder, processes=processes, dask=dask, progress=progress, **how
        )
    table = results.to_arrow()
    answered = (table, results.keys, results.sweep.scenario)
    if as_csv:
        print(rows_csv(table), end="")
    elif as_json and results.folder is not None:
        print(encode(verdict_json(*answered) | results.summary()))
    elif as_json:
        print(sweep_json(*answered))
    elif results.folder is not None:
        text = f"{len(results):,} rows in {results.folder}: {results.counts()}"
        print_parts([*sweep_verdict_parts(*answered), Paragraph(text)])
    else:
        print_parts(sweep_verdict_parts(*answered) + sweep_rows_parts(table, results.keys))
    statuses = results.statuses
    if results.interrupted:
        more = "; run the same command to continue" if results.folder is not None else ""
        message = f"interrupted: {results.done} of {results.runs} runs are done{more}"
        print_message(message)
    for status in ("failed", "partial"):
        if status in statuses:
            count = f"{statuses[status]:,} of {len(results):,} rows"
            print_message(f"{count} have the status {status}; see the column 'reason'")
    if plan is not None:
        outputs.write(results, typed_command_text(context))
    raise typer.Exit(exit_code(results))


def _parse_levels(typed: list[str] | None, plot: str | None, reports: Sequence[str]) -> Levels:
    if not typed:
        return {}
    if plot is None and not has_figures(reports):
        raise TcpcastError("--level requires a figure; add --plot DIR or --out FILE.html")

    from tcpcast.report.sweep_figures import read_levels  # noqa: PLC0415

    return read_levels(typed)


@dataclass(frozen=True, slots=True)
class _RequestedOutputs:
    """The requested figures and reports."""

    plot: str | None
    reports: Sequence[str]
    levels: Levels
    form: str
    force: bool

    @property
    def are_wanted(self) -> bool:
        """True if a figure or a report was requested."""
        return self.plot is not None or bool(self.reports)

    def check(self, plan: PreparedSweep | None) -> None:
        """Raise before the work starts if an output cannot be drawn or written."""
        if plan is not None and self.plot is not None:
            groups = [[axis.key for axis in group] for group in plan.grid.groups]
            from tcpcast.report.sweep_figures import check_sweep_figures  # noqa: PLC0415

            check_sweep_figures(groups, self.plot, self.levels, self.form, force=self.force)
        check_report_files(self.reports, force=self.force)

    def write(self, results: SweepResults, again: str) -> None:
        """Write the requested files, and print their names."""
        if self.plot is not None:
            from tcpcast.report.sweep_figures import iter_sweep_figures, sweep_subtitle  # noqa: PLC0415

            keys = results.sweep.figure_keys
            setup = sweep_subtitle(results.sweep.scenario, keys)
            drawn = iter_sweep_figures(results.to_arrow(), keys, setup, self.levels)
            write_figures(
                drawn,
                self.plot,
                self.form,
                "no answer contains a metric that can be plotted",
                force=self.force,
            )
        if not self.reports:
            return

        from tcpcast.report.sweep_report import sweep_document  # noqa: PLC0415

        document = functools.partial(sweep_document, results, again, levels=self.levels)
        write_reports(document, self.reports, force=self.force)


def exit_code(results: SweepResults) -> int:
    """Return 130 if interrupted, 2 without any answer, 1 if a row is incomplete, otherwise 0."""
    if results.interrupted:
        return INTERRUPTED_EXIT_CODE
    statuses = results.statuses
    if statuses and not {"answered", "partial", "failed"} & statuses.keys():
        return 2
    return 1 if {"partial", "failed"} & statuses.keys() else 0


def parse_varied_keys(vary: Iterable[str], changed: Container[str]) -> dict[str, Any]:
    """Return the values by varied key; reject a key that is given twice."""
    varied: dict[str, Any] = {}
    for key, values in map(_parse_assignment, vary):
        if key in varied or key in changed:
            other = "another --vary" if key in varied else "--set"
            raise TcpcastError(f"--vary: {other} also sets {key}; omit one of them")
        varied[key] = values
    return varied


def _parse_assignment(typed: str) -> tuple[str, Any]:
    """Parse ``KEY=RANGE`` or ``KEY=A,B,C``."""
    key, equals, text = typed.partition("=")
    if not equals or not key.strip() or not text.strip():
        raise TcpcastError(
            f"--vary: {quote(typed)} has no values; use KEY=RANGE, for example "
            "'network.rtt=10ms..200ms log 8'"
        )
    key, text = _strip_quotes(key.strip()), text.strip()
    if ".." in text:
        return key, _strip_quotes(text)
    ((_, value),) = parse_assignments([f"{key}={text}"]).items()
    parts = [part.strip() for part in _COMMA.split(text)]
    if isinstance(value, list) or (key in Sweep.model_fields and len(parts) == 1):
        return key, value
    if len(parts) == 1:
        raise TcpcastError(
            f"--vary: {quote(typed)} is a single value; use --set {key}={text} to set the key, "
            f"or --vary {key}={text},... to vary it"
        )
    return key, [parse_assignments([f"{key}={part}"])[key] for part in parts]


def _strip_quotes(text: str) -> str:
    """Return a text without enclosing quotes."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text
