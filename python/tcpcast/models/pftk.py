"""PFTK: throughput of one bulk TCP flow (Padhye, Firoiu, Towsley, Kurose, 1998).

Equation numbers are the paper's. p is the loss indication ratio: triple duplicates and timeout
sequences per packet sent. b is the packets an ack acknowledges. A rate counts every transmission,
repeated ones too. The model has no recovery time and no slow start.

Misprints: the sum of (22) ends at k = w - 1, as its closed form (23) says; the E[X] named
below (28) is (15), not (16); in the first branch of (31) E[W] is E[W_u].

The branches of (31) do not meet at E[W_u] = W_max unless b = 2. Paced by the window, a period
counts W_max packets in each round; growing, it counts by (8) to (12), in which the window steps up
after b whole rounds and the last round is half full. The two E[X] differ by (2 - b)/4 rounds there,
so that for b = 1 the rate jumps *up* as p grows across the border: by 4.4 % at W_max = 6, 3.6 % at
10 and 1.1 % at 44 (T0 = 2 RTT); for b above 2 it jumps down. ``continuous=True`` counts the
window-limited period by (8) to (12) as well, which puts 1/2 + b/4 for the 1 in E[X]; for b = 2 that
is (31) itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tcpcast.errors import DomainError
from tcpcast.models.domain import acknowledged, loss_ratios, positive, require_positive, windows
from tcpcast.models.mathis import mathis_rate_pps

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

WINDOW, TRIPLE_DUPLICATES, TIMEOUTS = "window", "triple duplicates", "timeouts"
"""The regimes of :attr:`Throughput.regime`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """What the full model says of a flow; arrays of the broadcast shape.

    Attributes
    ----------
    rate_pps
        B(p) in packets/s, retransmissions included (31).
    window_pkts
        E[W], the mean window at a loss indication: ``unlimited_window_pkts`` or W_max.
    unlimited_window_pkts
        E[W_u] (30).
    rounds
        E[X], rounds from the start of a period to its first loss, (15) or section 2.3.
    timeout_probability
        Q, the probability that a loss indication is a timeout (25).
    timeout_time_share
        Share of the time spent waiting for timers: Q E[Z^TO]/(E[A] + Q E[Z^TO]).
    window_limited
        True where W_max <= E[W_u], the second branch of (31).
    """

    rate_pps: NDArray[np.float64]
    window_pkts: NDArray[np.float64]
    unlimited_window_pkts: NDArray[np.float64]
    rounds: NDArray[np.float64]
    timeout_probability: NDArray[np.float64]
    timeout_time_share: NDArray[np.float64]
    window_limited: NDArray[np.bool_]

    @property
    def regime(self) -> NDArray[np.str_]:
        """What holds the rate down: ``timeouts``, ``window`` or ``triple duplicates``.

        ``timeouts`` where more than half of the time is spent waiting for timers, whichever the
        branch; else ``window`` in the window-limited branch.
        """
        branch = np.where(self.window_limited, WINDOW, TRIPLE_DUPLICATES)
        return np.asarray(np.where(self.timeout_time_share > 0.5, TIMEOUTS, branch))


def throughput(
    *,
    rtt_s: ArrayLike,
    t0_s: ArrayLike,
    loss_indication_ratio: ArrayLike,
    packets_per_ack: ArrayLike = 2,
    receiver_window_pkts: ArrayLike = np.inf,
    continuous: bool = False,
) -> Throughput:
    """Return the full model, (31) with the exact Q of (23).

    Parameters
    ----------
    rtt_s
        RTT in seconds, above 0.
    t0_s
        T0, mean duration of the first timeout of a sequence in seconds, above 0.
    loss_indication_ratio
        p, above 0 and below 1.
    packets_per_ack
        b, at least 1: 2 with delayed acks.
    receiver_window_pkts
        W_max in packets, at least 1; ``inf`` never limits. All broadcast against each other.
    continuous
        Count the window-limited branch so that it meets the other (see the module).

    Raises
    ------
    DomainError
        An argument outside its domain.

    Notes
    -----
    Within each branch the rate falls as RTT and T0 grow, and as p grows if T0 is at least RTT/4;
    across the branches it jumps unless b = 2 or ``continuous``.
    """
    rtt, t0 = positive("rtt_s", rtt_s), positive("t0_s", t0_s)
    p = loss_ratios("loss_indication_ratio", loss_indication_ratio)
    b = acknowledged(packets_per_ack)
    most = windows("receiver_window_pkts", receiver_window_pkts)
    odds = (1 - p) / p
    unlimited = _window(odds, b)
    limited = most <= unlimited
    window = np.minimum(most, unlimited)
    constant = 0.5 + b / 4 if continuous else 1.0
    rounds = np.where(limited, b / 8 * most + odds / most + constant, b / 2 * unlimited)
    share = _timeout_probability(window, p)
    waiting = share * t0 * _backoff(p) / (1 - p)
    time = rtt * (rounds + 1) + waiting
    rate = np.asarray((odds + window + share / (1 - p)) / time)
    shape = rate.shape
    return Throughput(
        rate_pps=rate,
        window_pkts=np.broadcast_to(window, shape),
        unlimited_window_pkts=np.broadcast_to(unlimited, shape),
        rounds=np.broadcast_to(rounds, shape),
        timeout_probability=np.broadcast_to(share, shape),
        timeout_time_share=np.asarray(waiting / time),
        window_limited=np.broadcast_to(limited, shape),
    )


