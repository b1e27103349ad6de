"""Rates of n parallel flows on a path with a bottleneck and receiver windows."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tcpcast.array_types import Floats
from tcpcast.errors import DomainError
from tcpcast.models.bisection import bisect_largest_loss_ratio
from tcpcast.models.domain import to_checked_arrays
from tcpcast.models.parallel.throughput import per_flow_model

MAX_FLOWS = 2.0**52
"""Largest n that :func:`flows_to_fill` tries."""


def limited_rate_pps(
    *,
    flows: ArrayLike,
    rtt_s: ArrayLike,
    t0_s: ArrayLike,
    loss_event_ratio: ArrayLike,
    packets_per_ack: ArrayLike = 2,
    receiver_window_pkts: ArrayLike = np.inf,
    bottleneck_rate_pps: ArrayLike = np.inf,
    equations: bool = False,
) -> Floats:
    """Return min(B(n), n W_max/RTT, C): the rate of n flows, limited by loss, windows and link.

    The paper has neither of the two limits. The fixed p holds for random loss; if the flows
    themselves congest the link, p grows with n.

    Parameters
    ----------
    flows, rtt_s, t0_s, loss_event_ratio, packets_per_ack, equations
        As in :func:`parallel_throughput`.
    receiver_window_pkts
        W_max of each flow in packets, at least 1; ``inf`` for unlimited.
    bottleneck_rate_pps
        C in packets/s, above 0; ``inf`` for no bottleneck. All arguments are broadcast.

    Returns
    -------
    ndarray
        Total packets/s of all flows, of the broadcast shape.

    Raises
    ------
    DomainError
        An argument outside its domain.
    """
    n, rtt, t0, p, b, window = to_checked_arrays(
        flows=flows,
        rtt_s=rtt_s,
        t0_s=t0_s,
        loss_event_ratio=loss_event_ratio,
        packets_per_ack=packets_per_ack,
        receiver_window_pkts=receiver_window_pkts,
    )
    rate = per_flow_model(n, rtt, t0, p, b, equations=equations).rate_pps
    # C as an array; raise DomainError unless all values are above 0 or ``inf``.
    array = np.asarray(bottleneck_rate_pps, dtype=np.float64)
    if not np.all(array > 0):
        raise DomainError(f"bottleneck_rate_pps must be above 0, not {float(array.min())!r}")
    return np.asarray(np.minimum(np.minimum(rate, n * window / rtt), array))


def flows_to_fill(
    *,
    bottleneck_rate_pps: ArrayLike,
    rtt_s: ArrayLike,
    t0_s: ArrayLike,
    loss_event_ratio: ArrayLike,
    packets_per_ack: ArrayLike = 2,
    receiver_window_pkts: ArrayLike = np.inf,
    equations: bool = False,
) -> Floats:
    """Return the smallest n whose min(B(n), n W_max/RTT) at this p reaches the bottleneck's rate.

    Below this n, loss or the windows limit the flows; from this n on, the capacity does, and one
    more flow only adds loss.

    Parameters
    ----------
    bottleneck_rate_pps
        Capacity in packets/s, above 0.
    rtt_s, t0_s, loss_event_ratio, packets_per_ack, receiver_window_pkts, equations
        As in :func:`limited_rate_pps`; all arguments are broadcast.

    Returns
    -------
    ndarray
        Integers, of the broadcast shape: n whose rate is at least C, while the rate of n - 1 flows
        is below C. Several n may meet this condition if B decreases in n: at the jump at w = 3, or
        if nearly every flow waits for a timer.

    Raises
    ------
    DomainError
        An argument outside its domain, or a bottleneck that 2^52 flows do not fill.
    """
    capacity, rtt, t0, p, b, window = to_checked_arrays(
        bottleneck_rate_pps=bottleneck_rate_pps,
        rtt_s=rtt_s,
        t0_s=t0_s,
        loss_event_ratio=loss_event_ratio,
        packets_per_ack=packets_per_ack,
        receiver_window_pkts=receiver_window_pkts,
    )
    shape = np.broadcast_shapes(*(a.shape for a in (capacity, rtt, t0, p, b, window)))

    def fills(n: Floats) -> NDArray[np.bool_]:
        rate = per_flow_model(n, rtt, t0, p, b, equations=equations).rate_pps
        return np.asarray((rate >= capacity) & (n * window / rtt >= capacity))

    # Invariant: low flows do not fill the link, high flows do.
    low, high = np.zeros(shape), np.full(shape, MAX_FLOWS)
    if not np.all(fills(high)):
        raise DomainError("bottleneck_rate_pps is more than any number of flows can send")
    while np.any(high - low > 1):
        middle = np.maximum(np.floor((low + high) / 2), 1.0)
        enough = fills(middle)
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high


def parallel_tolerated_loss_ratio(
    *,
    flows: ArrayLike,
    rate_pps: ArrayLike,
    rtt_s: ArrayLike,
    t0_s: ArrayLike,
    packets_per_ack: ArrayLike = 2,
    equations: bool = False,
) -> Floats:
    """Return the largest p at which n flows reach a total rate: the inverse of (28).

    Parameters
    ----------
    rate_pps
        Total packets/s of all flows, including retransmissions, above 0.
    flows, rtt_s, packets_per_ack, equations
        As in :func:`parallel_throughput`.
    t0_s
        T in seconds, at least the RTT, like every timer: then the rate decreases in p.

    Returns
    -------
    ndarray
        p, of the broadcast shape. 1 if timeouts alone send enough, so that any loss is tolerated.
        With ``equations``, whose rate jumps down at w = 3, a rate within the jump has the p of the
        jump.

    Raises
    ------
    DomainError
        An argument outside its domain.
    """
    target, n, rtt, t0, b = to_checked_arrays(
        rate_pps=rate_pps, flows=flows, rtt_s=rtt_s, t0_s=t0_s, packets_per_ack=packets_per_ack
    )
    if np.any(t0 < rtt):
        raise DomainError("t0_s must be at least rtt_s: no timer is shorter than the RTT")

    def reached(p: Floats) -> NDArray[np.bool_]:
        rate = per_flow_model(n, rtt, t0, p, b, equations=equations).rate_pps
        return np.asarray(rate >= target)

    shape = np.broadcast_shapes(*(a.shape for a in (target, n, rtt, t0, b)))
    return bisect_largest_loss_ratio(reached, shape)
