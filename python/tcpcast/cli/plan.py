"""``tcpcast plan``: one command for each plan of :mod:`tcpcast.plan.questions`."""

# ruff: noqa: PLC0415 - slow modules are imported when the command runs
from __future__ import annotations

from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tcpcast.cli.commands import CONTEXT_OPTION
from tcpcast.cli.group import Commands
from tcpcast.cli.plan_options import COMMON, list_plan_options, read_target, select_given
from tcpcast.cli.streams import ignore_broken_pipe, print_message
from tcpcast.cli.typer_commands import set_signature
from tcpcast.options.command_option import changes_with_options
from tcpcast.options.path_option_definitions import OPTIONS_BY_KEY, PATH_OPTIONS
from tcpcast.plan.questions import QUESTIONS
from tcpcast.process.errors import (
    InputError,
    OptionError,
    ScenarioError,
    name_of,
    naming_options,
    with_names,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tcpcast.plan import Plan
    from tcpcast.plan.questions import Question
    from tcpcast.scenario import Scenario

app = typer.Typer(cls=Commands)


def _add_command(question: Question) -> None:
    rows = (*list_plan_options(question), *COMMON)

    def run(context: typer.Context, **values: Any) -> None:
        _run_plan(question, context, changes_with_options(rows, values))

    set_signature(run, (CONTEXT_OPTION, *rows))
    app.command(
        question.name,
        help=with_names(f"{question.summary}\n\n{question.about}"),
        epilog=f"Example: tcpcast plan {question.name} {question.example}",
    )(run)


for each in QUESTIONS.values():
    _add_command(each)


def _read_scenario(
    question: Question, values: Mapping[str, Any], changes: Mapping[str, Any]
) -> Scenario:
    """Return the scenario from a file, or of the path that the options describe."""
    from tcpcast.cli.scenario_args import read_scenario

    given, file = select_given(values, question.path_options), values["file"]
    if file is None:
        return _make_path_scenario(question, given, changes)
    for name in given:
        raise OptionError(
            PATH_OPTIONS[name].flag,
            f"the scenario {file} already describes the path; omit it, or change the scenario "
            f"with {name_of('--set')} KEY=VALUE",
        )
    placeholders = {
        PATH_OPTIONS[name].keys[0]: value for name, value in question.placeholders.items()
    }
    return read_scenario(file, values["changes"], placeholders=placeholders)


def _make_path_scenario(
    question: Question, given: Mapping[str, Any], changes: Mapping[str, Any]
) -> Scenario:
    """Return the scenario of the path that the options describe."""
    from tcpcast.options.path_scenario import make_path_scenario
    from tcpcast.quantity.ranges import is_range

    for row in question.required_path_options:
        if row.name not in given:
            raise OptionError(
                row.flag, f"missing; add {name_of(row.flag)} {row.example}, or name a scenario"
            )
    options = {**question.placeholders, **given}
    for name, text in options.items():
        if isinstance(text, str) and is_range(text):
            raise OptionError(
                PATH_OPTIONS[name].flag,
                "must be one value; only `tcpcast predict` supports ranges",
            )
    # The losses determine the duration of the simulations.
    changed = {"run.max_wall": "unlimited", **changes}
    with naming_options(OPTIONS_BY_KEY):
        return make_path_scenario(options).with_changes(changed)


def _check_changes(question: Question, changes: Mapping[str, Any], scenario: Scenario) -> None:
    """Reject a change of the key that the plan solves for.

    With several classes, the numbers of senders determine the proportion of the classes.
    """
    patterns = [question.key]
    if question.key.startswith("link."):
        patterns += [question.key.replace(".queue.rate", ".rate*")]
    elif not question.key.startswith("network."):
        alone = len(scenario.populations) == 1
        patterns = [f"{where}.{question.key}" for where in ("traffic", "class.*")] if alone else []
    elif scenario.network.hops:
        at, last = scenario.network.measured_index, question.key.rpartition(".")[2]
        hop = scenario.network.hops[at]
        patterns += [f"network.hop.{each}.{last}" for each in (at, hop.name)]
    for key in changes:
        if any(fnmatchcase(key, pattern) for pattern in patterns):
            raise ScenarioError(
                InputError(key, f"plan {question.name} solves for this key; omit it")
            )


def _run_plan(question: Question, context: typer.Context, values: dict[str, Any]) -> None:
    """Solve, print and write a plan; first check that files can be written."""
    from tcpcast.cli.progress import progress_bar
    from tcpcast.cli.reports import check_report_files
    from tcpcast.engines import RunOptions
    from tcpcast.plan import solve
    from tcpcast.scenario import parse_assignments

    check_report_files(values["out"], force=values["force"])
    figure = None if values["plot"] is None else _checked_figure_file(question, values)
    if values["out"] or figure:
        ignore_broken_pipe()
    arguments, changes = read_target(question, values), parse_assignments(values["changes"] or ())
    scenario = _read_scenario(question, values, changes)
    _check_changes(question, changes, scenario)
    with progress_bar(f"simulating: {scenario.name}") as progress:
        options = RunOptions(threads=values["threads"], progress=progress)
        plan = solve(question.name, scenario, options=options, **arguments)
    scenario = plan.scenario or scenario
    _print_result(plan, scenario, as_json=values["as_json"])
    _write_reports(plan, scenario, context, figure, question.name)
    raise typer.Exit(plan.exit_code)


def _checked_figure_file(question: Question, values: Mapping[str, Any]) -> Path:
    """Return the path of the figure; raise if the file cannot be written."""
    from tcpcast.report.figures import check_figure_files

    folder, name = values["plot"], f"{question.name}.{values['form']}"
    check_figure_files(folder, [name], force=values["force"])
    return Path(folder) / name


def _print_result(plan: Plan, scenario: Scenario, *, as_json: bool) -> None:
    if not as_json:
        from tcpcast.report.plan import plan_parts
        from tcpcast.report.text import print_parts

        print_parts(plan_parts(plan, scenario))
        return
    from tcpcast.report.json import encode
    from tcpcast.report.plan import plan_verdict

    verdict = plan_verdict(plan)
    document = {
        "scenario": scenario.resolved(),
        "verdict": verdict,
        "findings": [each.to_json() for each in plan.findings],
        "plan": plan.to_json(),
    }
    print(encode(document))
    for warning in plan.warnings:
        print_message(warning)


def _write_reports(
    plan: Plan, scenario: Scenario, context: typer.Context, figure: Path | None, figure_name: str
) -> None:
    """Write the requested figure and reports, and print their names."""
    from tcpcast.cli.reports import typed_command_text, write_reports
    from tcpcast.process.output import save_figure

    options = context.params
    if figure is not None:
        from tcpcast.report.plan_figures import plan_figure

        written = save_figure(plan_figure(plan, scenario), figure, force=options["force"])
        print_message(f"wrote {written}")
    if options["out"]:
        from tcpcast.report.plan import plan_document

        document = partial(plan_document, plan, scenario, typed_command_text(context), figure_name)
        write_reports(document, options["out"], force=options["force"])
