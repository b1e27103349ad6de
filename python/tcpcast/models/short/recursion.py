"""Conditional and expected latency: the recursion over the losses of a transfer (section 2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tcpcast.errors import DomainError
from tcpcast.models.short.growth import Growth, ShortTransfer, file_sizes
from tcpcast.models.short.losses import (
    MOST_LOSSES,
    LossLaw,
    loss_probability,
    losses_considered,
    require_loss,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    After = Callable[[Floats, Floats], Floats]


@dataclass(frozen=True, slots=True)
class _Table:
    """L_k on a mesh of packets left (cubic; linear up to ``bent_to``) and window (linear).

    Up to dup_t + y_to packets L_k has kinks, where cubic pieces would overshoot.
    """

    left: Floats
    window: Floats
    values: Floats
    bent_to: float

    def __call__(self, left: Floats, window: Floats) -> Floats:
        row, weights = _stencil(self.left, left, self.bent_to)
        last = len(self.window) - 1
        column = np.clip(
            np.searchsorted(self.window, window, side="right") - 1, 0, max(last - 1, 0)
        )
        after = np.minimum(column + 1, last)
        width = self.window[after] - self.window[column]
        share = np.clip((window - self.window[column]) / np.where(width > 0, width, 1.0), 0, 1)
        columns, top = len(self.window), len(self.left) - 1
        flat, total = self.values.ravel(), np.zeros_like(left)
        for offset, weight in enumerate(weights, start=-1):
            base = np.clip(row + offset, 0, top) * columns
            low = flat[base + column]
            total += weight * (low + share * (flat[base + after] - low))
        return total


def _stencil(mesh: Floats, x: Floats, bent_to: float) -> tuple[NDArray[np.intp], list[Floats]]:
    """Return for each x the node before it and the weights of the four nodes around it."""
    x = np.clip(x, mesh[0], mesh[-1])
    i = np.minimum(np.searchsorted(mesh, x, side="right") - 1, len(mesh) - 2)
    # Nodes beyond the ends; the pieces that would use them are linear.
    wide = np.concatenate([[mesh[0] - 1], mesh, [mesh[-1] + 1]])
    nodes = [wide[a : len(wide) - 3 + a] for a in range(4)]
    gaps = [x - node[i] for node in nodes]
    share = gaps[1] / (nodes[2] - nodes[1])[i]
    linear = (x < bent_to) | (i == 0) | (i == len(mesh) - 2)
    weights = []
    for a, plain in enumerate((0.0, 1 - share, share, 0.0)):
        b, c, d = (other for other in range(4) if other != a)
        scale = (nodes[a] - nodes[b]) * (nodes[a] - nodes[c]) * (nodes[a] - nodes[d])
        cubic = gaps[b] * gaps[c] * gaps[d] * (1 / scale)[i]
        weights.append(np.where(linear, plain, cubic))
    return i, weights


def _graded(low: float, high: float, *, step: float, ratio: float, even_to: float) -> Floats:
    """Return a mesh from ``low`` past ``high``: even steps first, then steps in proportion."""
    even = np.arange(low, max(min(even_to, high), low) + step, step)
    count = max(math.ceil(math.log(max(high / even[-1], 1.0)) / math.log1p(ratio)), 0)
    return np.concatenate([even, even[-1] * (1 + ratio) ** np.arange(1, count + 1)])


@dataclass(frozen=True, slots=True)
class _Level:
    """L_(k-1) of the two states a loss leaves: fast recovery (n, W', W'), timeout (n, 1, Wss)."""

    recovered: After
    timed_out: After


def _lossless(transfer: ShortTransfer) -> _Level:
    def latency(left: Floats, start: Floats, ssthresh: Floats) -> Floats:
        grown = Growth.of(transfer, start, ssthresh)
        return transfer.rtt_s * grown.rounds(left, grown.window(left))

    return _Level(
        lambda left, window: latency(left, window, window),
        lambda left, ssthresh: latency(left, np.ones_like(ssthresh), ssthresh),
    )


TIMEOUT, RECOVERY, TAIL = range(3)

QUADRATURE = tuple(
    (case, *np.polynomial.legendre.leggauss(order))
    for case, order in ((TIMEOUT, 6), (RECOVERY, 8), (RECOVERY, 8), (RECOVERY, 10), (TAIL, 5))
)
"""Nodes on (0, a), (a, c) and (c, n); (a, c) is cut where the integrand bends: where half the
window comes to recover the next loss, and where few packets are left to recover it."""


def _conditional(
    transfer: ShortTransfer, level: _Level, losses: int, left: Floats, grown: Growth
) -> Floats:
    """Return L_k of transfers of ``left`` packets, shape (P,), from L_(k-1), by the recursion.

    The density (k/n)(1 - y/n)^(k-1) becomes 3 v^2 dv with v = (1 - y/n)^(k/3): however large k is,
    the nodes lie where the first loss falls, and the integrand is smooth at v = 0.
    """
    tail = np.maximum(left - transfer.unprotected_pkts, 0.0)
    early = np.clip(grown.sent_at(transfer.recovery_window_pkts), 0.0, tail)
    # From this window on, half of it recovers the next loss too.
    bend = np.clip(grown.sent_at(2 * transfer.recovery_window_pkts + 2), early, tail)
    few = np.clip(left - 4 * transfer.unprotected_pkts, early, tail)
    limits = (np.zeros_like(left), early, np.minimum(bend, few), np.maximum(bend, few), tail, left)
    v = [(1 - limit / left) ** (losses / 3) for limit in limits]
    total = np.zeros_like(left)
    for part, (case, nodes, weights) in enumerate(QUADRATURE):
        which = v[part] > v[part + 1]
        if not which.any():
            continue
        high, low = v[part][which, None], v[part + 1][which, None]
        at = low + (high - low) * (nodes + 1) / 2
        n = left[which, None]
        sent = n * (1 - at ** (3 / losses))
        path = grown.pick(which)
        window = path.window(sent)
        latency = transfer.rtt_s * path.rounds(sent, window)
        latency += _after_loss(transfer, level, case, n - sent, window)
        total[which] += ((3 * at**2 * latency) @ (weights / 2)) * (high - low)[:, 0]
    return total


def _after_loss(
    transfer: ShortTransfer, level: _Level, case: int, left: Floats, window: Floats
) -> Floats:
    """Return what follows a loss in one of the three parts of the file, in seconds."""
    if case == RECOVERY:
        wait = 0.0 if transfer.as_printed else transfer.rtt_s
        return wait + level.recovered(left, np.maximum(window / 2 - 1, 1.0))
    ssthresh = np.maximum(window / 2, 2.0)
    again = left + 1 if case == TIMEOUT else np.ones_like(left)
    return transfer.rto_s + level.timed_out(again, ssthresh)


def _levels(transfer: ShortTransfer, largest: float, losses: int) -> Iterator[_Level]:
    """Yield L_0, L_1, ..., L_(losses - 1) of the states that a loss leaves."""
    level = _lossless(transfer)
    yield level
    top = largest + losses  # each timeout sends its packet again: n - y + 1
    start = Growth.of(transfer, transfer.initial_window_pkts, transfer.initial_ssthresh_pkts)
    widest = float(start.window(np.asarray(top)))
    # Half a window and all that is left reach at most this again.
    widest = max(widest, math.sqrt(8 * top / (3 * transfer.acked_packets)))
    widest = min(widest, transfer.receiver_window_pkts)
    needed = transfer.recovery_window_pkts
    bent_to = transfer.unprotected_pkts + transfer.acked_packets * (needed**2 - 1) / 2
    step = max(0.25, bent_to / 200)
    left = _graded(1, 1.2 * top + 2, step=step, ratio=0.08, even_to=bent_to)
    windows = _window_mesh(transfer, widest / 2)
    # A window too small to recover leaves at most half of 1 + dup; a last packet sent alone
    # never comes to its threshold.
    thresholds = np.arange(2, max(2, needed / 2) + 0.2, 0.25)
    after_recovery = _product(left, windows)
    after_timeout = _product(left, thresholds)
    avoiding = Growth.of(transfer, after_recovery[1], after_recovery[1])
    restarted = Growth.of(transfer, np.ones_like(after_timeout[1]), after_timeout[1])
    for k in range(1, losses):
        recovered = _conditional(transfer, level, k, after_recovery[0], avoiding)
        timed_out = _conditional(transfer, level, k, after_timeout[0], restarted)
        level = _Level(
            _Table(left, windows, recovered.reshape(len(left), -1), bent_to),
            _Table(left, thresholds, timed_out.reshape(len(left), -1), bent_to),
        )
        yield level


def _window_mesh(transfer: ShortTransfer, widest: float) -> Floats:
    """Return windows from 1 past ``widest``: even in y_to (in W^2), then in proportion."""
    needed = max(4, transfer.recovery_window_pkts)
    low = np.sqrt(np.linspace(1, needed**2, min(2 * needed**2 - 1, 200)))
    return np.concatenate([low, _graded(needed, widest, step=0.5, ratio=0.12, even_to=needed)[1:]])


def _product(left: Floats, window: Floats) -> tuple[Floats, Floats]:
    return np.repeat(left, len(window)), np.tile(window, len(left))


def _curves(transfer: ShortTransfer, sizes: Floats, losses: int) -> Iterator[Floats]:
    """Yield L_0, ..., L_losses of the given sizes, shape (P,)."""
    start = np.full_like(sizes, transfer.initial_window_pkts)
    grown = Growth.of(transfer, start, np.full_like(sizes, transfer.initial_ssthresh_pkts))
    yield transfer.rtt_s * grown.rounds(sizes, grown.window(sizes))
    for k, level in enumerate(_levels(transfer, float(sizes.max()), losses) if losses else (), 1):
        yield _conditional(transfer, level, k, sizes, grown)


def conditional_latency_s(
    transfer: ShortTransfer, size_pkts: ArrayLike, *, most_losses: int
) -> Floats:
    r"""Return L_k, the latency of a transfer given its lost transmissions (Figures 4, 6 to 8).

    Parameters
    ----------
    transfer
        Sender and path.
    size_pkts
        File sizes in packets, at least 1, shape S.
    most_losses
        Largest k, 0 to 5000.

    Returns
    -------
    ndarray, shape (most_losses + 1, \*S)
        Seconds for k = 0, ..., ``most_losses``.

    Raises
    ------
    DomainError
        A size below 1 or a k outside the domain above.

    Notes
    -----
    Each loss pays its own recovery and every timeout the same RTO: the model is high for two or
    more losses of one flight and low for repeated timeouts of the same packet. For k of two and
    more the integrals are evaluated to 0.1 % (on average 0.01 %), for k = 1 closer.
    """
    sizes = file_sizes(size_pkts)
    if not 0 <= most_losses <= MOST_LOSSES or most_losses != int(most_losses):
        raise DomainError(
            f"most_losses must be a whole number from 0 to {MOST_LOSSES}, not {most_losses!r}"
        )
    if not sizes.size:
        return np.empty((most_losses + 1, *sizes.shape))
    curves = np.stack(list(_curves(transfer, sizes.ravel(), most_losses)))
    return curves.reshape(most_losses + 1, *sizes.shape)


def expected_latency_s(
    transfer: ShortTransfer,
    size_pkts: ArrayLike,
    *,
    loss: float,
    law: LossLaw = "generalised-poisson",
    given_loss: bool = False,
) -> Floats:
    """Return the expected latency of a transfer, the sum over k of p(k|n) L_k (eq. 1, Figure 9).

    Parameters
    ----------
    transfer
        Sender and path.
    size_pkts
        File sizes in packets, at least 1; any shape.
    loss
        p of every transmission, independent; above 0 and below 1.
    law
        p(k|n), see :func:`loss_probability`.
    given_loss
        Expect over the transfers that lose at least one packet.

    Returns
    -------
    ndarray
        Seconds, of the shape of ``size_pkts``; k runs until p(k|n) is below 1e-9.

    Raises
    ------
    DomainError
        An argument outside the domain above, or more losses than :func:`losses_considered` allows.
    """
    sizes = file_sizes(size_pkts)
    require_loss(loss)
    if not sizes.size:
        return np.empty(sizes.shape)
    most = losses_considered(size_pkts=float(sizes.max()), loss=loss, law=law)
    flat = sizes.ravel()
    total, weight = np.zeros_like(flat), np.zeros_like(flat)
    for k, latency in enumerate(_curves(transfer, flat, most)):
        if k or not given_loss:
            probability = loss_probability(k, size_pkts=flat, loss=loss, law=law)
            total += probability * latency
            weight += probability
    # Only a condition is divided out: the printed law is left to sum to more than 1.
    return (total / weight if given_loss else total).reshape(sizes.shape)


def relative_reduction(
    base: ShortTransfer,
    changed: ShortTransfer,
    size_pkts: ArrayLike,
    *,
    loss: float | None = None,
) -> Floats:
    """Return by what share a change cuts the latency of transfers with a loss (Figure 10).

    Parameters
    ----------
    base, changed
        Sender and path without and with the change.
    size_pkts
        File sizes in packets, at least 1; any shape.
    loss
        None: given exactly one lost packet, as in Figure 10. A probability above 0 and below 1:
        given at least one, under that loss.

    Returns
    -------
    ndarray
        1 - L(changed)/L(base), of the shape of ``size_pkts``.

    Raises
    ------
    DomainError
        An argument outside the domain above, or too many losses to consider.
    """
    before, after = (
        conditional_latency_s(transfer, size_pkts, most_losses=1)[1]
        if loss is None
        else expected_latency_s(transfer, size_pkts, loss=loss, given_loss=True)
        for transfer in (base, changed)
    )
    return np.asarray(1 - after / before)
