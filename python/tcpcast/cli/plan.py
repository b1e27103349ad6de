"""``tcpcast plan``: which buffer, how many users, what link rate a target needs."""

# ruff: noqa: PLC0415, TC001 - heavy modules are imported when the command runs; typer reads types
from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tcpcast.cli.commands import Commands
from tcpcast.cli.options import Changes, File, Json, Seed, Threads
from tcpcast.cli.question import read_scenario
from tcpcast.errors import UnitError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcpcast.plan import Plan
    from tcpcast.scenario import Scenario

EXAMPLE = "tcpcast plan buffer web-10mbit --loss 1% --verify"


class PlanCommands(Commands):
    """What can be planned."""

    later = frozenset({"streams", "loss"})


app = typer.Typer(cls=PlanCommands, help="Turn the question round: what does a target need?")

Verify = Annotated[
    bool, typer.Option("--verify", help="Check by simulation, and search its own answer.")
]


@app.command("buffer", epilog=f"Example: {EXAMPLE}")
def buffer(  # noqa: PLR0913, PLR0917 - one parameter an option
    file: File,
    loss: Annotated[str, typer.Option(metavar="RATIO", help="Loss to keep to.")] = "1%",
    verify: Verify = False,
    changes: Changes = None,
    seed: Seed = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Find the smallest buffer for a loss target, beside other rules.

    The paper's rule, the 600 ms rule and the bandwidth-delay rule stand side by side.
    """
    from tcpcast.plan import plan_buffer
    from tcpcast.scenario.units import parse_ratio

    target = _read("--loss", parse_ratio, loss)
    scenario = read_scenario(file, changes, seed)
    _answer(plan_buffer, scenario, {"loss": target, "verify": verify}, threads, as_json=as_json)


@app.command("users", epilog="Example: tcpcast plan users web-10mbit --rate 200kbit")
def users(  # noqa: PLR0913, PLR0917 - one parameter an option
    file: File,
    rate: Annotated[str, typer.Option(metavar="RATE", help="Mean connection rate to keep.")],
    verify: Verify = False,
    changes: Changes = None,
    seed: Seed = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Find the largest population that keeps a mean rate."""
    from tcpcast.plan import plan_users
    from tcpcast.scenario.units import parse_rate

    target = _read("--rate", parse_rate, rate)
    scenario = read_scenario(file, changes, seed)
    _answer(plan_users, scenario, {"rate_bps": target, "verify": verify}, threads, as_json=as_json)


@app.command("rate", epilog="Example: tcpcast plan rate web-10mbit --rate 400kbit --verify")
def rate(  # noqa: PLR0913, PLR0917 - one parameter an option
    file: File,
    rate: Annotated[str, typer.Option(metavar="RATE", help="Mean connection rate to reach.")],
    verify: Verify = False,
    changes: Changes = None,
    seed: Seed = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Find the link rate that the population needs for a mean rate."""
    from tcpcast.plan import plan_rate
    from tcpcast.scenario.units import parse_rate

    target = _read("--rate", parse_rate, rate)
    scenario = read_scenario(file, changes, seed)
    _answer(plan_rate, scenario, {"rate_bps": target, "verify": verify}, threads, as_json=as_json)


def _read(option: str, parse: Callable[[object], float], text: str) -> float:
    try:
        return parse(text)
    except UnitError as fault:
        raise UnitError(f"{option}: {fault}") from None


def _answer(
    question: Callable[..., Plan],
    scenario: Scenario,
    target: dict[str, Any],
    threads: int | None,
    *,
    as_json: bool,
) -> None:
    from tcpcast.cli.progress import progress_bar
    from tcpcast.engines import RunOptions

    with progress_bar(f"checking by simulation: {scenario.name}") as progress:
        options = RunOptions(threads=threads, progress=progress)
        plan = question(scenario, options=options, **target)
    _print(plan, scenario, as_json=as_json)
    if plan.interrupted:
        raise typer.Exit(130)
    unsettled = target["verify"] and plan.simulated is None
    raise typer.Exit(1 if unsettled else 0)


def _print(plan: Plan, scenario: Scenario, *, as_json: bool) -> None:
    if not as_json:
        from tcpcast.report.plan import plan_report
        from tcpcast.report.terminal import console

        console().print(plan_report(plan, scenario))
        return
    from tcpcast.report.json import encode

    print(encode({"scenario": scenario.resolved(), "plan": plan.to_json()}))
    for warning in plan.warnings:
        print(f"tcpcast: {warning}", file=sys.stderr)
