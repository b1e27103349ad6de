"""How much a simulation of one path takes: for how long, of how many transfers, until when."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from tcpcast.drift import MIN_CYCLES
from tcpcast.engines.formula.feed import MIN_LOSS
from tcpcast.models.cubic import DECREASE, SCALE, cubic_response
from tcpcast.scenario.modern_tcp import RATE_BASED, control_of, is_modern
from tcpcast.units import LARGEST_TIME

DURATION_S = 300.0
DURATION_RTTS = 1000.0
"""What a simulation of the path takes: so long, or so many round trips if that is longer."""

LOSSES = 400.0
"""Under random loss it takes about so many losses, if that is longer: its rate follows from when
they come, and with few the rate in the long run is that of some lucky or unlucky minutes."""

HEAVY_LOSS, RARELY_SENT = 0.1, 100.0
"""Beyond this loss flows mostly wait for their timers, so a run of few is so many times as long."""

MOST_PACKETS = 2e7
LEAST_SHARE = 0.2
"""With today's TCP a run of more packets is shorter, down to this share: it is to end in time."""

MOST_TRANSFERRED = 1e8
TRANSFERS, FEWEST_TRANSFERS = 1000, 20
"""How many transfers a simulation has: fewer if they had more packets than these in all, but not
fewer than an interval takes."""

MOST_SIMULATED = 2e7
"""A transfer of more packets is not simulated: its rate is the one in the long run, and simulating
some of them from end to end takes minutes."""

MOST_COMPARED = 6e7
"""A simulation of more packets is not repeated with other buffers: a repetition takes up to some
15 s."""

MAX_WALL = "30s"
MAX_WALL_OF_TODAY = "120s"
"""A run of today's TCP has a known number of packets: it is cut short on a busy machine alone."""


@dataclass(frozen=True, kw_only=True)  # without slots, for what is computed once
class PathToSimulate:
    """A path, as far as the effort of its simulation depends on it.

    ``link_pps`` is the rate of the link in packets per second, inf without a limit, and
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
        """Packets per second that all flows send by a formula of their window; inf where none is.

        By CUBIC's response function or, for windows of Reno, the square root of 3/(2p).
        """
        control = control_of(self.stack)
        if self.loss_ratio < MIN_LOSS or self.rtt_s <= 0 or control in RATE_BASED:
            return math.inf
        if control == "cubic":
            one = float(cubic_response(rtt_s=self.rtt_s, loss_ratio=self.loss_ratio).rate_pps)
        else:
            one = math.sqrt(1.5 / self.loss_ratio) / self.rtt_s
        return self.flows * one

    @property
    def pps(self) -> float:
        """Packets per second that all flows send, about; inf where nothing limits them."""
        return min(self.link_pps, self.loss_limited_pps)

    @property
    def cycle_s(self) -> float:
        """Time from one loss of a flow to its next one at a full buffer; 0 where none is lost so.

        Reno's window grows by one packet per round trip, by half of the largest one in all; CUBIC
        needs its time K (RFC 9438, section 4.2) or as long as Reno, whichever is shorter.
        """
        control = control_of(self.stack)
        full_pkts = self.link_pps * self.rtt_s + self.buffer_pkts
        if control in RATE_BASED or not math.isfinite(full_pkts):
            return 0.0
        window = full_pkts / self.flows
        reno_s = window / 2 * full_pkts / self.link_pps
        cubic_s = (window * (1 - DECREASE) / SCALE) ** (1 / 3)
        return min(reno_s, cubic_s) if control == "cubic" else reno_s


def simulated_s(path: PathToSimulate) -> float:
    """Return how long a simulation of flows that never end takes, in simulated seconds."""
    longest = float(LARGEST_TIME)
    seconds = max(DURATION_S, min(DURATION_RTTS * path.rtt_s, longest))
    if path.loss_ratio > HEAVY_LOSS:
        seconds = min(seconds * max(1.0, RARELY_SENT / path.flows), longest)
    pps = path.pps
    affordable = MOST_PACKETS / pps if 0 < pps < math.inf else math.inf
    if path.loss_limited_pps < path.link_pps:
        enough = LOSSES / (path.loss_limited_pps * path.loss_ratio)
    else:
        enough = MIN_CYCLES * path.cycle_s
    seconds = min(max(seconds, math.ceil(min(enough, affordable))), longest)
    if not is_modern(path.stack):
        return seconds
    return max(LEAST_SHARE * seconds, min(seconds, affordable))


def max_wall(path: PathToSimulate) -> str:
    """Return the longest time that a simulation may take, as scenarios write it."""
    bounded = is_modern(path.stack) and 0 < path.pps < math.inf
    return MAX_WALL_OF_TODAY if bounded else MAX_WALL


def affords_comparison(packets: float) -> bool:
    """Return True if a simulation of this many packets is also run with two other buffers."""
    return packets <= MOST_COMPARED


def transfers(packets: float) -> int:
    """Return how many transfers of so many packets each a simulation has."""
    affordable = int(MOST_TRANSFERRED / max(packets, 1.0))
    return max(FEWEST_TRANSFERS, min(TRANSFERS, affordable))
