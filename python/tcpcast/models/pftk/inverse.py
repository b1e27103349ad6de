"""Inverse of PFTK: the loss at which a flow has a given rate."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tcpcast.array_types import Floats
from tcpcast.errors import DomainError
from tcpcast.models.bisection import bisect_largest_loss_ratio
from tcpcast.models.domain import to_checked_arrays
from tcpcast.models.pftk.closed_form import (
    approximate_rate_pps,
    throughput,
    window_limit_loss_ratio,
)


def tolerated_loss_ratio(
    *,
    rate_pps: ArrayLike,
    rtt_s: ArrayLike,
    t0_s: ArrayLike,
    packets_per_ack: ArrayLike = 2,
    receiver_window_pkts: ArrayLike = np.inf,
    continuous: bool = False,
) -> Floats:
    """Return the largest p at which the full model has a given rate: the inverse of (31).

    Parameters
    ----------
    rate_pps
        Rate in packets/s, above 0 and below W_max/RTT.
    rtt_s, packets_per_ack, receiver_window_pkts, continuous
        As in :func:`throughput`.
    t0_s
        T0 in seconds, at least the RTT, like every timer. All arguments are broadcast.

    Returns
    -------
    ndarray
        p, of the broadcast shape. 1 if timeouts alone send enough (about 1/(64 T0)), so that any
        loss is tolerated. For b above 2 the rate jumps down between the branches of (31); a rate
        within the jump has the p of the jump. For b below 2 it jumps up, and the result is the
        larger of two p.

    Raises
    ------
    DomainError
        An argument outside its domain, or a rate that no loss above 0 allows.
    """
    target, rtt, t0, max_window, b = to_checked_arrays(
        rate_pps=rate_pps,
        rtt_s=rtt_s,
        t0_s=t0_s,
        receiver_window_pkts=receiver_window_pkts,
        packets_per_ack=packets_per_ack,
    )
    if np.any(t0 < rtt):
        raise DomainError("t0_s must be at least rtt_s: no timer is shorter than the RTT")
    if np.any(target >= max_window / rtt):
        raise DomainError(
            "rate_pps must be below receiver_window_pkts/rtt_s, the rate without loss"
        )

    def rate(p: Floats, cap: ArrayLike) -> Floats:
        return throughput(
            rtt_s=rtt,
            t0_s=t0,
            loss_indication_ratio=p,
            packets_per_ack=b,
            receiver_window_pkts=cap,
            continuous=continuous,
        ).rate_pps

    # Each branch decreases in p: the loss-limited one determines p above the boundary.
    border = window_limit_loss_ratio(receiver_window_pkts=max_window, packets_per_ack=b)
    shape = np.broadcast_shapes(target.shape, rtt.shape, t0.shape, border.shape)
    free = bisect_largest_loss_ratio(lambda p: rate(p, np.inf) >= target, shape)
    if np.all(np.isinf(max_window)):
        return free
    limited = bisect_largest_loss_ratio(lambda p: rate(p, max_window) >= target, shape)
    return np.asarray(np.where(free > border, free, np.minimum(limited, border)))


def tolerated_loss_ratio_approximate(
    *,
    rate_pps: ArrayLike,
    rtt_s: ArrayLike,
    t0_s: ArrayLike,
    packets_per_ack: ArrayLike = 2,
    receiver_window_pkts: ArrayLike = np.inf,
) -> Floats:
    """Return the largest p at which (32) has a given rate, at most W_max/RTT.

    Parameters, result and errors as in :func:`tolerated_loss_ratio`, except that T0 need only be
    above 0.
    """
    target, rtt, t0, max_window, b = to_checked_arrays(
        rate_pps=rate_pps,
        rtt_s=rtt_s,
        t0_s=t0_s,
        receiver_window_pkts=receiver_window_pkts,
        packets_per_ack=packets_per_ack,
    )
    if np.any(target > max_window / rtt):
        raise DomainError(
            "rate_pps must be at most receiver_window_pkts/rtt_s, the rate without loss"
        )

    def reached(p: Floats) -> NDArray[np.bool_]:
        rate = approximate_rate_pps(rtt_s=rtt, t0_s=t0, loss_indication_ratio=p, packets_per_ack=b)
        return np.asarray(rate >= target)

    shape = np.broadcast_shapes(target.shape, rtt.shape, t0.shape, b.shape, max_window.shape)
    return bisect_largest_loss_ratio(reached, shape)
