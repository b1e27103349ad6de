"""RFC 5348's throughput equation: the rate that is fair to TCP flows."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tcpcast.array_types import Floats
from tcpcast.models.bisection import bisect_largest_loss_ratio
from tcpcast.models.domain import to_checked_arrays, to_positive_array
from tcpcast.models.pftk.closed_form import time_per_packet_s


def tcp_friendly_rate_pps(
    *,
    rtt_s: ArrayLike,
    loss_event_ratio: ArrayLike,
    t0_s: ArrayLike | None = None,
    packets_per_ack: ArrayLike = 1,
) -> Floats:
    """Return RFC 5348's throughput equation in packets/s: the Reno-equivalent rate.

    X/s = 1/(R sqrt(2bp/3) + t_RTO (3 sqrt(3bp/8)) p (1 + 32 p^2)), section 3.1. It is (29)
    without the min(1, ...); times the segment size s it is X_Bps.

    Parameters
    ----------
    rtt_s
        R in seconds, above 0.
    loss_event_ratio
        p, loss events per packet sent, above 0 and below 1.
    t0_s
        t_RTO in seconds, above 0; None for 4 R, which the RFC recommends.
    packets_per_ack
        b, at least 1; the RFC recommends 1 even with delayed ACKs. All arguments are broadcast.

    Returns
    -------
    ndarray
        Packets/s, of the broadcast shape.

    Raises
    ------
    DomainError
        An argument outside its domain.
    """
    rtt, p, b = to_checked_arrays(
        rtt_s=rtt_s, loss_event_ratio=loss_event_ratio, packets_per_ack=packets_per_ack
    )
    t0 = 4 * rtt if t0_s is None else to_positive_array("t0_s", t0_s)
    return np.asarray(1 / time_per_packet_s(rtt, t0 * 3 * np.sqrt(3 * b * p / 8), p, b))


def tcp_friendly_loss_event_ratio(
    *,
    rate_pps: ArrayLike,
    rtt_s: ArrayLike,
    t0_s: ArrayLike | None = None,
    packets_per_ack: ArrayLike = 1,
) -> Floats:
    """Return the p at which RFC 5348's equation gives a rate (section 6.3.1), at most 1.

    ``rate_pps`` in packets/s, above 0; the others and the errors as in
    :func:`tcp_friendly_rate_pps`.
    """
    target, rtt, b = to_checked_arrays(
        rate_pps=rate_pps, rtt_s=rtt_s, packets_per_ack=packets_per_ack
    )
    t0 = 4 * rtt if t0_s is None else to_positive_array("t0_s", t0_s)

    def reached(p: Floats) -> NDArray[np.bool_]:
        rate = tcp_friendly_rate_pps(rtt_s=rtt, loss_event_ratio=p, t0_s=t0, packets_per_ack=b)
        return np.asarray(rate >= target)

    return bisect_largest_loss_ratio(
        reached, np.broadcast_shapes(target.shape, rtt.shape, t0.shape, b.shape)
    )
