"""A test of a line: its flows, its ping, and the scenario that repeats it."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.answer import Answer, Metric
from tcpcast.quantity import units
from tcpcast.scenario.modern_stacks import rules_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

DOWN, UP = "download", "upload"
LINKS = {DOWN: "down", UP: "up"}
"""Name of the link of each direction."""

PING = "ping"
"""Name of the class of the ping."""

STACKS = {
    "cubic": "linux-cubic",
    "reno": "linux-reno",
    "dctcp": "dctcp",
    "bbr": "linux-bbr",
    "bbr3": "bbr3",
    "prague": "prague",
    # Not simulated; both grow like Reno.
    "cdg": "linux-reno",
    "westwood": "linux-reno",
}
STAND_INS = ("cdg", "westwood")
"""Congestion controls for which Reno stands."""

DSCPS = {"BK": "cs1", "CS1": "cs1", "CS5": "cs5", "EF": "ef"}
"""DSCP of flent's names of codepoints; best effort has none."""

MIN_SECONDS, MAX_SECONDS = 5.0, 300.0
"""Shortest and longest simulation of a test."""

MIN_INTERVAL_S = 0.001
"""Shortest interval between pings."""


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


def group_of_series(direction: str, words: str, control: str = "cubic") -> FlowGroup:
    """Return the group of a flow from the words of its name.

    Parameters
    ----------
    direction
        ``download`` or ``upload``.
    words
        The rest of flent's name, such as ``Cubic CS1`` or ``BE2``.
    control
        Congestion control if the name has none.
    """
    typed = words.replace("::", " ").upper().split()
    control = next((word.lower() for word in typed if word.lower() in STACKS), control)
    mark = next((word for word in typed if word in DSCPS), "BE")
    return FlowGroup(direction, control, mark)


def class_tables(
    flows: Iterable[tuple[FlowGroup, int]],
    *,
    rtt_ms: float,
    ecn: bool,
    paced: Collection[str] = (),
    kernels: Mapping[str, str] | None = None,
    **tcp: Any,
) -> list[dict[str, Any]]:
    """Return the classes of flows, with a ping.

    Parameters
    ----------
    flows
        Groups and the number of flows of each.
    rtt_ms
        RTT of the idle line, ms.
    ecn
        Whether both ends negotiate ECN.
    paced
        Directions whose senders have ``fq`` on their interface, which paces all flows.
    kernels
        Versions of Linux of the senders, by direction.
    tcp
        Further keys of all flows.
    """
    way = {"route": ["down"], "back": ["up"], "delay": f"{rtt_ms / 2:g}ms"}
    classes = []
    for group, count in flows:
        own: dict[str, Any] = {"stack": STACKS.get(group.control, "linux-cubic")} | tcp
        if ecn or group.control == "dctcp":
            own["ecn"] = True
        if group.direction in paced:
            own["pacing"] = "fq"
        if kernels and group.direction in kernels:
            own["kernel"] = rules_of(kernels[group.direction])
        sends = {"sends": "client"} if group.direction == UP else {}
        dscp = DSCPS.get(group.mark, "cs0")
        classes.append(
            {"name": group.name, "flows": count, "dscp": dscp, "tcp": own, **sends, **way}
        )
    ping = {"kind": "ping", "interval": "200ms"}
    return [*classes, {"name": PING, "flows": 1, "traffic": ping, **way}]


def network_tables(
    links: Mapping[str, Mapping[str, Any]],
    classes: Sequence[dict[str, Any]],
    seconds: float,
    warmup_s: float = 0.0,
) -> dict[str, Any]:
    """Return a scenario of flows that start within 0.1 s, and the length and warm-up of its run."""
    start = {"distribution": "uniform", "low": "0s", "high": "100ms"}
    return {
        "link": {name: dict(link) for name, link in links.items()},
        "traffic": {"kind": "bulk", "start": start},
        "class": list(classes),
        "run": {"warmup": f"{warmup_s:g}s", "duration": f"{seconds:g}s"},
    }


def count_flows(groups: Mapping[FlowGroup, Sequence[float]]) -> list[tuple[FlowGroup, int]]:
    """Return the groups with their numbers of flows."""
    return list(Counter({group: len(rates) for group, rates in groups.items()}).items())


