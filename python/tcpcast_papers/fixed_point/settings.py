"""The paper's networks and users, as scenarios: section 6, and sections 7 to 9."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcpcast.scenario import Scenario

from tcpcast_papers.fixed_point.published import BUFFER_PKTS, LINK_PPS, MEAN_SIZE_PKTS, MEAN_THINK_S
from tcpcast_papers.simulations import SEED

if TYPE_CHECKING:
    from collections.abc import Mapping

RULES: dict[str, dict[str, Any]] = {
    "B": {},
    "B, halved each time": {"halve_once": False},
    "B, no retransmission": {"retransmit": False},
    "C": {"growth": "every-ack", "whole_halves": False, "timeout": False},
}
"""Interpretations of rules that the paper leaves open, as keys of ``tcp.rules.max_plus``.

B: no growth with acks of packets sent before the last halving, and no further halving with their
losses; windows halved in whole packets; timeouts.
B, halved each time: each loss halves the window.
B, no retransmission: a timeout sends nothing.
C: growth with every ack, fractional windows, no timeouts.
"""

DROP_POLICIES = ("longest", "arriving")
"""Drop policies of the full shared buffer, as values of ``queue.drop``."""

FTP_FLOWS = 24
FTP_LINK_PPS = 100.0


@dataclass(frozen=True, slots=True)
class Length:
    """Length of a simulation: seconds measured after the warm-up, and number of replications."""

    measured_s: float
    warmup_s: float
    replications: int

    @property
    def total_s(self) -> float:
        """Simulated seconds of all replications."""
        return (self.measured_s + self.warmup_s) * self.replications

    def table(self) -> dict[str, Any]:
        """Return the table ``run``."""
        return {
            "duration": f"{self.warmup_s + self.measured_s:g}s",
            "warmup": f"{self.warmup_s:g}s",
            "replications": self.replications,
            "seed": SEED,
        }


@dataclass(frozen=True, slots=True)
class Noise:
    """Cross traffic of a backbone router: fractional Gaussian noise, H = 0.7.

    Parameters
    ----------
    load_percent
        Mean, in percent of the router's rate; the standard deviation is half of the mean.
    bin_s
        Time for which the noise keeps its rate. The paper's value is unknown; the default is
        fitted to the RTT of Table 4 at 2500 users, and to nothing else.
    """

    load_percent: float
    bin_s: float = 0.1

    def table(self) -> dict[str, Any]:
        """Return the table ``cross``."""
        return {
            "hop": "backbone",
            "model": "fgn",
            "mean": f"{self.load_percent:g}%",
            "sd": f"{self.load_percent / 2:g}%",
            "hurst": 0.7,
            "bin": f"{self.bin_s:g}s",
        }


NOISES: dict[int, Noise | None] = {1: None, 2: Noise(80), 3: Noise(100)}
"""The backbone router's noise in each case."""


