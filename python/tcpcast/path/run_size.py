"""Size of a simulation of one path: duration, number of transfers, and time limit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from tcpcast.drift import MIN_CYCLES
from tcpcast.engines.formula.collect_inputs import MIN_LOSS
from tcpcast.models.cubic import CUBIC_BETA, CUBIC_C, cubic_response
from tcpcast.scenario.modern_tcp import RATE_BASED, get_congestion_control, is_modern
from tcpcast.units import MAX_TIME

DEFAULT_DURATION_S = 300.0
MIN_DURATION_RTTS = 1000.0
"""Minimum duration of a simulation in RTTs."""

MIN_LOSSES = 400.0
"""Approximate minimum number of losses in a simulation with random loss. With fewer losses, the
measured rate depends much on their random times."""

HEAVY_LOSS_RATIO, HEAVY_LOSS_DURATION_FACTOR = 0.1, 100.0
"""Loss ratio above which flows are mostly in RTO, and factor by which runs of few flows are
longer."""

MAX_PACKETS = 2e7
MIN_DURATION_SHARE = 0.2
"""Minimum share of the duration for runs of modern TCP, which are shortened if they have many
packets."""

MAX_TRANSFERRED_PKTS = 1e8
DEFAULT_TRANSFERS, MIN_TRANSFERS = 1000, 20
"""Default and minimum number of transfers of a simulation: the number is reduced for large
transfers, but an interval requires the minimum."""

MAX_SIMULATED_PKTS = 2e7
"""Maximum number of packets of a simulated transfer. Simulations of larger transfers take minutes,
and their rate is the long-term rate."""

MAX_COMPARED_PKTS = 6e7
"""Maximum number of packets (about 15 s) of a simulation that is repeated with other buffers."""

MAX_WALL = "30s"
MAX_WALL_MODERN = "120s"
"""Time limit of runs with modern TCP; only busy machines reach it."""


@dataclass(frozen=True, kw_only=True)  # without slots because of cached properties
class SimulatedPath:
    """Parameters of a path that determine the length of its simulation.

    ``link_pps`` is the rate of the link in packets per second, inf if unlimited, and
    ``buffer_pkts`` its buffer; ``stack`` is a preset's name.
    """

    rtt_s: float
    loss_ratio: float
    link_pps: float
    flows: int
    stack: str
    buffer_pkts: float = 0.0

    @cached_property
    def loss_limited_pps(self) -> float:
        """Total packets per second of all flows, limited by loss; inf if the loss is 0.

        The formula is CUBIC's response function or, for Reno, sqrt(3/(2p)) per RTT.
        """
        control = get_congestion_control(self.stack)
        if self.loss_ratio < MIN_LOSS or self.rtt_s <= 0 or control in RATE_BASED:
            return math.inf
        if control == "cubic":
            one = float(cubic_response(rtt_s=self.rtt_s, loss_ratio=self.loss_ratio).rate_pps)
        else:
            one = math.sqrt(1.5 / self.loss_ratio) / self.rtt_s
        return self.flows * one

    @property
    def send_rate_pps(self) -> float:
        """Approximate total packets per second of all flows; inf if nothing limits them."""
        return min(self.link_pps, self.loss_limited_pps)

    @property
    def cycle_s(self) -> float:
        """Time in seconds between two losses of a flow at a full buffer; 0 if no such loss occurs.

        Between losses, Reno's window grows by half of its maximum, one packet per RTT. CUBIC needs
        the time K (RFC 9438, section 4.2), or Reno's time if it is shorter.
        """
        control = get_congestion_control(self.stack)
        full_pkts = self.link_pps * self.rtt_s + self.buffer_pkts
        if control in RATE_BASED or not math.isfinite(full_pkts):
            return 0.0
        window = full_pkts / self.flows
        reno_s = window / 2 * full_pkts / self.link_pps
        cubic_s = (window * (1 - CUBIC_BETA) / CUBIC_C) ** (1 / 3)
        return min(reno_s, cubic_s) if control == "cubic" else reno_s


def choose_simulated_s(path: SimulatedPath) -> float:
    """Return the duration of a simulation of endless flows in simulated seconds."""
    longest = float(MAX_TIME)
    seconds = max(DEFAULT_DURATION_S, min(MIN_DURATION_RTTS * path.rtt_s, longest))
    if path.loss_ratio > HEAVY_LOSS_RATIO:
        seconds = min(seconds * max(1.0, HEAVY_LOSS_DURATION_FACTOR / path.flows), longest)
    pps = path.send_rate_pps
    affordable = MAX_PACKETS / pps if 0 < pps < math.inf else math.inf
    if path.loss_limited_pps < path.link_pps:
        enough = MIN_LOSSES / (path.loss_limited_pps * path.loss_ratio)
    else:
        enough = MIN_CYCLES * path.cycle_s
    seconds = min(max(seconds, math.ceil(min(enough, affordable))), longest)
    if not is_modern(path.stack):
        return seconds
    return max(MIN_DURATION_SHARE * seconds, min(seconds, affordable))


def max_wall_text(path: SimulatedPath) -> str:
    """Return the time limit of a simulation in the format of scenarios."""
    bounded = is_modern(path.stack) and 0 < path.send_rate_pps < math.inf
    return MAX_WALL_MODERN if bounded else MAX_WALL


def can_afford_other_buffers(packets: float) -> bool:
    """Return True if a simulation of this many packets is also run with two other buffers."""
    return packets <= MAX_COMPARED_PKTS


def choose_transfer_count(packets: float) -> int:
    """Return the number of transfers in a simulation, given the packets per transfer."""
    affordable = int(MAX_TRANSFERRED_PKTS / max(packets, 1.0))
    return max(MIN_TRANSFERS, min(DEFAULT_TRANSFERS, affordable))
