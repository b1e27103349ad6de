"""Latency of a transfer with start-up (Cardwell, Savage, Anderson: "Modeling TCP latency", 2000).

The latency of d packets consists of the handshake, one slow start until the first loss, the cost of
that loss, and the time for the remaining data at the rate of PFTK. Equation numbers are from the
paper (INFOCOM 2000). p is the loss ratio, b the number of packets per ACK, gamma = 1 + 1/b the
growth of the window per round.

(5) counts the lost packet and equals d + 1 without loss: it is limited to d. The window at the
first loss (11) is limited to W_max in Q (17). The rate (22) is PFTK's rate (31)
with delivered instead of sent packets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tcpcast.array_types import Floats
from tcpcast.models.domain import broadcast_arrays, require_not_negative, to_checked_arrays
from tcpcast.models.pftk import throughput, timeout_probability, timeout_sequence_s
from tcpcast.process.errors import DomainError

SYN_TIMEOUT_S = 3.0
"""T_s when the paper was written (RFC 1122); RFC 6298 (2.1) has 1 s."""

MAX_HANDSHAKE_LOSS = 0.5
"""Loss ratio from which the expected time of a handshake is infinite, because timeouts double."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardwellLatency:
    """The parts of a transfer's expected latency; arrays of the broadcast shape, seconds.

    Attributes
    ----------
    connection_s
        E[L_h] (4), or 0.
    slow_start_s
        E[T_ss] (15).
    first_loss_s
        E[T_loss] (20).
    congestion_avoidance_s
        E[T_ca] (24).
    delayed_ack_s
        E[T_delack].
    slow_start_pkts
        E[d_ss] (5), at most d.
    slow_start_window_pkts
        E[W_ss] (11), at most W_max.
    """

    connection_s: Floats
    slow_start_s: Floats
    first_loss_s: Floats
    congestion_avoidance_s: Floats
    delayed_ack_s: Floats
    slow_start_pkts: Floats
    slow_start_window_pkts: Floats

    @property
    def latency_s(self) -> Floats:
        """Total latency: the data transfer (25) and the handshake."""
        return np.asarray(
            self.connection_s
            + self.slow_start_s
            + self.first_loss_s
            + self.congestion_avoidance_s
            + self.delayed_ack_s
        )


def connection_latency_s(
    *,
    rtt_s: ArrayLike,
    forward_loss_ratio: ArrayLike = 0.0,
    reverse_loss_ratio: ArrayLike = 0.0,
    syn_timeout_s: ArrayLike = SYN_TIMEOUT_S,
) -> Floats:
    """Return E[L_h] (4): the time from the first SYN to the arrival of the SYN-ACK.

    E[L_h] = RTT + T_s ((1 - p_r)/(1 - 2 p_r) + (1 - p_f)/(1 - 2 p_f) - 2), where the timeout
    doubles without limit.

    Parameters
    ----------
    rtt_s
        RTT in seconds, above 0.
    forward_loss_ratio, reverse_loss_ratio
        p_f and p_r, the losses of SYN and SYN-ACK, at least 0 and below 1/2, where the expectation
        becomes infinite.
    syn_timeout_s
        T_s in seconds, above 0. All arguments are broadcast.

    Returns
    -------
    ndarray
        Seconds, of the broadcast shape.

    Raises
    ------
    DomainError
        An argument outside its domain.
    """
    rtt, timeout = to_checked_arrays(rtt_s=rtt_s, syn_timeout_s=syn_timeout_s)
    excess = sum(
        1 / (1 - 2 * ratio) * ratio
        for ratio in (
            _to_handshake_loss_array("forward_loss_ratio", forward_loss_ratio),
            _to_handshake_loss_array("reverse_loss_ratio", reverse_loss_ratio),
        )
    )
    return np.asarray(rtt + timeout * excess)


