"""What n parallel flows are worth on a path with a bottleneck and receiver windows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpcast.errors import DomainError
from tcpcast.models.bisection import largest_loss_ratio
from tcpcast.models.domain import acknowledged, loss_ratios, positive, windows
from tcpcast.models.parallel.throughput import per_flow_model, whole_flows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

MOST_FLOWS = 2.0**52
"""The largest n that :func:`flows_to_fill` tries."""


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
) -> NDArray[np.float64]:
    """Return min(B(n), n W_max/RTT, C): what loss, the windows and the bottleneck leave n flows.

    The two caps are not the paper's. That p stays is what random loss does; on a link that the
    flows themselves congest, p grows with n.

    Parameters
    ----------
    flows, rtt_s, t0_s, loss_event_ratio, packets_per_ack, equations
        As in :func:`parallel_throughput`.
    receiver_window_pkts
        W_max of each flow in packets, at least 1; ``inf`` never limits.
    bottleneck_rate_pps
        C in packets/s, above 0; ``inf`` for no bottleneck. All broadcast against each other.

    Returns
    -------
    ndarray
        Packets/s of all flows together, of the broadcast shape.

    Raises
    ------
    DomainError
        An argument outside its domain.
    """
    n, rtt, t0 = whole_flows(flows), positive("rtt_s", rtt_s), positive("t0_s", t0_s)
    p = loss_ratios("loss_event_ratio", loss_event_ratio)
    b = acknowledged(packets_per_ack)
    window = windows("receiver_window_pkts", receiver_window_pkts)
    rate = per_flow_model(n=n, rtt=rtt, t0=t0, p=p, b=b, equations=equations).rate_pps
    return np.asarray(
        np.minimum(np.minimum(rate, n * window / rtt), _capacity(bottleneck_rate_pps))
    )


def marginal_rate_pps(
    *,
    flows: ArrayLike,
    rtt_s: ArrayLike,
    t0_s: ArrayLike,
    loss_event_ratio: ArrayLike,
    packets_per_ack: ArrayLike = 2,
    receiver_window_pkts: ArrayLike = np.inf,
    bottleneck_rate_pps: ArrayLike = np.inf,
    equations: bool = False,
) -> NDArray[np.float64]:
    """Return what one more flow adds to ``flows``: the rate of n + 1 less that of n, at the same p.

    On a link that the flows themselves congest the gain is smaller. Parameters, result and errors
    as in :func:`limited_rate_pps`.
    """
    fewer, more = (
        limited_rate_pps(
            flows=n,
            rtt_s=rtt_s,
            t0_s=t0_s,
            loss_event_ratio=loss_event_ratio,
            packets_per_ack=packets_per_ack,
            receiver_window_pkts=receiver_window_pkts,
            bottleneck_rate_pps=bottleneck_rate_pps,
            equations=equations,
        )
        for n in (whole_flows(flows), whole_flows(flows) + 1)
    )
    return np.asarray(more - fewer)


def flows_to_fill(
    *,
    bottleneck_rate_pps: ArrayLike,
    rtt_s: ArrayLike,
    t0_s: ArrayLike,
    loss_event_ratio: ArrayLike,
    packets_per_ack: ArrayLike = 2,
    receiver_window_pkts: ArrayLike = np.inf,
    equations: bool = False,
) -> NDArray[np.float64]:
    """Return the fewest flows whose min(B(n), n W_max/RTT) at this p reaches the bottleneck's rate.

    Below this n loss or the windows limit the flows, from it on the capacity does: one more adds
    nothing but loss of their own making.

    Parameters
    ----------
    bottleneck_rate_pps
        Capacity in packets/s, above 0.
    rtt_s, t0_s, loss_event_ratio, packets_per_ack, receiver_window_pkts, equations
        As in :func:`limited_rate_pps`; all broadcast against each other.

    Returns
    -------
    ndarray
        Whole numbers, of the broadcast shape: n whose rate is at least C, while that of n - 1 is
        not. Where B does not rise in n (nearly every flow waits for a timer; the jump at w = 3)
        there may be another.

    Raises
    ------
    DomainError
        An argument outside its domain, or a bottleneck that 2^52 flows do not fill.
    """
    most = positive("bottleneck_rate_pps", bottleneck_rate_pps)
    rtt, t0 = positive("rtt_s", rtt_s), positive("t0_s", t0_s)
    p = loss_ratios("loss_event_ratio", loss_event_ratio)
    b = acknowledged(packets_per_ack)
    window = windows("receiver_window_pkts", receiver_window_pkts)
    shape = np.broadcast_shapes(*(a.shape for a in (most, rtt, t0, p, b, window)))

    def fills(n: NDArray[np.float64]) -> NDArray[np.bool_]:
        rate = per_flow_model(n=n, rtt=rtt, t0=t0, p=p, b=b, equations=equations).rate_pps
        return np.asarray((rate >= most) & (n * window / rtt >= most))

    # Throughout, low flows do not fill the link and high do.
    low, high = np.zeros(shape), np.full(shape, MOST_FLOWS)
    if not np.all(fills(high)):
        raise DomainError("bottleneck_rate_pps is more than any number of flows would fill")
    while np.any(high - low > 1):
        middle = np.maximum(np.floor((low + high) / 2), 1.0)
        enough = fills(middle)
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high


def competing_flow_rate_pps(
    *,
    flows: ArrayLike,
    bottleneck_rate_pps: ArrayLike,
    rtt_s: ArrayLike,
    t0_s: ArrayLike,
    loss_event_ratio: ArrayLike,
    packets_per_ack: ArrayLike = 2,
    receiver_window_pkts: ArrayLike = np.inf,
    equations: bool = False,
) -> NDArray[np.float64]:
    """Return the rate of one flow that shares the bottleneck with ``flows``, in packets/s.

    The rate of n + 1 flows by n + 1: flows alike in RTT, loss and window have equal shares. Not in
    the paper, but its own assumption (identically distributed loss) taken to the bottleneck.

    Parameters and errors as in :func:`limited_rate_pps`, but for the bottleneck, which is finite.
    """
    n = whole_flows(flows) + 1
    all_flows = limited_rate_pps(
        flows=n,
        rtt_s=rtt_s,
        t0_s=t0_s,
        loss_event_ratio=loss_event_ratio,
        packets_per_ack=packets_per_ack,
        receiver_window_pkts=receiver_window_pkts,
        bottleneck_rate_pps=positive("bottleneck_rate_pps", bottleneck_rate_pps),
        equations=equations,
    )
    return np.asarray(all_flows / n)


def parallel_tolerated_loss_ratio(
    *,
    flows: ArrayLike,
    rate_pps: ArrayLike,
    rtt_s: ArrayLike,
    t0_s: ArrayLike,
    packets_per_ack: ArrayLike = 2,
    equations: bool = False,
) -> NDArray[np.float64]:
    """Return the largest p at which n flows together still reach a rate: the inverse of (28).

    Parameters
    ----------
    rate_pps
        Packets/s of all flows, retransmissions included, above 0.
    flows, rtt_s, packets_per_ack, equations
        As in :func:`parallel_throughput`.
    t0_s
        T in seconds, at least the RTT, as every timer is: from there on the rate falls in p.

    Returns
    -------
    ndarray
        p, of the broadcast shape. 1 where timers alone send so much that any loss is tolerated;
        of the ``equations``, whose rate jumps down at w = 3, a rate in the gap has the p of the
        jump.

    Raises
    ------
    DomainError
        An argument outside its domain.
    """
    target, n = positive("rate_pps", rate_pps), whole_flows(flows)
    rtt, t0 = positive("rtt_s", rtt_s), positive("t0_s", t0_s)
    b = acknowledged(packets_per_ack)
    if np.any(t0 < rtt):
        raise DomainError("t0_s must be at least rtt_s: no timer is shorter than the RTT")

    def reached(p: NDArray[np.float64]) -> NDArray[np.bool_]:
        rate = per_flow_model(n=n, rtt=rtt, t0=t0, p=p, b=b, equations=equations).rate_pps
        return np.asarray(rate >= target)

    shape = np.broadcast_shapes(*(a.shape for a in (target, n, rtt, t0, b)))
    return largest_loss_ratio(reached, shape)


def _capacity(values: ArrayLike) -> NDArray[np.float64]:
    """Return C as an array; raise DomainError unless all are above 0, ``inf`` included."""
    array = np.asarray(values, dtype=np.float64)
    if not np.all(array > 0):
        raise DomainError(f"bottleneck_rate_pps must be above 0, not {float(array.min())!r}")
    return array
