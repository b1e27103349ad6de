"""``tcpcast plan``: solves for a buffer, users, a rate, parallel flows or a loss."""

# ruff: noqa: PLC0415 - slow modules are imported when the command runs
from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tcpcast.cli.commands import CONTEXT_OPTION, PLAN
from tcpcast.cli.group import Commands
from tcpcast.cli.options import FILE
from tcpcast.cli.plan_options import (
    ABOVE,
    COMMON,
    GOODPUT,
    MEAN_RATE,
    PATH_ENDS,
    PATH_FILE,
    RTT,
    SHARE,
    PlanArguments,
)
from tcpcast.cli.streams import ignore_broken_pipe, print_message
from tcpcast.cli.typer_commands import set_signature
from tcpcast.command_option import Option
from tcpcast.errors import TcpcastError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcpcast.plan import Plan
    from tcpcast.scenario import Scenario

    Solved = tuple[Callable[..., Plan], Scenario, dict[str, Any]]

app = typer.Typer(cls=Commands)

QUESTIONS: dict[str, tuple[str, tuple[Option, ...]]] = {}
"""First line of the help, and specific options, of each plan by its name."""

_EXAMPLES = {"rtt": "100ms", "loss": "0.01%", "rate": "1gbit"}


def _plan_command(
    example: str, unit: str, *rows: Option
) -> Callable[[Callable[[PlanArguments], Solved]], Callable[[PlanArguments], Solved]]:
    """Return a decorator for functions that return a solver, its scenario and its target.

    Parameters
    ----------
    example
        Example at the end of the help.
    unit
        Unit of the answer, which determines the name of its figure.
    rows
        Options in addition to the common ones.
    """

    def decorate(question: Callable[[PlanArguments], Solved]) -> Callable[[PlanArguments], Solved]:
        def run(context: typer.Context, **values: Any) -> None:
            _run_plan(question, unit, context, values)

        set_signature(run, (CONTEXT_OPTION, *rows, *COMMON))
        run.__doc__ = question.__doc__
        name = question.__name__.replace("_", "-")
        QUESTIONS[name] = (question.__doc__ or "").splitlines()[0], rows
        app.command(name, epilog=f"Example: {example}")(run)
        return question

    return decorate


@_plan_command(
    PLAN.example,
    "packet",
    FILE,
    Option("loss", "RATIO", "Maximum loss ratio at the bottleneck; default 1%."),
    Option("utilisation", "RATIO", "Minimum utilisation of the link, instead of --loss."),
)
def buffer(arguments: PlanArguments) -> Solved:
    """Find the smallest buffer for a loss or utilisation.

    Also lists rules of thumb. A formula gives the answer; for bulk flows, several classes or
    --utilisation, a simulation does.
    """
    from tcpcast.plan import plan_buffer
    from tcpcast.units import parse_ratio

    targets = arguments.given("loss", "utilisation")
    if len(targets) > 1:
        raise TcpcastError("--loss and --utilisation are both given; omit one of them")
    name = next(iter(targets), "loss")
    target = {name: arguments.read(name, parse_ratio, "1%")}
    scenario = _read_scenario("buffer", arguments)
    return plan_buffer, scenario, {**target, **arguments.given("verify"), **arguments.transfers}


@_plan_command(
    "tcpcast plan users local-loop --share 95% --above 200kbit",
    "sources",
    FILE,
    MEAN_RATE,
    Option(
        "grows",
        "NAME",
        "Class whose number of senders is varied; default all classes, in proportion.",
        "--class",
    ),
    SHARE,
    ABOVE,
    Option("engine", "NAME", "Engine for --share: packet, fixed-point or mean-field."),
)
def users(arguments: PlanArguments) -> Solved:
    """Find the maximum number of users for a target rate.

    The target is a mean rate (--rate; solved by a formula), or the share of files above a
    goodput (--share and --above; solved by simulation).
    """
    from tcpcast.plan import plan_quality, plan_users

    if arguments.values["rate"] is None:
        target = arguments.quality() | arguments.given("engine", "grows", "verify")
        return plan_quality, _read_scenario("quality", arguments), target
    target = arguments.mean_rate("share", "above", "engine") | arguments.given("grows", "verify")
    return plan_users, _read_scenario("users", arguments), target