@dataclass(slots=True)
class LineTest:
    """A test of a line by another program.

    Attributes
    ----------
    program, title
        The program, and what the file says about the test.
    seconds, warmup_s
        Duration of the load, and of its beginning, from which no value comes.
    flows
        Rate of each flow by group, in bit/s.
    ping_s
        RTTs of the ping during the load, in seconds; empty without a ping.
    idle_rtt_s
        Smallest RTT before the load, in seconds; nan if the file has none.
    rtt_mean_s
        Mean RTT that the senders of a group measured, in seconds.
    links
        Links as the file states them, by direction; a direction without a shaper is missing.
    ecn
        Whether both ends use ECN.
    paced
        Directions whose senders have ``fq`` on their interface.
    kernels
        Versions of Linux of the senders, by direction, if the file states them.
    offloads
        Whether the router's queues hold bursts of segmentation offload.
    notes
        What the file contains and the scenario does not.
    """

    program: str
    title: str
    seconds: float
    flows: dict[FlowGroup, list[float]]
    ping_s: Sequence[float] = ()
    idle_rtt_s: float = math.nan
    rtt_mean_s: dict[FlowGroup, float] = field(default_factory=dict)
    warmup_s: float = 0.0
    links: dict[str, dict[str, Any]] = field(default_factory=dict)
    ecn: bool = False
    paced: frozenset[str] = frozenset()
    kernels: dict[str, str] = field(default_factory=dict)
    offloads: bool = False
    notes: list[str] = field(default_factory=list)

    def has_flows(self, direction: str) -> bool:
        """Return True if a flow of the test has this direction."""
        return any(group.direction == direction for group in self.flows)

    def rate_bps(self, direction: str) -> float:
        """Return the sum of the rates of a direction in bit/s."""
        return math.fsum(
            rate
            for group, rates in self.flows.items()
            if group.direction == direction
            for rate in rates
        )

    def scenario_tables(self, links: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Return the scenario of the test over links by direction."""
        tcp: dict[str, Any] = {"socket_buffers": "linux-5.15"}
        if self.offloads:
            tcp["tso"] = "auto"
        classes = class_tables(
            count_flows(self.flows),
            rtt_ms=1e3 * self.idle_rtt_s,
            ecn=self.ecn,
            paced=self.paced,
            kernels=self.kernels,
            **tcp,
        )
        if not len(self.ping_s):
            classes.pop()
        else:
            interval_s = (self.seconds - self.warmup_s) / len(self.ping_s)
            interval = units.format_duration(max(MIN_INTERVAL_S, float(f"{interval_s:.2g}")))
            classes[-1]["traffic"]["interval"] = interval
        named = {LINKS[direction]: link for direction, link in links.items()}
        seconds = float(f"{min(MAX_SECONDS, max(MIN_SECONDS, self.seconds)):.4g}")
        warmup_s = float(f"{seconds * self.warmup_s / self.seconds:.4g}")
        return {"name": self.title} | network_tables(named, classes, seconds, warmup_s)

    def answer(self) -> Answer:
        """Return the measured values as an answer of the program."""
        names = [group.name for group in self.flows]
        rates = [math.fsum(each) for each in self.flows.values()]
        means = [self.rtt_mean_s.get(group, math.nan) for group in self.flows]
        percentiles = {"delay_p50_s": 50, "delay_p95_s": 95}
        delays = {name: [math.nan] * len(names) for name in percentiles}
        metrics = {"goodput_bps": Metric(math.fsum(rates))}
        if len(self.ping_s):
            names, rates, means = [*names, PING], [*rates, math.nan], [*means, math.nan]
            for name, percent in percentiles.items():
                value = float(np.percentile(np.asarray(self.ping_s), percent))
                delays[name].append(value)
                metrics[name] = Metric(value)
        columns: dict[str, Any] = {
            "name": names,
            # No files: cells without a value are left out.
            "mean_size_pkts": [math.nan] * len(names),
            "goodput_bps": rates,
            "rtt_mean_s": means,
            **delays,
        }
        table = {name: np.array(column) for name, column in columns.items()}
        return Answer(
            self.program,
            metrics,
            {"by_class": table},
            kind="measurement",
            measured_s=self.seconds,
        )
