"""``tcpcast link``: real programs over a link with a scenario's rate, delay, buffer and loss."""

from __future__ import annotations

import os
import re
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import typer

from tcpcast.cli.commands import LINK
from tcpcast.cli.streams import print_message
from tcpcast.emulation.launch import run_link
from tcpcast.engines.packet.configuration import make_configuration, to_nanoseconds
from tcpcast.options.command_option import options_by_key
from tcpcast.process.errors import (
    MachineError,
    ScenarioError,
    TcpcastError,
    UnitError,
    naming_options,
)
from tcpcast.process.output import atomic_file, check_file_is_writable
from tcpcast.quantity import units
from tcpcast.quantity.readable_units import count_text, rate_text, time_text
from tcpcast.report.json import encode
from tcpcast.scenario import Scenario, load, parse_assignments
from tcpcast.scenario.changes import apply_changes
from tcpcast.scenario.loss import RestOfRound
from tcpcast.scenario.modern_tcp import is_modern, is_quic

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tcpcast.emulation.link_outcome import DirectionCounts, LinkOutcome

EXAMPLE = "rate >= 80% of linux-cubic"
_FORM = re.compile(r"\s*(rate|delay)\s*(>=|<=)\s*(\S+)(?:\s+of\s+(\S+))?\s*")
REFERENCE_WINDOW_PKTS = 10_000
"""Receiver window of the simulated flow in packets, so that only path and stack limit it."""
REFERENCE_RUNS = 8
"""Number of simulated runs whose mean is the reference; one short run with random loss varies."""
MIN_REFERENCE_S = 0.1
"""Minimum length of a simulated run in seconds."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """A bound of the ``rate`` in bit/s or the queueing ``delay`` in seconds of a program.

    The bound is ``amount`` or, with a ``stack``, this multiple of the value of one simulated bulk
    flow of the stack on the same path and for the same time.
    """

    text: str
    quantity: str
    at_least: bool
    amount: float
    stack: str | None


@dataclass(frozen=True, slots=True)
class Check:
    """A measured value, its bound, and the value of the simulated flow, if there is one."""

    expectation: Expectation
    value: float
    bound: float
    reference: float | None

    @property
    def passed(self) -> bool:
        """True if the value is within the bound."""
        if self.expectation.at_least:
            return self.value >= self.bound
        return self.value <= self.bound

    def sentence(self) -> str:
        """Return the comparison as a sentence."""
        text = rate_text if self.expectation.quantity == "rate" else time_text
        what = f"{self.expectation.quantity} {text(self.value)}"
        if self.reference is None:
            compared = f"bound {text(self.bound)}"
        else:
            share = f"{self.value / self.reference:.0%}" if self.reference else "no multiple"
            compared = f"{share} of the {text(self.reference)} of {self.expectation.stack}"
        verdict = "passed" if self.passed else "failed"
        return f"{self.expectation.text}: {verdict}; {what}, {compared}"


@dataclass(frozen=True, slots=True)
class PathResult:
    """The run of a program over one path: what was varied, the counters, and the checks."""

    changes: Mapping[str, Any]
    outcome: LinkOutcome
    checks: Sequence[Check] = field(default_factory=tuple)

    @property
    def name(self) -> str:
        """The varied keys and their values."""
        return ", ".join(f"{key}={value}" for key, value in self.changes.items()) or "path"

    @property
    def error(self) -> str | None:
        """Reason why the checks say nothing, or None."""
        if self.outcome.status:
            return f"the program ended with exit code {self.outcome.status}"
        return self.outcome.distortion

    def sentence(self, check: Check) -> str:
        """Return the result of a check as a sentence."""
        if self.error is not None:
            return f"{check.expectation.text}: not checked; {self.error}"
        return check.sentence()

    @property
    def seconds(self) -> float:
        """Time of the program in seconds, without the time for which the link was paused."""
        return seconds_of(self.outcome)


def seconds_of(outcome: LinkOutcome) -> float:
    """Return the time of the program in seconds, without the time for which the link was paused."""
    return max(1, outcome.program_ns - outcome.away_ns) / 1e9


def parse_expectation(text: str) -> Expectation:
    """Read an expectation such as ``rate >= 80% of linux-cubic`` or ``delay <= 20ms``.

    Raises
    ------
    TcpcastError
        The text has another form, or a value has a wrong unit.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise TcpcastError(
            f"--expect: {units.quote(text)} is not an expectation; use '{EXAMPLE}' or "
            "'delay <= 20ms', for example"
        )
    quantity, sign, amount, stack = match.groups()
    try:
        if stack is None:
            value = (units.parse_rate if quantity == "rate" else units.parse_duration)(amount)
        elif amount.endswith("%"):
            value = float(amount.removesuffix("%")) / 100
        else:
            raise UnitError(f"{units.quote(amount)} is not a percentage")
    except ValueError as error:
        raise TcpcastError(f"--expect: {error}; use '{EXAMPLE}', for example") from None
    return Expectation(text.strip(), quantity, sign == ">=", value, stack)


