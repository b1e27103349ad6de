"""The paper's two set-ups as scenarios, with the choices that the paper leaves open.

A dumbbell: a link of 1 ms at both ends of each flow, a shared link of 30 or 100 ms. Section III-A
has random loss on a shared link of 1 Gbit/s with RED; section III-B has drop-tail queues
of one bandwidth-delay product, and rates of 1 to 200 Mbit/s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

from tcpcast.scenario import Scenario
from tcpcast.scenario.changes import apply_changes

ACCESS_DELAY_S = 0.001
PACKET_BYTES = 1000
"""Default of ns-2. In section III-B the RTT grows by 26.7 % at 1 Mbit/s, which is 8 ms of 30 ms:
the transmission time of 1000 B."""


@dataclass(frozen=True, slots=True)
class OpenChoice:
    """Values for what the paper leaves open.

    Attributes
    ----------
    name
        Difference from the first choice.
    tcp
        Keys of ``[tcp]`` that override the preset ``parallel-newreno``, as pairs, so that the
        choice is hashable.
    packets_per_ack
        b.
    is_multcp
        One connection of MulTCP that emulates the n flows.
    """

    name: str
    tcp: tuple[tuple[str, Any], ...] = ()
    packets_per_ack: int = 1
    is_multcp: bool = False


NS2_DEFAULTS = OpenChoice("as ns-2 had it")


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a figure: a number of flows on a shared link.

    Attributes
    ----------
    flows
        n.
    loss
        Random loss on the shared link with RED, as a share; 0 for a drop-tail queue.
    rate_mbit
        Rate of the shared link.
    delay_s
        One-way delay of the shared link.
    rtt_spread
        Spread of the flows' round trips, relative to the mean.
    jitter_s
        Mean of an exponential delay behind the shared link.
    choice
        Values for what the paper leaves open.
    """

    flows: int
    loss: float = 0.0
    rate_mbit: int = 1000
    delay_s: float = 0.03
    rtt_spread: float = 0.0
    jitter_s: float = 0.0
    choice: OpenChoice = field(default=NS2_DEFAULTS)

    @property
    def rtt_s(self) -> float:
        """Propagation delay of the round trip."""
        return 2 * (self.delay_s + 2 * ACCESS_DELAY_S)

    @property
    def capacity_pps(self) -> float:
        """Capacity of the shared link, packets/s."""
        return self.rate_mbit * 1e6 / (8 * PACKET_BYTES)

    @property
    def cycle_s(self) -> float:
        """Approximate time between losses of a flow, in seconds.

        With random loss, the time is from the square-root formula. With a queue, the window grows
        from one to two bandwidth-delay products, in rounds of one to two idle RTTs.
        """
        if self.loss:
            return self.rtt_s / math.sqrt(1.5 * self.loss)
        packets = self.capacity_pps * self.rtt_s / self.flows
        return self.rtt_s * max(10.0, 1.5 * packets)

    @property
    def rate_pps(self) -> float:
        """Approximate total send rate of all flows."""
        if not self.loss:
            return self.capacity_pps
        return min(self.capacity_pps, self.flows / (self.cycle_s * self.loss))

    @property
    def losses_per_packet(self) -> float:
        """Approximate loss per packet: with a queue, one packet of each flow per cycle."""
        return self.loss or self.flows / (self.rate_pps * self.cycle_s)

    def scenario(
        self,
        *,
        duration_s: float,
        warmup_s: float,
        replications: int = 1,
        seed: int = 1,
        traced: bool = False,
    ) -> Scenario:
        """Return the scenario to simulate.

        Parameters
        ----------
        duration_s, warmup_s, replications, seed
            As in ``[run]`` of a scenario.
        traced
            Record every packet. With random loss slow start then ends near the window that the
            loss allows, so that it does not dominate the trace.
        """
        delayed_acks = self.choice.packets_per_ack == 2
        tcp: dict[str, Any] = {"stack": "parallel-newreno", "delayed_acks": delayed_acks}
        if traced and self.loss:
            tcp["initial_ssthresh"] = max(2, round(math.sqrt(1.5 / self.loss)))
        access = {
            "rate": "10gbit" if self.loss else "1gbit",
            "delay": f"{1e3 * ACCESS_DELAY_S:g}ms",
        }
        mean = {"distribution": "exponential", "mean": f"{1e3 * self.jitter_s:g}ms"}
        table: dict[str, Any] = {
            "name": "parallel",
            "network": {
                "packet": f"{PACKET_BYTES}B",
                "ingress": access,
                "bottleneck": self._bottleneck(),
                "egress": access,
                **({"jitter": mean} if self.jitter_s else {}),
            },
            "traffic": {"kind": "bulk"} | ({} if self.rtt_spread else {"flows": self.flows}),
            "class": self._classes() if self.rtt_spread else [],
            "tcp": tcp,
            "probes": {"flows": list(range(self.flows)) if traced else []},
            "run": {
                "duration": f"{duration_s:.9g}s",
                "warmup": f"{warmup_s:.9g}s",
                "replications": replications,
                "seed": seed,
            },
        }
        chosen = {f"tcp.{key}": value for key, value in self.choice.tcp}
        if self.choice.is_multcp:
            chosen |= {"traffic.flows": 1, "tcp.virtual_flows": self.flows}
        return Scenario.from_dict(apply_changes(table, chosen))

    def _bottleneck(self) -> dict[str, Any]:
        link: dict[str, Any] = {
            "rate": f"{self.rate_mbit}mbit",
            "delay": f"{1e3 * self.delay_s:g}ms",
        }
        if self.loss:
            return link | {"queue": "red", "loss": self.loss}
        return link | {"buffer": "1bdp"}

    def _classes(self) -> list[dict[str, Any]]:
        """Return a class for each flow, with RTTs around the RTT without a spread."""
        alike = replace(self, flows=1, rtt_spread=0.0).scenario(duration_s=2.0, warmup_s=1.0)
        rtt_s = alike.populations[0].rtt_s
        shares = [(index + 0.5) / self.flows - 0.5 for index in range(self.flows)]
        return [
            {
                "name": f"flow{index}",
                "flows": 1,
                "rtt": f"{1e3 * rtt_s * (1 + self.rtt_spread * share):.6f}ms",
            }
            for index, share in enumerate(shares)
        ]