def approximate_rate_pps(
    *,
    rtt_s: ArrayLike,
    t0_s: ArrayLike,
    loss_indication_ratio: ArrayLike,
    packets_per_ack: ArrayLike = 2,
    receiver_window_pkts: ArrayLike = np.inf,
) -> NDArray[np.float64]:
    """Return the approximate model (32): (29), at most W_max/RTT, in packets/s.

    Parameters and errors as in :func:`throughput`; an array of the broadcast shape. It falls in p,
    RTT and T0 everywhere.
    """
    rtt, t0 = positive("rtt_s", rtt_s), positive("t0_s", t0_s)
    p = loss_ratios("loss_indication_ratio", loss_indication_ratio)
    b = acknowledged(packets_per_ack)
    most = windows("receiver_window_pkts", receiver_window_pkts)
    share = np.minimum(1.0, 3 * np.sqrt(3 * b * p / 8))
    return np.asarray(np.minimum(most / rtt, 1 / _packet_time(rtt, t0 * share, p, b)))


def td_only_rate_pps(
    *, rtt_s: ArrayLike, loss_indication_ratio: ArrayLike, packets_per_ack: ArrayLike = 2
) -> NDArray[np.float64]:
    """Return the rate when every loss indication is a triple duplicate, (18) and (19).

    Parameters and errors as in :func:`throughput`; packets/s, of the broadcast shape.
    """
    rtt = positive("rtt_s", rtt_s)
    p = loss_ratios("loss_indication_ratio", loss_indication_ratio)
    b = acknowledged(packets_per_ack)
    odds = (1 - p) / p
    window = _window(odds, b)
    return np.asarray((odds + window) / (rtt * (b / 2 * window + 1)))


def td_only_leading_rate_pps(
    *, rtt_s: ArrayLike, loss_indication_ratio: ArrayLike, packets_per_ack: ArrayLike = 2
) -> NDArray[np.float64]:
    """Return sqrt(3/(2bp))/RTT, the leading term (20) of (19): the square-root law.

    Parameters and errors as in :func:`throughput`; packets/s, of the broadcast shape.
    """
    return mathis_rate_pps(
        rtt_s=rtt_s, loss_indication_ratio=loss_indication_ratio, packets_per_ack=packets_per_ack
    )


def unlimited_window_pkts(
    *, loss_indication_ratio: ArrayLike, packets_per_ack: ArrayLike = 2
) -> NDArray[np.float64]:
    """Return E[W_u], the mean window at a loss indication without W_max, (13) and (30).

    Parameters and errors as in :func:`throughput`; packets, of the broadcast shape.
    """
    p = loss_ratios("loss_indication_ratio", loss_indication_ratio)
    return np.asarray(_window((1 - p) / p, acknowledged(packets_per_ack)))


def unlimited_rounds(
    *, loss_indication_ratio: ArrayLike, packets_per_ack: ArrayLike = 2
) -> NDArray[np.float64]:
    """Return E[X] = b E[W_u]/2, the rounds to the first loss without W_max, (11) and (15).

    Parameters and errors as in :func:`throughput`; rounds, of the broadcast shape.
    """
    b = acknowledged(packets_per_ack)
    window = unlimited_window_pkts(loss_indication_ratio=loss_indication_ratio, packets_per_ack=b)
    return np.asarray(b / 2 * window)


def timeout_probability(
    *, window_pkts: ArrayLike, loss_indication_ratio: ArrayLike
) -> NDArray[np.float64]:
    """Return the exact Q: the probability that a loss in a window of w ends in a timeout (23).

    Parameters
    ----------
    window_pkts
        w in packets, at least 1 and finite; a mean need not be a whole number. Q is 1 up to 3.
    loss_indication_ratio
        p, above 0 and below 1. The two broadcast against each other.

    Raises
    ------
    DomainError
        An argument outside its domain.
    """
    w = _finite_windows(window_pkts)
    p = loss_ratios("loss_indication_ratio", loss_indication_ratio)
    return np.asarray(_timeout_probability(w, p))


