"""Conditional and expected latency: the recursion over the losses of a transfer (section 2)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import comb
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from tcpcast.array_types import Floats
from tcpcast.errors import DomainError
from tcpcast.models.cardwell import connection_latency_s
from tcpcast.models.short.interpolation_mesh import BlockMatrix
from tcpcast.models.short.losses import (
    MAX_LOSSES,
    LossDistribution,
    first_negligible_loss_count,
    loss_probability,
    require_loss_probability,
)
from tcpcast.models.short.lossless_latency import (
    first_stage_ack_wait_s,
    full_rounds_excess_s,
    lossless_latency_s,
    lossless_rest_latency_s,
)
from tcpcast.models.short.stage_integrals import LatencyMeshes, LossStageIntegral, TransferRows
from tcpcast.models.short.window_growth import ShortTransfer, WindowGrowth, file_sizes

if TYPE_CHECKING:
    from tcpcast.array_types import Floats


NEGLIGIBLE_TERM = 1e-7
"""The sum over k stops at the first k above its mean whose term is below this share of the sum."""


def _latencies_by_losses(transfer: ShortTransfer, sizes: Floats, losses: int) -> Iterator[Floats]:
    """Yield L_0, ..., L_losses of the given sizes, shape (P,)."""
    start = np.full_like(sizes, transfer.initial_window_pkts)
    grown = WindowGrowth.from_transfer(
        transfer, start, np.full_like(sizes, transfer.initial_ssthresh_pkts)
    )
    setup = transfer.rtt_s if transfer.handshake else 0.0
    yield setup + lossless_latency_s(transfer, sizes)
    offset = setup + full_rounds_excess_s(transfer, sizes)
    if not losses:
        return
    tables = LatencyMeshes.from_transfer(transfer, float(sizes.max()), losses)
    tabulated = TransferRows.from_transfer(transfer, tables)
    paying: SeparateRecovery | SharedRecovery = SeparateRecovery(tables)
    if transfer.shared_recovery:
        paying = SharedRecovery(transfer, tables, tabulated)
        paying.latency_vector(
            np.concatenate(
                [lossless_rest_latency_s(transfer, rows.left, rows.grown) for rows in tabulated]
            )
        )
    started = TransferRows(sizes, grown, np.zeros_like(sizes))
    own_stage: LossStageIntegral | None = None
    others: list[LossStageIntegral] = []
    follows = None
    for k in range(1, losses + 1):
        ask = partial(
            LossStageIntegral.from_transfer, transfer, tables, losses=k, max_losses=losses
        )
        if own_stage is None or not own_stage.is_accurate_for(k):
            own_stage, others = ask(started), []
        yield offset + own_stage.latency(k, follows) + first_stage_ack_wait_s(transfer, sizes, k)
        if k < losses:  # the last k needs no tables
            others = others or [ask(rows) for rows in tabulated]
            tables_of_k = [stage.latency(k, follows) for stage in others]
            follows = paying.latency_vector(np.concatenate(tables_of_k))


def conditional_latency_s(
    transfer: ShortTransfer, size_pkts: ArrayLike, *, max_losses: int
) -> Floats:
    r"""Return L_k, the latency of a transfer given its lost transmissions (Figures 4, 6 to 8).

    Parameters
    ----------
    transfer
        Sender and path.
    size_pkts
        File sizes in packets, at least 1, shape S.
    max_losses
        Largest k, 0 to 5000.

    Returns
    -------
    ndarray, shape (max_losses + 1, \*S)
        Seconds for k = 0, ..., ``max_losses``.

    Raises
    ------
    DomainError
        A size below 1 or a k outside the domain above.

    Notes
    -----
    Unless the transfer specifies otherwise, each loss has its own recovery and every timeout the
    same RTO: the model overestimates for two or more losses of one flight and underestimates for
    repeated timeouts of the same packet. For k of two and more, the integrals have an error of at
    most 0.1 % (on average 0.01 %, with SACK 0.03 %). For k = 1 the error is smaller.
    """
    sizes = file_sizes(size_pkts)
    if not 0 <= max_losses <= MAX_LOSSES or max_losses != int(max_losses):
        raise DomainError(
            f"max_losses must be a whole number from 0 to {MAX_LOSSES}, not {max_losses!r}"
        )
    if not sizes.size:
        return np.empty((max_losses + 1, *sizes.shape))
    curves = np.stack(list(_latencies_by_losses(transfer, sizes.ravel(), max_losses)))
    return curves.reshape(max_losses + 1, *sizes.shape)


def expected_latency_s(
    transfer: ShortTransfer,
    size_pkts: ArrayLike,
    *,
    loss: float,
    distribution: LossDistribution = "generalised-poisson",
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
        p of every transmission, independent, above 0 and below 1.
    distribution
        p(k|n), see :func:`loss_probability`.
    given_loss
        Whether to average only over transfers that lose at least one packet.

    Returns
    -------
    ndarray
        Seconds, of the shape of ``size_pkts``; k runs until p(k|n) is below 1e-9, or p(k|n) L_k
        below 1e-7 of the sum.

    Raises
    ------
    DomainError
        An argument outside the domain above, or more losses than
        :func:`first_negligible_loss_count` allows; with a handshake, a loss of at least 1/2.

    Notes
    -----
    In the handshake, only the packet in the direction of the data can be lost. In this model, ACKs
    are not lost, so the handshake packet in their direction is not lost either. The latency of the
    handshake is :func:`tcpcast.models.cardwell.connection_latency_s`.
    """
    sizes = file_sizes(size_pkts)
    require_loss_probability(loss)
    resent = _handshake_beyond_rtt_s(transfer, loss)
    if not sizes.size:
        return np.empty(sizes.shape)
    max_losses = first_negligible_loss_count(
        size_pkts=float(sizes.max()), loss=loss, distribution=distribution
    )
    mean = float(sizes.max()) * loss / (1 - loss)
    flat = sizes.ravel()
    total, weight = np.zeros_like(flat), np.zeros_like(flat)
    for k, latency in enumerate(_latencies_by_losses(transfer, flat, max_losses)):
        if k or not given_loss:
            probability = loss_probability(k, size_pkts=flat, loss=loss, distribution=distribution)
            total += probability * latency
            weight += probability
            if k > mean and np.all(probability * latency < NEGLIGIBLE_TERM * total):
                break
    # Normalise only conditional means, because the printed distribution may sum to more than 1.
    return resent + (total / weight if given_loss else total).reshape(sizes.shape)


