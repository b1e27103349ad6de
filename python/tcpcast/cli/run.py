"""``tcpcast run``: the answers of several engines to a scenario, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

import tcpcast
from tcpcast.answer import Status
from tcpcast.cli.options import check_one_format
from tcpcast.cli.progress import progress_bar
from tcpcast.cli.reports import check_report_files, reproducing_command, write_reports_on_run
from tcpcast.cli.scenario_args import read_engine_option, read_scenario
from tcpcast.cli.streams import ignore_broken_pipe, print_message
from tcpcast.compare import compare_all
from tcpcast.errors import NotApplicable, TcpcastError
from tcpcast.report.json import answers_document, encode
from tcpcast.report.metric_rows import csv_text
from tcpcast.report.run import run_parts
from tcpcast.report.summary import caveats_of_scenario_and_answers
from tcpcast.report.text import print_parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpcast.answer import Answer
    from tcpcast.compare import ComparedAnswers
    from tcpcast.report.answers import Answers
    from tcpcast.scenario import Scenario


def run(  # noqa: PLR0913 - one parameter per option
    *,
    file: str,
    engine: list[str] | None,
    changes: list[str] | None,
    seed: int | None,
    feed: str,
    as_json: bool,
    as_csv: bool,
    plot: str | None,
    form: str,
    html: str | None,
    markdown: str | None,
    print_scenario: bool,
    threads: int | None,
    every: bool,
    accept_late: bool,
    force: bool,
) -> None:
    """Print the answers of engines side by side, and write figures and reports."""
    check_one_format(as_csv=as_csv, as_json=as_json)
    scenario = read_scenario(file, changes, seed)
    if print_scenario:
        _print_scenario(scenario, as_json=as_json)
        return
    if plot is not None:
        from tcpcast.report.figures import check_figure_files, figure_file_names  # noqa: PLC0415

        check_figure_files(plot, figure_file_names(form), force=force)
    check_report_files(html, markdown, force=force)
    if any(each is not None for each in (plot, html, markdown)):
        ignore_broken_pipe()
    if scenario.sweep is not None:
        message = "the table [sweep] is ignored; to run all its combinations, use `tcpcast sweep`"
        print_message(message)
    drawn = plot is not None or html is not None
    names = read_engine_option(engine)
    if accept_late and "kernel" not in (names or ()):
        raise TcpcastError("--accept-late requires the engine kernel; add --engine kernel")
    how = {"force": force, "over_time": drawn, "accept_late": accept_late}
    answers = run_engines(scenario, names, threads, feed, **how)
    compared = compare_all(answers)
    _print_answers(compared, scenario, as_json=as_json, as_csv=as_csv, every=every)
    if plot is not None:
        _write_figures(answers, scenario, plot, form, force=force)
    again = reproducing_command(file, answers, changes, seed, feed)
    write_reports_on_run(compared, scenario, again, html, markdown, force=force)
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
    names: list[str] | None,
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
    message = f"engine kernel runs in real time, which takes about {expected:,.0f} s"
    if limit is not None and limit < expected:
        message += f", but stops after {limit:,.0f} s (run.max_wall)"
    print_message(message)


def _print_answers(
    compared: ComparedAnswers, scenario: Scenario, *, as_json: bool, as_csv: bool, every: bool
) -> None:
    answers = compared.answers
    if not (as_json or as_csv):
        print_parts(run_parts(compared, scenario, show_all=every))
        for reason in (reason for answer in answers for reason in answer.write_errors):
            print_message(reason)
        return

    if as_json:
        print(encode(answers_document(compared, scenario)))
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


def _print_scenario(scenario: Scenario, *, as_json: bool) -> None:
    if not as_json:
        print(scenario.to_toml(), end="")
        return

    print(encode(scenario.resolved()))


def _write_figures(
    answers: Answers, scenario: Scenario, folder: str, form: str, *, force: bool
) -> None:
    from tcpcast.report.figures import write_answer_figures  # noqa: PLC0415

    paths = write_answer_figures(answers, scenario, folder, force=force, form=form)
    if not paths:
        print_message("no figure was written, because no answer has a table to draw")
    for path in paths:
        print_message(f"wrote {path}")
