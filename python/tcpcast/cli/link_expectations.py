"""What a program must reach over an emulated link, compared with simulated TCP on the same path."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from tcpcast import units
from tcpcast.errors import TcpcastError, UnitError, naming_options
from tcpcast.readable_units import rate_text, time_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tcpcast.emulation.link_outcome import LinkOutcome
    from tcpcast.scenario import Scenario

EXAMPLE = "rate >= 80% of linux-cubic"
_FORM = re.compile(r"\s*(rate|delay)\s*(>=|<=)\s*(\S+)(?:\s+of\s+(\S+))?\s*")
REFERENCE_WINDOW_PKTS = 10_000
"""Receiver window of the simulated flow in packets, so that only path and stack limit it."""
REFERENCE_RUNS = 8
"""Number of simulated runs, whose mean counts: a short run with random loss is a matter of luck."""
MIN_REFERENCE_S = 1.0
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
    """Return the scenario of one bulk flow of a stack on a path, in runs as long as a program."""
    changes = {
        "tcp.stack": stack,
        "tcp.receiver_window": REFERENCE_WINDOW_PKTS,
        "run.duration": f"{max(seconds, MIN_REFERENCE_S):.3f}s",
        "run.warmup": "0s",
        "run.replications": REFERENCE_RUNS,
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
