"""N on/off connections sharing the multiplexing link: states, rate, ON time, queue and loss.

Each of j active connections gets min(h0, C/j). The number of active connections is then a
birth-death process, which gives the mean rate and the utilisation. The increase of the ON time by
sharing gives the queue. Sections 4.1 and 4.3, eq. 5 to 13, Table 11.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tcpcast.models.domain import require_count, require_positive
from tcpcast.models.engset.flights import isolated_connection
from tcpcast.models.engset.path import ROUNDING_TOLERANCE
from tcpcast.process.errors import DomainError
from tcpcast.statistics.vector_products import dot_product

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from tcpcast.array_types import Floats
    from tcpcast.models.engset.flights import IsolatedConnection
    from tcpcast.models.engset.path import Path


def state_log_probabilities(
    *, sources: int, mean_off_s: float, isolated_on_time_s: float, servers: float
) -> Floats:
    """Return ln P_j, the state probabilities of the number of active sources (section 4.3).

    The birth rate is lambda_j = (N - j)/OFF, the death rate mu_j = min(j, s)/ON0. The logarithms of
    the ratios P_j/P_(j-1) are summed outwards from the most likely state, where they are small, so
    that a large N and improbable states do not reduce the precision.

    Parameters
    ----------
    sources
        N, at least 1.
    mean_off_s, isolated_on_time_s
        Mean OFF time and ON0 in seconds, above 0.
    servers
        s = C/h0, above 0; need not be an integer.

    Returns
    -------
    ndarray, shape (N + 1,)
        Natural logarithms of P_0, ..., P_N; their exponentials sum to 1.

    Raises
    ------
    DomainError
        An argument outside the domain above.
    """
    count = require_count("sources", sources)
    require_positive("mean_off_s", mean_off_s)
    require_positive("isolated_on_time_s", isolated_on_time_s)
    require_positive("servers", servers)
    states = np.arange(1, count + 1, dtype=np.float64)
    ratio = (count + 1 - states) * (isolated_on_time_s / mean_off_s) / np.minimum(states, servers)
    steps = np.log(ratio)
    # The ratios decrease with j: P_j increases up to the last state whose ratio is at least 1.
    mode = int(np.count_nonzero(steps >= 0))
    logs = np.zeros(count + 1)
    np.cumsum(steps[mode:], out=logs[mode + 1 :])
    if mode:
        logs[mode - 1 :: -1] = -np.cumsum(steps[mode - 1 :: -1])
    logs -= math.log(np.exp(logs).sum())
    return logs


def shared_rate_bps(*, active: ArrayLike, peak_bps: ArrayLike, link_bps: ArrayLike) -> Floats:
    """Return the rate of each of j active connections, min(j h0, C)/j (Fig. 11, right).

    Parameters
    ----------
    active, peak_bps, link_bps
        j above 0, h0 and C in bit/s above 0; the three are broadcast.

    Returns
    -------
    ndarray
        bit/s, of the broadcast shape.

    Raises
    ------
    DomainError
        An argument that is not above 0.
    """
    j, peak, link = (np.asarray(a, dtype=np.float64) for a in (active, peak_bps, link_bps))
    for name, values in (("active", j), ("peak_bps", peak), ("link_bps", link)):
        if not np.all(values > 0):
            raise DomainError(f"{name} must be above 0")
    return np.asarray(np.minimum(peak, link / j))


def time_above(*, queue_pkts: ArrayLike, queue_mean_pkts: ArrayLike, load: ArrayLike) -> Floats:
    """Return P(Q > x) = U2 exp(-x U2/Q), an exponential with mean Q (eq. 12).

    Parameters
    ----------
    queue_pkts
        x in packets, at least 0.
    queue_mean_pkts
        Mean queue Q in packets, at least 0; with 0 the link never queues, and P(Q > x) is 0 for x
        above 0.
    load
        U2, from 0 to 1. The three arguments are broadcast.

    Returns
    -------
    ndarray
        Share of time from 0 to 1, of the broadcast shape. With the buffer as x it is the model's
        loss ratio L = P(Q > B), which the authors trust only up to 1 %.

    Raises
    ------
    DomainError
        An argument outside its domain.
    """
    x, mean, share = _check_queue_arguments(queue_pkts, queue_mean_pkts, load)
    with np.errstate(divide="ignore", invalid="ignore"):
        exponent = np.where(x > 0, x * share / mean, 0.0)
    return np.asarray(share * np.exp(-exponent))


def buffer_for_loss(
    *, loss_ratio: ArrayLike, queue_mean_pkts: ArrayLike, load: ArrayLike
) -> Floats:
    """Return the buffer B = (Q/U2) ln(U2/L) with a loss of L (eq. 13).

    Parameters
    ----------
    loss_ratio
        L, above 0 and below 1.
    queue_mean_pkts, load
        Q and U2 as in :func:`time_above`. The three arguments are broadcast.

    Returns
    -------
    ndarray
        Packets, including the one in transmission; 0 if the load itself is below L.

    Raises
    ------
    DomainError
        An argument outside its domain.
    """
    loss, mean, share = _check_loss_arguments(loss_ratio, queue_mean_pkts, load)
    busy = np.maximum(share, loss)
    return np.asarray(mean / busy * np.log(busy / loss))


def simplified_buffer_for_loss(
    *, loss_ratio: ArrayLike, queue_mean_pkts: ArrayLike, utilisation: ArrayLike
) -> Floats:
    """Return B = Q ln(U/L): the rule with a decay of 1/Q rather than U2/Q.

    This rule, not eq. 13, gives the 202 packets printed in section 5.4.1 for 10 Mbit/s (F = 500,
    RTT0 = 50 ms, N = 4). Arguments, result and errors as in :func:`buffer_for_loss`, with the
    mean ``utilisation`` U of eq. 10 instead of the load.
    """
    loss, mean, share = _check_loss_arguments(loss_ratio, queue_mean_pkts, utilisation)
    return np.asarray(mean * np.log(np.maximum(share, loss) / loss))


@dataclass(frozen=True, slots=True, kw_only=True)
class SharingResult:
    """Rate, ON time and utilisation by both methods of eq. 6 to 10.

    Attributes
    ----------
    mean_active
        J, the mean number of active sources.
    throughput_bps
        T (eq. 6).
    rate1_bps, on_time1_s, utilisation1
        h1, ON1 and U1 (eq. 7).
    overload_active, rate2_bps, on_time2_s, utilisation2
        Jo, h2, ON2 and U2 (eq. 8 and 9). None for N <= s, where they are undefined.
    """

    mean_active: float
    throughput_bps: float
    rate1_bps: float
    on_time1_s: float
    utilisation1: float
    overload_active: float | None = None
    rate2_bps: float | None = None
    on_time2_s: float | None = None
    utilisation2: float | None = None

    @property
    def rate_bps(self) -> float:
        """Mean connection rate h (eq. 10)."""
        return _mean_of_both_methods(self.rate1_bps, self.rate2_bps)

    @property
    def on_time_s(self) -> float:
        """Mean ON time (eq. 10)."""
        return _mean_of_both_methods(self.on_time1_s, self.on_time2_s)

    @property
    def utilisation(self) -> float:
        """Utilisation U (eq. 10)."""
        return _mean_of_both_methods(self.utilisation1, self.utilisation2)

    @property
    def closed_loop_load(self) -> float:
        """Closed-loop load: U2 (eq. 9), or U1, which then equals a0, for N <= s."""
        return self.utilisation1 if self.utilisation2 is None else self.utilisation2


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class EngsetResult:
    """Results of the model for a population, including intermediate values.

    Attributes
    ----------
    path, sources, mean_off_s, mean_size_pkts, buffer_pkts
        Arguments of :func:`engset`; ``buffer_pkts`` is None for an unlimited buffer.
    isolated
        One connection on an idle path: flights, ON0, h0, s (eq. 2 to 4).
    offered_load
        Open-loop load a0 (eq. 5).
    log_probability
        ln P_j, shape (N + 1,).
    sharing
        Rate, ON time and utilisation by both methods (eq. 6 to 9).
    rate_bps, on_time_s, utilisation
        h, ON and U: the means of both methods (eq. 10); for N <= s only the first.
    queue_mean_pkts
        Q, including the packet in transmission (eq. 11); 0 for N <= s.
    loss_ratio
        P(Q > B) (eq. 12), or None for an unlimited buffer.
    """

    path: Path
    sources: int
    mean_off_s: float
    mean_size_pkts: float
    buffer_pkts: float | None
    isolated: IsolatedConnection
    offered_load: float
    log_probability: Floats
    sharing: SharingResult
    rate_bps: float
    on_time_s: float
    utilisation: float
    queue_mean_pkts: float
    loss_ratio: float | None

    @property
    def can_overload_link(self) -> bool:
        """Whether N > s: only then does the link limit sources, and are both methods defined."""
        return self.sharing.rate2_bps is not None

    @property
    def rtt_s(self) -> float:
        """Closed-loop RTT in seconds, RTT0 + Q Delta (Table 11)."""
        return self.path.rtt0_s + self.queue_mean_pkts * self.path.delta_s

    @property
    def probability(self) -> Floats:
        """P_j, shape (N + 1,)."""
        return np.exp(self.log_probability)

    def time_above(self, queue_pkts: ArrayLike) -> Floats:
        """Return P(Q > x) for x in packets (:func:`time_above`)."""
        return time_above(
            queue_pkts=queue_pkts,
            queue_mean_pkts=self.queue_mean_pkts,
            load=self.sharing.closed_loop_load,
        )

    def buffer_for_loss(self, loss_ratio: float) -> float:
        """Return the buffer in packets for a loss ratio (:func:`buffer_for_loss`)."""
        return float(
            buffer_for_loss(
                loss_ratio=loss_ratio,
                queue_mean_pkts=self.queue_mean_pkts,
                load=self.sharing.closed_loop_load,
            )
        )


def engset(
    *,
    path: Path,
    sources: int,
    mean_off_s: float,
    mean_size_pkts: float,
    receiver_window_pkts: float,
    initial_window_pkts: int = 2,
    buffer_pkts: float | None = None,
) -> EngsetResult:
    """Evaluate the model for N on/off sources sharing a link (eq. 2 to 12).

    Parameters
    ----------
    path
        The path; L2 is the shared link.
    sources
        N, at least 1.
    mean_off_s
        Mean OFF time in seconds, above 0.
    mean_size_pkts
        Mean file size F in packets, at least 1. The model is independent of the size distribution.
    receiver_window_pkts
        WR in packets, at least 1, or ``inf``.
    initial_window_pkts
        Initial window in packets. The paper has 2; other values also double per round
        (:func:`.flights`).
    buffer_pkts
        Buffer of L2 in packets, including the one in transmission, at least 1; None: unlimited.

    Returns
    -------
    EngsetResult
        For N <= s the link carries all sources at the peak rate: no sharing, no queue, no loss.

    Raises
    ------
    DomainError
        An argument outside the domain above.
    """
    check_buffer(buffer_pkts)
    isolated = isolated_connection(
        path=path,
        size_pkts=mean_size_pkts,
        receiver_window_pkts=receiver_window_pkts,
        initial_window_pkts=initial_window_pkts,
    )
    logs = state_log_probabilities(
        sources=sources,
        mean_off_s=mean_off_s,
        isolated_on_time_s=isolated.on_time_s,
        servers=isolated.servers,
    )
    bits = mean_size_pkts * path.packet_bits
    sharing = _average_over_states(logs, isolated, bits, path.bottleneck_bps, mean_off_s)
    queue = (sharing.on_time_s - isolated.on_time_s) / (isolated.queue_rounds * path.delta_s)
    # For N <= s the ON times are equal except for rounding, and the model has no queue.
    queue = max(queue, 0.0) if sharing.rate2_bps is not None else 0.0
    loss = None
    if buffer_pkts is not None:
        load = sharing.closed_loop_load
        loss = load * math.exp(-buffer_pkts * load / queue) if queue > 0 else 0.0
    return EngsetResult(
        path=path,
        sources=int(sources),
        mean_off_s=mean_off_s,
        mean_size_pkts=mean_size_pkts,
        buffer_pkts=buffer_pkts,
        isolated=isolated,
        offered_load=sources * bits / ((mean_off_s + isolated.on_time_s) * path.bottleneck_bps),
        log_probability=logs,
        sharing=sharing,
        rate_bps=sharing.rate_bps,
        on_time_s=sharing.on_time_s,
        utilisation=sharing.utilisation,
        queue_mean_pkts=queue,
        loss_ratio=loss,
    )


def _average_over_states(
    logs: Floats,
    isolated: IsolatedConnection,
    bits: float,
    link_bps: float,
    mean_off_s: float,
) -> SharingResult:
    """Average over the states by both methods of eq. 6 to 9; ``bits`` is 8 F P."""
    sources = len(logs) - 1
    states = np.arange(sources + 1, dtype=np.float64)
    probability = np.exp(logs)
    mean_active = dot_product(probability, states)
    throughput = dot_product(probability, np.minimum(states * isolated.rate_bps, link_bps))
    first = {
        "mean_active": mean_active,
        "throughput_bps": throughput,
        "rate1_bps": throughput / mean_active,
        "on_time1_s": bits * mean_active / throughput,
        "utilisation1": throughput / link_bps,
    }
    shortest = (
        math.floor(isolated.servers * (1 + ROUNDING_TOLERANCE)) + 1
    )  # smallest number that share
    if shortest > sources:
        return SharingResult(**first)
    # Relative to the largest of the tail, which itself may underflow.
    weights = np.exp(logs[shortest:] - logs[shortest:].max())
    overload = dot_product(weights, states[shortest:]) / float(weights.sum())
    on2 = bits * overload / link_bps
    return SharingResult(
        **first,
        overload_active=overload,
        rate2_bps=link_bps / overload,
        on_time2_s=on2,
        utilisation2=sources * bits / ((mean_off_s + on2) * link_bps),
    )


def _mean_of_both_methods(first: float, second: float | None) -> float:
    return first if second is None else (first + second) / 2


def check_buffer(buffer_pkts: float | None) -> None:
    """Raise DomainError unless a buffer is None (unlimited) or at least 1 packet."""
    if buffer_pkts is not None and not buffer_pkts >= 1:
        raise DomainError(f"buffer_pkts must be at least 1 packet, not {buffer_pkts!r}")


def _check_queue_arguments(
    queue_pkts: ArrayLike, queue_mean_pkts: ArrayLike, load: ArrayLike
) -> tuple[Floats, Floats, Floats]:
    x, mean, share = (np.asarray(a, dtype=np.float64) for a in (queue_pkts, queue_mean_pkts, load))
    for name, values in (("queue_pkts", x), ("queue_mean_pkts", mean)):
        if not np.all(values >= 0):
            raise DomainError(f"{name} must be at least 0")
    if not np.all((share >= 0) & (share <= 1 + ROUNDING_TOLERANCE)):
        raise DomainError("load must be from 0 to 1")
    return x, mean, share


def _check_loss_arguments(
    loss_ratio: ArrayLike, queue_mean_pkts: ArrayLike, load: ArrayLike
) -> tuple[Floats, Floats, Floats]:
    loss, mean, share = _check_queue_arguments(loss_ratio, queue_mean_pkts, load)
    if not np.all((loss > 0) & (loss < 1)):
        raise DomainError("loss_ratio must be above 0 and below 1")
    return loss, mean, share
