"""``tcpcast plan``: which buffer, how many users, what rate, how many flows, what loss."""

# ruff: noqa: PLC0415, TC001 - heavy modules are imported when the command runs; typer reads types
from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tcpcast.cli.group import Commands
from tcpcast.cli.options import Changes, File, Force, Format, Html, Json, Markdown, Seed, Threads
from tcpcast.cli.plan_options import (
    Above,
    DelayedAcks,
    MinRto,
    Mss,
    PathFile,
    Plot,
    Rtt,
    Rwnd,
    Share,
    Stack,
    Verify,
    read_option,
    refuse_quality,
)
from tcpcast.cli.streams import outlive_reader
from tcpcast.errors import DomainError, ScenarioError, TcpcastError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tcpcast.plan import Plan
    from tcpcast.scenario import Scenario

EXAMPLE = "tcpcast plan buffer web-10mbit --loss 1% --verify"

app = typer.Typer(cls=Commands)

_EXAMPLES = {"rtt": "100ms", "loss": "0.01%", "rate": "1gbit"}


@app.command("buffer", epilog=f"Example: {EXAMPLE}")
def buffer(  # noqa: PLR0913, PLR0917 - one parameter an option
    context: typer.Context,
    file: File,
    loss: Annotated[
        str | None, typer.Option(metavar="RATIO", help="Largest loss; 1% if left out.")
    ] = None,
    utilisation: Annotated[
        str | None, typer.Option(metavar="RATIO", help="Instead: least utilisation of the link.")
    ] = None,
    verify: Verify = False,
    changes: Changes = None,
    seed: Seed = None,
    threads: Threads = None,
    plot: Plot = None,
    form: Format = "png",
    html: Html = None,
    markdown: Markdown = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Find the smallest buffer for a loss or a utilisation, and compare other rules.

    The paper's rule, the 600 ms rule and the bandwidth-delay rule stand side by side. Bulk flows,
    several classes and a utilisation are answered by simulation.
    """
    report = _report(context, html, markdown, force=force)
    from tcpcast.plan import plan_buffer
    from tcpcast.units import parse_ratio

    if loss is not None and utilisation is not None:
        raise TcpcastError("--loss: --utilisation is another target; leave one of the two out")
    name, text = ("loss", loss or "1%") if utilisation is None else ("utilisation", utilisation)
    target = read_option(f"--{name}", parse_ratio, text)
    scenario = _scenario("buffer", file, changes, seed)
    how = {name: target, "verify": verify, **_connections(changes)}
    shown = _shown("packet", plot, form, as_json=as_json, force=force)
    _answer(plan_buffer, scenario, how, threads, report, **shown)


@app.command("users", epilog="Example: tcpcast plan users local-loop --share 95% --above 200kbit")
def users(  # noqa: PLR0913, PLR0917 - one parameter an option
    context: typer.Context,
    file: File,
    rate: Annotated[
        str | None, typer.Option(metavar="RATE", help="Least mean connection rate.")
    ] = None,
    grows: Annotated[
        str | None,
        typer.Option(
            "--class", metavar="NAME", help="Class that grows; all in proportion if left out."
        ),
    ] = None,
    share: Share = None,
    above: Above = None,
    engine: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Engine for --share: packet, fixed-point or mean-field."),
    ] = None,
    verify: Verify = False,
    changes: Changes = None,
    seed: Seed = None,
    threads: Threads = None,
    plot: Plot = None,
    form: Format = "png",
    force: Force = False,
    html: Html = None,
    markdown: Markdown = None,
    as_json: Json = False,
) -> None:
    """Find the largest population that keeps a mean rate, or a quality.

    A mean rate (--rate) is answered by a formula, a goodput that most files exceed (--share and
    --above) by simulating one population after another.
    """
    report = _report(context, html, markdown, force=force)
    shown = _shown("sources", plot, form, as_json=as_json, force=force)
    if rate is None:
        from tcpcast.plan import plan_quality

        quality = {"engine": engine, "grows": grows, **_quality(share, above), "verify": verify}
        scenario = _scenario("quality", file, changes, seed)
        _answer(plan_quality, scenario, quality, threads, report, **shown)
        return
    refuse_quality({"share": share, "above": above, "engine": engine})
    from tcpcast.plan import plan_users
    from tcpcast.units import parse_rate

    target = read_option("--rate", parse_rate, rate)
    scenario = _scenario("users", file, changes, seed)
    how = {"rate_bps": target, "grows": grows, "verify": verify, **_connections(changes)}
    _answer(plan_users, scenario, how, threads, report, **shown)


def _quality(share: str | None, above: str | None) -> dict[str, Any]:
    """Return the quality that two options ask for together."""
    from tcpcast.units import parse_rate, parse_ratio

    if share is None or above is None:
        missing = [n for n, value in (("share", share), ("above", above)) if value is None]
        raise TcpcastError(
            f"--{' and --'.join(missing)}: missing; write --share 95% --above 500kbit for the "
            "goodput that most files reach, or --rate 200kbit for a mean rate"
        )
    return {
        "share": read_option("--share", parse_ratio, share),
        "above_bps": read_option("--above", parse_rate, above),
    }


@app.command("rate", epilog="Example: tcpcast plan rate web-10mbit --rate 400kbit --verify")
def rate(  # noqa: PLR0913, PLR0917 - one parameter an option
    context: typer.Context,
    file: File,
    rate: Annotated[
        str | None, typer.Option(metavar="RATE", help="Least mean connection rate.")
    ] = None,
    share: Share = None,
    above: Above = None,
    verify: Verify = False,
    changes: Changes = None,
    seed: Seed = None,
    threads: Threads = None,
    plot: Plot = None,
    form: Format = "png",
    html: Html = None,
    markdown: Markdown = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Find the link rate that the population needs for a mean rate, or a quality.

    A goodput that most files exceed (--share and --above) is answered by simulation.
    """
    report = _report(context, html, markdown, force=force)
    from tcpcast.plan import plan_rate, plan_rate_quality
    from tcpcast.units import parse_rate

    shown = _shown("bit/s", plot, form, as_json=as_json, force=force)
    if rate is None:
        scenario = _scenario("rate", file, changes, seed)
        _answer(plan_rate_quality, scenario, _quality(share, above), threads, report, **shown)
        return
    refuse_quality({"share": share, "above": above})
    target = read_option("--rate", parse_rate, rate)
    scenario = _scenario("rate", file, changes, seed)
    how = {"rate_bps": target, "verify": verify, **_connections(changes)}
    _answer(plan_rate, scenario, how, threads, report, **shown)


@app.command(
    "streams", epilog="Example: tcpcast plan streams --rate 1gbit --rtt 100ms --loss 0.01%"
)
def streams(  # noqa: PLR0913, PLR0917 - one parameter an option
    context: typer.Context,
    file: PathFile = None,
    rate: Annotated[
        str | None, typer.Option(metavar="RATE", help="Rate of the link to fill.")
    ] = None,
    rtt: Rtt = None,
    loss: Annotated[
        str | None, typer.Option(metavar="RATIO", help="Random loss of data packets.")
    ] = None,
    mss: Mss = None,
    rwnd: Rwnd = None,
    delayed_acks: DelayedAcks = False,
    min_rto: MinRto = None,
    stack: Stack = None,
    verify: Verify = False,
    changes: Changes = None,
    seed: Seed = None,
    threads: Threads = None,
    plot: Plot = None,
    form: Format = "png",
    force: Force = False,
    html: Html = None,
    markdown: Markdown = None,
    as_json: Json = False,
) -> None:
    """Find how many parallel flows are worth it, and what more of them do.

    The path is --rate, --rtt and --loss, or a scenario.
    """
    report = _report(context, html, markdown, force=force)
    from tcpcast.plan import plan_streams

    path: dict[str, Any] = {"rate": rate, "rtt": rtt, "loss": loss}
    path |= {"mss": mss, "rwnd": rwnd, "min_rto": min_rto, "stack": stack}
    shown = _shown("flows", plot, form, as_json=as_json, force=force)
    path["delayed_acks"] = delayed_acks or None
    needed = ("rate", "rtt", "loss")
    scenario = _path_scenario("streams", file, path, needed, changes, seed)
    notes = _unused("streams", scenario, changes) if verify and file is not None else ()
    how = {"verify": verify, "least_s": _least_s(scenario, changes)}
    _answer(plan_streams, scenario, how, threads, report, notes=notes, **shown)


@app.command("loss", epilog="Example: tcpcast plan loss --goodput 50mbit --rtt 80ms")
def loss(  # noqa: PLR0913, PLR0917 - one parameter an option
    context: typer.Context,
    goodput: Annotated[
        str, typer.Option(metavar="RATE", help="Delivered payload, all flows together.")
    ],
    file: PathFile = None,
    rtt: Rtt = None,
    flows: Annotated[
        str | None, typer.Option(metavar="N", help="Flows that share the path; 1 if left out.")
    ] = None,
    rate: Annotated[
        str | None, typer.Option(metavar="RATE", help="Rate of the link; unlimited if left out.")
    ] = None,
    mss: Mss = None,
    rwnd: Rwnd = None,
    delayed_acks: DelayedAcks = False,
    min_rto: MinRto = None,
    stack: Stack = None,
    verify: Verify = False,
    changes: Changes = None,
    seed: Seed = None,
    threads: Threads = None,
    plot: Plot = None,
    form: Format = "png",
    html: Html = None,
    markdown: Markdown = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Find the loss that a goodput tolerates, and what would help.

    The path is --rtt and what limits it, or a scenario, whose own loss plays no part.
    """
    report = _report(context, html, markdown, force=force)
    from tcpcast.plan import plan_loss
    from tcpcast.units import parse_rate

    target = read_option("--goodput", parse_rate, goodput)
    path: dict[str, Any] = {"rtt": rtt, "flows": flows, "rate": rate}
    path |= {"mss": mss, "rwnd": rwnd, "min_rto": min_rto, "stack": stack}
    path["delayed_acks"] = delayed_acks or None
    scenario = _path_scenario("loss", file, path, ("rtt",), changes, seed)
    notes = _unused("loss", scenario, changes) if verify and file is not None else ()
    how = {"goodput_bps": target, "verify": verify, "least_s": _least_s(scenario, changes)}
    shown = _shown("1", plot, form, as_json=as_json, force=force)
    _answer(plan_loss, scenario, how, threads, report, notes=notes, **shown)


def _scenario(question: str, file: str, changes: list[str] | None, seed: int | None) -> Scenario:
    """Return the scenario, unless a key was changed that the plan does not use."""
    from tcpcast.plan.keys import check_keys
    from tcpcast.scenario import parse_assignments

    scenario = _readable(question, file, changes, seed)
    check_keys(question, parse_assignments(changes or ()), scenario)
    return scenario


def _least_s(scenario: Scenario, changes: list[str] | None) -> float:
    """Return how long each simulation is at the least, where that was asked for."""
    from tcpcast.scenario import parse_assignments

    asked = "run.duration" in parse_assignments(changes or ())
    return (scenario.run.duration_s or 0.0) if asked else 0.0


def _unused(question: str, scenario: Scenario, changes: list[str] | None) -> list[str]:
    """Say which of the scenario's own keys play no part in a check."""
    from tcpcast.plan.keys import unused_keys
    from tcpcast.scenario import parse_assignments

    return unused_keys(question, scenario, parse_assignments(changes or ()))


def _readable(question: str, file: str, changes: list[str] | None, seed: int | None) -> Scenario:
    """Return the scenario; a loss that the plan solves for counts as a limit of its flows."""
    from tcpcast.cli.question import read_scenario

    try:
        return read_scenario(file, changes, seed)
    except ScenarioError as fault:
        if question != "loss":
            raise
        try:
            return read_scenario(file, [*(changes or ()), "network.bottleneck.loss=1%"], seed)
        except ScenarioError:
            raise fault from None


def _connections(changes: list[str] | None) -> dict[str, int]:
    """Return how many transfers each simulation counts, where that was asked for in so many."""
    from tcpcast.scenario import parse_assignments

    wanted = parse_assignments(changes or ()).get("run.connections")
    return {"connections": wanted} if isinstance(wanted, int) else {}


def _path_scenario(  # noqa: PLR0913, PLR0917 - what is asked, and what of
    question: str,
    file: str | None,
    path: dict[str, Any],
    needed: tuple[str, ...],
    changes: list[str] | None,
    seed: int | None,
) -> Scenario:
    """Return the path that the options say, or the scenario that was named instead."""
    from tcpcast.path.options import PathOptions, bulk_scenario, points

    given = {name: value for name, value in path.items() if value is not None}
    if file is not None:
        for name in given:
            raise TcpcastError(
                f"--{name.replace('_', '-')}: {file} describes the path; leave one of the two "
                "out, or change the scenario by --set KEY=VALUE"
            )
        return _scenario(question, file, changes, seed)
    for name in needed:
        if name not in given:
            raise TcpcastError(
                f"--{name}: missing; write --{name} {_EXAMPLES[name]}, or name a scenario"
            )
    # A loss that is looked for needs some value to stand in its place.
    options = PathOptions(**{"loss": "1%", **given})
    for name in options.ranges:
        raise TcpcastError(f"--{name}: one value, not a range; `tcpcast predict` takes ranges")
    (point,) = points(options, None)
    scenario = bulk_scenario(options, point)
    from tcpcast.plan.keys import check_keys
    from tcpcast.scenario import parse_assignments

    assigned = parse_assignments(changes or ())
    # A formula needs no limit of time, and a check is as long as the losses make it.
    changed = {"run.max_wall": "unlimited", **assigned}
    if seed is not None:
        changed["run.seed"] = seed
    scenario = scenario.with_changes(changed)
    check_keys(question, assigned, scenario)
    return scenario


def _answer(  # noqa: PLR0913 - what is asked, and how it is shown
    question: Callable[..., Plan],
    scenario: Scenario,
    target: dict[str, Any],
    threads: int | None,
    report: _Report,
    *,
    as_json: bool,
    plot: str | None = None,
    form: str = "png",
    notes: Sequence[str] = (),
) -> None:
    from tcpcast.cli.progress import progress_bar
    from tcpcast.engines import RunOptions

    with progress_bar(f"simulating: {scenario.name}") as progress:
        options = RunOptions(threads=threads, progress=progress)
        try:
            plan = question(scenario, options=options, **target)
        except DomainError as fault:
            raise DomainError(_by_option(str(fault))) from None
    plan.notes += notes
    scenario = plan.scenario or scenario
    _print(plan, scenario, as_json=as_json)
    if plot is not None:
        written = _plotted(plan, scenario, plot, form, force=report.force)
        print(f"tcpcast: wrote {written}", file=sys.stderr)
    report.write(plan, scenario)
    if plan.interrupted:
        raise typer.Exit(130)
    undecided = (plan.undecided or not plan.has_model) and plan.simulated is None
    unsettled = undecided or (target.get("verify") and plan.simulated is None)
    raise typer.Exit(1 if unsettled or plan.partial else 0)


def _by_option(text: str) -> str:
    """Name options in place of the parameters that they are to Python."""
    return re.sub(r"\b(rate|goodput|above)_bps\b", r"--\1", text)


def _shown(unit: str, plot: str | None, form: str, *, as_json: bool, force: bool) -> dict[str, Any]:
    """Return how an answer is shown; raises where its figure cannot be written."""
    _check_plot(unit, plot, form, force=force)
    return {"as_json": as_json, "plot": plot, "form": form}


def _check_plot(unit: str, folder: str | None, form: str, *, force: bool) -> None:
    """Refuse, before anything is simulated, a figure that cannot be written."""
    if folder is None:
        return
    from tcpcast.report.figures import check_figures
    from tcpcast.report.plan_figures import FILES

    check_figures(folder, [f"{FILES[unit]}.{form}"], force=force)
    outlive_reader()


def _plotted(plan: Plan, scenario: Scenario, folder: str, form: str, *, force: bool) -> Path:
    from tcpcast.output import save_figure
    from tcpcast.report.plan_figures import FILES, plan_figure

    path = Path(folder) / f"{FILES[plan.unit]}.{form}"
    return save_figure(plan_figure(plan, scenario), path, force=force)


@dataclass(frozen=True, slots=True)
class _Report:
    """Reports of a plan that are asked for, and the command that makes them again."""

    html: str | None
    markdown: str | None
    again: str
    force: bool

    def write(self, plan: Plan, scenario: Scenario) -> None:
        """Write them, and say which."""
        if (self.html, self.markdown) != (None, None):
            from tcpcast.cli.reports import write_reports
            from tcpcast.report.plan import plan_document

            document = partial(plan_document, plan, scenario, self.again)
            write_reports(document, self.html, self.markdown, force=self.force)


def _report(
    context: typer.Context, html: str | None, markdown: str | None, *, force: bool
) -> _Report:
    """Refuse, before anything is simulated, reports that cannot be written."""
    from tcpcast.cli.reports import check_reports, command_text

    check_reports(html, markdown, force=force)
    if (html, markdown) != (None, None):
        outlive_reader()
    return _Report(html, markdown, command_text(context), force)


def _print(plan: Plan, scenario: Scenario, *, as_json: bool) -> None:
    if not as_json:
        from tcpcast.report.plan import plan_parts
        from tcpcast.report.text import print_parts

        print_parts(plan_parts(plan, scenario))
        return
    from tcpcast.report.json import encode

    print(encode({"scenario": scenario.resolved(), "plan": plan.to_json()}))
    for warning in plan.warnings:
        print(f"tcpcast: {warning}", file=sys.stderr)