def check_outcome(
    expectations: Sequence[Expectation],
    scenario: Scenario,
    outcome: LinkOutcome,
    *,
    from_near: bool,
) -> list[Check]:
    """Compare a run with its expectations.

    Parameters
    ----------
    expectations
        The expectations.
    scenario
        The path of the run.
    outcome
        Its counters.
    from_near
        True if the near end is the sender of the data.

    Raises
    ------
    ScenarioError
        A stack does not exist.
    """
    counts = outcome.near_to_far if from_near else outcome.far_to_near
    seconds = seconds_of(outcome)
    measured = {"rate": 8 * counts.program_bytes / seconds, "delay": counts.wait_mean_ns / 1e9}
    references: dict[str, dict[str, float]] = {}
    checks = []
    for each in expectations:
        reference = None
        if each.stack is not None:
            if each.stack not in references:
                references[each.stack] = simulate_reference(scenario, each.stack, seconds)
            reference = references[each.stack][each.quantity]
        bound = each.amount if reference is None else each.amount * reference
        checks.append(Check(each, measured[each.quantity], bound, reference))
    return checks


def check_stacks(expectations: Sequence[Expectation], scenario: Scenario) -> None:
    """Check that the stack of each expectation exists, before a program runs for a long time.

    Raises
    ------
    TcpcastError
        A stack does not exist, or cannot use the path of the scenario.
    """
    for each in expectations:
        if each.stack is not None:
            with naming_options({"tcp.stack": "--expect"}):
                reference_scenario(scenario, each.stack, MIN_REFERENCE_S)


def reference_scenario(scenario: Scenario, stack: str, seconds: float) -> Scenario:
    """Return the scenario of one bulk flow of a stack on a path, in runs as long as a program.

    The time of a program includes the handshake.
    """
    handshake = "tls13" if is_quic(stack) else "tcp" if is_modern(stack) else None
    changes = {
        "tcp.stack": stack,
        "tcp.receiver_window": REFERENCE_WINDOW_PKTS,
        "run.duration": f"{max(seconds, MIN_REFERENCE_S):.3f}s",
        "run.warmup": "0s",
        "run.replications": REFERENCE_RUNS,
        "traffic": {"kind": "bulk", "flows": 1, "start": "0s"},
        **({} if handshake is None else {"tcp.handshake": handshake}),
    }
    return scenario.with_changes(changes)


def simulate_reference(scenario: Scenario, stack: str, seconds: float) -> dict[str, float]:
    """Return the mean rate (IP bytes, bit/s) and queueing delay (s) of one simulated bulk flow.

    The flow starts at time 0, so that its slow start counts, as that of the program.
    """
    from tcpcast.engines import answer  # noqa: PLC0415 - slow to import

    flow = reference_scenario(scenario, stack, seconds)
    (result,) = answer(flow, ["packet"])
    delivered_pps = result["send_rate_pps"] * (1 - result["loss_ratio"])
    delay = result.metrics.get("queue_delay_mean_s")
    return {
        "rate": 8 * flow.network.packet_bytes * delivered_pps,
        # A link without a rate has no queue.
        "delay": 0.0 if delay is None else delay.value,
    }


