"""Latencies after a loss, as one vector: separate or shared recoveries for losses of a flight."""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING

import numpy as np

from tcpcast.models.short.interpolation_mesh import BlockMatrix

if TYPE_CHECKING:
    from tcpcast.array_types import Floats
    from tcpcast.models.short.stage_integrals import LatencyMeshes, TransferRows
    from tcpcast.models.short.window_growth import ShortTransfer


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
