"""``tcpcast run``: the answers of several engines to a scenario, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

import tcpcast
from tcpcast.answer import Status
from tcpcast.cli.options import check_one_format
from tcpcast.cli.progress import progress_bar
from tcpcast.cli.reports import (
    check_report_files,
    has_figures,
    reproducing_command,
    write_figures,
    write_reports_on_run,
)
from tcpcast.cli.scenario_args import read_engine_option, read_scenario
from tcpcast.cli.streams import ignore_broken_pipe, print_message
from tcpcast.comparison.compare import compare_all
from tcpcast.process.errors import NotApplicable, TcpcastError
from tcpcast.process.output import check_file_is_writable, write_text
from tcpcast.report import qlog
from tcpcast.report.run import run_parts
from tcpcast.report.summary import caveats_of_scenario_and_answers
from tcpcast.report.text import print_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tcpcast.answer import Answer
    from tcpcast.comparison.compare import ComparedAnswers
    from tcpcast.report.answers import Answers
    from tcpcast.scenario import Scenario


def run(
    *,
    file: str,
    engine: list[str] | None,
    changes: list[str] | None,
    feed: str,
    **how: Any,
) -> None:
    """Print the answers of engines to a scenario, and write figures and reports."""
    scenario = read_scenario(file, changes)
    if scenario.sweep is not None:
        message = "the table [sweep] is ignored; to run all its combinations, use `tcpcast sweep`"
        print_message(message)

    def again(answers: Answers) -> str:
        return reproducing_command(file, answers, changes, feed)

    answer_scenario(scenario, read_engine_option(engine), again, feed=feed, **how)


def answer_scenario(  # noqa: PLR0913 - one parameter per option of `run`
    scenario: Scenario,
    engines: Sequence[str] | None,
    again: Callable[[Answers], str],
    *,
    feed: str,
    as_json: bool,
    as_csv: bool,
    plot: str | None,
    form: str,
    out: list[str] | None,
    print_scenario: bool,
    threads: int | None,
    every: bool,
    explain: bool,
    accept_late: bool,
    force: bool,
    refused: Sequence[Answer] = (),
    amount_bytes: float | None = None,
) -> None:
    """Print the answers of engines side by side, write figures and reports, and exit.

    ``again`` returns the command that reproduces a report. ``refused`` are further answers, which
    state why an engine did not run. ``amount_bytes`` is an amount whose time is reported.
    """
    check_one_format(as_csv=as_csv, as_json=as_json)
    if print_scenario:
        from tcpcast.report.json import encode  # noqa: PLC0415 - rarely needed

        print(encode(scenario.resolved()) if as_json else scenario.to_toml().rstrip("\n"))
        return
    if plot is not None:
        from tcpcast.report.figures import check_figure_files, figure_file_names  # noqa: PLC0415

        check_figure_files(plot, figure_file_names(form), force=force)
    traced = [path for path in out or () if path.endswith(qlog.SUFFIX)]
    reports = [path for path in out or () if path not in traced]
    check_report_files(reports, force=force)
    for path in traced:
        qlog.check_scenario_records_flows(scenario, path)
        check_file_is_writable(path, force=force)
    if plot is not None or out:
        ignore_broken_pipe()
    drawn = plot is not None or has_figures(out)
    if accept_late and "kernel" not in (engines or ()):
        raise TcpcastError("--accept-late requires the kernel engine; add --engine kernel")
    answers = run_engines(
        scenario, engines, threads, feed, force=force, over_time=drawn, accept_late=accept_late
    )
    answers += refused
    compared = compare_all(answers)
    if as_json or as_csv:
        _print_rows(compared, scenario, as_json=as_json, amount_bytes=amount_bytes)
    else:
        shown: dict[str, Any] = {"explain": explain, "amount_bytes": amount_bytes}
        print_parts(run_parts(compared, scenario, show_all=every or explain, **shown))
        for reason in (reason for answer in answers for reason in answer.write_errors):
            print_message(reason)
    if plot is not None:
        from tcpcast.report.figures import iter_figures  # noqa: PLC0415

        figures = iter_figures(answers, scenario)
        write_figures(
            figures, plot, form, "no engine returned data that can be plotted", force=force
        )
    written: dict[str, Any] = {"amount_bytes": amount_bytes, "force": force}
    for path in traced:
        write_text(path, qlog.qlog_text(scenario, answers), force=force)
        print_message(f"wrote {path}")
    write_reports_on_run(compared, scenario, again(answers), reports, **written)
    raise typer.Exit(exit_code(answers))


def exit_code(answers: Sequence[Answer]) -> int:
    """Return the exit code for answers.

    130 if interrupted; 3 if a file could not be written or the machine was too busy; 2 if no engine
    applies; 1 if an answer is partial; otherwise 0.
    """
    statuses = {answer.status for answer in answers}
    if Status.INTERRUPTED in statuses:
        return 130
    if Status.MACHINE_BUSY in statuses or any(answer.write_errors for answer in answers):
        return 3
    if statuses == {Status.NOT_APPLICABLE}:
        return 2
    return 1 if statuses & {Status.PARTIAL, Status.FAILED} else 0


def run_engines(  # noqa: PLR0913 - how to run, by name
    scenario: Scenario,
    names: Sequence[str] | None,
    threads: int | None,
    feed: str,
    *,
    force: bool,
    over_time: bool,
    accept_late: bool = False,
) -> Answers:
    """Run engines with a progress bar; ``over_time`` adds tables for figures over time."""
    if "kernel" in (names or ()):
        _print_duration(scenario)
    with progress_bar(scenario.name) as progress:
        return tcpcast.run(
            scenario,
            names,
            threads=threads,
            progress=progress,
            feed=feed,
            force=force,
            over_time=over_time,
            accept_late=accept_late,
        )


def _print_duration(scenario: Scenario) -> None:
    """Print the expected duration of a run with the kernel, which takes real time.

    Prints nothing if the kernel does not support the scenario.
    """
    from tcpcast.engines.kernel import estimate_duration_s  # noqa: PLC0415 - loads the simulator
    from tcpcast.engines.kernel.config import raise_if_unsupported  # noqa: PLC0415

    try:
        raise_if_unsupported(scenario)
    except NotApplicable:
        return
    expected, limit = estimate_duration_s(scenario), scenario.run.max_wall_s
    message = f"the kernel engine runs in real time, which takes about {expected:,.0f} s"
    if limit is not None and limit < expected:
        message += f", but stops after {limit:,.0f} s (run.max_wall)"
    print_message(message)


def _print_rows(
    compared: ComparedAnswers, scenario: Scenario, *, as_json: bool, amount_bytes: float | None
) -> None:
    """Print JSON or CSV, and the warnings on standard error."""
    from tcpcast.report.json import answers_document, encode  # noqa: PLC0415 - rarely needed
    from tcpcast.report.metric_rows import csv_text  # noqa: PLC0415

    answers = compared.answers
    if as_json:
        print(encode(answers_document(compared, scenario, amount_bytes)))
    else:
        print(csv_text(answers), end="")
    notes = caveats_of_scenario_and_answers(answers, scenario)
    messages = [str(note) for about, note in notes if about is None]
    for answer in answers:
        refusal = [] if answer.applies else [answer.refusal()]
        own = [*refusal, *(note for about, note in notes if about is answer)]
        messages += [f"{answer.engine}: {text}" for text in own]
    for message in messages:
        print_message(message)
