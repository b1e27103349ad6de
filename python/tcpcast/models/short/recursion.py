"""Conditional and expected latency: the recursion over the losses of a transfer (section 2).

The first part is one stage of a transfer, up to its first loss, as a sparse matrix. L_k, the
latency with k losses, is a mean over the position of the first loss: its cost plus L_(k-1) of the
remaining packets. The cost of a loss at a position, and the state after the loss, do not depend on
k. Only the density of positions does. Therefore the quadrature has the same positions for a range
of k, and only the weights change from k to k + 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import accumulate, pairwise
from math import comb
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tcpcast.array_types import Floats
from tcpcast.models.cardwell import connection_latency_s
from tcpcast.models.short.losses import (
    MAX_LOSSES,
    LossDistribution,
    first_negligible_loss_count,
    loss_probability,
    require_loss_probability,
)
from tcpcast.models.short.lossless_latency import (
    after_timeout_latency_s,
    first_stage_ack_wait_s,
    full_rounds_excess_s,
    lossless_latency_s,
    lossless_rest_latency_s,
)
from tcpcast.models.short.window_growth import ShortTransfer, WindowGrowth, file_sizes
from tcpcast.process.errors import DomainError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from tcpcast.array_types import Floats

    Integers = NDArray[np.intp]


class InterpolationBlock(NamedTuple):
    """N values, each a weighted sum of C entries of a vector.

    ``which`` are the indices of the values, (N,); ``places`` the indices of the entries and
    ``parts`` their weights, both (C, N).
    """

    which: Integers
    places: Integers
    parts: Floats


@dataclass(frozen=True, slots=True)
class InterpolationMesh:
    """Product mesh of remaining packets and window; its values begin at ``offset`` in a vector.

    Interpolation is linear in the window. In remaining packets it is cubic, but linear up to
    ``kinks_to`` = dup_t + y_to packets: at the kinks of L_k, cubic interpolation would overshoot.
    """

    left: Floats
    window: Floats
    kinks_to: float
    offset: int

    @property
    def size(self) -> int:
        """Number of nodes."""
        return len(self.left) * len(self.window)

    @property
    def end(self) -> int:
        """Index of the vector after the last value."""
        return self.offset + self.size

    def nodes(self) -> tuple[Floats, Floats]:
        """Return remaining packets and window of every node."""
        return (
            np.repeat(self.left, len(self.window)),
            np.tile(self.window, len(self.left)),
        )

    def stencil(self, left: Floats, window: Floats) -> list[InterpolationBlock]:
        """Return nodes and weights that interpolate each of N values: four or eight per value."""
        last, top = len(self.window) - 1, len(self.left) - 1
        column = np.searchsorted(self.window, window, side="right") - 1
        column = np.clip(column, 0, max(last - 1, 0))
        after = np.minimum(column + 1, last)
        width = self.window[after] - self.window[column]
        share = np.clip((window - self.window[column]) / np.where(width > 0, width, 1.0), 0, 1)
        x = np.clip(left, self.left[0], self.left[-1])
        i = np.minimum(np.searchsorted(self.left, x, side="right") - 1, top - 1)
        linear = (x < self.kinks_to) | (i == 0) | (i == top - 1)
        blocks = []
        for mask, first, weigh in ((linear, 0, _linear_weights), (~linear, -1, _cubic_weights)):
            which = np.flatnonzero(mask)
            row, near, far = i[which], column[which], after[which]
            beyond, within = share[which], 1 - share[which]
            weights = weigh(self.left, row, x[which])
            places = np.empty((2 * len(weights), len(which)), dtype=np.intp)
            parts = np.empty(places.shape)
            for node, weight in enumerate(weights):
                base = self.offset + (row + first + node) * (last + 1)
                np.add(base, near, out=places[2 * node])
                np.add(base, far, out=places[2 * node + 1])
                np.multiply(weight, within, out=parts[2 * node])
                np.multiply(weight, beyond, out=parts[2 * node + 1])
            blocks.append(InterpolationBlock(which, places, parts))
        return blocks


def _linear_weights(mesh: Floats, i: Integers, x: Floats) -> list[Floats]:
    """Return the weights of nodes i and i + 1 for each x between them."""
    share = (x - mesh[i]) / (mesh[1:] - mesh[:-1])[i]
    return [1 - share, share]


def _cubic_weights(mesh: Floats, i: Integers, x: Floats) -> list[Floats]:
    """Return the weights of nodes i - 1 to i + 2 for each x between the middle two."""
    nodes = [mesh[a : len(mesh) - 3 + a] for a in range(4)]
    before = i - 1
    gaps = [x - node[before] for node in nodes]
    weights = []
    for a in range(4):
        b, c, d = (other for other in range(4) if other != a)
        scale = (nodes[a] - nodes[b]) * (nodes[a] - nodes[c]) * (nodes[a] - nodes[d])
        weights.append(gaps[b] * gaps[c] * gaps[d] * (1 / scale)[before])
    return weights


def make_graded_mesh(
    low: float, high: float, *, step: float, ratio: float, constant_step_to: float
) -> Floats:
    """Return a mesh from ``low`` past ``high``: first constant, then proportional steps."""
    even = np.arange(low, max(min(constant_step_to, high), low) + step, step)
    count = max(math.ceil(math.log(max(high / even[-1], 1.0)) / math.log1p(ratio)), 0)
    return np.concatenate([even, even[-1] * (1 + ratio) ** np.arange(1, count + 1)])


@dataclass(frozen=True, slots=True)
class BlockMatrix:
    """A sparse matrix with ``count`` rows, in blocks.

    Its products are bit-identical to those of ``scipy.sparse``, whose import takes as long as about
    eighty products of this class.
    """

    blocks: list[InterpolationBlock]
    count: int

    def __matmul__(self, vector: Floats) -> Floats:
        """Return the product with a vector."""
        result = np.empty(self.count)
        for block in self.blocks:
            products = np.take(vector, block.places)
            products *= block.parts
            result[block.which] = np.add.reduce(products, axis=0)
        return result


MAX_DOUBLINGS = 6
"""Number of doublings of the RTO, up to 64 times its first value, as in PFTK."""


SACK_MESH_FACTOR = 2
"""Factor by which meshes are coarser with SACK, because fewer packets remain and windows are wider.

