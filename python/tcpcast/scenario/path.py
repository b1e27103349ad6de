"""The path of a class: its links in order, and what a formula sees of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tcpcast.scenario.link import Link


@dataclass(frozen=True, slots=True)
class PathLink:
    """A link on the route of a class.

    ``key`` is the dotted key of the link's table, and ``name`` its name in tables. ``instances``
    is the number of such links that the class uses: 1 if all its senders share the link.
    ``buffer_pkts`` is the buffer in data packets. Metrics of the bottleneck refer to the
    ``measured`` link.
    """

    key: str
    name: str
    link: Link
    shared: bool = False
    measured: bool = False
    instances: int = 1
    buffer_pkts: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class PathView:
    """The path of one class as a formula sees it: one limiting link, an RTT and a loss.

    Attributes
    ----------
    rtt_s
        Base round-trip time, including transmission times.
    link
        The link with the lowest total capacity; among equal links the measured one, or the first.
    loss, loss_keys
        Specified loss ratio of the path, 1 - (1 - p1)(1 - p2)..., and the keys that specify it.
        Loss in bursts counts by its mean.
    packet_bytes
        Size of a packet, in which ``capacity_pps`` and ``buffer_pkts`` count.
    capacity_pps
        Capacity of ``link`` in packets/s, summed over its instances; inf if no link has a rate.
    buffer_pkts
        Buffer of ``link`` in packets, or inf.
    obstacles
        Why no formula applies, as a sentence without a full stop; "" if formulas apply.
    """

    rtt_s: float
    link: PathLink
    loss: float
    loss_keys: str
    packet_bytes: int
    capacity_pps: float
    buffer_pkts: float
    obstacles: str = ""

    @property
    def has_rate(self) -> bool:
        """True if a link limits the rate."""
        return math.isfinite(self.capacity_pps)

    @property
    def rate_key(self) -> str:
        """Key that specifies the capacity."""
        return f"{self.link.key}.rate" + ("" if self.link.shared else " times n")