def results_as_json(results: Sequence[PathResult]) -> list[dict[str, Any]]:
    """Return the results as plain data."""
    return [
        {
            "changes": dict(result.changes),
            "outcome": asdict(result.outcome),
            "checks": [asdict(check) | {"passed": check.passed} for check in result.checks],
        }
        for result in results
    ]


def results_as_markdown(results: Sequence[PathResult]) -> str:
    """Return a table with one row per path and expectation."""
    lines = [
        "| path | expectation | measured | simulated | result |",
        "| --- | --- | --- | --- | --- |",
    ]
    for result in results:
        for check in result.checks:
            text = rate_text if check.expectation.quantity == "rate" else time_text
            simulated = "" if check.reference is None else text(check.reference)
            verdict = result.error or ("passed" if check.passed else "**failed**")
            row = (result.name, check.expectation.text, text(check.value), simulated, verdict)
            lines.append(f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |")
    return "\n".join(lines) + "\n"


def results_as_junit(results: Sequence[PathResult]) -> str:
    """Return a JUnit report with one test case per path and expectation."""
    suite = ElementTree.Element("testsuite", name="tcpcast link")
    for result in results:
        for check in result.checks:
            case = ElementTree.SubElement(
                suite,
                "testcase",
                classname=result.name,
                name=check.expectation.text,
                time=f"{result.seconds:.3f}",
            )
            if result.error is not None:
                ElementTree.SubElement(case, "error", message=result.error)
            elif not check.passed:
                ElementTree.SubElement(case, "failure", message=check.sentence())
    for kind in ("error", "failure"):
        suite.set(f"{kind}s", str(len(suite.findall(f"testcase/{kind}"))))
    suite.set("tests", str(len(suite)))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def link_lines(outcome: LinkOutcome) -> list[str]:
    """Return counters and delays of both directions, and a note if the link's clock was paused."""
    seconds = seconds_of(outcome)
    lines = [f"link over {outcome.device} for {seconds:.3g} s"]
    lines += _direction_lines("near to far", outcome.near_to_far, seconds)
    lines += _direction_lines("far to near", outcome.far_to_near, seconds)
    if outcome.pauses:
        lines.append(
            f"the link's clock was paused {outcome.pauses} times while this machine was busy "
            f"({time_text(outcome.away_ns / 1e9)} in total, at most "
            f"{time_text(outcome.longest_pause_ns / 1e9)} at a time)"
        )
    return lines


def _direction_lines(name: str, counts: DirectionCounts, seconds: float) -> list[str]:
    if counts.entered == 0:
        return [f"{name}: no packets"]
    rate = counts.program_bytes * 8 / seconds
    lost = {
        "at random": counts.random_drops,
        "at a full buffer": counts.full_drops,
        "to early drops of the queue": counts.early_drops,
        "by this machine": counts.machinery_drops,
    }
    dropped = [f"{number:,} lost {how}" for how, number in lost.items() if number]
    if counts.marked:
        dropped.append(f"{counts.marked:,} marked")
    entered = count_text(counts.entered, "packet")
    numbers = [entered, f"{counts.delivered:,} delivered", *dropped]
    wait, late = time_text(counts.wait_mean_ns / 1e9), time_text(counts.late_p50_ns / 1e9)
    high_wait, high_late = time_text(counts.wait_p95_ns / 1e9), time_text(counts.late_p99_ns / 1e9)
    return [
        f"{name}: {', '.join(numbers)}; {rate_text(rate)}",
        f"  queueing delay {wait} on average, {high_wait} at the 95th percentile; "
        f"lateness of packets {late} at the median, {high_late} at the 99th percentile",
    ]


KEYS_BY_OPTION = {row.name: row.keys[0] for row in LINK.options if row.keys}
"""Scenario key for each option that describes the link."""

MAX_BYTES = 256 * 2**20
"""Maximum memory in bytes for packets on the link."""

MAX_PACKET_BYTES = 1984
"""Maximum packet size of the link in bytes."""


def link(  # noqa: PLR0913 - one parameter per option
    *,
    context: typer.Context,
    file: str | None,
    trace: str | None,
    jitter: str | None,
    reorder: bool,
    sender: str | None,
    server_command: str | None,
    pcap: str | None,
    pcap_side: str,
    out: list[str] | None,
    device: str | None,
    nat: bool,
    expect: list[str] | None,
    vary: list[str] | None,
    changes: list[str] | None,
    force: bool,
    **path: str | None,
) -> None:
    """Run a program over the link of a scenario and options, and print the link's counters."""
    expectations = [parse_expectation(text) for text in expect or ()]
    if pcap is not None and vary:
        raise TcpcastError("--pcap and --vary are mutually exclusive; use one")
    given: dict[str, Any] = {KEYS_BY_OPTION[name]: text for name, text in path.items()}
    rate = path["rate"]
    if rate is not None and trace is not None:
        raise TcpcastError("--rate and --trace are mutually exclusive; use one")
    given[KEYS_BY_OPTION["rate"]] = rate if trace is None else {"trace": os.path.abspath(trace)}
    given[KEYS_BY_OPTION["jitter"]] = _jitter_table(jitter, reorder=reorder)
    typed = parse_assignments(changes or ())
    fixed = {k: v for k, v in given.items() if v is not None} | typed
    scenarios = [(cell, _link_scenario(file, {**fixed, **cell})) for cell in _cells(vary, typed)]
    for _, scenario in scenarios:
        check_stacks(expectations, scenario)
    for file_to_write in filter(None, (pcap, *(out or ()))):
        check_file_is_writable(file_to_write, force=force)
    results = []
    for cell, scenario in scenarios:
        if cell:
            print_message(", ".join(f"{key}={value}" for key, value in cell.items()))
        # A user of a network runs programs at the end of the client.
        server = sender or ("far" if scenario.links else "near")
        question = {
            "config": _link_configuration(scenario),
            "server": server,
            "near": _program_arguments(context.args),
            "far": None if server_command is None else ["/bin/sh", "-c", server_command],
            "device": device,
            "nat": nat,
            "mtu": max(group.packet_bytes for group in scenario.populations),
            "most_bytes": MAX_BYTES,
        }
        outcome = _run_program(question, pcap, pcap_side, force=force)
        for line in link_lines(outcome):
            print_message(line)
        if outcome.distortion is not None:
            print_message(
                f"the counters above are not reliable: {outcome.distortion}; use an idle machine, "
                "or lower the rate"
            )
        checks = check_outcome(expectations, scenario, outcome, from_near=server == "near")
        result = PathResult(cell, outcome, checks)
        for check in checks:
            print_message(result.sentence(check))
        results.append(result)
    for name in out or ():
        if name.endswith(".md"):
            written = results_as_markdown(results)
        elif name.endswith(".xml"):
            written = results_as_junit(results)
        else:
            several = vary or expect
            data = results_as_json(results) if several else asdict(results[0].outcome)
            written = encode(data) + "\n"
        with atomic_file(name, force=force) as new:
            new.write_text(written, encoding="utf-8")
    raise typer.Exit(max(map(_exit_code, results)))


def _jitter_table(mean: str | None, *, reorder: bool) -> dict[str, Any] | None:
    if mean is None:
        if reorder:
            raise TcpcastError("--reorder requires --jitter; add --jitter 5ms")
        return None
    return {"distribution": "exponential", "mean": mean, "reorder": reorder}


def _program_arguments(command: Sequence[str]) -> list[str]:
    """Return the arguments of the program at the near end, by default a shell."""
    if not command:
        return [os.environ.get("SHELL") or "/bin/sh"]
    return ["/bin/sh", "-c", command[0]] if len(command) == 1 else list(command)


def _cells(vary: Sequence[str] | None, typed: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the values of the varied keys for each path; one path without ``--vary``."""
    if not vary:
        return [{}]
    from tcpcast.cli.sweep import parse_varied_keys  # noqa: PLC0415 - slow to import
    from tcpcast.scenario.sweep import Sweep  # noqa: PLC0415
    from tcpcast.sweeps.prepared import make_grid  # noqa: PLC0415

    grid = make_grid(Sweep.model_validate(parse_varied_keys(vary, typed)), seed=1)
    return [grid.cell(number) for number in range(len(grid))]


def _link_scenario(file: str | None, changed: Mapping[str, Any]) -> Scenario:
    """Return the scenario of a file with options, or of options only.

    Raises
    ------
    ScenarioError
        The scenario is invalid, or a single link cannot emulate its network.
    """
    with naming_options(options_by_key(LINK.options)):
        if file is not None:
            scenario = load(file, changes=changed)
        else:
            limited = "network.bottleneck.rate" in changed
            tables = {
                "name": "link",
                "network": {"bottleneck": {"buffer": "1bdp"} if limited else {}},
                "traffic": {"kind": "bulk", "flows": 1},
                # Bulk traffic requires a window limit, which the emulated link ignores.
                "tcp": {"receiver_window": 1000},
                "run": {"duration": "1s"},
            }
            scenario = Scenario.from_dict(apply_changes(tables, changed))
    _check_scenario_is_one_link(scenario)
    return scenario


def _link_configuration(scenario: Scenario) -> dict[str, Any]:
    """Return the simulator's configuration with the routes of both directions.

    A bottleneck without a return link limits both directions equally.
    """
    config = make_configuration(scenario, 0.0)
    (path, *_), links = config["classes"], config["links"]
    if not scenario.links and scenario.network.return_link is None:
        forward, own_back = links[config["headline"]], [links[at] for at in path["back"][0]]
        # Without a rate, a return link only loses acks.
        loss = own_back[0]["loss"] if own_back else None
        links.append({**forward, "loss": loss, "jitter": None, "delay_ns": 0})
        path["back"] = [[len(links) - 1]]
        # The link takes this time, which is part of the delay of the path without it.
        path["back_delay_ns"] -= to_nanoseconds(
            8 * scenario.network.ack / scenario.bottleneck.serial_bps
        )
    return config


def _check_scenario_is_one_link(scenario: Scenario) -> None:
    """Raise if the scenario has no path between two ends."""
    network = scenario.network
    errors = []
    if scenario.cross:
        errors.append(
            "cross: an emulated link generates no cross traffic; omit [[cross]], and run another "
            "program that sends this traffic"
        )
    if scenario.classes and not scenario.links:
        errors.append("class: an emulated link does not support classes of senders; omit [[class]]")
    routes = [(entry.route, entry.back) for entry in scenario.classes if scenario.links]
    if any(each != routes[0] for each in routes):
        errors.append(
            "class: an emulated link supports one route in each direction, but the classes use "
            "several; keep only the classes that share a route"
        )
    if isinstance(scenario.bottleneck.loss_rule, RestOfRound):
        errors.append(
            "network.bottleneck.loss: an emulated link supports only independent loss, because it "
            'does not know the round trips of TCP; use "1%", for example'
        )
    if network.packet_bytes > MAX_PACKET_BYTES:
        errors.append(
            f'network.packet: "{network.packet_bytes}B" is too large for a link; use '
            f'at most "{MAX_PACKET_BYTES}B"'
        )
    if errors:
        raise ScenarioError(*errors)


def _run_program(
    question: Mapping[str, Any], pcap: str | None, side: str, *, force: bool
) -> LinkOutcome:
    if pcap is None:
        return run_link({**question, "capture": None})
    with atomic_file(pcap, force=force) as new:
        outcome = run_link({**question, "capture": (side, os.path.abspath(new))})
        if outcome.capture_fault is not None:
            raise MachineError(f"{pcap}: {outcome.capture_fault}")
    return outcome


def _exit_code(result: PathResult) -> int:
    """Return the program's status; 3 if the emulation was late, 1 if an expectation failed."""
    if result.outcome.status:
        return result.outcome.status
    if result.outcome.distortion is not None:
        return MachineError.exit_code
    return int(not all(check.passed for check in result.checks))
