"""A short transfer without loss: its window, latency, and packets whose loss needs a timeout."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tcpcast.array_types import Floats
from tcpcast.models.domain import require_not_negative, require_positive, require_window
from tcpcast.process.errors import DomainError


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortTransfer:
    """Sender and path of a short transfer (section 2).

    Parameters
    ----------
    rtt_s
        RTT in seconds, above 0.
    initial_window_pkts, initial_ssthresh_pkts, receiver_window_pkts
        W_0, W_SS and M in packets, at least 1; W_SS and M may be ``inf``. M limits the others.
    acked_packets
        b: packets per ACK, an integer of at least 1.
    duplicate_threshold
        dup_t: number of duplicate ACKs that start fast retransmit, an integer of at least 1.
    limited_transmit
        dup_LT: first duplicate ACK at which limited transmit sends new packets, 1 to dup_t; None
        without limited transmit. The paper's algorithm has 2; RFC 3042 (a new packet on each of the
        first two) and the paper's proposal behave as 1.
    protects_last_packets
        The proposal of section 3.1: one duplicate ACK retransmits one of the last dup_t packets,
        so that only the very last packet needs a timeout. The paper combines it with dup_LT = 1.
    min_rto_s
        RTO is the larger of this and 4 RTT, in seconds; 1 s in the paper (and in RFC 6298).
    as_printed
        The paper's recursion resumes immediately after a fast retransmit. By default the duplicate
        ACKs take one RTT to return; without this RTT, the latency with one loss is 7 to 15 % too
        low.
    shared_recovery
        Losses of one flight share its recovery; in the paper each loss has its own.
    backoff
        The RTO doubles if the retransmitted packet is also lost, up to a factor of 64; in the paper
        it is constant. Without ``shared_recovery`` the backoff makes the model worse, because its
        omission partly compensates for recoveries that are counted twice.
    delayed_ack_timer_s
        Time that an ACK waits for more packets if fewer than b arrived, in seconds, above 0; None
        for the paper's fluid, in which no ACK waits. No effect for b = 1.
    sack
        The packets in flight after a loss are delivered during its repair, as with SACK (RFC 6675),
        and their losses are repaired in the same recovery. In the paper, these packets are sent
        after the recovery. Not with ``shared_recovery``.
    decrease
        Window after a loss, relative to before, above 0 and below 1: 1/2 in the paper, 0.7 for
        CUBIC (RFC 9438, section 4.6). Only with ``sack``.
    timeout_s
        The RTO in seconds, above 0, instead of the rule of ``min_rto_s``; with tail loss probes the
        time of a probe (RFC 8985, section 7.2). None for that rule.
    whole_rounds
        Slow start has rounds of W_0, 2 W_0, 4 W_0, ... packets, for b = 1; in the paper's fluid,
        rounds count fractionally.
    link_pps
        Capacity of the link in packets/s, above 0: a window of a bandwidth-delay product fills it,
        and with ``whole_rounds`` each packet takes its transmission time. ``inf`` for unlimited.
    handshake
        Count from the SYN: one more RTT, and in expected latencies also losses of the handshake.
    syn_timeout_s
        First timeout of the handshake in seconds, above 0; it doubles. 1 s in RFC 6298 (2.1).

    Raises
    ------
    DomainError
        An argument outside the domain above.
    """

    rtt_s: float
    initial_window_pkts: float = 2
    initial_ssthresh_pkts: float = math.inf
    receiver_window_pkts: float = math.inf
    acked_packets: int = 1
    duplicate_threshold: int = 3
    limited_transmit: int | None = None
    protects_last_packets: bool = False
    min_rto_s: float = 1.0
    as_printed: bool = False
    shared_recovery: bool = False
    backoff: bool = False
    delayed_ack_timer_s: float | None = None
    sack: bool = False
    decrease: float = 0.5
    timeout_s: float | None = None
    whole_rounds: bool = False
    link_pps: float = math.inf
    handshake: bool = False
    syn_timeout_s: float = 1.0

    def __post_init__(self) -> None:
        require_positive("rtt_s", self.rtt_s)
        require_not_negative("min_rto_s", self.min_rto_s)
        require_positive("syn_timeout_s", self.syn_timeout_s)
        if self.delayed_ack_timer_s is not None:
            require_positive("delayed_ack_timer_s", self.delayed_ack_timer_s)
        if not self.link_pps > 0:
            raise DomainError(f"link_pps must be above 0, not {self.link_pps!r}")
        if self.timeout_s is not None:
            require_positive("timeout_s", self.timeout_s)
        if not 0 < self.decrease < 1:
            raise DomainError(f"decrease must be above 0 and below 1, not {self.decrease!r}")
        if self.sack and self.shared_recovery:
            raise DomainError("sack and shared_recovery are mutually exclusive; set one")
        require_window("initial_window_pkts", self.initial_window_pkts)
        if self.initial_window_pkts == math.inf:
            raise DomainError("initial_window_pkts must be finite")
        require_window("initial_ssthresh_pkts", self.initial_ssthresh_pkts)
        require_window("receiver_window_pkts", self.receiver_window_pkts)
        _require_count("acked_packets", self.acked_packets)
        _require_count("duplicate_threshold", self.duplicate_threshold)
        if self.limited_transmit is not None:
            _require_count("limited_transmit", self.limited_transmit)
            if self.limited_transmit > self.duplicate_threshold:
                raise DomainError(
                    f"limited_transmit must be at most duplicate_threshold "
                    f"({self.duplicate_threshold}), not {self.limited_transmit}"
                )

    @property
    def rto_s(self) -> float:
        """RTO in seconds: ``timeout_s``, or max(min_rto_s, 4 RTT)."""
        if self.timeout_s is not None:
            return self.timeout_s
        return max(self.min_rto_s, 4 * self.rtt_s)

    @property
    def max_window_pkts(self) -> float:
        """M, or the bandwidth-delay product of the link if that is less; at least 1."""
        return max(1.0, min(self.receiver_window_pkts, self.link_pps * self.rtt_s))

    @property
    def recovery_window_pkts(self) -> int:
        """1 + dup: smallest window that recovers a loss without a timeout."""
        return 1 + (self.limited_transmit or self.duplicate_threshold)

    @property
    def unprotected_pkts(self) -> int:
        """Number of last packets whose loss needs a timeout: dup_t, 1 with the proposal."""
        return 1 if self.protects_last_packets else self.duplicate_threshold


def _require_count(name: str, value: float) -> None:
    try:
        whole = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        whole = 0
    if whole < 1 or isinstance(value, bool):
        raise DomainError(f"{name} must be a whole number of at least 1, not {value!r}")


def file_sizes(size_pkts: ArrayLike) -> Floats:
    """Return the sizes as an array; raise DomainError unless each is at least 1 and finite."""
    sizes = np.asarray(size_pkts, dtype=np.float64)
    if not np.all((sizes >= 1) & np.isfinite(sizes)):
        raise DomainError("size_pkts must be at least 1 packet and finite")
    return sizes


@dataclass(frozen=True, slots=True)
class WindowGrowth:
    """A window that grows from W_0 in slow start, and from W_SS in congestion avoidance.

    W_0 is the initial window and W_SS the slow start threshold (arrays of one shape). M, the
    maximum window, limits both (note in section 2). With one ACK per b packets, the window grows by
    1/b per packet in slow start, and by 1/b per round in congestion avoidance.
    """

    start: Floats
    threshold: Floats  # S = max(W0, Wss), at which congestion avoidance begins
    cap: float
    b: float

    @classmethod
    def from_transfer(
        cls, transfer: ShortTransfer, start: ArrayLike, ssthresh: ArrayLike
    ) -> WindowGrowth:
        """Return the growth from W_0 and W_SS with the transfer's M and b."""
        cap = transfer.max_window_pkts
        first = np.minimum(np.asarray(start, dtype=np.float64), cap)
        threshold = np.maximum(first, np.minimum(np.asarray(ssthresh, dtype=np.float64), cap))
        return cls(first, threshold, cap, float(transfer.acked_packets))

    def select_transfers(self, which: NDArray[np.intp]) -> WindowGrowth:
        """Return the growth of the selected transfers, one row per transfer."""
        return WindowGrowth(self.start[which, None], self.threshold[which, None], self.cap, self.b)

    def window_after(self, sent: Floats) -> Floats:
        """Return W_f, the window after ``sent`` packets."""
        slow = self.start + sent / self.b
        # An infinite threshold is never reached, and inf - inf is nan.
        threshold = np.where(np.isinf(self.threshold), 0.0, self.threshold)
        beyond = np.maximum(sent - self.b * (threshold - self.start), 0.0)
        avoiding = np.sqrt(threshold**2 + 2 * beyond / self.b)
        return np.minimum(np.where(slow <= self.threshold, slow, avoiding), self.cap)

    def sent_until_window(self, window: float) -> Floats:
        """Return the packets sent until W_f reaches ``window``.

        0 for a window of at most W_0, and ``inf`` for a window above M.
        """
        if window > self.cap or window == math.inf:
            return np.full_like(self.start, math.inf)
        slow = np.minimum(window, self.threshold) - self.start
        threshold = np.minimum(self.threshold, window)
        sent = self.b * (slow + (window**2 - threshold**2) / 2)
        return np.where(self.start >= window, 0.0, sent)

    def slow_start_pkts(self) -> Floats:
        """Return the packets sent in slow start; ``inf`` if slow start does not end."""
        return self.b * (self.threshold - self.start)

    def sent_until_total(self, packets: Floats) -> Floats:
        """Return the number y of sent packets at which y + W_f(y) = ``packets``.

        W_f(y) packets are then in flight. Negative if W_0 exceeds ``packets``.
        """
        slow = (packets - self.start) * self.b / (self.b + 1)
        # An infinite threshold is never reached, and inf - inf is nan.
        threshold = np.where(np.isinf(self.threshold), 0.0, self.threshold)
        beyond = packets - self.b * (threshold - self.start)
        square = np.maximum(1 / self.b**2 + threshold**2 + 2 * beyond / self.b, 0.0)
        avoiding = packets + 1 / self.b - np.sqrt(square)
        sent = np.where(slow <= self.slow_start_pkts(), slow, avoiding)
        return np.maximum(sent, packets - self.cap)

    def rounds_to_send(self, sent: Floats, last: Floats) -> Floats:
        """Return L_0, the RTTs to send and acknowledge ``sent``; ``last`` is the final W_f."""
        slow = np.minimum(last, self.threshold)
        rounds = np.log(slow / self.start) / math.log1p(1 / self.b) + self.b * (last - slow)
        if self.cap < math.inf:
            rounds = rounds + np.maximum(sent - self.sent_until_window(self.cap), 0.0) / self.cap
        return rounds


