"""PFTK in closed form: (13) to (20), (29), (31) and (32), their inverses, and RFC 5348."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tcpcast.array_types import Floats, Table
from tcpcast.models.bisection import bisect_largest_loss_ratio
from tcpcast.models.domain import to_checked_arrays, to_positive_array
from tcpcast.models.mathis import mathis_rate_pps
from tcpcast.models.pftk.timeouts import backoff_polynomial, unchecked_timeout_probability
from tcpcast.process.errors import DomainError

WINDOW_REGIME, TRIPLE_DUPLICATES_REGIME, TIMEOUTS_REGIME = "window", "triple duplicates", "timeouts"
"""Values of :attr:`Throughput.regime`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """Results of the full model for a flow; arrays of the broadcast shape.

    Attributes
    ----------
    rate_pps
        B(p) in packets/s, including retransmissions (31).
    window_pkts
        E[W], the mean window at a loss indication, in packets: ``unlimited_window_pkts`` or W_max.
    unlimited_window_pkts
        E[W_u] in packets (30).
    rounds
        E[X], rounds from the start of a period to its first loss, (15) or section 2.3.
    timeout_probability
        Q, the probability that a loss indication is a timeout (25), or its measured share.
    timeout_time_share
        Share of the time in RTO: Q E[Z^TO]/(E[A] + Q E[Z^TO]).
    window_limited
        True if W_max <= E[W_u], the second branch of (31).
    """

    rate_pps: Floats
    window_pkts: Floats
    unlimited_window_pkts: Floats
    rounds: Floats
    timeout_probability: Floats
    timeout_time_share: Floats
    window_limited: NDArray[np.bool_]

    @property
    def regime(self) -> NDArray[np.str_]:
        """Limit of the rate: ``timeouts``, ``window`` or ``triple duplicates``.

        ``timeouts`` in both branches if more than half of the time is in RTO; otherwise ``window``
        in the window-limited branch.
        """
        branch = np.where(self.window_limited, WINDOW_REGIME, TRIPLE_DUPLICATES_REGIME)
        return np.asarray(np.where(self.timeout_time_share > 0.5, TIMEOUTS_REGIME, branch))


def throughput(
    *,
    rtt_s: ArrayLike,
    t0_s: ArrayLike,
    loss_indication_ratio: ArrayLike,
    packets_per_ack: ArrayLike = 2,
    receiver_window_pkts: ArrayLike = np.inf,
    timeout_share: ArrayLike | None = None,
    continuous: bool = False,
) -> Throughput:
    """Return the full model, (31) with the exact Q of (23) or a measured one.

    Parameters
    ----------
    rtt_s
        RTT in seconds, above 0.
    t0_s
        T0, mean duration of the first timeout of a sequence in seconds, above 0.
    loss_indication_ratio
        p, above 0 and below 1.
    packets_per_ack
        b, at least 1: 2 with delayed ACKs.
    receiver_window_pkts
        W_max in packets, at least 1; ``inf`` for unlimited. All arguments are broadcast.
    timeout_share
        Measured share of timeouts among the loss indications, from 0 to 1, which replaces Q; for
        example TO/(TD + TO) of Table 2. None: (23) at E[W].
    continuous
        Whether to count the window-limited branch so that it is continuous (see the package).

    Returns
    -------
    Throughput
        Arrays of the broadcast shape.

    Raises
    ------
    DomainError
        An argument outside its domain.

    Notes
    -----
    Within each branch the rate decreases in RTT and T0, and in p if T0 is at least RTT/4; between
    the branches it jumps unless b = 2 or ``continuous``.
    """
    rtt, t0, p, b, max_window = to_checked_arrays(
        rtt_s=rtt_s,
        t0_s=t0_s,
        loss_indication_ratio=loss_indication_ratio,
        packets_per_ack=packets_per_ack,
        receiver_window_pkts=receiver_window_pkts,
    )
    measured = [] if timeout_share is None else to_checked_arrays(timeout_share=timeout_share)
    full = partial(_evaluate_full_model, continuous=continuous)
    return Throughput(**evaluate_in_blocks(full, rtt, t0, p, b, max_window, *measured))