def timeout_probability_approximate(*, window_pkts: ArrayLike) -> NDArray[np.float64]:
    """Return min(1, 3/w), the approximate Q of (24) and its limit for p -> 0.

    ``window_pkts`` and errors as in :func:`timeout_probability`.
    """
    return np.asarray(np.minimum(1.0, 3 / _finite_windows(window_pkts)))


def timeout_sequence_s(*, t0_s: ArrayLike, loss_indication_ratio: ArrayLike) -> NDArray[np.float64]:
    """Return E[Z^TO] = T0 f(p)/(1 - p), the mean duration of a timeout sequence (28).

    The timer doubles up to 64 T0. Parameters and errors as in :func:`throughput`; seconds, of the
    broadcast shape.
    """
    t0 = positive("t0_s", t0_s)
    p = loss_ratios("loss_indication_ratio", loss_indication_ratio)
    return np.asarray(t0 * _backoff(p) / (1 - p))


def window_limit_loss_ratio(
    *, receiver_window_pkts: ArrayLike, packets_per_ack: ArrayLike = 2
) -> NDArray[np.float64]:
    """Return the loss of E[W_u] = W_max: up to it the window limits, above it loss does.

    Parameters and errors as in :func:`throughput`; of the broadcast shape. 0 for an endless window,
    1 for one so small that it limits at any loss.
    """
    b = acknowledged(packets_per_ack)
    most = windows("receiver_window_pkts", receiver_window_pkts)
    # (12) with E[X] = b W/2 and E[beta] = W/2, solved for (1 - p)/p.
    odds = most * (3 * b / 8 * most - b / 4 - 0.5)
    return np.asarray(1 / (1 + np.maximum(odds, 0.0)))


def tolerated_loss_ratio(
    *,
    rate_pps: ArrayLike,
    rtt_s: ArrayLike,
    t0_s: ArrayLike,
    packets_per_ack: ArrayLike = 2,
    receiver_window_pkts: ArrayLike = np.inf,
    continuous: bool = False,
) -> NDArray[np.float64]:
    """Return the largest p at which the full model still gives a rate: the inverse of (31).

    Parameters
    ----------
    rate_pps
        Rate in packets/s, above 0 and below W_max/RTT.
    rtt_s, packets_per_ack, receiver_window_pkts, continuous
        As in :func:`throughput`.
    t0_s
        T0 in seconds, at least the RTT, as every timer is. All broadcast against each other.

    Returns
    -------
    ndarray
        p, of the broadcast shape. 1 where timeouts alone send so much (about 1/(64 T0)) that
        any loss is tolerated. Where the branches jump down (b above 2) a rate in the gap
        has the p of the jump; where they jump up, the larger of its two p.

    Raises
    ------
    DomainError
        An argument outside its domain, or a rate that no loss above 0 allows.
    """
    target, rtt, t0 = (
        positive(name, values)
        for name, values in (("rate_pps", rate_pps), ("rtt_s", rtt_s), ("t0_s", t0_s))
    )
    most = windows("receiver_window_pkts", receiver_window_pkts)
    b = acknowledged(packets_per_ack)
    if np.any(t0 < rtt):
        raise DomainError("t0_s must be at least rtt_s: no timer is shorter than the RTT")
    if np.any(target >= most / rtt):
        raise DomainError(
            "rate_pps must be below receiver_window_pkts/rtt_s, the rate without loss"
        )

    def rate(p: NDArray[np.float64], cap: ArrayLike) -> NDArray[np.float64]:
        return throughput(
            rtt_s=rtt,
            t0_s=t0,
            loss_indication_ratio=p,
            packets_per_ack=b,
            receiver_window_pkts=cap,
            continuous=continuous,
        ).rate_pps

    # Each branch falls in p: the loss-limited one decides wherever it lies above the border.
    border = window_limit_loss_ratio(receiver_window_pkts=most, packets_per_ack=b)
    shape = np.broadcast_shapes(target.shape, rtt.shape, t0.shape, border.shape)
    free = _largest_loss(lambda p: rate(p, np.inf) >= target, shape)
    held = _largest_loss(lambda p: rate(p, most) >= target, shape)
    return np.asarray(np.where(free > border, free, np.minimum(held, border)))


