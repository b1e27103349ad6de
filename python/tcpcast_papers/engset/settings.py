"""The paper's names of settings, such as ``F12-N134-10M2M-R50-EE(7)-W44-B150``, as scenarios.

Tokens, in any order, joined by hyphens:

=================  ===============================================================================
``F12``            mean file size, packets
``N134``           number of sources
``10M2M``          rates of bottleneck and egress; ``2M10M100M`` names the ingress first (100M)
``R50``, ``D300``  RTT of the idle path (RTT0), or propagation alone (special case), ms
``E`` ``EP``       exponential, exponential body with Pareto tail
``EE(7)``          exponential body with exponential tail, c = 7
``C``              every file of exactly F packets (section 4.2)
``W44``, ``WR44``  receiver window, packets (44)
``B150``           buffer, packets, including the one in transmission (default: unlimited)
``P576``           packet size, bytes (1500)
=================  ===============================================================================

Other parameters are as in section 3.4: minimum size 3 packets, OFF times exponential with a
mean of 1 s (5 s in the special case, which has a ``D``), an initial window of 2 packets, an ack
for every packet, retransmission timeouts of at least 1 s.

RTT0 contains the propagation D and the transmission of a data packet and its ack on each link: with
D = 300 ms, this gives the printed 341.83 ms. Section 3.3 names only transmission times of data
packets. In the simulations of the other paths, acks therefore take no transmission time: their base
RTT is RTT0 without it, 49.8048 ms for 10M2M-R50. The section on the base RTT shows other RTTs.

Packet times on the links are multiples of each other, so many acks of different sources tie. The
paper does not order them; a host noise of 100 ns makes their order random.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcpcast.process.errors import ScenarioError
from tcpcast.scenario import Scenario
from tcpcast.scenario.traffic import OnOff

if TYPE_CHECKING:
    from tcpcast.scenario.distributions import Distribution

CONNECTIONS: dict[int, int] = {
    5: 800_000,
    12: 800_000,
    22: 450_000,
    36: 250_000,
    80: 120_000,
    120: 80_000,
}
"""Connections that the paper simulates per mean size in packets: 4 to 10 million packets."""

ACK_BITS = 8 * 40
MIN_FILE_PKTS = 3
TAIL_SHARE = "10%"

MAX_TRACED_BUFFER_PKTS = 150
"""Maximum buffer of a setting whose flows are traced; larger buffers cause too few timeouts."""

_RATES_PATTERN = re.compile(r"(?:\d+(?:\.\d+)?[kMG])+")
_RATE_PATTERN = re.compile(r"(\d+(?:\.\d+)?)([kMG])")
_DISTRIBUTION_PATTERN = re.compile(r"E|EP|C|EE\((\d+(?:\.\d+)?)\)")
_NUMBER_PATTERN = re.compile(r"(WR|[FNDWBP])(\d+)B?")
_RTT_PATTERN = re.compile(r"R(\d+(?:\.\d+)?)")
_RATE_UNITS = {"k": "kbit", "M": "mbit", "G": "gbit"}
_BITS_PER_MS = {"kbit": 1.0, "mbit": 1e3, "gbit": 1e6}
_FIELD_OF_TOKEN = {
    "F": "mean_size_pkts",
    "N": "sources",
    "D": "propagation_ms",
    "W": "receiver_window_pkts",
    "WR": "receiver_window_pkts",
    "B": "buffer_pkts",
    "P": "packet_bytes",
}
_EXAMPLE_NAME = "F12-N134-10M2M-R50-EE(7)-W44-B150"


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of the paper in numbers, with rates as in a scenario (``10mbit``).

    ``rtt_ms`` is RTT0. ``base_rtt_ms`` replaces the RTT of the simulated path.
    """

    mean_size_pkts: int
    sources: int
    bottleneck: str
    egress: str
    ingress: str = "100mbit"
    rtt_ms: float | None = None
    propagation_ms: int | None = None
    distribution: str = "E"
    receiver_window_pkts: int = 44
    buffer_pkts: int | None = None
    packet_bytes: int = 1500
    base_rtt_ms: float | None = None
    max_burst_pkts: int | None = None

    @property
    def connections(self) -> int:
        """Connections that the paper simulates for this mean size: about 10 million packets."""
        return CONNECTIONS.get(self.mean_size_pkts, round(9.6e6 / self.mean_size_pkts))

    @property
    def name(self) -> str:
        """The paper's name of the setting, with tokens in a fixed order."""
        rates = [
            r.replace("kbit", "k").replace("mbit", "M").replace("gbit", "G")
            for r in (self.ingress, self.bottleneck, self.egress)
        ]
        shown = "".join(rates if rates[0] != "100M" else rates[1:])
        path = f"R{self.rtt_ms:g}" if self.rtt_ms is not None else f"D{self.propagation_ms}"
        tokens = [f"F{self.mean_size_pkts}", f"N{self.sources}", shown, path, self.distribution]
        tokens.append(f"W{self.receiver_window_pkts}")
        tokens += [] if self.buffer_pkts is None else [f"B{self.buffer_pkts}"]
        tokens += [] if self.packet_bytes == 1500 else [f"P{self.packet_bytes}"]
        return "-".join(tokens)

    @property
    def size_and_window(self) -> str:
        """Size distribution and receiver window, for legends."""
        return f"{self.distribution}, WR = {self.receiver_window_pkts}"

    @property
    def mean_off_s(self) -> float:
        """Mean OFF time in seconds: 1, or 5 in the special case."""
        return 5.0 if self._is_special_case else 1.0

    @property
    def simulated_rtt_ms(self) -> float:
        """RTT of the simulated path without a queue; nan for the special case, which has a D."""
        if self.base_rtt_ms is not None:
            return self.base_rtt_ms
        if self.rtt_ms is None:
            return math.nan
        rates = (self.ingress, self.bottleneck, self.egress)
        per_ms = (float(rate[:-4]) * _BITS_PER_MS[rate[-4:]] for rate in rates)
        return self.rtt_ms - sum(ACK_BITS / bits for bits in per_ms)

    def scenario(self, *, connections: int | None = None, seed: int = 1) -> Scenario:
        """Return the scenario to simulate.

        Parameters
        ----------
        connections
            Completed after the warm-up; default: as in the paper.
        seed
            As in ``[run]`` of a scenario.
        """
        buffer = "unlimited" if self.buffer_pkts is None else f"{self.buffer_pkts}pkt"
        network: dict[str, Any] = {
            "packet": f"{self.packet_bytes}B",
            "ack": "40B",
            "ingress": {"rate": self.ingress},
            "bottleneck": {"rate": self.bottleneck, "buffer": buffer, "queue": "droptail"},
            "egress": {"rate": self.egress},
        }
        if self.propagation_ms is None:
            network["rtt"] = f"{self.simulated_rtt_ms:.9g}ms"
        else:
            network["bottleneck"]["delay"] = f"{self.propagation_ms / 2:g}ms"
        tcp: dict[str, Any] = {
            "stack": "engset-newreno",
            "receiver_window": self.receiver_window_pkts,
            "min_rto": "1s",
            "host_noise": "100ns",
        }
        if self.max_burst_pkts is not None:
            tcp["rules"] = {"max_burst": self.max_burst_pkts}
        return Scenario.from_dict(
            {
                "name": self.name,
                "network": network,
                "traffic": {
                    "kind": "on-off",
                    "sources": self.sources,
                    "off": {"distribution": "exponential", "mean": f"{self.mean_off_s:g}s"},
                    "size": self._size_table(),
                },
                "tcp": tcp,
                # The paper has no percentiles of file goodputs; their intervals take time.
                "probes": {"flows": list(range(self.traced_flows)), "goodput_shares": ["50%"]},
                "run": {
                    "transfers": connections or self.connections,
                    # Longer than slow start of every source, and a small part of the run.
                    "warmup": "100s" if self._is_special_case else "20s",
                    "seed": seed,
                    "replications": 1,
                },
            }
        )

    def size_distribution(self) -> Distribution[Any]:
        """Return the distribution of the file sizes as the simulator uses it."""
        traffic = self.scenario().traffic
        assert isinstance(traffic, OnOff)
        return traffic.size

    @property
    def traced_flows(self) -> int:
        """Number of traced flows: 0, unless files have one size or the buffer is small."""
        if self.distribution == "C":
            return 1
        return (
            min(6, self.sources) if (self.buffer_pkts or math.inf) <= MAX_TRACED_BUFFER_PKTS else 0
        )

    @property
    def _is_special_case(self) -> bool:
        return self.propagation_ms is not None

    def _size_table(self) -> dict[str, Any]:
        mean = f"{self.mean_size_pkts}pkt"
        if self.distribution == "C":
            return {"distribution": "constant", "value": mean}
        size: dict[str, Any] = {"mean": mean, "minimum": f"{MIN_FILE_PKTS}pkt"}
        if self.distribution == "E":
            return {"distribution": "exponential", **size}
        if self.distribution == "EP":
            return {"distribution": "ep", **size, "alpha": 1.5, "tail": TAIL_SHARE}
        return {
            "distribution": "ee",
            **size,
            "c": float(self.distribution[3:-1]),
            "tail": TAIL_SHARE,
        }