def cardwell_latency(
    *,
    size_pkts: ArrayLike,
    rtt_s: ArrayLike,
    t0_s: ArrayLike,
    loss_ratio: ArrayLike,
    initial_window_pkts: ArrayLike = 1,
    packets_per_ack: ArrayLike = 2,
    receiver_window_pkts: ArrayLike = np.inf,
    delayed_ack_s: float = 0.1,
    connection: bool = True,
    reverse_loss_ratio: ArrayLike = 0.0,
    syn_timeout_s: ArrayLike = SYN_TIMEOUT_S,
) -> CardwellLatency:
    """Return the expected latency of a transfer and its parts.

    Parameters
    ----------
    size_pkts
        d in packets, at least 1 and finite.
    rtt_s, t0_s
        RTT and T0, the mean first timeout, in seconds, above 0.
    loss_ratio
        p, above 0 and below 1; below 1/2 if ``connection`` is set.
    initial_window_pkts
        w_1 in packets, at least 1 and finite; W_max caps it.
    packets_per_ack
        b, at least 1.
    receiver_window_pkts
        W_max in packets, at least 1; ``inf`` for unlimited.
    delayed_ack_s
        Mean delay of the first ACK if w_1 is below b, at least 0; by default half of a timer's
        period of 200 ms.
    connection
        Whether to include the handshake. The SYN is lost like data, the SYN-ACK with
        ``reverse_loss_ratio``.
    reverse_loss_ratio, syn_timeout_s
        As in :func:`connection_latency_s`. All arrays are broadcast.

    Returns
    -------
    CardwellLatency
        Arrays of the broadcast shape, in seconds and packets.

    Raises
    ------
    DomainError
        An argument outside its domain.
    """
    size, rtt, t0, p, b, max_window, first = to_checked_arrays(
        size_pkts=size_pkts,
        rtt_s=rtt_s,
        t0_s=t0_s,
        loss_ratio=loss_ratio,
        packets_per_ack=packets_per_ack,
        receiver_window_pkts=receiver_window_pkts,
        initial_window_pkts=initial_window_pkts,
    )
    first = np.minimum(first, max_window)
    if not (np.all(np.isfinite(size)) and np.all(np.isfinite(first))):
        raise DomainError("size_pkts and initial_window_pkts must be finite")
    require_not_negative("delayed_ack_s", delayed_ack_s)
    start = np.zeros(())
    if connection:
        start = connection_latency_s(
            rtt_s=rtt,
            forward_loss_ratio=p,
            reverse_loss_ratio=reverse_loss_ratio,
            syn_timeout_s=syn_timeout_s,
        )
    lossy = -np.expm1(size * np.log1p(-p))  # l_ss (16)
    begun = np.minimum(lossy * (1 - p) / p + 1, size)  # (5)
    window = np.minimum(_slow_start_window(begun, first, b), max_window)
    slow = rtt * _slow_start_rounds(begun, first, b, max_window)
    timeouts = timeout_probability(window_pkts=np.maximum(window, 1.0), loss_indication_ratio=p)
    sequence = timeout_sequence_s(t0_s=t0, loss_indication_ratio=p)
    lost = lossy * (timeouts * sequence + (1 - timeouts) * rtt)
    rest = (size - begun) / _arrival_rate_pps(rtt, t0, p, b, max_window)
    wait = np.where(first < b, delayed_ack_s, 0.0)
    return CardwellLatency(
        **broadcast_arrays(
            connection_s=start,
            slow_start_s=slow,
            first_loss_s=lost,
            congestion_avoidance_s=rest,
            delayed_ack_s=wait,
            slow_start_pkts=begun,
            slow_start_window_pkts=window,
        )
    )


def _slow_start_window(sent: Floats, first: Floats, b: Floats) -> Floats:
    """Return E[W_ss] (11), where (gamma - 1)/gamma = 1/(b + 1)."""
    return np.asarray((sent + first * b) / (b + 1))


def _slow_start_rounds(sent: Floats, first: Floats, b: Floats, max_window: Floats) -> Floats:
    """Return E[T_ss]/RTT (15): rounds with a growing window, then with W_max."""
    growth = np.log1p(1 / b)
    free = np.log1p(sent / (b * first)) / growth
    cap = np.where(np.isinf(max_window), 1.0, max_window)
    grown = b * ((1 + 1 / b) * cap - first)  # packets sent until the window reaches W_max
    capped = np.log(cap / first) / growth + 1 + (sent - grown) / cap
    return np.where(_slow_start_window(sent, first, b) > max_window, capped, free)


def _arrival_rate_pps(rtt: Floats, t0: Floats, p: Floats, b: Floats, max_window: Floats) -> Floats:
    """Return R (22): the delivered packets per second of the cycle of (31)."""
    sent = throughput(
        rtt_s=rtt,
        t0_s=t0,
        loss_indication_ratio=p,
        packets_per_ack=b,
        receiver_window_pkts=max_window,
    )
    odds, window, share = (1 - p) / p, sent.window_pkts, sent.timeout_probability
    arrive = (odds + window / 2 + share) / (odds + window + share / (1 - p))
    return np.asarray(sent.rate_pps * arrive)


def _to_handshake_loss_array(name: str, values: ArrayLike) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if not np.all((array >= 0) & (array < MAX_HANDSHAKE_LOSS)):
        raise DomainError(
            f"{name} must be at least 0 and below 1/2 for a handshake: at a larger value, the "
            "expected time of the handshake is infinite"
        )
    return array