def tolerated_loss_ratio_approximate(
    *,
    rate_pps: ArrayLike,
    rtt_s: ArrayLike,
    t0_s: ArrayLike,
    packets_per_ack: ArrayLike = 2,
    receiver_window_pkts: ArrayLike = np.inf,
) -> NDArray[np.float64]:
    """Return the largest p at which (32) still gives a rate, at most W_max/RTT.

    Parameters, result and errors otherwise as in :func:`tolerated_loss_ratio`, but for T0, which
    need only be above 0.
    """
    target = positive("rate_pps", rate_pps)
    rtt, t0 = positive("rtt_s", rtt_s), positive("t0_s", t0_s)
    most = windows("receiver_window_pkts", receiver_window_pkts)
    b = acknowledged(packets_per_ack)
    if np.any(target > most / rtt):
        raise DomainError(
            "rate_pps must be at most receiver_window_pkts/rtt_s, the rate without loss"
        )

    def reached(p: NDArray[np.float64]) -> NDArray[np.bool_]:
        rate = approximate_rate_pps(rtt_s=rtt, t0_s=t0, loss_indication_ratio=p, packets_per_ack=b)
        return np.asarray(rate >= target)

    shape = np.broadcast_shapes(target.shape, rtt.shape, t0.shape, b.shape, most.shape)
    return _largest_loss(reached, shape)


def tcp_friendly_rate_pps(
    *,
    rtt_s: ArrayLike,
    loss_event_ratio: ArrayLike,
    t0_s: ArrayLike | None = None,
    packets_per_ack: ArrayLike = 1,
) -> NDArray[np.float64]:
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
        t_RTO in seconds, above 0; None for the 4 R that the RFC recommends.
    packets_per_ack
        b, at least 1; the RFC recommends 1 even with delayed acks. All broadcast.

    Raises
    ------
    DomainError
        An argument outside its domain.
    """
    rtt = positive("rtt_s", rtt_s)
    t0 = 4 * rtt if t0_s is None else positive("t0_s", t0_s)
    p = loss_ratios("loss_event_ratio", loss_event_ratio)
    b = acknowledged(packets_per_ack)
    return np.asarray(1 / _packet_time(rtt, t0 * 3 * np.sqrt(3 * b * p / 8), p, b))


def tcp_friendly_loss_event_ratio(
    *,
    rate_pps: ArrayLike,
    rtt_s: ArrayLike,
    t0_s: ArrayLike | None = None,
    packets_per_ack: ArrayLike = 1,
) -> NDArray[np.float64]:
    """Return the p of a rate by RFC 5348's equation, as its section 6.3.1 starts from; 1 at most.

    ``rate_pps`` in packets/s, above 0; the others and the errors as in
    :func:`tcp_friendly_rate_pps`.
    """
    target, rtt = positive("rate_pps", rate_pps), positive("rtt_s", rtt_s)
    t0 = 4 * rtt if t0_s is None else positive("t0_s", t0_s)
    b = acknowledged(packets_per_ack)

    def reached(p: NDArray[np.float64]) -> NDArray[np.bool_]:
        rate = tcp_friendly_rate_pps(rtt_s=rtt, loss_event_ratio=p, t0_s=t0, packets_per_ack=b)
        return np.asarray(rate >= target)

    return _largest_loss(reached, np.broadcast_shapes(target.shape, rtt.shape, t0.shape, b.shape))


def _window(odds: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (13) from the odds (1 - p)/p."""
    first = (2 + b) / (3 * b)
    return np.asarray(first + np.sqrt(8 / (3 * b) * odds + first * first))


def _timeout_probability(w: NDArray[np.float64], p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (23), written so that a small p costs no digits."""
    lost = -np.expm1(w * np.log1p(-p))  # 1 - (1-p)^w
    kept = 1 - p
    exact = p * (3 - p * (3 - p)) * (kept * kept * kept + lost) / lost
    return np.asarray(np.where(w <= 3, 1.0, np.minimum(1.0, exact)))


def _backoff(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return f(p) of (28)."""
    return np.asarray(1 + p * (1 + p * (2 + p * (4 + p * (8 + p * (16 + p * 32))))))


def _packet_time(
    rtt: NDArray[np.float64],
    timer: NDArray[np.float64],
    p: NDArray[np.float64],
    b: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the denominator of (29), seconds a packet; ``timer`` is T0 times the share Q."""
    return np.asarray(rtt * np.sqrt(2 * b * p / 3) + timer * p * (1 + 32 * p * p))


def _finite_windows(values: ArrayLike) -> NDArray[np.float64]:
    w = windows("window_pkts", values)
    if w.size:
        require_positive("window_pkts", float(w.max()))
    return w


def _largest_loss(
    reached: Callable[[NDArray[np.float64]], NDArray[np.bool_]], shape: tuple[int, ...]
) -> NDArray[np.float64]:
    """Return by bisection the p up to which ``reached`` holds, 1 where it never ceases to.

    It bisects ln(p/(1-p)), which resolves p near 0 and near 1 alike.
    """
    low, high = np.full(shape, -650.0), np.full(shape, 30.0)
    always = reached(1 / (1 + np.exp(-high)))
    for _ in range(64):
        middle = (low + high) / 2
        below = reached(1 / (1 + np.exp(-middle)))
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(np.where(always, 1.0, 1 / (1 + np.exp(-low))))
