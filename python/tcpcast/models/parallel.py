"""Throughput of n parallel TCP flows on one path (Damjanovic, Welzl, Telek and Heiss, 2008).

Equation and algorithm numbers are the paper's. All flows have the same RTT and synchronised rounds;
a period ends with a loss event. There are two models with different measures of loss:

- ``loss_event_ratio``, p: loss events of any flow, at most one per flow and RTT, per packet sent
  (section II, algorithm 1);
- ``loss_event_ratio_cumulative``, p_e: loss events of the aggregate, at most one per RTT over all
  flows; with ``loss_ratio``, p_r, packets lost per packet sent (section IV, algorithm 2).

The default is the algorithms of the appendix as printed, with 1 + 32 p^2 for f(p).
``equations=True`` selects the equations of the text: the full f(p) of (23), Q = 1 up to a window of
3 (26), and at most n flows, not 1, that time out in an event (47). Here, at most n flows wait for a
timer at the same time. In the text, (24) can exceed n, which gives a negative rate.

Misprints: q1 of algorithm 1 lacks the parentheses of (27); the second fraction of (29) is
subtracted. At w = 3, (27) is 0.70, but (26) is 1; for smaller w, (27) is between 0.70 and 1.
Therefore the rate of the equations jumps at w = 3, but the rate of the algorithm is continuous. For
w <= 1, where algorithm 1 takes the power of a negative number, Q is 1, the limit from above.

There is no slow start except for that after a timeout, and no recovery time. The paper has neither
a receiver window nor a bottleneck: :func:`limited_rate_pps` limits B(n) by both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tcpcast.array_types import Floats
from tcpcast.models.bisection import bisect_largest_loss_ratio
from tcpcast.models.domain import broadcast_arrays, to_checked_arrays, to_count_array
from tcpcast.models.pftk import throughput, timeout_sequence_s
from tcpcast.process.errors import DomainError

__all__ = [
    "MAX_FLOWS",
    "ParallelThroughput",
    "cumulative_throughput",
    "flows_to_fill",
    "limited_rate_pps",
    "multiplied_pftk_rate_pps",
    "parallel_td_only_rate_pps",
    "parallel_throughput",
    "parallel_tolerated_loss_ratio",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelThroughput:
    """Results of a model for n flows; arrays of the broadcast shape.

    Attributes
    ----------
    rate_pps
        B_ext in packets/s, all flows, including retransmissions: (28) or (48).
    rounds
        E[X], rounds between loss events, (17) or (43).
    flow_window_pkts
        E[W_f], mean window of a flow that a loss event hits, in packets, (25) or (37).
    window_pkts
        E[W], mean total window of all flows at a loss event, in packets, (18) or (40).
    flows_hit
        j, number of flows that a loss event hits: 1, or min(n, p_r/p_e).
    timeouts_per_event
        Q_TO of (27), or the number of flows that time out in a loss event (47).
    flows_in_timeout
        E[nTO], number of flows waiting for a timer at the same time, at most n, (24) or (47).
    """

    rate_pps: Floats
    rounds: Floats
    flow_window_pkts: Floats
    window_pkts: Floats
    flows_hit: Floats
    timeouts_per_event: Floats
    flows_in_timeout: Floats


def parallel_throughput(
    *,
    flows: ArrayLike,
    rtt_s: ArrayLike,
    t0_s: ArrayLike,
    loss_event_ratio: ArrayLike,
    packets_per_ack: ArrayLike = 2,
    equations: bool = False,
) -> ParallelThroughput:
    """Return the model with per-flow loss events as input: algorithm 1, or (17) to (28).

    Parameters
    ----------
    flows
        n, an integer of at least 1.
    rtt_s
        RTT in seconds, above 0.
    t0_s
        T, duration of the first timeout of a sequence in seconds, above 0.
    loss_event_ratio
        p, loss events of any flow per packet sent, above 0 and below 1.
    packets_per_ack
        b, at least 1: 2 with delayed ACKs. All arguments are broadcast.
    equations
        Whether to use the equations with the full f(p) instead of the algorithm (see the package).

    Returns
    -------
    ParallelThroughput
        Arrays of the broadcast shape.

    Raises
    ------
    DomainError
        An argument outside its domain.

    Notes
    -----
    For T >= RTT the rate decreases in p. It increases in n, unless the flows hardly send: with T =
    4 RTT and b = 2, two flows have a lower total rate than one flow by the algorithm for p from
    0.0933 to 0.0983.
    """
    arrays = to_checked_arrays(
        flows=flows,
        rtt_s=rtt_s,
        t0_s=t0_s,
        loss_event_ratio=loss_event_ratio,
        packets_per_ack=packets_per_ack,
    )
    return per_flow_model(*arrays, equations=equations)


def cumulative_throughput(
    *,
    flows: ArrayLike,
    rtt_s: ArrayLike,
    t0_s: ArrayLike,
    loss_event_ratio_cumulative: ArrayLike,
    loss_ratio: ArrayLike,
    packets_per_ack: ArrayLike = 2,
    equations: bool = False,
) -> ParallelThroughput:
    """Return the model with loss events of the aggregate as input: algorithm 2, or (40) to (48).

    Parameters
    ----------
    flows, rtt_s, t0_s, packets_per_ack, equations
        As in :func:`parallel_throughput`.
    loss_event_ratio_cumulative
        p_e, loss events of the aggregate per packet sent, above 0 and below 1.
    loss_ratio
        p_r, packets lost per packet sent, above 0 and below 1. An event loses at least one packet,
        so p_r >= p_e; a measured p_r slightly below p_e is used unchanged (j below 1).

    Returns
    -------
    ParallelThroughput
        Arrays of the broadcast shape.

    Raises
    ------
    DomainError
        An argument outside its domain.
    """
    n, rtt, t0, p, packets_lost, b = to_checked_arrays(
        flows=flows,
        rtt_s=rtt_s,
        t0_s=t0_s,
        loss_event_ratio_cumulative=loss_event_ratio_cumulative,
        loss_ratio=loss_ratio,
        packets_per_ack=packets_per_ack,
    )
    lost = packets_lost / p
    hit = np.minimum(lost, n)
    rounds = _mean_rounds(n, p, b, hit)
    window = n * rounds / (2 * b) * (1 + 3 * n / hit)  # (40)
    timeouts = np.minimum(lost * n / window, n if equations else 1.0)
    return _rate_with_timeouts(
        n, rtt, t0, p, b, hit=hit, rounds=rounds, timeouts=timeouts, equations=equations
    )


def parallel_td_only_rate_pps(
    *,
    flows: ArrayLike,
    rtt_s: ArrayLike,
    loss_event_ratio: ArrayLike,
    packets_per_ack: ArrayLike = 2,
) -> Floats:
    """Return B = 1/(p E[X] RTT), the rate when no loss event is a timeout (19).

    Parameters and errors as in :func:`parallel_throughput`; packets/s, of the broadcast shape.
    """
    n, rtt, p, b = to_checked_arrays(
        flows=flows,
        rtt_s=rtt_s,
        loss_event_ratio=loss_event_ratio,
        packets_per_ack=packets_per_ack,
    )
    rounds = _mean_rounds(n, p, b, np.asarray(1.0))
    return np.asarray(1 / (p * rounds * rtt))


def multiplied_pftk_rate_pps(
    *,
    flows: ArrayLike,
    rtt_s: ArrayLike,
    t0_s: ArrayLike,
    loss_indication_ratio: ArrayLike,
    packets_per_ack: ArrayLike = 2,
    receiver_window_pkts: ArrayLike = np.inf,
) -> Floats:
    """Return n times the full PFTK model, the comparison of section VII.

    ``flows`` as in :func:`parallel_throughput`; ``rtt_s``, ``t0_s``, ``loss_indication_ratio``,
    ``packets_per_ack`` and ``receiver_window_pkts`` as in :func:`tcpcast.models.pftk.throughput`;
    packets/s, of the broadcast shape.
    """
    one = throughput(
        rtt_s=rtt_s,
        t0_s=t0_s,
        loss_indication_ratio=loss_indication_ratio,
        packets_per_ack=packets_per_ack,
        receiver_window_pkts=receiver_window_pkts,
    )
    return np.asarray(to_count_array("flows", flows) * one.rate_pps)


def per_flow_model(
    n: Floats, rtt: Floats, t0: Floats, p: Floats, b: Floats, *, equations: bool
) -> ParallelThroughput:
    """Return the model of section II for valid arguments."""
    hit = np.asarray(1.0)
    rounds = _mean_rounds(n, p, b, hit)
    window = 2 * n * rounds / b  # (25)
    # Q_TO of (27), with 1/w for p_lr and without the case w <= 3 of (26).
    kept = 1 - 1 / np.maximum(window, 1.0)
    cube = kept**3
    timeouts = np.asarray(np.minimum(1.0, (1 - cube) * (1 + cube - kept**window)))
    if equations:
        timeouts = np.where(window <= 3, 1.0, timeouts)  # (26)
    return _rate_with_timeouts(
        n, rtt, t0, p, b, hit=hit, rounds=rounds, timeouts=timeouts, equations=equations
    )


def _mean_rounds(
    n: Floats,
    p: Floats,
    b: Floats,
    hit: Floats,
) -> Floats:
    """Return E[X] of (43), which is (17) for ``hit`` = 1; n >= hit, so the sum is above 0."""
    u = p * b * hit
    linear = u * (2 * hit - n)
    root = np.sqrt(u * (24 * n * n + u * (n - 2 * hit) ** 2))
    return np.asarray((linear + root) / (6 * n * n * p))


def _rate_with_timeouts(
    n: Floats,
    rtt: Floats,
    t0: Floats,
    p: Floats,
    b: Floats,
    *,
    hit: Floats,
    rounds: Floats,
    timeouts: Floats,
    equations: bool,
) -> ParallelThroughput:
    """Return (28) or (48); ``timeouts`` is the number of flows that time out per loss event."""
    if equations:
        sequence = timeout_sequence_s(t0_s=t0, loss_indication_ratio=p)  # (23)
    else:
        sequence = t0 * (1 + 32 * p * p) / (1 - p)
    period = rounds * rtt
    waiting = np.minimum(timeouts * sequence / period, n)
    return ParallelThroughput(
        **broadcast_arrays(
            rate_pps=(1 - waiting / n) / (p * period) + waiting / (sequence * (1 - p)),
            rounds=rounds,
            flow_window_pkts=2 * n * rounds / (b * hit),
            window_pkts=n * rounds / (2 * b) * (1 + 3 * n / hit),
            flows_hit=hit,
            timeouts_per_event=timeouts,
            flows_in_timeout=waiting,
        )
    )


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
