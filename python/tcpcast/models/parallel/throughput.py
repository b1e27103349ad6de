"""The two models of the paper: algorithms 1 and 2, and the equations of the text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tcpcast.array_types import Floats
from tcpcast.models.domain import broadcast_arrays, to_checked_arrays, to_count_array
from tcpcast.models.pftk import throughput, timeout_sequence_s


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