@_plan_command(
    "tcpcast plan rate web-10mbit --rate 400kbit --verify",
    "bit/s",
    FILE,
    MEAN_RATE,
    Option("of_class", "NAME", "Class that must reach the target; default the slowest.", "--class"),
    SHARE,
    ABOVE,
)
def rate(arguments: PlanArguments) -> Solved:
    """Find the link rate that a population needs.

    The target is a mean rate (--rate; solved by a formula), or the share of files above a
    goodput (--share and --above; solved by simulation).
    """
    from tcpcast.plan import plan_rate, plan_rate_quality

    if arguments.values["rate"] is None:
        target = arguments.quality() | arguments.given("of_class")
        return plan_rate_quality, _read_scenario("rate", arguments), target
    target = arguments.mean_rate("share", "above") | arguments.given("of_class", "verify")
    return plan_rate, _read_scenario("rate", arguments), target


@_plan_command(
    "tcpcast plan streams --rate 1gbit --rtt 100ms --loss 0.01%",
    "flows",
    PATH_FILE,
    Option("rate", "RATE", "Link rate to fill."),
    RTT,
    Option("loss", "RATIO", "Random loss of data packets."),
    *PATH_ENDS,
)
def streams(arguments: PlanArguments) -> Solved:
    """Find the number of parallel flows that fill a link.

    Describe the path by --rate, --rtt and --loss, or by a scenario.
    """
    from tcpcast.plan import plan_streams

    scenario = _path_scenario("streams", arguments, ("rate", "rtt", "loss"))
    return plan_streams, scenario, _verification_arguments(arguments, scenario)


@_plan_command(
    "tcpcast plan max-loss --goodput 50mbit --rtt 80ms",
    "1",
    GOODPUT,
    PATH_FILE,
    RTT,
    Option("flows", "N", "Flows that share the path; default 1."),
    Option("rate", "RATE", "Link rate; default unlimited."),
    *PATH_ENDS,
)
def max_loss(arguments: PlanArguments) -> Solved:
    """Find the maximum loss ratio for a goodput.

    Also lists changes that raise this maximum. Describe the path by --rtt and other options, or
    by a scenario (its loss is ignored).
    """
    from tcpcast.plan import plan_max_loss
    from tcpcast.units import parse_rate

    goodput_bps = arguments.read("goodput", parse_rate)
    scenario = _path_scenario("max-loss", arguments, ("rtt",), "flows", "rate")
    return (
        plan_max_loss,
        scenario,
        {"goodput_bps": goodput_bps, **_verification_arguments(arguments, scenario)},
    )


def _read_scenario(question: str, arguments: PlanArguments) -> Scenario:
    """Return the scenario; raise if ``--set`` changes a key that the plan does not use.

    If the plan solves for a loss, the loss counts as a limit of the flows.
    """
    from tcpcast.cli.scenario_args import read_scenario
    from tcpcast.plan.changed_keys import check_changed_keys

    file, changes, seed = (arguments.values[name] for name in ("file", "changes", "seed"))
    placeholder = "network.bottleneck.loss=1%" if question == "max-loss" else ""
    scenario = read_scenario(file, changes, seed, placeholder=placeholder)
    check_changed_keys(question, arguments.changes, scenario)
    return scenario


