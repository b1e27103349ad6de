"""``tcpcast link``: real programs over a link with a scenario's rate, delay, buffer and loss."""

# ruff: noqa: PLC0415, TC001 - heavy modules are imported when the command runs; typer reads types
from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperCommand

from tcpcast.cli.options import Changes, Force, Seed
from tcpcast.errors import EnvironmentFault, ScenarioError, TcpcastError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tcpcast.emulation.outcome import LinkOutcome
    from tcpcast.scenario import Scenario

EXAMPLE = "tcpcast link --rtt 60ms --rate 20mbit --buffer 100pkt -- ping -c 3 10.128.0.1"

OPTIONS = {
    "network.rtt": "--rtt",
    "network.bottleneck.rate": "--rate",
    "network.bottleneck.buffer": "--buffer",
    "network.bottleneck.loss": "--loss",
    "network.bottleneck.queue": "--queue",
    "network.ack_loss": "--ack-loss",
    "network.jitter": "--jitter",
    "network.jitter.mean": "--jitter",
    "network.bottleneck.rate.trace": "--trace",
}
"""The option behind a key of the scenario, for messages."""

MOST_BYTES = 256 * 2**20
"""Memory for packets on the link."""

LONGEST_PACKET = 1984
"""Bytes of the longest packet that the link takes."""

_COMMAND = "tcpcast.link.command"

Side = Literal["near", "far"]


class LinkCommand(TyperCommand):
    """A command line of which what follows ``--`` is another one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep what follows ``--`` as it is, and parse what stands before it."""
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[_COMMAND] = args[at + 1 :]
        return super().parse_args(ctx, args[:at])

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the pieces of the usage line."""
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND...]"]


COMMAND_CLASS = LinkCommand


File = Annotated[
    str | None,
    typer.Argument(
        metavar="FILE|NAME",
        help="A scenario, of which [network] and run.seed count; options change it.",
        show_default=False,
    ),
]
Rtt = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Round-trip time of the empty link, for 1500 B and an ack."),
]
Rate = Annotated[str | None, typer.Option(metavar="RATE", help="Rate; else unlimited.")]
Trace = Annotated[
    str | None, typer.Option(metavar="FILE", help="Packet opportunities, in place of --rate.")
]
Buffer = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help="Buffer, the packet in transmission included; else 1bdp."),
]
Loss = Annotated[
    str | None, typer.Option(metavar="RATIO", help="Random loss from the senders' end.")
]
AckLoss = Annotated[
    str | None, typer.Option(metavar="RATIO", help="Random loss towards the senders' end.")
]
Queue = Annotated[
    str | None, typer.Option(metavar="NAME", help="Queue discipline: droptail, fq_codel, ...")
]
Jitter = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Mean of an exponential delay from the senders' end."),
]
Reorder = Annotated[
    bool, typer.Option("--reorder", help="With --jitter: packets may overtake each other.")
]
Sender = Annotated[
    Side,
    typer.Option(metavar="near|far", help="The senders' end, which loss and jitter count from."),
]
Far = Annotated[
    str | None, typer.Option(metavar="COMMAND", help="A shell command to run behind the link.")
]
Pcap = Annotated[
    str | None, typer.Option(metavar="FILE", help="Write a capture of the packets at one end.")
]
PcapSide = Annotated[Side, typer.Option(metavar="near|far", help="The end of --pcap.")]
Statistics = Annotated[
    str | None, typer.Option(metavar="FILE", help="Write the numbers as JSON, too.")
]
Device = Annotated[
    Literal["tun", "veth"] | None,
    typer.Option(metavar="tun|veth", help="How ends are joined to the link; else what is there."),
]
Nat = Annotated[
    bool,
    typer.Option("--nat", help="Reach this machine and beyond, behind the link; needs root."),
]


def link(  # noqa: PLR0913, PLR0917 - one parameter an option
    ctx: typer.Context,
    file: File = None,
    rtt: Rtt = None,
    rate: Rate = None,
    trace: Trace = None,
    buffer: Buffer = None,
    loss: Loss = None,
    ack_loss: AckLoss = None,
    queue: Queue = None,
    jitter: Jitter = None,
    reorder: Reorder = False,
    sender: Sender = "near",
    far: Far = None,
    pcap: Pcap = None,
    pcap_side: PcapSide = "near",
    statistics: Statistics = None,
    device: Device = None,
    nat: Nat = False,
    changes: Changes = None,
    seed: Seed = None,
    force: Force = False,
) -> None:
    """Run a program over an emulated link, and print what the link counted.

    COMMAND is what follows --, a shell if nothing does; a single word is a shell command. It runs
    at the near end, 10.0.0.1; the far end is 10.128.0.1, and TCPCAST_PEER has the address of the
    other end, TCPCAST_PEER6 that of IPv6. Its exit status is passed on. Linux; root is not needed.
    """
    from tcpcast.engines.kernel.path import path_configuration
    from tcpcast.output import check_file

    given = {
        "network.rtt": rtt,
        "network.bottleneck.rate": _rate(rate, trace),
        "network.bottleneck.buffer": buffer,
        "network.bottleneck.loss": loss,
        "network.ack_loss": ack_loss,
        "network.bottleneck.queue": queue,
        "network.jitter": _jitter(jitter, reorder=reorder),
    }
    scenario = _scenario(file, {k: v for k, v in given.items() if v is not None}, changes, seed)
    for written in filter(None, (pcap, statistics)):
        check_file(written, force=force)
    question = {
        "config": path_configuration(scenario),
        "both_ways": scenario.network.return_link is None,
        "sender": sender,
        "near": _program(ctx.meta[_COMMAND]),
        "far": None if far is None else ["/bin/sh", "-c", far],
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
    return {"law": "exponential", "mean": mean, "reorder": reorder}


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
    from tcpcast.scenario import Scenario, load, parse_assignments
    from tcpcast.scenario.changes import apply_changes

    changed = {**given, **parse_assignments(changes or ())}
    if seed is not None:
        changed["run.seed"] = seed
    try:
        if file is not None:
            scenario = load(file, changes=changed)
        else:
            scenario = Scenario.from_dict(apply_changes(_plain(changed), changed))
    except ScenarioError as fault:
        raise fault.renamed(OPTIONS) from None
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
    from tcpcast.scenario.loss import RestOfRound

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
    from tcpcast.emulation.launch import run_link
    from tcpcast.output import aside

    if pcap is None:
        return run_link({**question, "capture": None})
    with aside(pcap, force=force) as new:
        outcome = run_link({**question, "capture": (side, os.path.abspath(new))})
        if outcome.capture_fault is not None:
            raise EnvironmentFault(f"{pcap}: {outcome.capture_fault}")
    return outcome


def _tell(outcome: LinkOutcome, statistics: str | None, *, force: bool) -> None:
    from tcpcast.output import aside
    from tcpcast.report.link import link_lines

    for line in link_lines(outcome):
        print(f"tcpcast: {line}", file=sys.stderr)
    if outcome.distortion is not None:
        print(
            f"tcpcast: do not trust these numbers: {outcome.distortion}; run it on a quiet "
            "machine, or with a lower rate",
            file=sys.stderr,
        )
    if statistics is not None:
        from tcpcast.report.json import encode

        with aside(statistics, force=force) as new:
            new.write_text(encode(outcome.as_dict()) + "\n", encoding="utf-8")


def _exit_code(outcome: LinkOutcome) -> int:
    """Return the program's status; 3 where it succeeded over a link that was no such link."""
    if outcome.status == 0 and outcome.distortion is not None:
        return EnvironmentFault.exit_code
    return outcome.status
