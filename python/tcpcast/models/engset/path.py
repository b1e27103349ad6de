"""Path of the model, and how a window fills it (section 3.3, Table 2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tcpcast.models.domain import require_not_negative, require_positive, require_window
from tcpcast.process.errors import DomainError

ROUNDING_TOLERANCE = 1e-9
"""Relative tolerance of comparisons that distinguish cases: 0.048/0.006 must count as 8."""


def round_trip_s(
    *,
    propagation_s: float,
    rates_bps: Sequence[float],
    packet_bytes: float,
    ack_bytes: float = 40,
) -> float:
    """Return RTT0, the time of one packet and its ACK on the idle path.

    Parameters
    ----------
    propagation_s
        Round-trip propagation delay D in seconds, at least 0.
    rates_bps
        Rate of each link in bit/s, above 0; ``inf`` for no transmission time.
    packet_bytes, ack_bytes
        Sizes on the wire in bytes, above 0; ACKs return over the same links at the same rates.

    Returns
    -------
    float
        D plus the transmission times of the packet and of the ACK on every link, in seconds.

    Raises
    ------
    DomainError
        A negative propagation delay, or a rate or size that is not above 0.

    Notes
    -----
    Section 3.3. The special setting (100, 1.5 and 0.128 Mbit/s, D = 300 ms, P = 576 B) has
    341.83 ms.
    """
    require_not_negative("propagation_s", propagation_s)
    require_positive("packet_bytes", packet_bytes)
    require_positive("ack_bytes", ack_bytes)
    for rate in rates_bps:
        if not rate > 0:
            raise DomainError(f"rates_bps must be above 0, not {rate!r}")
    return propagation_s + sum(8 * (packet_bytes + ack_bytes) / rate for rate in rates_bps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """A path of three links in the model (section 3.3).

    Parameters
    ----------
    rtt0_s
        RTT0 in seconds, at least the packet's transmission times over the three links.
    packet_bytes
        Packet size P on the wire in bytes, above 0.
    bottleneck_bps
        Rate C of the multiplexing link L2 in bit/s, above 0 and finite.
    ingress_bps, egress_bps
        Rates of a connection's own links L1 and L3 in bit/s, above 0; ``inf`` for no transmission
        time.

    Raises
    ------
    DomainError
        An argument outside the domain above.
    """

    rtt0_s: float
    packet_bytes: float
    bottleneck_bps: float
    ingress_bps: float = math.inf
    egress_bps: float = math.inf

    def __post_init__(self) -> None:
        for name in ("rtt0_s", "packet_bytes", "bottleneck_bps"):
            require_positive(name, getattr(self, name))
        for name in ("ingress_bps", "egress_bps"):
            if not getattr(self, name) > 0:
                raise DomainError(f"{name} must be above 0, not {getattr(self, name)!r}")
        rates = (self.ingress_bps, self.bottleneck_bps, self.egress_bps)
        least = sum(self.packet_bits / rate for rate in rates)
        if self.rtt0_s < least * (1 - ROUNDING_TOLERANCE):
            raise DomainError(
                f"rtt0_s is {self.rtt0_s!r}, less than the transmission time of one packet "
                f"on the three links, {least:.6g} s"
            )

    @property
    def packet_bits(self) -> float:
        """8 P."""
        return 8 * self.packet_bytes

    @property
    def delta_s(self) -> float:
        """Delta: transmission time of a packet on the multiplexing link, in seconds."""
        return self.packet_bits / self.bottleneck_bps

    @property
    def slowest_delta_s(self) -> float:
        """Delta*: transmission time of a packet on the slowest link, in seconds.

        The paper uses the larger of Delta2 and Delta3, because its senders always have 100 Mbit/s.
        Here the sender's link also counts, so that a slow sender's link limits the connection.
        """
        return self.packet_bits / min(self.bottleneck_bps, self.ingress_bps, self.egress_bps)

    @property
    def beta(self) -> float:
        """Beta = RTT0/Delta: bandwidth-delay product of the multiplexing link, in packets."""
        return self.rtt0_s / self.delta_s

    @property
    def slowest_beta(self) -> float:
        """Beta* = RTT0/Delta*: bandwidth-delay product of the slowest link, in packets."""
        return self.rtt0_s / self.slowest_delta_s


@dataclass(frozen=True, slots=True)
class Saturation:
    """Effect of a long connection's window on a link: a row of Table 2.

    ``ratio`` is r = floor(beta)/WR. ``onset`` is True at exactly r = 1, ``saturated`` below.
    ``queue_pkts`` is the long-run queue including the packet in transmission, 0 unless saturated.
    """

    ratio: float
    onset: bool
    saturated: bool
    queue_pkts: float


def window_saturation(*, beta: float, receiver_window_pkts: float) -> Saturation:
    """Determine whether a long connection saturates a link (Table 2).

    Parameters
    ----------
    beta
        Bandwidth-delay product of the link in packets, RTT0/Delta, at least 1.
    receiver_window_pkts
        WR in packets, at least 1; ``inf`` saturates every link, with an infinite queue.

    Returns
    -------
    Saturation
        Whether the connection saturates the link, the ratio r, and the queue.

    Raises
    ------
    DomainError
        An argument outside the domain above.
    """
    if not 1 - ROUNDING_TOLERANCE <= beta < math.inf:
        raise DomainError(f"beta must be at least 1 and finite, not {beta!r}")
    require_window("receiver_window_pkts", receiver_window_pkts)
    whole = math.floor(beta * (1 + ROUNDING_TOLERANCE))
    saturated = receiver_window_pkts > whole
    return Saturation(
        ratio=whole / receiver_window_pkts,
        onset=receiver_window_pkts == whole,
        saturated=saturated,
        queue_pkts=receiver_window_pkts - whole + 1 if saturated else 0.0,
    )