@dataclass(frozen=True, slots=True)
class LocalLoop:
    """N users of HTTP on one local loop (section 7).

    Parameters
    ----------
    sources
        N.
    noise
        Cross traffic of the backbone router, which then has 80 Mbit/s; None for case 1.
    rule, drop, ties
        A key of :data:`RULES`, one of :data:`DROP_POLICIES`, and a value of ``queue.ties``.
    size_spread, think_spread
        Standard deviations divided by means (section 9).
    start
        As ``traffic.start``: ``"equilibrium"`` or ``"silent"``.
    tick_s
        Timer granularity (``TCPtick``).
    head_of_line
        Whether the first packet of each flow occupies the buffer, as in ``queue.head_of_line``.
    rounding
        Rounding of file sizes, as in ``traffic.size_rounding``.
    block_pkts
        n of the first definition of the instantaneous goodput (section 8).
    traced
        Whether to record all packets of the first source.
    """

    sources: int
    noise: Noise | None = None
    rule: str = "B"
    drop: str = "longest"
    ties: str = "random"
    size_spread: int = 1
    think_spread: int = 1
    start: str = "equilibrium"
    tick_s: float = 0.0
    head_of_line: str = "in buffer"
    rounding: str = "nearest"
    block_pkts: int | None = None
    traced: bool = False

    @property
    def flows(self) -> int:
        """Number of flows, N."""
        return self.sources

    @property
    def packets_per_s(self) -> float:
        """Approximate number of packets sent per second."""
        return min(LINK_PPS, self.sources * MEAN_SIZE_PKTS / MEAN_THINK_S)

    def scenario(self, length: Length, engine_tables: Mapping[str, Any]) -> Scenario:
        """Return the scenario, with additional tables for engines."""
        tables: dict[str, Any] = {
            "network": self._network(),
            "traffic": {
                "kind": "on-off",
                "sources": self.sources,
                "off": {
                    "distribution": "lognormal",
                    "mean": f"{MEAN_THINK_S}s",
                    "sd": f"{MEAN_THINK_S * self.think_spread}s",
                },
                "size": {
                    "distribution": "lognormal",
                    "mean": f"{MEAN_SIZE_PKTS}pkt",
                    "sd": f"{MEAN_SIZE_PKTS * self.size_spread}pkt",
                },
                "size_rounding": self.rounding,
                "connection": "persistent",
                "start": self.start,
            },
            "tcp": {
                "stack": "max-plus-reno",
                "receiver_window": 40,
                "rto_granularity": f"{self.tick_s:g}s",
                "rules": {"max_plus": RULES[self.rule]},
            },
            "run": length.table(),
            **engine_tables,
        }
        if self.noise is not None:
            tables["cross"] = [self.noise.table()]
        probes: dict[str, Any] = {}
        if self.block_pkts is not None:
            probes["goodput_packets"] = self.block_pkts
        if self.traced:
            probes["flows"] = [0]
        return Scenario.from_dict(tables | ({"probes": probes} if probes else {}))

    def _network(self) -> dict[str, Any]:
        # One of the four delays of 10 ms is behind the shared router. A packet also takes
        # 0.13 ms at the first access router and the IP router; acks take 60 ms back.
        loop: dict[str, Any] = {
            "rate": "100mbit",
            "buffer": "10000pkt",
            "queue": {"kind": "fq", "drop": self.drop, "head_of_line": self.head_of_line},
        }
        if self.drop != "arriving":
            loop["queue"]["ties"] = self.ties
        ends = {"egress": {"rate": "10mbit", "delay": "10ms"}, "return_delay": "60ms"}
        if self.noise is None:
            return {"ingress": {"rate": "10mbit", "delay": "30ms"}, "bottleneck": loop, **ends}
        backbone = {
            "name": "backbone",
            "rate": "80mbit",
            "delay": "10ms",
            "buffer": f"{BUFFER_PKTS}pkt",
            "shared": False,
        }
        hops = [backbone, {"name": "loop", **loop}]
        return {"ingress": {"rate": "10mbit", "delay": "20ms"}, "hop": hops, **ends}


@dataclass(frozen=True, slots=True)
class Ftp:
    """24 bulk flows on a router of 100 packets/s (section 6).

    Parameters
    ----------
    buffers
        ``"individual"`` or ``"shared"`` of fair queueing, or ``"fifo"``.
    buffer_pkts
        Size per flow, or in total.
    stack
        TCP: the paper's own, ``"max-plus-reno"``, or a stack with duplicate acks.
    rule, drop, head_of_line
        As for :class:`LocalLoop`.
    """

    buffers: str
    buffer_pkts: int
    stack: str = "max-plus-reno"
    rule: str = "B"
    drop: str = "longest"
    head_of_line: str = "in buffer"

    @property
    def flows(self) -> int:
        """Number of flows."""
        return FTP_FLOWS

    @property
    def packets_per_s(self) -> float:
        """Approximate number of packets sent per second."""
        return FTP_LINK_PPS

    def scenario(self, length: Length, engine_tables: Mapping[str, Any]) -> Scenario:
        """Return the scenario, with additional tables for engines."""
        queue: Any = {"kind": "fq", "buffers": self.buffers, "head_of_line": self.head_of_line}
        if self.buffers == "fifo":
            queue = "droptail"
        elif self.buffers == "shared":
            queue["drop"] = self.drop
        tcp: dict[str, Any] = {"stack": self.stack}
        if self.stack == "max-plus-reno":
            tcp["rules"] = {"max_plus": RULES[self.rule]}
        tables = {
            "network": {
                "bottleneck": {
                    "rate": "1.2mbit",
                    "delay": "5.5ms",
                    "buffer": f"{self.buffer_pkts}pkt",
                    "queue": queue,
                }
            },
            # Flows that start together stay synchronised.
            "traffic": {
                "kind": "bulk",
                "flows": FTP_FLOWS,
                "start": {"distribution": "uniform", "low": "0s", "high": "20s"},
            },
            "tcp": tcp,
            "run": length.table(),
            **engine_tables,
        }
        return Scenario.from_dict(tables)