def _handshake_beyond_rtt_s(transfer: ShortTransfer, loss: float) -> float:
    """Return the time of the handshake beyond one RTT."""
    if not transfer.handshake:
        return 0.0
    latency = connection_latency_s(
        rtt_s=transfer.rtt_s, forward_loss_ratio=loss, syn_timeout_s=transfer.syn_timeout_s
    )
    return float(latency) - transfer.rtt_s


MAX_FLIGHT_LOSSES = 24
"""Maximum counted losses of one flight; at loss ratio p a flight loses about sqrt(p) packets."""


class SeparateRecovery:
    """Rule of the paper: each loss has its own recovery."""

    def __init__(self, tables: LatencyMeshes) -> None:
        self._single = tables.timed_out[0].offset

    def latency_vector(self, latency: Floats) -> Floats:
        """Return the vector of L_k; ``latency`` contains the values of all tables in order."""
        return np.append(latency, latency[self._single])


class SharedRecovery:
    """All losses of one flight share one recovery.

    The recovery starts with a loss at y. At that time, floor(W_f) - 1 more packets are in flight,
    on average half a packet less than W_f - 1. Each of the k - 1 other losses is one of these
    packets with probability q = (W_f - 3/2)/(n - y), independently of the rest. If j of them are
    lost, partial ACKs trigger their retransmission, one per RTT, and the window is halved once. The
    other losses occur later. If fewer than dup of the packets after the loss arrive, the sender
    times out. The sender also times out if the retransmitted packet is lost, which has a
    probability of 1 in n - y + 1 per other loss.

    A timeout retransmits the flight from its start, so that its losses have no further cost. If
    the lost packet is one of the last packets and m packets follow it, j of these m are lost in
    C(m, j) C(k - 1, j) of the C(m + k - 1, k - 1) equally probable orders of losses. After the
    timeout, 1 + j packets are left to send.
    """

    def __init__(
        self, transfer: ShortTransfer, tables: LatencyMeshes, rows: list[TransferRows]
    ) -> None:
        left, window = tables.recovered.nodes()
        again, half = tables.timed_out[0].nodes()
        self._cut = len(left), len(again)
        self._rtt, self._late = transfer.rtt_s, transfer.rto_s
        self._early = transfer.rto_s - (0.0 if transfer.as_printed else transfer.rtt_s)
        behind = np.minimum(2 * window + 1, left)
        resent = np.minimum(np.maximum(2 * half - 1.5, 0.0), again - 1)
        self._share = np.concatenate([rows[0].skipped / left, resent / again])
        # With at most this many losses in flight, enough duplicate ACKs arrive.
        self._spare = np.floor(behind - (transfer.recovery_window_pkts - 1) + 1e-9)
        self._kept = left / (left + 1)  # probability that a loss is not the retransmitted packet
        first = tables.timed_out[0]
        self._halved = BlockMatrix(first.stencil(left + 1, window + 1), len(left))
        ends = np.arange(1.0, tables.tails + 1)
        self._tail = BlockMatrix(first.stencil(ends, np.full_like(ends, 2.0)), len(ends))
        # L_k, L_(k-1), ... of the tables, of transfers that now time out, and of the last packets.
        self._latency = np.zeros((MAX_FLIGHT_LOSSES + 1, sum(self._cut)))
        self._timed_out = np.zeros((MAX_FLIGHT_LOSSES + 1, len(left)))
        self._ends = np.zeros((MAX_FLIGHT_LOSSES + 1, tables.tails))
        # P(j of k losses in flight); the last j includes larger numbers.
        self._in_flight = np.zeros((MAX_FLIGHT_LOSSES + 1, sum(self._cut)))
        self._in_flight[0] = 1
        self._losses = 0

    def latency_vector(self, latency: Floats) -> Floats:
        """Return the vector of L_k from its values; must be called for k = 0, 1, 2, ..."""
        here, here_and_again = self._cut[0], sum(self._cut)
        fewer = self._in_flight[:, :here].copy(), self._timed_out
        self._latency = _prepend_newest(latency[:here_and_again], self._latency)
        self._timed_out = _prepend_newest(self._halved @ latency, self._timed_out)
        self._ends = _prepend_newest(self._tail @ latency, self._ends)
        if self._losses:
            joins = self._in_flight * self._share
            self._in_flight -= joins
            self._in_flight[1:] += joins[:-1]
            self._in_flight[-1] += joins[-1]
        mean = np.einsum("js,js->s", self._in_flight[:, here:], self._latency[:, here:])
        in_flight = np.arange(MAX_FLIGHT_LOSSES + 1)[:, None]
        fast = self._latency[:, :here] + in_flight * self._rtt
        episode = np.where(in_flight <= self._spare, fast, self._timed_out + self._early)
        recovered = np.einsum("js,js->s", self._in_flight[:, :here], episode)
        kept = self._kept**self._losses
        late = np.einsum("js,js->s", *fewer) + self._late
        last = self._losses_among_last(self._losses)
        self._losses += 1
        recovered = kept * recovered + (1 - kept) * late
        return np.concatenate([recovered, mean, latency[here_and_again:], last])

    def _losses_among_last(self, losses: int) -> Floats:
        after = np.zeros(self._ends.shape[1])
        for behind in range(len(after)):
            for lost in range(min(behind, losses, MAX_FLIGHT_LOSSES) + 1):
                ways = comb(behind, lost) * comb(losses, lost) / comb(behind + losses, losses)
                after[behind] += ways * self._ends[lost, lost]
        return after


def _prepend_newest(values: Floats, before: Floats) -> Floats:
    return np.concatenate([values[None], before[:-1]])
