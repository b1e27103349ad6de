"""Simulated traces in pieces like the paper's: packets, loss indications, timeout depth.

A trace is a simulation of one flow that pauses at the end of each piece to read its cumulative
counters. The pauses do not change the results.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from tcpcast import _native
from tcpcast.engines.packet.configuration import make_configuration, to_nanoseconds
from tcpcast.engines.packet.counters import CLASS_COUNTER, LINK_COUNTER

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tcpcast_papers.pftk.paths import Path

    Floats = NDArray[np.float64]
    Counts = NDArray[np.int64]

DEPTH_COUNTERS = {depth: f"sequences_of_{depth}" for depth in range(2, 7)}
"""Counters of timeout sequences that reached a depth."""

CALIBRATION_SEED = 1001
CALIBRATION_STEPS = 4
"""Number of times that the loss is corrected to reach the wanted p."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TracePieces:
    """A simulated trace in pieces; arrays ``[replications, pieces]``.

    Attributes
    ----------
    piece_s
        Length of a piece.
    sent
        Packets sent, including retransmissions.
    triple_duplicates, sequences
        Loss indications of each kind: fast retransmits, and sequences of timeouts.
    timeouts
        All timeouts.
    deepest
        Maximum number of timeouts in sequence: class TD if 0, T0 if 1, ...
    rtt_s, t0_s
        Mean round-trip time by Karn's rule and mean first timeout, nan if there is no sample.
    rtt_sums, t0_sums
        Sum in seconds (index 0) and number of samples (index 1), ``[2, replications, pieces]``.
    """

    piece_s: float
    sent: Counts
    triple_duplicates: Counts
    sequences: Counts
    timeouts: Counts
    deepest: Counts
    rtt_sums: Floats
    t0_sums: Floats

    @property
    def loss_indications(self) -> Counts:
        """Triple duplicates and timeout sequences."""
        return self.triple_duplicates + self.sequences

    @property
    def loss_indication_ratio(self) -> Floats:
        """The paper's p of each piece, nan if it has no packets."""
        return _ratio(self.loss_indications, self.sent)

    @property
    def rtt_s(self) -> Floats:
        """Mean round-trip time of each piece."""
        return _ratio(*self.rtt_sums)

    @property
    def t0_s(self) -> Floats:
        """Mean first timeout of each piece."""
        return _ratio(*self.t0_sums)

    @property
    def trace_rtt_s(self) -> Floats:
        """Mean round-trip time of each replication, ``[replications, 1]``."""
        return _ratio(*self.rtt_sums.sum(axis=2, keepdims=True))

    @property
    def trace_t0_s(self) -> Floats:
        """Mean first timeout of each replication, ``[replications, 1]``."""
        return _ratio(*self.t0_sums.sum(axis=2, keepdims=True))

    @property
    def trace_p(self) -> float:
        """Loss indications per packet of the whole trace."""
        return float(self.loss_indications.sum() / self.sent.sum())

    @property
    def metrics(self) -> dict[str, float]:
        """Metrics of the engine ``packet`` for the whole trace, by name."""
        rate_pps = float(self.sent.sum() / (self.sent.size * self.piece_s))
        indications = self.loss_indications.sum()
        share = float(self.sequences.sum() / indications) if indications else math.nan
        return {
            "loss_indication_ratio": self.trace_p,
            "send_rate_pps": rate_pps,
            "timeout_share": share,
        }


def simulate_pieces(
    path: Path, *, pieces: int, piece_s: float, replications: int = 1, seed: int = 1
) -> TracePieces:
    """Simulate a path and divide the trace into pieces.

    Parameters
    ----------
    path
        Path to simulate; the flow of its first class is observed.
    pieces, piece_s
        Number of pieces, and length of each in seconds.
    replications, seed
        Number of independent traces, and their seed.
    """
    scenario = path.scenario(replications=replications, seed=seed)
    run = _native.Simulation(make_configuration(scenario, 0.0), replications)
    ends = []
    for piece in range(1, pieces + 1):
        run.advance(transfers=None, until_ns=to_nanoseconds(piece * piece_s), threads=1)
        first = len(LINK_COUNTER)
        last = [row[-1, first : first + len(CLASS_COUNTER)] for row in run.counters()]
        ends.append(np.stack(last).astype(np.int64))
    ends.insert(0, np.zeros_like(ends[0]))
    # [pieces, replications, cells] -> [cells, replications, pieces]
    added = np.diff(np.stack(ends), axis=0).transpose(2, 1, 0)

    def cell(name: str) -> Counts:
        return np.asarray(added[CLASS_COUNTER[name]])

    sequences = cell("timeout_sequences")
    deepest = (sequences > 0).astype(np.int64)
    for depth, name in DEPTH_COUNTERS.items():
        deepest[cell(name) > 0] = depth
    seconds = 1e-9
    return TracePieces(
        piece_s=piece_s,
        sent=cell("sent"),
        triple_duplicates=cell("fast_retransmits"),
        sequences=sequences,
        timeouts=cell("timeouts"),
        deepest=deepest,
        rtt_sums=np.stack([seconds * cell("rtt_sum_ns"), cell("rtt_samples")]),
        t0_sums=np.stack([seconds * cell("first_timeout_ns"), sequences]),
    )


def calibrate_loss(path: Path, wanted: float, *, hours: int) -> Path:
    """Return the path with a loss that gives p, loss indications per packet sent.

    p differs from the packet loss: repeated losses of a packet, and several losses in a round, are
    one indication. Each step scales the loss by wanted p / measured p. The traces of these steps
    are discarded, so that the result is independent of them.
    """
    rate = path.rate
    for _ in range(CALIBRATION_STEPS):
        at_rate = path.with_loss_rate(rate)
        seen = simulate_pieces(
            at_rate, pieces=1, piece_s=3600.0, replications=hours, seed=CALIBRATION_SEED
        )
        rate = min(0.9, rate * wanted / max(seen.trace_p, 1e-9))
    return path.with_loss_rate(rate)


def _ratio(numerator: Counts | Floats, denominator: Counts | Floats) -> Floats:
    result = np.full(np.shape(numerator), np.nan)
    return np.divide(numerator, denominator, out=result, where=np.asarray(denominator) > 0)