def read_setting(name: str) -> Setting:
    """Read a setting from its name in the paper.

    Parameters
    ----------
    name
        Tokens joined by hyphens, see the top of this module. ``100M-1.5M-128k`` may also be
        hyphenated. The loss in the heading of Table 7 (``L6.3%``) is a result, and is rejected.

    Raises
    ------
    ScenarioError
        A token is unknown or repeated, or a required token is missing.
    """
    fields: dict[str, Any] = {}
    rates: list[str] = []
    for token in name.split("-"):
        if _RATES_PATTERN.fullmatch(token):
            rates += [f"{float(n):g}{_RATE_UNITS[p]}" for n, p in _RATE_PATTERN.findall(token)]
        else:
            key, value = _parse_token(token, name)
            if key in fields:
                raise ScenarioError(f"setting '{name}' gives {key} twice; use it once")
            fields[key] = value
    if len(rates) not in {2, 3}:
        raise ScenarioError(
            f"setting '{name}' needs the rates of bottleneck and egress, or of ingress, bottleneck "
            f"and egress, such as 10M2M or 2M10M100M; it gives {len(rates)}"
        )
    fields.update(zip(("egress", "bottleneck", "ingress"), reversed(rates), strict=False))
    for key, token in (("mean_size_pkts", "F12"), ("sources", "N134")):
        if key not in fields:
            raise ScenarioError(f"setting '{name}' lacks {key}; add a token such as {token}")
    if ("rtt_ms" in fields) == ("propagation_ms" in fields):
        raise ScenarioError(f"setting '{name}' needs either R (RTT, ms) or D (propagation, ms)")
    return Setting(**fields)


def _parse_token(token: str, name: str) -> tuple[str, float | str]:
    if _DISTRIBUTION_PATTERN.fullmatch(token):
        return "distribution", token
    if rtt := _RTT_PATTERN.fullmatch(token):
        return "rtt_ms", float(rtt[1])
    match = _NUMBER_PATTERN.fullmatch(token)
    if match is None:
        raise ScenarioError(f"setting '{name}': cannot read '{token}'; for example {_EXAMPLE_NAME}")
    return _FIELD_OF_TOKEN[match[1]], int(match[2])
