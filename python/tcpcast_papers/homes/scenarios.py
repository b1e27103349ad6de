"""Runs of flent as scenarios: a client, a router with a shaper in each direction, and a server.

The router's shaper is CAKE or HTB, which count Ethernet headers; netem adds half of the RTT on each
side. The client and the server add 0.5 ms.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tcpcast.errors import ScenarioError
from tcpcast.measurements.line_test import FlowGroup, class_tables, group_of_series
from tcpcast.measurements.traffic_shaping import ETHERNET_BYTES, HTB_BURST, ip_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable

HOSTS_DELAY_MS = 0.5
"""Round-trip delay of hosts and router, ms: the ping through an idle queue beside load."""

SOCKET_BUFFERS = "linux-5.15"
"""Third values of tcp_rmem and tcp_wmem at all hosts, 6 and 4 MiB: those of Linux 5.15."""

FLOW = re.compile(r"TCP (?P<direction>download|upload)(?P<words>[^=]*)=(?P<mbit>[\d.]+)", re.ASCII)

KERNEL = "4.14"
"""Rules of the hosts, Linux 4.3 to 4.14."""

LIMITS = {"fq_codel": "10240pkt", "codel": "10000pkt", "pie": "10000pkt"}
"""Limits that tc showed."""


def read_flows(text: str) -> dict[FlowGroup, list[float]]:
    """Return the rates of the flows in Mbit/s by group, from flent's names of the flows.

    Parameters
    ----------
    text
        Such as ``TCP upload Cubic BE=4.2;TCP download BE2=31.5``; CUBIC without a name.
    """
    groups: dict[FlowGroup, list[float]] = {}
    for match in FLOW.finditer(text):
        group = group_of_series(match["direction"], match["words"])
        groups.setdefault(group, []).append(float(match["mbit"]))
    return groups


def flent_classes(
    flows: Iterable[tuple[FlowGroup, int]],
    *,
    rtt_ms: float,
    ecn: bool = False,
    paced: Iterable[str] = (),
    bursts: bool = False,
    **own: Any,
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
    paced
        Directions whose senders have ``fq`` on their interface, which paces all flows.
    bursts
        Whether the queues of the router hold bursts of segmentation offload.
    own
        Further keys of all flows.
    """
    tcp = {"kernel": KERNEL, "socket_buffers": SOCKET_BUFFERS} | own
    if bursts:
        tcp["tso"] = "auto"
    rtt_ms += HOSTS_DELAY_MS
    return class_tables(flows, rtt_ms=rtt_ms, ecn=ecn, paced=tuple(paced), **tcp)


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
        return {"rate": rate, "buffer": ip_bytes(1024 * int(size.removesuffix("k")))}
    if name not in LIMITS:
        raise ScenarioError(f"unknown discipline {kind} of a router")
    queue: dict[str, Any] = {"kind": name, "rules": "linux"}
    if name == "pie":
        # Defaults of Linux 4, whose burst allowance is 100 ms.
        queue |= {"rules": "linux-4", "target": "16ms", "update": "32ms", "burst": "100ms"}
    return {"rate": rate, "buffer": LIMITS[name], "queue": queue}