Up to eight losses L_k has the same accuracy, 0.1 %.
"""


@dataclass(frozen=True, slots=True)
class LatencyMeshes:
    """Meshes of L_k over the remaining packets and the window after a loss.

    After a fast recovery to a window W', the second axis of ``recovered`` is W'. ``timed_out`` has
    one mesh per doubling of the RTO; its second axis is half the window at the loss, and W_SS is at
    least 2. From ``tail``, the vector contains the latencies after a timeout among the last
    packets, by the number of packets after the lost one.
    """

    recovered: InterpolationMesh
    timed_out: tuple[InterpolationMesh, ...]
    tail: int
    tails: int

    @classmethod
    def from_transfer(cls, transfer: ShortTransfer, largest: float, losses: int) -> LatencyMeshes:
        """Return meshes for transfers of up to ``largest`` packets and ``losses`` losses."""
        top = largest + losses  # each timeout retransmits one packet: n - y + 1
        start = WindowGrowth.from_transfer(
            transfer, transfer.initial_window_pkts, transfer.initial_ssthresh_pkts
        )
        widest = float(start.window_after(np.asarray(top)))
        # From half a window, the remaining packets reach at most this window.
        widest = max(widest, math.sqrt(8 * top / (3 * transfer.acked_packets)))
        widest = min(widest, transfer.max_window_pkts)
        needed = transfer.recovery_window_pkts
        kinks_to = last_kink_pkts(transfer)
        wide = SACK_MESH_FACTOR if transfer.sack else 1
        step = wide * max(min(0.25, kinks_to / 40), kinks_to / 200)
        left = make_graded_mesh(
            1, 1.2 * top + 2, step=step, ratio=0.08 * wide, constant_step_to=kinks_to
        )
        after = max(0.5, transfer.decrease)
        recovered = InterpolationMesh(left, _window_nodes(transfer, after * widest), kinks_to, 0)
        # Half of a window too small for recovery is below (1 + dup)/2; a single last packet never
        # reaches W_SS. A shared recovery also needs smaller windows.
        min_threshold = 0.5 if transfer.shared_recovery else 2.0
        thresholds = np.arange(min_threshold, max(2, needed / 2) + 0.2, 0.25)
        timed_out = [InterpolationMesh(left, thresholds, kinks_to, recovered.end)]
        for _ in range(MAX_DOUBLINGS if transfer.backoff else 0):
            timed_out.append(InterpolationMesh(left, np.array([2.0]), kinks_to, timed_out[-1].end))
        tails = transfer.unprotected_pkts if transfer.shared_recovery else 1
        return cls(recovered, tuple(timed_out), timed_out[-1].end, tails)


def last_kink_pkts(transfer: ShortTransfer) -> float:
    """Return dup_t + y_to from a window of 1: L_k has kinks up to this many remaining packets."""
    growth = transfer.acked_packets * (transfer.recovery_window_pkts**2 - 1) / 2
    return transfer.unprotected_pkts + growth


def _window_nodes(transfer: ShortTransfer, widest: float) -> Floats:
    """Return windows from 1 past ``widest``: even in y_to (in W^2), then proportional."""
    needed, ratio = transfer.recovery_window_pkts, 0.12
    fewest, step = 25, 0.5
    if transfer.sack:
        fewest, step, ratio = 9, 1.5, 0.07
    low = np.linspace(1, needed**2, min(max(2 * needed**2 - 1, fewest), 200))
    if needed < 4:  # half of the window minus 1 is 1 up to 4 packets
        low = np.append(low, np.arange(needed**2 + step, 16.5, step))
    low = np.sqrt(low)
    return np.append(
        low, make_graded_mesh(low[-1], widest, step=0.5, ratio=ratio, constant_step_to=low[-1])[1:]
    )


@dataclass(frozen=True, slots=True)
class TransferRows:
    """P transfers of ``left`` packets, which start with the window of ``grown``.

    None of the first ``skipped`` packets is lost. ``doublings`` is the number of doublings of the
    RTO before the first packet, which is then a retransmission; None at the start and after a fast
    recovery.
    """

    left: Floats
    grown: WindowGrowth
    skipped: Floats
    doublings: int | None = None

    @classmethod
    def from_transfer(cls, transfer: ShortTransfer, tables: LatencyMeshes) -> list[TransferRows]:
        """Return the rows of all tables in order."""
        left, window = tables.recovered.nodes()
        flight = 2 * window + 0.5 if transfer.shared_recovery else np.zeros_like(left)
        rows = [
            cls(
                left, WindowGrowth.from_transfer(transfer, window, window), np.minimum(flight, left)
            )
        ]
        for doublings, mesh in enumerate(tables.timed_out):
            left, half = mesh.nodes()
            again = WindowGrowth.from_transfer(transfer, np.ones_like(left), np.maximum(half, 2.0))
            rows.append(cls(left, again, np.zeros_like(left), doublings))
        return rows


TIMEOUT_OUTCOME, RECOVERY_OUTCOME, REPEATED_TIMEOUT_OUTCOME, TAIL_OUTCOME = range(4)

QUADRATURE_ORDERS = {
    TIMEOUT_OUTCOME: 6,
    RECOVERY_OUTCOME: 8,
    REPEATED_TIMEOUT_OUTCOME: 4,
    TAIL_OUTCOME: 5,
}
"""Number of quadrature nodes per part of the positions, by the outcome of the loss. Outcomes from
TAIL on are losses among the last packets."""


@dataclass(frozen=True, slots=True)
class _LossPositions:
    """Range ``low`` to ``high`` of first losses with the same outcome, one range per row."""

    case: int
    low: Floats
    high: Floats


def _split_loss_positions(transfer: ShortTransfer, rows: TransferRows) -> Iterator[_LossPositions]:
    """Yield the ranges of first losses that end in a timeout or a fast recovery.

    Losses up to a, at small windows, and after c, among the last packets, end in a timeout. Losses
    from a to c are recovered. This range is split at kinks of the integrand: half the window begins
    to suffice for the recovery of the next loss, or too few packets remain for it. The range after
    c is split by packets if losses of one flight share a recovery. The packet that an RTO
    retransmits is a separate first range.
    """
    left, kept = rows.left, transfer.unprotected_pkts
    tail = np.maximum(left - kept, 0.0)
    needed = transfer.recovery_window_pkts
    early = np.clip(rows.grown.sent_until_window(needed), 0.0, tail)
    bends = _find_kinks(transfer, rows)
    inner = np.sort(np.clip(np.stack(bends), early, tail), axis=0)
    start = rows.skipped
    if rows.doublings is not None and (transfer.backoff or transfer.shared_recovery):
        start = np.minimum(left, 1.0)
        yield _LossPositions(REPEATED_TIMEOUT_OUTCOME, np.zeros_like(left), start)
    yield _LossPositions(TIMEOUT_OUTCOME, start, np.maximum(early, start))
    cuts = (early, *inner, tail)
    for low, high in pairwise(np.maximum(cut, start) for cut in cuts):
        yield _LossPositions(RECOVERY_OUTCOME, low, high)
    behind = range(kept - 1 if transfer.shared_recovery else 0, -1, -1)
    low = np.maximum(tail, start)
    for packets in behind:
        high = np.maximum(low, left - packets)
        yield _LossPositions(TAIL_OUTCOME + packets, low, high)
        low = high


def _find_kinks(transfer: ShortTransfer, rows: TransferRows) -> list[Floats]:
    """Return the numbers of sent packets at which the integrand of recovered losses has kinks."""
    grown, left, needed = rows.grown, rows.left, transfer.recovery_window_pkts
    if transfer.sack:
        # The window suffices to recover the next loss; it is full; slow start ends; too few packets
        # remain.
        full = [
            grown.sent_until_window(window) for window in (needed / transfer.decrease, grown.cap)
        ]
        kept = transfer.unprotected_pkts
        return [*full, grown.slow_start_pkts(), grown.sent_until_total(left - kept)]
    # W/2 - 1 exceeds 1 from W = 4, and suffices to recover the next loss from W = 2 (1 + dup) + 2.
    bends = [grown.sent_until_window(window) for window in {max(4, needed), 2 * needed + 2}]
    return [*bends, left - last_kink_pkts(transfer)]


@dataclass(frozen=True, slots=True)
class _QuadratureNodes:
    """Positions of a first loss, (N,): row, remaining share, weight, cost, and state after it.

    ``lossless`` is L_0 after the loss if requested. ``blocks`` are the weights of L_(k-1) after it.
    """

    row: Integers
    share: Floats
    weight: Floats
    cost: Floats
    lossless: Floats | None
    blocks: list[InterpolationBlock]

    @classmethod
    def concatenate(cls, groups: list[_QuadratureNodes]) -> _QuadratureNodes:
        """Concatenate the nodes of all groups."""
        row, share, weight, cost = (
            np.concatenate([getattr(group, name) for group in groups])
            for name in ("row", "share", "weight", "cost")
        )
        lossless = [group.lossless for group in groups if group.lossless is not None]
        ends = accumulate((len(group.row) for group in groups), initial=0)
        blocks = [
            block._replace(which=block.which + start)
            for group, start in zip(groups, ends, strict=False)
            for block in group.blocks
        ]
        return cls(row, share, weight, cost, np.concatenate(lossless) if lossless else None, blocks)


@dataclass(slots=True)
class LossStageIntegral:
    """Gauss-Legendre quadrature in v = u^m, where u is the share of packets left at the first loss.

    The density of the first of k losses is k u^(k-1) du = (k/m) u^(k-m) dv. With m about a third of
    k, nodes are dense where losses are likely, and the integrand is smooth at 0.
    """

    rows: TransferRows
    exponent: int
    _nodes: _QuadratureNodes
    _follows: BlockMatrix | None
    _weight: Floats

    @classmethod
    def from_transfer(
        cls,
        transfer: ShortTransfer,
        tables: LatencyMeshes,
        rows: TransferRows,
        *,
        losses: int,
        max_losses: int,
    ) -> LossStageIntegral:
        """Return the stage for k from ``losses``; it uses the tables if ``max_losses`` > 1."""
        exponent = max(1, losses // 3)
        groups = [
            _quadrature_nodes(transfer, tables, rows, part, exponent, first=losses == 1)
            for part in _split_loss_positions(transfer, rows)
            if np.any(part.high > part.low)
        ]
        nodes = _QuadratureNodes.concatenate(groups)
        follows = BlockMatrix(nodes.blocks, len(nodes.row)) if max_losses > 1 else None
        weight = nodes.weight * nodes.share ** (losses - exponent)
        return cls(rows, exponent, nodes, follows, weight)

    def is_accurate_for(self, losses: int) -> bool:
        """Return True if the nodes are accurate for ``losses``."""
        return losses < 9 * self.exponent

    def latency(self, losses: int, follows: Floats | None) -> Floats:
        """Return L_k of the rows from the vector of L_(k-1), or from L_0 if None.

        Must be called for successive k.
        """
        if follows is None:
            after = self._nodes.lossless
            assert after is not None  # computed for a stage that begins with one loss
        else:
            assert self._follows is not None
            after = self._follows @ follows
        total = np.bincount(
            self._nodes.row, self._weight * (self._nodes.cost + after), len(self.rows.left)
        )
        self._weight *= self._nodes.share
        return np.asarray(losses / self.exponent * total)


@cache
def _gauss_legendre_nodes(order: int) -> tuple[Floats, Floats]:
    """Return the nodes and weights of Gauss-Legendre quadrature, by Newton's method.

    ``numpy.polynomial`` takes some ms to import, and computes the nodes as eigenvalues, whose last
    bits depend on the processor.
    """
    k = np.arange(order, 0, -1)
    nodes = np.cos(np.pi * (k - 0.25) / (order + 0.5))
    for _ in range(6):  # the third step already reaches the precision of a float
        before, value = np.ones(order), nodes
        for n in range(2, order + 1):
            before, value = value, ((2 * n - 1) * nodes * value - (n - 1) * before) / n
        slope = order * (nodes * value - before) / (nodes * nodes - 1)
        nodes = nodes - value / slope
    return nodes, 2 / ((1 - nodes * nodes) * slope * slope)


def _quadrature_nodes(
    transfer: ShortTransfer,
    tables: LatencyMeshes,
    rows: TransferRows,
    part: _LossPositions,
    exponent: int,
    *,
    first: bool,
) -> _QuadratureNodes:
    abscissae, weights = _gauss_legendre_nodes(QUADRATURE_ORDERS[min(part.case, TAIL_OUTCOME)])
    which = np.flatnonzero(part.high > part.low)
    left = rows.left[which, None]
    whole = left - rows.skipped[which, None]
    near = ((left - part.low[which, None]) / whole) ** exponent
    far = ((left - part.high[which, None]) / whole) ** exponent
    v = far + (near - far) * (abscissae + 1) / 2
    share = v ** (1 / exponent)
    sent = left - share * whole
    path = rows.grown.select_transfers(which)
    window = path.window_after(sent)
    after = _outcome_after_loss(
        transfer, tables, rows, part.case, left=left, sent=sent, window=window
    )
    cost = np.full(sent.size, after.cost)
    if part.case != REPEATED_TIMEOUT_OUTCOME:
        cost += (transfer.rtt_s * path.rounds_to_send(sent, window)).ravel()
    return _QuadratureNodes(
        np.repeat(which, len(abscissae)),
        share.ravel(),
        (weights / 2 * (near - far)).ravel(),
        cost,
        after.lossless() if first else None,
        after.blocks,
    )


class _LossOutcome(NamedTuple):
    """Cost of a loss in seconds, L_0 after it, and the combination of vector entries for L_k."""

    cost: float
    lossless: Callable[[], Floats]
    blocks: list[InterpolationBlock]


def _outcome_after_loss(
    transfer: ShortTransfer,
    tables: LatencyMeshes,
    rows: TransferRows,
    case: int,
    *,
    left: Floats,
    sent: Floats,
    window: Floats,
) -> _LossOutcome:
    """Return the outcome of a loss at each of ``[transfers, positions]``."""
    rest = (left - sent).ravel()
    if case == RECOVERY_OUTCOME:
        wait = 0.0 if transfer.as_printed else transfer.rtt_s
        again = np.maximum(window / 2 - 1, 1.0).ravel()
        if transfer.sack:
            again = np.maximum(transfer.decrease * window, 1.0).ravel()
            rest = np.maximum(rest - window.ravel(), 1.0)
        return _LossOutcome(
            wait,
            lambda: lossless_rest_latency_s(
                transfer, rest, WindowGrowth.from_transfer(transfer, again, again)
            ),
            tables.recovered.stencil(rest, again),
        )
    if case == TIMEOUT_OUTCOME:
        half, packets = window.ravel() / 2, rest + 1
        mesh, rto = tables.timed_out[0], transfer.rto_s
    elif case == REPEATED_TIMEOUT_OUTCOME:
        doublings = (rows.doublings or 0) + 1 if transfer.backoff else 0
        mesh = tables.timed_out[min(doublings, len(tables.timed_out) - 1)]
        rto = transfer.rto_s * 2 ** min(doublings, MAX_DOUBLINGS)
        packets = np.broadcast_to(left, sent.shape).ravel()
        half = np.full_like(rest, 2.0)
    else:
        every, place = np.arange(len(rest)), tables.tail + case - TAIL_OUTCOME
        block = InterpolationBlock(every, np.full((1, len(rest)), place), np.ones((1, len(rest))))
        # Only the retransmitted packet follows.
        return _LossOutcome(transfer.rto_s, lambda: np.full_like(rest, transfer.rtt_s), [block])
    return _LossOutcome(
        rto, lambda: after_timeout_latency_s(transfer, packets, half), mesh.stencil(packets, half)
    )


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
        last = np.zeros(self._ends.shape[1])
        for behind in range(len(last)):
            for lost in range(min(behind, self._losses, MAX_FLIGHT_LOSSES) + 1):
                ways = (
                    comb(behind, lost)
                    * comb(self._losses, lost)
                    / comb(behind + self._losses, self._losses)
                )
                last[behind] += ways * self._ends[lost, lost]
        self._losses += 1
        recovered = kept * recovered + (1 - kept) * late
        return np.concatenate([recovered, mean, latency[here_and_again:], last])


def _prepend_newest(values: Floats, before: Floats) -> Floats:
    return np.concatenate([values[None], before[:-1]])