def _evaluate_full_model(  # noqa: PLR0917 - arrays by position, for evaluate_in_blocks
    rtt: Floats,
    t0: Floats,
    p: Floats,
    b: Floats,
    max_window: Floats,
    measured_share: Floats | None = None,
    *,
    continuous: bool,
) -> Table:
    """Return the attributes of :class:`Throughput` by name."""
    odds = (1 - p) / p
    unlimited = _window_from_odds(odds, b)
    limited = max_window <= unlimited
    window = np.minimum(max_window, unlimited)
    constant = 0.5 + b / 4 if continuous else 1.0
    rounds = np.where(limited, b / 8 * max_window + odds / max_window + constant, b / 2 * unlimited)
    share = measured_share
    if share is None:
        share = unchecked_timeout_probability(window, p)
    waiting = share * t0 * backoff_polynomial(p) / (1 - p)
    time = rtt * (rounds + 1) + waiting
    return {
        "rate_pps": (odds + window + share / (1 - p)) / time,
        "window_pkts": window,
        "unlimited_window_pkts": unlimited,
        "rounds": rounds,
        "timeout_probability": share,
        "timeout_time_share": waiting / time,
        "window_limited": limited,
    }


def approximate_rate_pps(
    *,
    rtt_s: ArrayLike,
    t0_s: ArrayLike,
    loss_indication_ratio: ArrayLike,
    packets_per_ack: ArrayLike = 2,
    receiver_window_pkts: ArrayLike = np.inf,
) -> Floats:
    """Return the approximate model (32): (29), at most W_max/RTT, in packets/s.

    Parameters and errors as in :func:`throughput`; an array of the broadcast shape. It decreases in
    p, RTT and T0 everywhere.
    """
    rtt, t0, p, b, max_window = to_checked_arrays(
        rtt_s=rtt_s,
        t0_s=t0_s,
        loss_indication_ratio=loss_indication_ratio,
        packets_per_ack=packets_per_ack,
        receiver_window_pkts=receiver_window_pkts,
    )
    share = np.minimum(1.0, 3 * np.sqrt(3 * b * p / 8))
    return np.asarray(np.minimum(max_window / rtt, 1 / time_per_packet_s(rtt, t0 * share, p, b)))


def td_only_rate_pps(
    *, rtt_s: ArrayLike, loss_indication_ratio: ArrayLike, packets_per_ack: ArrayLike = 2
) -> Floats:
    """Return the rate when every loss indication is a triple duplicate, (18) and (19).

    Parameters and errors as in :func:`throughput`; packets/s, of the broadcast shape.
    """
    rtt, p, b = to_checked_arrays(
        rtt_s=rtt_s, loss_indication_ratio=loss_indication_ratio, packets_per_ack=packets_per_ack
    )
    odds = (1 - p) / p
    window = _window_from_odds(odds, b)
    return np.asarray((odds + window) / (rtt * (b / 2 * window + 1)))


def td_only_leading_rate_pps(
    *, rtt_s: ArrayLike, loss_indication_ratio: ArrayLike, packets_per_ack: ArrayLike = 2
) -> Floats:
    """Return sqrt(3/(2bp))/RTT, the leading term (20) of (19): the square-root law.

    Parameters and errors as in :func:`throughput`; packets/s, of the broadcast shape.
    """
    return mathis_rate_pps(
        rtt_s=rtt_s, loss_indication_ratio=loss_indication_ratio, packets_per_ack=packets_per_ack
    )


def unlimited_window_pkts(
    *, loss_indication_ratio: ArrayLike, packets_per_ack: ArrayLike = 2
) -> Floats:
    """Return E[W_u], the mean window at a loss indication without W_max, (13) and (30).

    Parameters and errors as in :func:`throughput`; packets, of the broadcast shape.
    """
    p, b = to_checked_arrays(
        loss_indication_ratio=loss_indication_ratio, packets_per_ack=packets_per_ack
    )
    return _window_from_odds((1 - p) / p, b)


