"""Simulations of the reproduction: traces, and round trips of a flow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcpcast_papers import simulations
from tcpcast_papers.pftk.rounds import Rounds, simulate_rounds
from tcpcast_papers.pftk.simulated_traces import TracePieces, calibrate_loss, simulate_pieces
from tcpcast_papers.simulations import SEED

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcpcast_papers.pftk.paths import Path


@dataclass(frozen=True, slots=True)
class SampleSizes:
    """Sample sizes of the simulations.

    Parameters
    ----------
    hours
        Number of independent traces of an hour for each path; the paper has one trace per path.
    calibration_hours
        Length of the traces that calibrate the loss of a path to its p.
    chain_piece_s
        Length of each piece of the runs that are compared with the window chain.
    """

    hours: int
    calibration_hours: int
    chain_piece_s: float


WHOLE = SampleSizes(hours=40, calibration_hours=16, chain_piece_s=2000.0)
QUICK = SampleSizes(hours=4, calibration_hours=2, chain_piece_s=100.0)


@dataclass(frozen=True, slots=True)
class SimulatedTrace:
    """A simulated trace: the path with its calibrated loss, and the pieces."""

    path: Path
    pieces: TracePieces


@dataclass(frozen=True, slots=True)
class TraceJob:
    """A trace in pieces.

    Parameters
    ----------
    path
        Path to simulate; its loss is calibrated first if ``p`` is given.
    pieces, piece_s, replications
        As in :func:`~tcpcast_papers.pftk.simulated_traces.simulate_pieces`.
    p
        Wanted loss indications per packet.
    calibration_hours
        As in :class:`SampleSizes`.
    weight
        Approximate number of packets.
    """

    path: Path
    pieces: int
    piece_s: float
    replications: int
    weight: float
    p: float | None = None
    calibration_hours: int = 1

    def run(self, progress: Callable[[float], None]) -> SimulatedTrace:  # noqa: ARG002 - short ones
        """Run the simulation, after the traces that calibrate its loss."""
        path = self.path
        if self.p is not None:
            path = calibrate_loss(path, self.p, hours=self.calibration_hours)
        result = simulate_pieces(
            path,
            pieces=self.pieces,
            piece_s=self.piece_s,
            replications=self.replications,
            seed=SEED,
        )
        scenario = path.scenario(replications=self.replications, seed=SEED)
        length = {"run.duration": f"{self.pieces * self.piece_s:g}s"}
        simulations.record_run(scenario.with_changes(length), "packet", result.metrics)
        return SimulatedTrace(path, result)


@dataclass(frozen=True, slots=True)
class RoundsJob:
    """Round-trip samples of a flow in ``seconds``."""

    path: Path
    seconds: float
    weight: float

    def run(self, progress: Callable[[float], None]) -> Rounds:  # noqa: ARG002 - a short one
        """Simulate it."""
        length = {"run.duration": f"{self.seconds:g}s"}
        scenario = self.path.scenario(seed=SEED, traced=True).with_changes(length)
        simulations.record_run(scenario, "packet", {})
        return simulate_rounds(self.path, seconds=self.seconds, seed=SEED)


class Runs(simulations.Runs[SampleSizes]):
    """The simulations of this paper."""