def fluid_timeout_pkts(transfer: ShortTransfer) -> float:
    """Return the fluid's y_to: packets sent before the window can recover a loss (section 2).

    A real number: 0 if W_0 is large enough, ``inf`` if M is too small. ``transfer`` as in
    :func:`timeout_packets`.
    """
    grown = WindowGrowth.from_transfer(
        transfer, transfer.initial_window_pkts, transfer.initial_ssthresh_pkts
    )
    return float(grown.sent_until_window(transfer.recovery_window_pkts))


def timeout_packets(transfer: ShortTransfer) -> float:
    """Return y_to as a number of packets whose loss causes a timeout (Tables 1, 2).

    A packet counts if the window is below 1 + dup when the packet becomes the oldest outstanding
    one. In slow start the window has grown by the ACKs of earlier packets in its round, one per b
    packets; in congestion avoidance it grows by 1 every b rounds (a window of 1 after one round).
    The four entries of the tables for congestion avoidance from W_0 = 1 + dup are printed as 1; by
    the same rule they are 0.

    Parameters
    ----------
    transfer
        The TCP and path of the transfer; the size is irrelevant.

    Returns
    -------
    float
        An integer, or ``inf`` if the receiver window is below 1 + dup.

    Raises
    ------
    DomainError
        An initial window that is not an integer.
    """
    needed, b = transfer.recovery_window_pkts, transfer.acked_packets
    if transfer.max_window_pkts < needed:
        return math.inf
    if transfer.initial_window_pkts != int(transfer.initial_window_pkts):
        raise DomainError(
            f"initial_window_pkts must be a whole number, not {transfer.initial_window_pkts!r}, "
            "because the model counts the packets of each window"
        )
    window, count = int(transfer.initial_window_pkts), 0
    while window < needed:
        if window < transfer.initial_ssthresh_pkts:
            count += sum(window + math.ceil(j / b) < needed for j in range(window))
            window += math.ceil(window / b)
        else:
            count += window * (1 if window == 1 else b)
            window += 1
    return float(count)


def min_recoverable_pkts(transfer: ShortTransfer) -> float:
    """Return FileSize_min = y_to + dup_t of a ``transfer``, below which every loss is a timeout.

    The source is Figure 5. With the proposal for the last packets, dup_t is replaced by 1. The
    result is in packets, with y_to from :func:`timeout_packets`. At this size the latency given one
    loss has its maximum.
    """
    return timeout_packets(transfer) + transfer.unprotected_pkts
