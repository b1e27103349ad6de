"""Classes of on/off connections sharing the multiplexing link: TCP-Engset with several classes.

Extends :mod:`.shared_link` to classes that differ in file size, OFF time, RTT, own links and
window. The link is shared by balanced fairness (Bonald and Proutiere, *Insensitive bandwidth
sharing in data networks*, 2003): each connection gets its peak rate if the link can carry all
peak rates, and connections with equal peak rates get equal shares. The state probabilities then
have a product form. With one class, or equal classes, the results equal those of
:func:`.shared_link.engset`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from tcpcast.models.domain import require_count, require_positive
from tcpcast.models.engset.flights import isolated_connection
from tcpcast.models.engset.path import ROUNDING_TOLERANCE
from tcpcast.models.engset.shared_link import check_buffer
from tcpcast.process.errors import DomainError
from tcpcast.statistics.vector_products import dot_product

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tcpcast.array_types import Floats
    from tcpcast.models.engset.flights import IsolatedConnection
    from tcpcast.models.engset.path import Path

MAX_STATES = 2_000_000
"""Largest number of states, the product of N_k + 1 over the classes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngsetClass:
    """A class of identical sources.

    Parameters
    ----------
    path
        Path of the class. All classes have the same multiplexing link rate and packet size.
    sources
        N_k, at least 1.
    mean_off_s, mean_size_pkts, receiver_window_pkts, initial_window_pkts
        As in :func:`.shared_link.engset`.
    """

    path: Path
    sources: int
    mean_off_s: float
    mean_size_pkts: float
    receiver_window_pkts: float
    initial_window_pkts: int = 2

    @property
    def file_bits(self) -> float:
        """8 F_k P."""
        return self.mean_size_pkts * self.path.packet_bits

    def isolated_connection(self) -> IsolatedConnection:
        """Return one connection of the class on the idle path."""
        return isolated_connection(
            path=self.path,
            size_pkts=self.mean_size_pkts,
            receiver_window_pkts=self.receiver_window_pkts,
            initial_window_pkts=self.initial_window_pkts,
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ClassesResult:
    """Results of the model; arrays have shape (K,), one value per class.

    Attributes
    ----------
    classes, isolated
        The classes, and one connection of each on an idle path.
    log_probability
        ln of the state probabilities, shape (N_1 + 1, ..., N_K + 1).
    can_overload_link
        Whether the link limits sources in some state; otherwise there is no queue.
    rate_bps, on_time_s
        Mean connection rate and ON time.
    transfers_per_s
        Files per second, N_k/(OFF_k + ON_k).
    utilisation, closed_loop_load
        U and U2 of all classes (eq. 9 and 10), scalar.
    offered_load
        Open-loop load a0, the sum over the classes (eq. 5), scalar.
    queue_mean_pkts
        Q, including the packet in transmission, scalar; every class has the same queue.
    buffer_pkts
        Argument of :func:`engset_classes`; None for an unlimited buffer.
    loss_ratio
        P(Q > B) (eq. 12), or None for an unlimited buffer; the same for every class.
    """

    classes: tuple[EngsetClass, ...]
    isolated: tuple[IsolatedConnection, ...]
    log_probability: Floats
    can_overload_link: bool
    rate_bps: Floats
    on_time_s: Floats
    transfers_per_s: Floats
    utilisation: float
    closed_loop_load: float
    offered_load: float
    queue_mean_pkts: float
    buffer_pkts: float | None
    loss_ratio: float | None

    @property
    def rtt_s(self) -> Floats:
        """Closed-loop RTT of each class, RTT0 + Q Delta."""
        delta_s = self.classes[0].path.delta_s
        return np.array([c.path.rtt0_s + self.queue_mean_pkts * delta_s for c in self.classes])

    @property
    def active_probability(self) -> Floats:
        """Probabilities of the total number of active sources, shape (sum of N_k + 1,)."""
        totals = np.indices(self.log_probability.shape).sum(axis=0)
        probability: Floats = np.exp(self.log_probability)
        summed = np.bincount(totals.ravel(), weights=probability.ravel())
        return summed.astype(np.float64)


def class_log_probabilities(classes: Sequence[EngsetClass], peak_bps: Sequence[float]) -> Floats:
    """Return ln of the state probabilities under balanced fairness.

    With p(j) = 0 outside the grid and sigma_k = 8 F_k P, the probability of state j follows from
    its neighbours with one active source less. If sum_k j_k h_k is at most C,

        p(j) = prod_k binomial(N_k, j_k) (ON0_k/OFF_k)^j_k,

    otherwise C p(j) = sum_k (N_k - j_k + 1) sigma_k/OFF_k p(j - e_k): the link is full.

    Parameters
    ----------
    classes
        The classes.
    peak_bps
        h_k of each class, above 0.

    Returns
    -------
    ndarray, shape (N_1 + 1, ..., N_K + 1)
        Natural logarithms; their exponentials sum to 1.

    Raises
    ------
    DomainError
        No class, links that differ, a number outside its domain, or more than
        :data:`MAX_STATES` states.
    """
    for bps in peak_bps:
        require_positive("peak_bps", bps)
    shape = get_state_shape(classes)
    link_bps = classes[0].path.bottleneck_bps
    active, full = _active_counts_and_full_mask(classes, peak_bps)
    counts = np.array(shape)[:, None] - 1
    ratios = np.array(
        [c.file_bits / (h * c.mean_off_s) for c, h in zip(classes, peak_bps, strict=True)]
    )
    # numpy has no log Gamma.
    log_factorials = np.array([math.lgamma(n + 1) for n in range(max(shape))])
    logs: Floats = (
        log_factorials[counts] - log_factorials[active] - log_factorials[counts - active]
    ).sum(axis=0) + np.log(ratios) @ active
    born = np.log([c.file_bits / (c.mean_off_s * link_bps) for c in classes])
    strides = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    saturated = np.flatnonzero(full)
    totals = active[:, saturated].sum(axis=0)
    order = np.argsort(totals, kind="stable")
    # States with equal totals depend only on those with one active source less.
    for states in np.split(saturated[order], np.flatnonzero(np.diff(totals[order])) + 1):
        terms = np.full((len(shape), states.size), -np.inf)
        for k, stride in enumerate(strides):
            some = active[k, states] > 0
            there = states[some]
            idle = shape[k] - active[k, there]
            terms[k, some] = np.log(idle) + born[k] + logs[there - stride]
        logs[states] = np.logaddexp.reduce(terms, axis=0)
    logs -= np.logaddexp.reduce(logs)
    return logs.reshape(shape)


def engset_classes(
    classes: Sequence[EngsetClass], *, buffer_pkts: float | None = None
) -> ClassesResult:
    """Evaluate TCP-Engset for several classes of on/off sources sharing a link.

    Both methods (eq. 6 to 9) give a throughput: over all states, and from the rates h2 over the
    states that overload the link. Every class has the same queue Q, so its ON time is
    ON_k = ON0_k + m_k Q Delta (eq. 11). The Q of a method is the queue with which the classes have
    its throughput: sum_k N_k 8 F_k P/(OFF_k + ON_k) = U C. Rates, ON times and Q are the means of
    both methods (eq. 10).

    Parameters
    ----------
    classes
        At least one; the rate of the multiplexing link and the packet size must be equal.
    buffer_pkts
        Buffer of the multiplexing link, including the packet in transmission, at least 1; None:
        unlimited.

    Returns
    -------
    ClassesResult
        Values of the link, and one value per class in the order of ``classes``.

    Raises
    ------
    DomainError
        As :func:`class_log_probabilities` and :func:`.shared_link.engset`.
    """
    check_buffer(buffer_pkts)
    isolated = tuple(each.isolated_connection() for each in classes)
    peak_bps = [one.rate_bps for one in isolated]
    logs = class_log_probabilities(classes, peak_bps)
    link_bps, delta_s = classes[0].path.bottleneck_bps, classes[0].path.delta_s
    bits, off_s, sources, idle_s, rounds = (
        np.array(values)
        for values in zip(
            *(
                (c.file_bits, c.mean_off_s, c.sources, one.on_time_s, one.queue_rounds)
                for c, one in zip(classes, isolated, strict=True)
            ),
            strict=True,
        )
    )
    throughputs = _total_throughputs_bps(logs, classes, peak_bps)
    short = len(throughputs) > 1
    load = throughputs[-1] / link_bps
    waits_s = [0.0]
    if short:
        waits_s = [_wait_s(each, sources * bits, off_s + idle_s, rounds) for each in throughputs]
    queue = fmean(waits_s) / delta_s
    on_s = idle_s + rounds * fmean(waits_s)
    rate_bps = np.mean([bits / (idle_s + rounds * each) for each in waits_s], axis=0)
    loss = None
    if buffer_pkts is not None:
        loss = load * math.exp(-buffer_pkts * load / queue) if queue > 0 else 0.0
    return ClassesResult(
        classes=tuple(classes),
        isolated=isolated,
        log_probability=logs,
        can_overload_link=short,
        rate_bps=rate_bps,
        on_time_s=on_s,
        transfers_per_s=sources / (off_s + on_s),
        utilisation=fmean(throughputs) / link_bps,
        closed_loop_load=load,
        offered_load=float((sources * bits / (off_s + idle_s)).sum() / link_bps),
        queue_mean_pkts=queue,
        buffer_pkts=buffer_pkts,
        loss_ratio=loss,
    )


def _total_throughputs_bps(
    logs: Floats, classes: Sequence[EngsetClass], peak_bps: Sequence[float]
) -> list[float]:
    """Return U1 C and, if the link can be overloaded, U2 C: the throughput by both methods."""
    shape, flat = logs.shape, logs.ravel()
    active, full = _active_counts_and_full_mask(classes, peak_bps)
    probability, offered = np.exp(flat), [c.file_bits / c.mean_off_s for c in classes]
    # In equilibrium as many files start as end, in each class.
    first = sum(
        bps * dot_product(probability, (c.sources - row).astype(np.float64))
        for c, bps, row in zip(classes, offered, active, strict=True)
    )
    if not full.any():
        return [first]
    weights, second = np.exp(flat - flat[full].max()), 0.0
    for k, (each, bps) in enumerate(zip(classes, offered, strict=True)):
        stride = math.prod(shape[k + 1 :])
        some = np.flatnonzero(full & (active[k] > 0))
        # The balance of births and deaths gives the rate of a class in each state.
        ending = (each.sources - active[k, some] + 1) * weights[some - stride]
        busy = dot_product(active[k, some].astype(np.float64), weights[some])
        rate2_bps = bps * float(ending.sum()) / busy
        second += each.sources * each.file_bits / (each.mean_off_s + each.file_bits / rate2_bps)
    return [first, second]


def _wait_s(
    throughput_bps: float,
    bits: Floats,
    cycle_s: Floats,
    rounds: Floats,
) -> float:
    """Return the wait per round with which the classes together have this throughput.

    ``bits`` is the size of all files of a class, N_k 8 F_k P, and ``cycle_s`` is OFF_k + ON0_k.
    """
    # The throughput is a convex, decreasing function of the wait, so Newton's method approaches the
    # solution from below. Rounding alone can make the throughput exceed that of an idle path.
    wait_s = 0.0
    while True:
        times_s = cycle_s + rounds * wait_s
        excess_bps = float((bits / times_s).sum()) - throughput_bps
        step_s = excess_bps / float((bits * rounds / times_s**2).sum())
        if step_s <= 1e-14 * wait_s:
            return wait_s
        wait_s += step_s


def _active_counts_and_full_mask(
    classes: Sequence[EngsetClass], peak_bps: Sequence[float]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return j_k of each state, shape (K, states), and whether sum_k j_k h_k exceeds the link."""
    active = np.indices([each.sources + 1 for each in classes]).reshape(len(classes), -1)
    wanted_bps = np.asarray(peak_bps, dtype=np.float64) @ active
    return active, wanted_bps > classes[0].path.bottleneck_bps * (1 + ROUNDING_TOLERANCE)


def get_state_shape(classes: Sequence[EngsetClass]) -> tuple[int, ...]:
    """Return the shape of the states; raise DomainError as :func:`class_log_probabilities`."""
    if not classes:
        raise DomainError("classes must contain at least one class")
    for each in classes:
        require_positive("mean_off_s", each.mean_off_s)
    for name in ("bottleneck_bps", "packet_bytes"):
        values = {getattr(each.path, name) for each in classes}
        if len(values) > 1:
            raise DomainError(f"{name} must be equal in all classes, not {sorted(values)}")
    shape = tuple(require_count("sources", each.sources) + 1 for each in classes)
    if math.prod(shape) > MAX_STATES:
        raise DomainError(
            f"the product of (sources + 1) over all classes must be at most {MAX_STATES:,}, not "
            f"{math.prod(shape):,}"
        )
    return shape
