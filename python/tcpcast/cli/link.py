"""``tcpcast link``: real programs over a link with a scenario's rate, delay, buffer and loss."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import typer

from tcpcast.cli.commands import LINK
from tcpcast.emulation.launch import run_link
from tcpcast.engines.kernel.path import path_configuration
from tcpcast.errors import MachineError, ScenarioError, TcpcastError
from tcpcast.option import option_names
from tcpcast.output import atomic_file, check_file
from tcpcast.report.json import encode
from tcpcast.report.link import link_lines
from tcpcast.scenario import Scenario, load, parse_assignments
from tcpcast.scenario.changes import apply_changes
from tcpcast.scenario.loss import RestOfRound

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tcpcast.emulation.outcome import LinkOutcome

KEYS = {row.name: row.keys[0] for row in LINK.options if row.keys}
"""The key of the scenario that each option of the link sets."""

MOST_BYTES = 256 * 2**20
"""Memory for packets on the link."""

LONGEST_PACKET = 1984
"""Bytes of the longest packet that the link takes."""


def link(  # noqa: PLR0913 - one parameter per option
    *,
    context: typer.Context,
    file: str | None,
    trace: str | None,
    jitter: str | None,
    reorder: bool,
    sender: str,
    server_command: str | None,
    pcap: str | None,
    pcap_side: str,
    statistics: str | None,
    device: str | None,
    nat: bool,
    changes: list[str] | None,
    seed: int | None,
    force: bool,
    **path: str | None,
) -> None:
    """Run a program over the link of a scenario and options, and print the link's counters."""
    given: dict[str, Any] = {KEYS[name]: text for name, text in path.items()}
    given[KEYS["rate"]] = _rate(path["rate"], trace)
    given[KEYS["jitter"]] = _jitter(jitter, reorder=reorder)
    scenario = _scenario(file, {k: v for k, v in given.items() if v is not None}, changes, seed)
    for written in filter(None, (pcap, statistics)):
        check_file(written, force=force)
    question = {
        "config": path_configuration(scenario),
        "both_ways": scenario.network.return_link is None,
        "sender": sender,
        "near": _program(context.args),
        "far": None if server_command is None else ["/bin/sh", "-c", server_command],
        "device": device,
        "nat": nat,
        "mtu": scenario.network.packet_bytes,
        "most_bytes": MOST_BYTES,
    }
    outcome = _run(question, pcap, pcap_side, force=force)
    _tell(outcome, statistics, force=force)
    raise typer.Exit(_exit_code(outcome))


def _rate(rate: str | None, trace: str | None) -> str | dict[str, str] | None:
    if rate is not None and trace is not None:
        raise TcpcastError("--rate and --trace are both given; write one of them")
    return rate if trace is None else {"trace": os.path.abspath(trace)}


def _jitter(mean: str | None, *, reorder: bool) -> dict[str, Any] | None:
    if mean is None:
        if reorder:
            raise TcpcastError("--reorder: nothing delays packets; write --jitter 5ms, too")
        return None
    return {"distribution": "exponential", "mean": mean, "reorder": reorder}


def _program(command: Sequence[str]) -> list[str]:
    """Return what runs at the near end: a shell, a shell command or a program."""
    if not command:
        return [os.environ.get("SHELL") or "/bin/sh"]
    return ["/bin/sh", "-c", command[0]] if len(command) == 1 else list(command)


def _scenario(
    file: str | None, given: Mapping[str, Any], changes: Sequence[str] | None, seed: int | None
) -> Scenario:
    """Return the scenario of a file and options, or of options alone.

    Raises
    ------
    ScenarioError
        One line for each fault; or a network that one link cannot be.
    """
    changed = {**given, **parse_assignments(changes or ())}
    if seed is not None:
        changed["run.seed"] = seed
    try:
        if file is not None:
            scenario = load(file, changes=changed)
        else:
            scenario = Scenario.from_dict(apply_changes(_plain(changed), changed))
    except ScenarioError as fault:
        raise fault.renamed(option_names(LINK.options)) from None
    _check(scenario)
    return scenario


def _plain(changed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables of a link that options alone say; where it has a rate, with a buffer."""
    limited = "network.bottleneck.rate" in changed
    return {
        "name": "link",
        "network": {"bottleneck": {"buffer": "1bdp"} if limited else {}},
        "traffic": {"kind": "bulk", "flows": 1},
        # A simulation would want something that limits the flow; here it is the program's own.
        "tcp": {"receiver_window": 1000},
        "run": {"duration": "1s"},
    }


def _check(scenario: Scenario) -> None:
    """Refuse what one link cannot be."""
    network, only = scenario.network, "a link is one bottleneck between two ends"
    faults = []
    if network.hops:
        faults.append(f"network.hop: {only}; write [network.bottleneck] in its place")
    if scenario.cross:
        faults.append(f"cross: {only}; leave [[cross]] out, and run a program that sends it")
    if scenario.classes:
        faults.append(f"class: {only}; leave [[class]] out")
    for name, own in (("ingress", network.ingress), ("egress", network.egress)):
        if own.loss is not None:
            faults.append(f"network.{name}.loss: {only}; leave it out")
    if isinstance(network.bottleneck.loss_rule, RestOfRound):
        faults.append('network.bottleneck.loss: a link knows no rounds; write "1%"')
    if network.packet_bytes > LONGEST_PACKET:
        faults.append(f'network.packet: too long for a link; write at most "{LONGEST_PACKET}B"')
    if faults:
        raise ScenarioError(*faults)


def _run(question: Mapping[str, Any], pcap: str | None, side: str, *, force: bool) -> LinkOutcome:
    if pcap is None:
        return run_link({**question, "capture": None})
    with atomic_file(pcap, force=force) as new:
        outcome = run_link({**question, "capture": (side, os.path.abspath(new))})
        if outcome.capture_fault is not None:
            raise MachineError(f"{pcap}: {outcome.capture_fault}")
    return outcome


def _tell(outcome: LinkOutcome, statistics: str | None, *, force: bool) -> None:
    for line in link_lines(outcome):
        print(f"tcpcast: {line}", file=sys.stderr)
    if outcome.distortion is not None:
        print(
            f"tcpcast: do not trust these numbers: {outcome.distortion}; run it on a quiet "
            "machine, or with a lower rate",
            file=sys.stderr,
        )
    if statistics is not None:
        with atomic_file(statistics, force=force) as new:
            new.write_text(encode(outcome.as_dict()) + "\n", encoding="utf-8")


def _exit_code(outcome: LinkOutcome) -> int:
    """Return the program's status; 3 where it succeeded over a link that was no such link."""
    if outcome.status == 0 and outcome.distortion is not None:
        return MachineError.exit_code
    return outcome.status
