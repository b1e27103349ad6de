"""Flights, ON time and peak rate of one connection on an idle path (section 4.2, Table 3)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcpcast.errors import DomainError
from tcpcast.models.domain import require_file_size, require_window
from tcpcast.models.engset.path import ROUNDING_TOLERANCE

if TYPE_CHECKING:
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