def unlimited_rounds(*, loss_indication_ratio: ArrayLike, packets_per_ack: ArrayLike = 2) -> Floats:
    """Return E[X] = b E[W_u]/2, the rounds to the first loss without W_max, (11) and (15).

    Parameters and errors as in :func:`throughput`; rounds, of the broadcast shape.
    """
    (b,) = to_checked_arrays(packets_per_ack=packets_per_ack)
    window = unlimited_window_pkts(loss_indication_ratio=loss_indication_ratio, packets_per_ack=b)
    return np.asarray(b / 2 * window)


def window_limit_loss_ratio(
    *, receiver_window_pkts: ArrayLike, packets_per_ack: ArrayLike = 2
) -> Floats:
    """Return the loss at which E[W_u] = W_max: W_max limits the rate below this loss.

    Parameters and errors as in :func:`throughput`; of the broadcast shape. 0 for an unlimited
    window, 1 for a window so small that it limits at any loss.
    """
    b, max_window = to_checked_arrays(
        packets_per_ack=packets_per_ack, receiver_window_pkts=receiver_window_pkts
    )
    # (12) with E[X] = b W/2 and E[beta] = W/2, solved for (1 - p)/p.
    odds = max_window * (3 * b / 8 * max_window - b / 4 - 0.5)
    return np.asarray(1 / (1 + np.maximum(odds, 0.0)))


def _window_from_odds(odds: Floats, b: Floats) -> Floats:
    """Return (13) from the odds (1 - p)/p."""
    first = (2 + b) / (3 * b)
    return np.asarray(first + np.sqrt(8 / (3 * b) * odds + first * first))


def time_per_packet_s(
    rtt: Floats,
    timer: Floats,
    p: Floats,
    b: Floats,
) -> Floats:
    """Return the denominator of (29), seconds per packet; ``timer`` is T0 times Q."""
    return np.asarray(rtt * np.sqrt(2 * b * p / 3) + timer * p * (1 + 32 * p * p))


# Evaluation of formulas over large arrays in blocks, so that intermediate results stay in cache.
#
# A numpy formula makes about thirty passes over its arrays. With a million values each pass
# accesses main memory; with a few thousand it does not.

VALUES_PER_BLOCK = 1 << 14
"""Values per block: about ten such arrays fit into the cache of one core."""


def evaluate_in_blocks(formula: Callable[..., Table], *arguments: NDArray[Any]) -> Table:
    """Evaluate a formula in blocks; return its results by name, in the broadcast shape.

    Parameters
    ----------
    formula
        Takes arrays and returns arrays that can be broadcast with them. It must work element by
        element. It is called once if there are few values.
    arguments
        Its arguments.
    """
    if not any(each.ndim for each in arguments):  # cells of a sweep: scalars
        return {name: np.asarray(each) for name, each in formula(*arguments).items()}
    shape = np.broadcast_shapes(*(each.shape for each in arguments))
    size = math.prod(shape)
    if size <= VALUES_PER_BLOCK:
        results = formula(*arguments)
        return {name: np.broadcast_to(each, shape) for name, each in results.items()}
    joined: Table = {}
    flat = [_flat_view(each, shape) for each in arguments]
    for start in range(0, size, VALUES_PER_BLOCK):
        part = slice(start, start + VALUES_PER_BLOCK)
        block = formula(*(values[part] if varies else values for values, varies in flat))
        for name, values in block.items():
            if not start:
                joined[name] = np.empty(size, values.dtype)
            joined[name][part] = values
    return {name: values.reshape(shape) for name, values in joined.items()}


def _flat_view(values: NDArray[Any], shape: tuple[int, ...]) -> tuple[Any, bool]:
    """Return a sequence whose slices are the broadcast values in order, and whether to slice it.

    A single value is not expanded and must not be sliced.
    """
    if values.size == 1:
        return values.reshape(()), False
    spread = np.broadcast_to(values, shape)
    return (spread.reshape(-1) if spread.flags.c_contiguous else spread.flat), True


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
