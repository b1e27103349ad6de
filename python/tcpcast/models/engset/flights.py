"""One connection on an idle path: flights, ON time, peak rate (section 4.2, Table 3).

The second part follows it packet by packet: queue and spurious timeouts (4.2 and 4.4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tcpcast.models.domain import (
    require_count,
    require_file_size,
    require_not_negative,
    require_window,
)
from tcpcast.models.engset.path import ROUNDING_TOLERANCE
from tcpcast.process.errors import DomainError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tcpcast.array_types import Floats
    from tcpcast.models.engset.path import Path


@dataclass(frozen=True, slots=True)
class Flights:
    """Groups of contiguous packets that a connection sends without loss (Table 3).

    ``slow_start`` contains the flights while the window doubles, ``full_rounds`` is the number of
    following flights of a full receiver window (``receiver_window_pkts``), ``last_pkts`` is the
    size of the last flight. If ``saturated``, the last flight fills the slowest link and lasts to
    the end of the file.
    """

    slow_start: tuple[float, ...]
    full_rounds: int
    receiver_window_pkts: float
    last_pkts: float
    saturated: bool

    @property
    def rounds(self) -> int:
        """Number of flights, the m of ON0 = m RTT0 + n Delta*."""
        return len(self.slow_start) + self.full_rounds + 1

    @property
    def tail_pkts(self) -> float:
        """The n of ON0: packets of the last flight after its first packet.

        If a mean size leaves a last flight of less than one packet, the flight still needs its
        round, but no further time.
        """
        return max(self.last_pkts - 1, 0.0)

    def sizes(self) -> tuple[float, ...]:
        """Return the size of every flight in packets, as in Table 3; they sum to F."""
        full = (self.receiver_window_pkts,) * self.full_rounds
        return (*self.slow_start, *full, self.last_pkts)


def flights(
    *,
    size_pkts: float,
    receiver_window_pkts: float,
    slowest_beta: float,
    initial_window_pkts: int = 2,
) -> Flights:
    """Return the flights of a file that is sent on an idle path without loss (section 4.2).

    The window doubles each round up to the receiver window (one ACK per packet, slow start
    throughout). A window larger than beta* saturates the slowest link: that flight lasts to the
    end of the file. The paper has an initial window of 2; other values double in the same way.

    Parameters
    ----------
    size_pkts
        File size F in packets, at least 1; a mean need not be an integer.
    receiver_window_pkts
        WR in packets, at least 1, or ``inf``.
    slowest_beta
        beta* = RTT0/Delta*, at least 1.
    initial_window_pkts
        Window of the first round in packets, at least 1.

    Returns
    -------
    Flights
        The flights in order; sizes in packets.

    Raises
    ------
    DomainError
        An argument outside the domain above.
    """
    require_file_size("size_pkts", size_pkts)
    require_window("receiver_window_pkts", receiver_window_pkts)
    require_window("initial_window_pkts", initial_window_pkts)
    if not slowest_beta >= 1 - ROUNDING_TOLERANCE:
        raise DomainError(f"slowest_beta must be at least 1, not {slowest_beta!r}")
    fits = slowest_beta * (1 + ROUNDING_TOLERANCE)
    sent: list[float] = []
    rest, window = size_pkts, min(float(initial_window_pkts), receiver_window_pkts)
    while rest > window and window <= fits:
        if window == receiver_window_pkts:
            full = math.ceil(rest / window) - 1
            return Flights(tuple(sent), full, receiver_window_pkts, rest - full * window, False)
        sent.append(window)
        rest -= window
        window = min(2 * window, receiver_window_pkts)
    saturated = min(window, rest) > fits
    return Flights(tuple(sent), 0, receiver_window_pkts, rest, saturated)


@dataclass(frozen=True, slots=True)
class IsolatedConnection:
    """One connection of a given size on an idle path (eq. 2 to 4).

    Attributes
    ----------
    flights
        Its flights.
    rounds, tail_pkts
        m and n of eq. 2.
    on_time_s
        ON0 = m RTT0 + n Delta*: time from the first packet sent to the last ACK received.
    rate_bps
        Peak rate h0 = 8 F P/ON0.
    servers
        s = C/h0: number of active connections that the link carries at their peak rate.
    queue_rounds, queue_tail_pkts
        m' and n': m and n renormalised so that n' Delta* is less than RTT0. Equal to m and n if no
        link saturates; only used for the queue.
    """

    flights: Flights
    rounds: int
    tail_pkts: float
    on_time_s: float
    rate_bps: float
    servers: float
    queue_rounds: int
    queue_tail_pkts: float


def isolated_connection(
    *, path: Path, size_pkts: float, receiver_window_pkts: float, initial_window_pkts: int = 2
) -> IsolatedConnection:
    """Return ON time, peak rate and s of one connection on an idle path (eq. 2 to 4, section 4.2).

    Parameters
    ----------
    path
        The path.
    size_pkts, receiver_window_pkts, initial_window_pkts
        As in :func:`flights`.

    Raises
    ------
    DomainError
        An argument outside the domain of :func:`flights`.
    """
    group = flights(
        size_pkts=size_pkts,
        receiver_window_pkts=receiver_window_pkts,
        slowest_beta=path.slowest_beta,
        initial_window_pkts=initial_window_pkts,
    )
    on_time = group.rounds * path.rtt0_s + group.tail_pkts * path.slowest_delta_s
    rate = size_pkts * path.packet_bits / on_time
    rounds, tail = group.rounds, group.tail_pkts
    if group.saturated:
        rounds = math.floor(on_time / path.rtt0_s * (1 + ROUNDING_TOLERANCE))
        rest = max(on_time - rounds * path.rtt0_s, 0.0)
        tail = float(math.floor(rest / path.slowest_delta_s * (1 + ROUNDING_TOLERANCE)))
    return IsolatedConnection(
        flights=group,
        rounds=group.rounds,
        tail_pkts=group.tail_pkts,
        on_time_s=on_time,
        rate_bps=rate,
        servers=path.bottleneck_bps / rate,
        queue_rounds=rounds,
        queue_tail_pkts=tail,
    )


@dataclass(frozen=True, slots=True)
class LoneQueue:
    """Queue of one on/off connection at the slowest link of an idle path (section 4.4).

    ``rounds`` contains the part of each round in the integral of the queue over one transfer, in
    packets times Delta*; ``mean_pkts`` is the time average over ON and OFF, ``delay_s`` the
    resulting increase of RTT0.
    """

    rounds: tuple[float, ...]
    mean_pkts: float
    delay_s: float

    @property
    def integral(self) -> float:
        """Integral of the queue over one transfer, in packets times Delta*."""
        return sum(self.rounds)


def lone_queue(
    *,
    path: Path,
    size_pkts: int,
    mean_off_s: float,
    receiver_window_pkts: float,
    initial_window_pkts: int = 2,
) -> LoneQueue:
    """Return the mean queue of one on/off connection on an idle path, by rounds (section 4.4).

    A round with a ACKs, of which I increase the window, adds (a + 1)(I + 1) - 1 to the integral.
    This expression covers all three cases of the paper: I(I + 2) with a = I, (I + 1)(I + 2) - 1 if
    an odd packet ends the file, and I(I + 2) + (I + 1)(F - l_ss) for the saturated round, where
    l_ss = 2 WR - 2. Upstream links are assumed fast: the packets released by an ACK arrive
    together.

    Parameters
    ----------
    path
        The path; the queue is at its slowest link.
    size_pkts
        File size F, an integer number of packets, at least 1.
    mean_off_s
        Mean OFF time in seconds, at least 0.
    receiver_window_pkts, initial_window_pkts
        As in :func:`flights`; the initial window arrives as one burst.

    Raises
    ------
    DomainError
        An argument outside the domain above, or an initial window that saturates the slowest link
        (the paper's rounds start from an empty queue).
    """
    size_pkts = require_count("size_pkts", size_pkts)
    require_not_negative("mean_off_s", mean_off_s)
    isolated = isolated_connection(
        path=path,
        size_pkts=size_pkts,
        receiver_window_pkts=receiver_window_pkts,
        initial_window_pkts=initial_window_pkts,
    )
    sizes = isolated.flights.sizes()
    if len(sizes) == 1 and isolated.flights.saturated:
        raise DomainError(
            f"initial_window_pkts ({initial_window_pkts}) fills the slowest link, whose BDP is "
            f"{path.slowest_beta:.3g} packets; use a smaller window (TCP-Engset, "
            "section 4.4)"
        )
    parts = [sizes[0] * (sizes[0] + 1) / 2]
    window = min(float(initial_window_pkts), receiver_window_pkts)
    for number, flight in enumerate(sizes[1:], start=2):
        increases = min(receiver_window_pkts - window, flight // 2)
        if not (isolated.flights.saturated and number == len(sizes)):
            increases = min(increases, window)  # one ACK per packet of the previous round
        parts.append((flight - increases + 1) * (increases + 1) - 1)
        window = min(2 * window, receiver_window_pkts)
    mean = sum(parts) * path.slowest_delta_s / (isolated.on_time_s + mean_off_s)
    return LoneQueue(tuple(parts), mean, mean * path.slowest_delta_s)


@dataclass(frozen=True, slots=True)
class LoneTransfer:
    """All packets of one transfer on an idle path, without loss: arrays over packets 1, 2, 3, ...

    ``sent_s`` and ``acked_s`` are times since the start in seconds, ``rto_s`` is the RTO when the
    packet is sent.
    """

    sent_s: Floats
    acked_s: Floats
    rto_s: Floats


def lone_transfer(
    *,
    path: Path,
    size_pkts: int,
    receiver_window_pkts: float,
    initial_window_pkts: int = 2,
    min_rto_s: float = 1.0,
    initial_rto_s: float = 1.0,
) -> LoneTransfer:
    """Follow one transfer in slow start ACK by ACK, on an idle path and without loss.

    ACKs are at least Delta* apart, and at least RTT0 after their packet: exact for links in series
    with one packet size. There is one RTT sample per flight, from its first packet; RFC 6298 with
    a clock granularity of zero.

    Parameters
    ----------
    path
        The path.
    size_pkts
        Number of packets, at least 1. The times of a packet are the same for every larger size.
    receiver_window_pkts, initial_window_pkts
        As in :func:`flights`.
    min_rto_s, initial_rto_s
        Minimum RTO, and the RTO before the first sample, in seconds.

    Returns
    -------
    LoneTransfer
        Times of each packet, arrays of ``[size_pkts]``.

    Raises
    ------
    DomainError
        An argument outside the domain above.
    """
    size_pkts = require_count("size_pkts", size_pkts)
    require_window("receiver_window_pkts", receiver_window_pkts)
    require_window("initial_window_pkts", initial_window_pkts)
    require_not_negative("min_rto_s", min_rto_s)
    require_not_negative("initial_rto_s", initial_rto_s)
    burst = int(min(initial_window_pkts, receiver_window_pkts, size_pkts))
    sent, acked = np.zeros(size_pkts), np.zeros(size_pkts)
    rto_at_send = np.full(size_pkts, initial_rto_s)
    rto, srtt, rttvar = initial_rto_s, 0.0, 0.0
    released, timed, previous = burst, 0, -math.inf
    for packet in range(size_pkts):
        previous = acked[packet] = max(sent[packet] + path.rtt0_s, previous + path.slowest_delta_s)
        acks = packet + 1
        if packet == timed:
            sample = previous - sent[packet]
            rttvar = 0.75 * rttvar + 0.25 * abs(srtt - sample) if srtt else sample / 2
            srtt = 0.875 * srtt + 0.125 * sample if srtt else sample
            rto, timed = max(min_rto_s, srtt + 4 * rttvar), released
        window = min(initial_window_pkts + acks, receiver_window_pkts)
        allowed = int(min(size_pkts, acks + window))
        if allowed > released:
            sent[released:allowed], rto_at_send[released:allowed] = previous, rto
            released = allowed
    return LoneTransfer(sent, acked, rto_at_send)


def spurious_timeouts(
    *,
    path: Path,
    largest_pkts: int,
    receiver_window_pkts: float,
    initial_window_pkts: int = 2,
    min_rto_s: float = 1.0,
    initial_rto_s: float = 1.0,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the file sizes with a spurious timeout on an idle path (section 4.2).

    The queue at the saturated link can delay a packet longer than the RTO, which the model omits.
    The timer starts at the last packet sent, as in the authors' TCP, not at the last ACK (RFC 6298
    5.3), so the end of a file is at risk.

    Parameters
    ----------
    largest_pkts
        Largest tested size; all sizes from 1 are tested.
    path, receiver_window_pkts, initial_window_pkts, min_rto_s, initial_rto_s
        As in :func:`lone_transfer`.

    Returns
    -------
    sizes_pkts, timed_out
        The file sizes, and for each the first unacknowledged packet when its timer expires.

    Raises
    ------
    DomainError
        An argument outside the domain of :func:`lone_transfer`.

    Notes
    -----
    Special setting, WR = 44: sizes 54 to 106; packet 54 for F = 54, packet 90 for F = 106.
    """
    transfer = lone_transfer(
        path=path,
        size_pkts=largest_pkts,
        receiver_window_pkts=receiver_window_pkts,
        initial_window_pkts=initial_window_pkts,
        min_rto_s=min_rto_s,
        initial_rto_s=initial_rto_s,
    )
    expiry = transfer.sent_s + transfer.rto_s
    at_end = transfer.acked_s > expiry * (1 + ROUNDING_TOLERANCE)
    # A gap between transmissions that exceeds the RTO affects every longer file.
    gaps = np.flatnonzero(transfer.sent_s[1:] > expiry[:-1] * (1 + ROUNDING_TOLERANCE))
    culprit = np.arange(largest_pkts)
    if gaps.size:
        culprit = np.minimum(culprit, gaps[0])
        at_end[gaps[0] :] = True
    sizes = np.flatnonzero(at_end)
    first = np.searchsorted(transfer.acked_s, expiry[culprit[sizes]], side="right")
    return sizes + 1, first + 1
