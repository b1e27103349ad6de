"""PFTK's window as a Markov chain, solved numerically: the future work of its section 5.

The closed form uses means; this module sums over the distribution of the window. A period (TDP) is
as in the paper, in integer packets:

- A round takes one RTT for any window. A period that starts with a window of s sends s packets in
  each of its first b rounds, s + 1 in each of the next b, and so on; at W_max the window is
  constant.
- The first lost packet of the period is the alpha-th, P[alpha = k] = (1-p)^(k-1) p (3). It is in
  round X, whose window is w, after k packets of that round. One more round ends the period, with
  the k packets released by their ACKs: X + 1 rounds, and Y = alpha + w - 1 packets (2).
- Further losses: in the paper, the rest of round X, and in the last round all packets from the
  first loss on ("rest-of-round"); or each packet independently, with probability p ("independent")
  or another one. All are one loss indication.
- It is a triple duplicate if at least three packets that are sent after the first lost one, in
  round X or in the last round, are delivered. With "rest-of-round" they can only be in the last
  round, which gives (22). Otherwise it is a timeout. (The text has "higher than three", (22) has
  three.)
- The window at the end of the period is W = s + X/b (7), at most W_max, rounded down; after a
  triple duplicate the next period starts with W/2, rounded down.
- A timeout becomes a sequence: each retransmission is lost with probability p, and the timer
  doubles from T0 to 64 T0, (26) and (28). The successful retransmission belongs to the sequence
  and takes no round. The next period starts with a window of 1.

There is no recovery time; lost packets are retransmitted within later rounds. ``recovery`` adds the
rounds of NewReno's fast recovery (:class:`Recovery`). From its start s a
period reaches the window w with probability G(w)/G(s), G(w) = (1-p)^(b w(w-1)/2). One sweep over
the windows therefore maps the distribution at the start of a period to that of the next period, and
a few dozen sweeps make it stationary.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tcpcast.array_types import Floats
from tcpcast.models.domain import (
    require_window,
    to_checked_arrays,
    to_loss_ratio_array,
    to_packets_per_ack_array,
)
from tcpcast.models.pftk.closed_form import throughput
from tcpcast.models.pftk.timeouts import backoff_polynomial, unchecked_timeout_probability
from tcpcast.process.errors import DomainError
from tcpcast.statistics.vector_products import dot_product

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tcpcast.array_types import Floats


LaterLosses = Literal["rest-of-round", "independent"]
AfterTimeout = Literal["one", "slow-start", "half"]
FastRecovery = Literal["none", "newreno"]

MAX_TRUNCATED_PROBABILITY = 1e-12
"""An unlimited window is truncated at the smallest window that a period reaches with at most this
probability."""
MAX_WINDOWS = 2**20
"""Maximum number of windows; more would take seconds and hundreds of megabytes."""
MAX_RECOVERY_WINDOWS = 2**12
"""Maximum number of windows with fast recovery, whose time is quadratic in it."""
STATIONARY_TOLERANCE = 1e-13
"""The distribution at the start of a period is stationary if a sweep moves at most this much."""
MAX_SWEEPS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowChain:
    """The stationary chain: distributions of the window, and means over periods, without times.

    Attributes
    ----------
    window_pkts
        The windows 1, 2, ... of the distributions; the last is W_max, or the truncation of an
        unlimited window.
    loss_distribution
        P[w], distribution of the window of the round with the first loss of a period.
    end_distribution
        Distribution of W, the window at the end of a period (7), one round later.
    round_distribution
        Distribution of the window over the X rounds of all periods.
    rounds
        E[X], rounds of a period up to and including that of its first loss, without recovery.
    recovery_rounds
        Rounds of fast recovery per period.
    sent_pkts
        E[Y] = (1-p)/p + E[w], packets sent per period (5), and retransmissions of fast recovery.
    delivered_pkts
        Packets delivered per period.
    timeout_probability
        Q, probability that a period ends in a timeout: mean of (23) over ``loss_distribution``.
    loss_probability
        The p of the chain.
    """

    window_pkts: NDArray[np.int64]
    loss_distribution: Floats
    end_distribution: Floats
    round_distribution: Floats
    rounds: float
    recovery_rounds: float
    sent_pkts: float
    delivered_pkts: float
    timeout_probability: float
    loss_probability: float

    @property
    def mean_window_pkts(self) -> float:
        """E[W], the mean window at the end of a period, which (13) approximates."""
        return dot_product(self.end_distribution, self.window_pkts)

    @property
    def loss_indication_ratio(self) -> float:
        """Loss indications per packet sent, the measurable p: below ``loss_probability``."""
        return 1 / self._packets_per_period

    def rate_pps(self, *, rtt_s: ArrayLike, t0_s: ArrayLike) -> Floats:
        """Return the send rate B in packets/s, including retransmissions (21).

        Parameters
        ----------
        rtt_s, t0_s
            RTT and T0 in seconds, above 0; they broadcast against each other.

        Raises
        ------
        DomainError
            An argument outside its domain.
        """
        return np.asarray(self._packets_per_period / self._period_s(rtt_s, t0_s))

    def goodput_pps(self, *, rtt_s: ArrayLike, t0_s: ArrayLike) -> Floats:
        """Return the delivered packets in packets/s.

        No packet is delivered twice: the model has no unnecessary retransmissions after a timeout.
        Parameters and errors as in :meth:`rate_pps`.
        """
        delivered = self.delivered_pkts + self.timeout_probability
        return np.asarray(delivered / self._period_s(rtt_s, t0_s))

    @property
    def _packets_per_period(self) -> float:
        return self.sent_pkts + self.timeout_probability / (1 - self.loss_probability)

    def _period_s(self, rtt_s: ArrayLike, t0_s: ArrayLike) -> Floats:
        rtt, t0 = to_checked_arrays(rtt_s=rtt_s, t0_s=t0_s)
        p = np.asarray(self.loss_probability)
        waiting = self.timeout_probability * t0 * backoff_polynomial(p) / (1 - p)
        return np.asarray(rtt * (self.rounds + 1 + self.recovery_rounds) + waiting)


def window_chain(
    *,
    loss_probability: float,
    packets_per_ack: int = 2,
    receiver_window_pkts: float = math.inf,
    losses: LaterLosses | float = "rest-of-round",
    after_timeout: AfterTimeout = "one",
    recovery: FastRecovery = "none",
) -> WindowChain:
    """Return the stationary distribution of PFTK's window and derived quantities.

    Parameters
    ----------
    loss_probability
        p, above 0 and below 1: loss probability of a packet that is the first of its round or whose
        predecessor was not lost; with independent losses, of any packet.
    packets_per_ack
        b, an integer of at least 1: 2 with delayed ACKs.
    receiver_window_pkts
        W_max in packets, at least 1, rounded down. ``inf`` for unlimited: the window is truncated
        where periods arrive with a probability of at most 1e-12.
    losses
        ``"rest-of-round"`` as in the paper, or ``"independent"``; or a number from 0 to 1, the
        loss probability of each packet after the first lost one in its round and the next: 0 for
        single losses, more than p for bursts.
    after_timeout
        Start of the period after a timeout. ``"one"``: a window of 1, which grows as in any period.
        ``"slow-start"``: a window of 1 with slow start (w/b per round, rounded up) up to half of
        the W before the timeout, at least 2; a loss in slow start ends the period, with the window
        of its round as W. ``"half"``: W/2, as after a triple duplicate and as in the closed form,
        whose E[W] and E[X] do not include timeouts.
    recovery
        Fast recovery after a triple duplicate: ``"none"`` as in the paper, or ``"newreno"``, which
        retransmits one lost packet per round, and times out if a retransmission is lost.

    Returns
    -------
    WindowChain
        Distributions over windows in packets, and means per period.

    Raises
    ------
    DomainError
        An argument outside its domain, or a p so small that an unlimited window has more than
        2^20 states (below about 7e-11 for b = 1), or 2^12 with recovery (4e-6).

    Examples
    --------
    >>> chain = window_chain(loss_probability=0.01)
    >>> print(f"{chain.mean_window_pkts:.2f} packets, {chain.timeout_probability:.3f}")
    10.38 packets, 0.406
    """
    p = float(to_loss_ratio_array("loss_probability", loss_probability))
    b = _require_whole_packets_per_ack(packets_per_ack)
    later = _later_loss_probability(losses, p)
    _require_one_of("after_timeout", after_timeout, get_args(AfterTimeout))
    _require_one_of("recovery", recovery, get_args(FastRecovery))
    repairs = recovery == "newreno"
    limit = MAX_RECOVERY_WINDOWS if repairs else MAX_WINDOWS
    largest = _choose_largest_window(p, b, receiver_window_pkts, limit)
    walk = _PeriodProbabilities.up_to_window(largest, p, b)
    repair = newreno_recovery(largest, p, later) if repairs else no_recovery(largest)
    timeout = walk.timeout_given_loss(later) + repair.failed
    reached, slow, early = walk.stationary_probabilities(timeout, repair, after_timeout)

    lost, last = walk.first_loss_distribution(reached, slow, early)
    visits = reached * walk.rounds_at + slow
    rounds = float(visits.sum())
    return WindowChain(
        window_pkts=walk.windows,
        loss_distribution=lost,
        end_distribution=walk.end_window_distribution(lost, last),
        round_distribution=visits / rounds,
        rounds=rounds,
        recovery_rounds=dot_product(lost, repair.rounds),
        sent_pkts=(1 - p) / p + dot_product(lost, walk.windows + repair.retransmitted),
        delivered_pkts=(1 - p) / p
        + dot_product(lost, walk.delivered_after_loss(later) + repair.rounds),
        timeout_probability=dot_product(lost, timeout),
        loss_probability=p,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _PeriodProbabilities:
    """Probabilities of a period at each of the windows; index 0 is a window of 1."""

    windows: NDArray[np.int64]
    p: float
    survival: Floats
    """G(w)."""
    lost_in_round: Floats
    """Probability that a round with w packets has a loss: 1 - (1-p)^w."""
    lost_at: Floats
    """Probability that a period that reaches w has its first loss there."""
    lost_in_last: Floats
    """Probability that this first loss is in the last of the b rounds, so that W = w + 1."""
    rounds_at: Floats
    """Mean number of rounds with a window of w in a period that reaches w, including the round of
    the loss."""
    slow_reach: Floats
    """Probability that slow start reaches its round with a window of w without loss; 0 if no round
    has this window."""
    slow_through: Floats
    """Probability that slow start reaches a threshold of w without loss."""

    @classmethod
    def up_to_window(cls, largest: int, p: float, b: int) -> _PeriodProbabilities:
        """Return the probabilities up to the largest window, which stays constant."""
        w = np.arange(1, largest + 1)
        kept = math.log1p(-p)  # log of the delivery probability of a packet
        in_round, at_window = -np.expm1(w * kept), -np.expm1(b * w * kept)
        in_last = np.exp((b - 1) * w * kept) * in_round
        rounds = at_window / in_round
        at_window[-1], in_last[-1], rounds[-1] = 1.0, 0.0, 1 / in_round[-1]
        path = _slow_start_windows(largest, b)
        before = np.concatenate([[0], np.cumsum(path)])
        reach = np.zeros(largest)
        reach[path - 1] = np.exp(before[:-1] * kept)
        return cls(
            windows=w,
            p=p,
            # With many packets per ACK, exp() is 0 at a window of 2; `period` divides by it.
            survival=np.maximum(np.exp(b * kept * (w * (w - 1) / 2)), np.finfo(np.float64).tiny),
            lost_in_round=in_round,
            lost_at=at_window,
            lost_in_last=in_last,
            rounds_at=rounds,
            slow_reach=reach,
            slow_through=np.exp(before[np.searchsorted(path, w)] * kept),
        )

    def timeout_given_loss(self, later: float | None) -> Floats:
        """Return the probability of a timeout given a first loss in a round of w.

        ``later`` is the loss probability of each packet after the first lost one; None for
        "rest-of-round".
        """
        w = self.windows.astype(np.float64)
        if later is None:
            return unchecked_timeout_probability(w, np.asarray(self.p))
        # At most two of the w - 1 packets after the first loss, in both rounds, are delivered.
        n, kept = w - 1, 1 - later
        few = later * later + n * kept * later + n * (n - 1) / 2 * kept * kept
        return np.asarray(np.where(w <= 3, 1.0, later ** np.maximum(n - 2, 0) * few))

    def delivered_after_loss(self, later: float | None) -> Floats:
        """Return the mean number of packets after the first lost one that are delivered."""
        if later is not None:
            return np.asarray((self.windows - 1) * (1 - later))
        # (1-p)(1 - (1-p)^k)/p of the k packets of the last round, averaged over A(w, k).
        p = self.p
        return np.asarray((1 - p) / p * (self.lost_in_round - p) / (2 - p))

    def reach_probabilities(self, starts: Floats, thresholds: Floats) -> tuple[Floats, Floats]:
        """Return the probabilities of reaching each window in linear growth, and in slow start.

        ``starts`` and ``thresholds`` are the distributions of the start of a period: linear growth
        from a window, or slow start up to a threshold. Their total is 1.
        """
        slow = self.slow_reach * (thresholds.sum() - np.cumsum(thresholds))
        linear = starts + thresholds * self.slow_through
        return self.survival * np.cumsum(linear / self.survival), slow

    def first_loss_distribution(
        self, reached: Floats, slow: Floats, early: Floats
    ) -> tuple[Floats, Floats]:
        """Return the distribution of the window at the first loss, and the part in the last round.

        The last round is the last of the b rounds of a period with this window. ``early`` is the
        part whose first loss is in the preceding recovery.
        """
        return (
            np.asarray(reached * self.lost_at + slow * self.lost_in_round + early),
            np.asarray(reached * self.lost_in_last),
        )

    @staticmethod
    def end_window_distribution(lost: Floats, last: Floats) -> Floats:
        """Return the distribution of W from the distribution of the window at the first loss."""
        distribution = lost - last
        distribution[1:] += last[:-1]
        return distribution

    def stationary_probabilities(
        self, timeout: Floats, repair: Recovery, after_timeout: AfterTimeout
    ) -> tuple[Floats, Floats, Floats]:
        """Return :meth:`reach_probabilities` of the stationary distribution at the period start.

        The last array is the probability that the first loss is in the preceding recovery.
        """
        size = len(self.windows)
        half = np.maximum(self.windows // 2, 1) - 1
        threshold = np.minimum(np.maximum(self.windows // 2, 2), size) - 1
        starts, thresholds, early = np.zeros(size), np.zeros(size), np.zeros(size)
        starts[0] = 1.0
        moved = math.inf
        for _ in range(MAX_SWEEPS):
            reached, slow = self.reach_probabilities(starts, thresholds)
            lost, last = self.first_loss_distribution(reached, slow, early)
            ends = self.end_window_distribution(lost, last)
            timed_out = self.end_window_distribution(lost * timeout, last * timeout)
            lost_new = self.end_window_distribution(lost * repair.lost_new, last * repair.lost_new)
            halved = ends - lost_new if after_timeout == "half" else ends - lost_new - timed_out
            after, slowly = _map_distribution(halved, half), np.zeros(size)
            again = _map_distribution(lost_new, half)
            if after_timeout == "one":
                after[0] += timed_out.sum()
            elif after_timeout == "slow-start":
                slowly = _map_distribution(timed_out, threshold)
            # Normalise, so that rounding errors do not grow from sweep to sweep.
            total = after.sum() + slowly.sum() + again.sum()
            before = np.stack([starts, thresholds, early])
            starts, thresholds, early = np.stack([after, slowly, again]) / total
            moved = float(np.abs(np.stack([starts, thresholds, early]) - before).sum())
            if moved < STATIONARY_TOLERANCE:
                return (*self.reach_probabilities(starts, thresholds), early)
        raise ArithmeticError(
            f"the distribution of the window still changes by {moved:.1e} after {MAX_SWEEPS} "
            "iterations"
        )


def _map_distribution(distribution: Floats, to: NDArray[np.int64]) -> Floats:
    """Return the distribution of to[i], where i has the distribution ``distribution``."""
    return np.asarray(np.bincount(to, distribution, len(distribution)), dtype=np.float64)


def _slow_start_windows(largest: int, b: int) -> NDArray[np.int64]:
    """Return the windows of slow start's rounds below the largest window."""
    path, window = [], 1
    while window < largest:
        path.append(window)
        window += -(-window // b)
    return np.asarray(path, dtype=np.int64)


def _choose_largest_window(p: float, b: int, receiver_window_pkts: float, limit: int) -> int:
    """Return W_max, or the smallest window that periods exceed with a negligible probability.

    The largest start is half of it, rounded up; from there at least b (3 M^2/8 - M/2) packets must
    be delivered.
    """
    require_window("receiver_window_pkts", receiver_window_pkts)
    packets = math.log(MAX_TRUNCATED_PROBABILITY) / math.log1p(-p) / b
    cut = math.ceil((0.5 + math.sqrt(0.25 + 1.5 * packets)) / 0.75)
    largest = cut if receiver_window_pkts >= cut else int(receiver_window_pkts)
    if largest > limit:
        raise DomainError(
            f"loss_probability {p:g} lets the window grow to {largest:,} packets, but the chain "
            f"supports at most {limit:,} packets: set receiver_window_pkts, or use the closed form"
        )
    return largest


def _require_whole_packets_per_ack(packets_per_ack: float) -> int:
    b = float(to_packets_per_ack_array("packets_per_ack", packets_per_ack))
    if b != int(b):
        raise DomainError(
            "the Markov chain of the window requires a whole number as packets_per_ack, not "
            f"{b!r}, because the window grows once in this number of rounds"
        )
    return int(b)


def _later_loss_probability(losses: LaterLosses | float, p: float) -> float | None:
    """Return the loss of a packet after the first lost one; None for the rest of the round."""
    if isinstance(losses, str):
        _require_one_of("losses", losses, get_args(LaterLosses))
        return p if losses == "independent" else None
    if not 0 <= losses <= 1:
        raise DomainError(f"losses must be from 0 to 1, not {losses!r}")
    return float(losses)


def _require_one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        choices = " or ".join(f'"{each}"' for each in known)
        raise DomainError(f"{name} must be {choices}, not {value!r}")


# Fast recovery of NewReno (RFC 6582).
#
# A triple duplicate with a window of w, after which d packets arrive and w - d are lost, is
# followed by w - d rounds of recovery. With h = w/2, rounded down:
#
# - Each round retransmits one packet. A retransmission is lost with probability p, and then the
#   recovery ends in a timeout.
# - The window is h plus the duplicates. Round i therefore also sends max(0, d - w + h + i - 1)
#   new packets. They count among the packets of the next period. If one of them is lost, the
#   period ends with the recovery, at a window of h.

DUPLICATE_THRESHOLD = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """Probabilities and means of a loss at each window; index 0 is a window of 1.

    All values include losses that end in a timeout immediately, for which they are 0.
    """

    failed: Floats
    """Probability that a retransmission is lost."""
    lost_new: Floats
    """Probability that all retransmissions arrive, but a new packet of the recovery is lost."""
    rounds: Floats
    """Mean number of complete rounds, each of which delivers one retransmission."""
    retransmitted: Floats
    """Mean number of retransmissions sent."""


def no_recovery(largest: int) -> Recovery:
    """Return the recovery of the paper's model, which takes no time."""
    nothing = np.zeros(largest)
    return Recovery(failed=nothing, lost_new=nothing, rounds=nothing, retransmitted=nothing)


def newreno_recovery(largest: int, p: float, later: float | None) -> Recovery:
    """Return NewReno's recovery for windows up to ``largest``.

    ``later`` is the loss probability of each packet after the first lost one; None if all later
    packets of the round are lost.
    """
    q, rows = 1 - p, []
    for w, delivered in enumerate(_delivered_distributions(largest, p, later), start=1):
        d = np.arange(DUPLICATE_THRESHOLD, w)
        at = delivered[DUPLICATE_THRESHOLD:]
        h, first = w // 2, np.maximum(d - w + w // 2, 0)
        new = (h * (h - 1) - first * (first - 1)) / 2
        repaired = q ** (w - d)
        sent = (1 - repaired) / p
        rows.append([at @ (1 - repaired), at @ (repaired * (1 - q**new)), at @ sent])
    failed, lost_new, sent = np.array(rows).T
    return Recovery(failed=failed, lost_new=lost_new, rounds=q * sent, retransmitted=sent)


def _delivered_distributions(largest: int, p: float, later: float | None) -> Iterator[Floats]:
    """Yield, for windows of 1, 2, ..., the distribution of d = 0, 1, ..., w - 1."""
    row = np.ones(1)
    for w in range(1, largest + 1):
        if later is None:
            # At least d packets precede the loss in its round, and d arrive in the next round.
            kept = (1 - p) ** np.arange(w + 1.0)
            yield -np.diff(kept * (kept - kept[-1]) / (1 - kept[-1]))
        else:
            yield row
            row = later * np.append(row, 0.0) + (1 - later) * np.append(0.0, row)


LOSS_PROBABILITIES = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
RTTS_S = (0.02, 0.05, 0.1, 0.2)
PACKETS_PER_ACK = (1, 2)
WINDOWS_PKTS = (8.0, 32.0, np.inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedFormError:
    """Rates over a grid; arrays of the shape (losses, RTTs, packets per ack, windows).

    Attributes
    ----------
    loss_probability, rtt_s, packets_per_ack, receiver_window_pkts
        The axes, one-dimensional.
    t0_s
        T0 in seconds, the same in the entire grid.
    closed_form_pps
        B(p) of (31).
    chain_pps
        Rate of the chain.
    unbroken_chain_pps
        Rate of the chain if a timeout halves the window like a triple duplicate.
    """

    loss_probability: Floats
    rtt_s: Floats
    packets_per_ack: NDArray[np.int64]
    receiver_window_pkts: Floats
    t0_s: float
    closed_form_pps: Floats
    chain_pps: Floats
    unbroken_chain_pps: Floats

    @property
    def error(self) -> Floats:
        """Overestimate of the closed form, relative to the chain's rate."""
        return self.closed_form_pps / self.chain_pps - 1

    @property
    def restart_error(self) -> Floats:
        """Part of ``error`` because a period after a timeout starts from W/2 instead of 1."""
        return self.unbroken_chain_pps / self.chain_pps - 1

    @property
    def means_error(self) -> Floats:
        """Part of ``error`` because means and real numbers replace distributions of integers.

        1 + ``error`` is the product of 1 + this and 1 + ``restart_error``.
        """
        return self.closed_form_pps / self.unbroken_chain_pps - 1


def closed_form_error(
    *,
    loss_probability: Sequence[float] = LOSS_PROBABILITIES,
    rtt_s: Sequence[float] = RTTS_S,
    t0_s: float = 1.0,
    packets_per_ack: Sequence[int] = PACKETS_PER_ACK,
    receiver_window_pkts: Sequence[float] = WINDOWS_PKTS,
    losses: LaterLosses = "rest-of-round",
    continuous: bool = False,
) -> ClosedFormError:
    """Return the closed form (31) and the chain over a grid.

    Parameters
    ----------
    loss_probability, rtt_s, packets_per_ack, receiver_window_pkts
        The axes: sequences of the arguments of :func:`throughput` and :func:`window_chain`. W_max
        in integer packets.
    t0_s
        T0 in seconds.
    losses
        Losses of the chain within a round, as in :func:`window_chain`.
    continuous
        As in :func:`throughput`.

    Raises
    ------
    DomainError
        An argument outside its domain.
    """
    p, rtt, most = (
        np.asarray(axis, dtype=np.float64)
        for axis in (loss_probability, rtt_s, receiver_window_pkts)
    )
    acked = np.asarray(packets_per_ack, dtype=np.int64)
    closed = throughput(
        rtt_s=rtt[:, None, None],
        t0_s=t0_s,
        loss_indication_ratio=p[:, None, None, None],
        packets_per_ack=acked[:, None],
        receiver_window_pkts=most,
        continuous=continuous,
    ).rate_pps
    chain, unbroken = np.empty_like(closed), np.empty_like(closed)
    restarts: tuple[tuple[AfterTimeout, Floats], ...] = ("one", chain), ("half", unbroken)
    for i, j, k in np.ndindex(p.size, acked.size, most.size):
        for after_timeout, rates in restarts:
            rates[i, :, j, k] = window_chain(
                loss_probability=float(p[i]),
                packets_per_ack=int(acked[j]),
                receiver_window_pkts=float(most[k]),
                losses=losses,
                after_timeout=after_timeout,
            ).rate_pps(rtt_s=rtt, t0_s=t0_s)
    return ClosedFormError(
        loss_probability=p,
        rtt_s=rtt,
        packets_per_ack=acked,
        receiver_window_pkts=most,
        t0_s=t0_s,
        closed_form_pps=closed,
        chain_pps=chain,
        unbroken_chain_pps=unbroken,
    )
