"""The path of a class: its links in order, and what a formula sees of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tcpcast.scenario.classes import Population
    from tcpcast.scenario.link import Link
    from tcpcast.scenario.network import Network


@dataclass(frozen=True, slots=True)
class PathLink:
    """A link on the route of a class.

    ``key`` is the dotted key of the link's table, and ``name`` its name in tables. ``instances``
    is the number of such links that the class uses: 1 if all its senders share the link. Metrics of
    the bottleneck refer to the ``measured`` link.
    """

    key: str
    name: str
    link: Link
    shared: bool = False
    measured: bool = False
    instances: int = 1


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


def view_path(group: Population, network: Network) -> PathView:
    """Return what a formula sees of the path of a class."""
    route, packet_bytes = group.route, network.packet_bytes
    on = min(route, key=lambda on: (on.link.rate_bps * on.instances, not on.measured))
    losses = {
        f"{on.key}.loss": loss.mean_ratio() for on in route if (loss := on.link.loss) is not None
    }
    if len(losses) == 1:  # exactly as specified, without rounding
        (loss_ratio,) = losses.values()
    else:
        loss_ratio = 1 - math.prod(1 - loss for loss in losses.values())
    return PathView(
        rtt_s=group.rtt_s,
        link=on,
        loss=loss_ratio,
        loss_keys=" and ".join(losses),
        packet_bytes=packet_bytes,
        capacity_pps=on.link.rate_bps / (8 * packet_bytes) * on.instances,
        buffer_pkts=network.buffer_pkts(on.link),
    )
