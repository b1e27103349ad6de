"""Runs of flent as scenarios: a client, a router with a shaper in each direction, and a server.

The router's shaper is CAKE or HTB, which count Ethernet headers; netem adds half of the RTT on each
side. The client and the server add 0.5 ms. Flows start with the measurement, which has no warm-up.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcpcast.errors import ScenarioError

if TYPE_CHECKING:
    from collections.abc import Iterable

DOWN, UP = "download", "upload"
HOSTS_DELAY_MS = 0.5
"""Round-trip delay of hosts and router, ms: the ping through an idle queue beside load."""

ETHERNET_BYTES = 14
HTB_BURST = "1600B"
"""Burst of HTB by default: one frame and the tokens of one tick of its clock."""

STACKS = {
    "cubic": "linux-cubic",
    "reno": "linux-reno",
    "dctcp": "dctcp",
    "bbr": "linux-bbr",
    # Not simulated; both grow like Reno.
    "cdg": "linux-reno",
    "westwood": "linux-reno",
}
STAND_INS = ("cdg", "westwood")
"""Congestion controls for which Reno stands."""

DSCPS = {"BK": "cs1", "CS1": "cs1", "CS5": "cs5", "EF": "ef"}

FLOW = re.compile(r"TCP (?P<direction>download|upload)(?P<words>[^=]*)=(?P<mbit>[\d.]+)", re.ASCII)

LIMITS = {"fq_codel": "10240pkt", "codel": "1000pkt", "pie": "1000pkt"}
"""Default limits of Linux; CAKE has its own."""


@dataclass(frozen=True, slots=True)
class FlowGroup:
    """Flows of a direction with one congestion control and codepoint.

    ``control`` has a name of Linux, ``mark`` is flent's name of the codepoint, such as ``CS1``.
    """

    direction: str
    control: str
    mark: str

    @property
    def name(self) -> str:
        """Name of the class."""
        return f"{self.direction}-{self.control}-{self.mark.lower()}"


def read_flows(text: str) -> dict[FlowGroup, list[float]]:
    """Return the rates of the flows in Mbit/s by group, from flent's names of the flows.

    Parameters
    ----------
    text
        Such as ``TCP upload Cubic BE=4.2;TCP download BE2=31.5``; CUBIC without a name.
    """
    groups: dict[FlowGroup, list[float]] = {}
    for match in FLOW.finditer(text):
        words = match["words"].replace("::", " ").upper().split()
        control = next((word.lower() for word in words if word.lower() in STACKS), "cubic")
        mark = next((word for word in words if word in DSCPS), "BE")
        group = FlowGroup(match["direction"], control, mark)
        groups.setdefault(group, []).append(float(match["mbit"]))
    return groups


def class_tables(
    flows: Iterable[tuple[FlowGroup, int]], *, rtt_ms: float, ecn: bool, server_qdisc: str
) -> list[dict[str, Any]]:
    """Return the classes of flows, with a ping.

    Parameters
    ----------
    flows
        Groups and the number of flows of each.
    rtt_ms
        Delay of netem in both directions together, ms.
    ecn
        Whether both ends negotiate ECN.
    server_qdisc
        Discipline of the server's interface: ``sch_fq`` paces all flows.
    """
    way = {"route": ["down"], "back": ["up"], "delay": f"{(rtt_ms + HOSTS_DELAY_MS) / 2:g}ms"}
    classes = []
    for group, count in flows:
        tcp: dict[str, Any] = {"stack": STACKS[group.control]}
        if ecn or group.control == "dctcp":
            tcp["ecn"] = True
        if server_qdisc == "sch_fq" and group.direction == DOWN:
            tcp["pacing"] = "fq"
        sends = {"sends": "client"} if group.direction == UP else {}
        dscp = DSCPS.get(group.mark, "cs0")
        classes.append(
            {"name": group.name, "flows": count, "dscp": dscp, "tcp": tcp, **sends, **way}
        )
    ping = {"kind": "ping", "interval": "200ms"}
    return [*classes, {"name": "ping", "flows": 1, "traffic": ping, **way}]


def network_tables(
    links: dict[str, dict[str, Any]], classes: list[dict[str, Any]], seconds: float = 60.0
) -> dict[str, Any]:
    """Return a scenario of flows that start within 0.1 s and are measured from the start."""
    start = {"distribution": "uniform", "low": "0s", "high": "100ms"}
    return {
        "link": links,
        "traffic": {"kind": "bulk", "start": start},
        "class": classes,
        "run": {"warmup": "0s", "duration": f"{seconds:g}s"},
    }


def shaped_link(rate_mbit: float, kind: str, settings: str = "") -> dict[str, Any]:
    """Return a link behind a router's shaper.

    Parameters
    ----------
    rate_mbit
        Rate of the shaper, Mbit/s.
    kind
        Discipline: ``cake`` with or without a suffix, ``fq_codel``, ``codel``, ``pie``,
        ``pfifo_N`` (packets) or ``bfifo_Nk`` (KiB).
    settings
        Settings of CAKE that tc printed.

    Raises
    ------
    ScenarioError
        The discipline is not known.
    """
    if kind.startswith("cake"):
        cake = {
            "kind": "cake",
            "rate": f"{rate_mbit:g}mbit",
            "flows": "flowblind" if "flowblind" in kind + settings else "flows",
            "tins": "diffserv4" if "diffserv4" in settings else "besteffort",
        }
        return {"rate": "1gbit", "buffer": "unlimited", "queue": cake}
    rate = {"bucket": f"{rate_mbit:g}mbit", "burst": HTB_BURST, "overhead": ETHERNET_BYTES}
    name, _, size = kind.partition("_") if kind[1:].startswith("fifo") else (kind, "", "")
    if name == "pfifo":
        return {"rate": rate, "buffer": f"{size}pkt"}
    if name == "bfifo":
        frames = int(size.removesuffix("k")) * 1024 // (1500 + ETHERNET_BYTES)
        return {"rate": rate, "buffer": f"{frames}pkt"}
    if name not in LIMITS:
        raise ScenarioError(f"unknown discipline {kind} of a router")
    queue: dict[str, Any] = {"kind": name, "rules": "linux"}
    if name == "pie":
        # Defaults of Linux 4, whose burst allowance is 100 ms.
        queue |= {"rules": "linux-4", "target": "16ms", "update": "32ms", "burst": "100ms"}
    return {"rate": rate, "buffer": LIMITS[name], "queue": queue}


def count_flows(groups: dict[FlowGroup, list[float]]) -> list[tuple[FlowGroup, int]]:
    """Return the groups with their numbers of flows."""
    return list(Counter({group: len(rates) for group, rates in groups.items()}).items())