def _path_scenario(
    question: str, arguments: PlanArguments, needed: tuple[str, ...], *more: str
) -> Scenario:
    """Return the scenario of a path from options, or from a file."""
    from tcpcast.path.options import PathOptions, expand_points, make_bulk_scenario
    from tcpcast.plan.changed_keys import check_changed_keys

    file, seed = arguments.values["file"], arguments.values["seed"]
    given = arguments.given(*needed, *more, *(row.name for row in PATH_ENDS))
    if file is not None:
        for name in given:
            raise TcpcastError(
                f"--{name.replace('_', '-')}: the scenario {file} already describes the path; "
                "omit the option, or change the scenario with --set KEY=VALUE"
            )
        return _read_scenario(question, arguments)
    for name in needed:
        if name not in given:
            raise TcpcastError(
                f"--{name}: missing; write --{name} {_EXAMPLES[name]}, or name a scenario"
            )
    # If the plan solves for the loss, the scenario needs a placeholder loss.
    options = PathOptions(**{"loss": "1%", **given})
    for name in options.ranges:
        raise TcpcastError(f"--{name}: must be one value; only `tcpcast predict` supports ranges")
    (point,) = expand_points(options, None)
    # Formulas need no time limit, and the losses determine the duration of a simulated check.
    changed = {"run.max_wall": "unlimited", **arguments.changes}
    if seed is not None:
        changed["run.seed"] = seed
    scenario = make_bulk_scenario(options, point).with_changes(changed)
    check_changed_keys(question, arguments.changes, scenario)
    return scenario


def _verification_arguments(arguments: PlanArguments, scenario: Scenario) -> dict[str, Any]:
    """Return ``verify``, and the minimum simulated time if ``--set`` specifies it."""
    checked = arguments.given("verify")
    if "run.duration" in arguments.changes:
        checked["least_s"] = scenario.run.duration_s or 0.0
    return checked


def _run_plan(
    question: Callable[[PlanArguments], Solved],
    unit: str,
    context: typer.Context,
    values: dict[str, Any],
) -> None:
    """Solve, print and write a plan; first check that files can be written."""
    from tcpcast.cli.progress import progress_bar
    from tcpcast.cli.reports import check_report_files
    from tcpcast.engines import RunOptions
    from tcpcast.plan.changed_keys import note_unused_keys

    check_report_files(values["html"], values["markdown"], force=values["force"])
    figure = None if values["plot"] is None else _checked_figure_file(unit, values)
    if (values["html"], values["markdown"], figure) != (None, None, None):
        ignore_broken_pipe()
    arguments = PlanArguments(values)
    solve, scenario, target = question(arguments)
    with progress_bar(f"simulating: {scenario.name}") as progress:
        options = RunOptions(threads=values["threads"], progress=progress)
        plan = solve(scenario, options=options, **target)
    if values["file"] is not None and values["verify"] and question in {streams, max_loss}:
        plan.notes += note_unused_keys(
            question.__name__.replace("_", "-"), scenario, arguments.changes
        )
    scenario = plan.scenario or scenario
    _print_result(plan, scenario, as_json=values["as_json"])
    _write_reports(plan, scenario, context, figure)
    if plan.interrupted:
        raise typer.Exit(130)
    undecided = (plan.undecided or not plan.has_model) and plan.simulated is None
    unsettled = undecided or ("verify" in target and plan.simulated is None)
    raise typer.Exit(1 if unsettled or plan.incomplete else 0)


def _checked_figure_file(unit: str, values: dict[str, Any]) -> Path:
    """Return the path of the figure; raise if the file cannot be written."""
    from tcpcast.report.figures import check_figure_files
    from tcpcast.report.plan_figures import FILE_NAMES

    folder, name = values["plot"], f"{FILE_NAMES[unit]}.{values['form']}"
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
    print(encode({"scenario": scenario.resolved(), "verdict": verdict, "plan": plan.to_json()}))
    for warning in plan.warnings:
        print_message(warning)


def _write_reports(
    plan: Plan, scenario: Scenario, context: typer.Context, figure: Path | None
) -> None:
    """Write the requested figure and reports, and print their names."""
    from tcpcast.cli.reports import typed_command_text, write_reports
    from tcpcast.output import save_figure

    options = context.params
    if figure is not None:
        from tcpcast.report.plan_figures import plan_figure

        written = save_figure(plan_figure(plan, scenario), figure, force=options["force"])
        print_message(f"wrote {written}")
    if (options["html"], options["markdown"]) != (None, None):
        from tcpcast.report.plan import plan_document

        document = partial(plan_document, plan, scenario, typed_command_text(context))
        write_reports(document, options["html"], options["markdown"], force=options["force"])
