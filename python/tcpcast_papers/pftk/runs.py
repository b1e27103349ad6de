"""Simulations of the reproduction: traces, and round trips of a flow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from tcpcast import _native
from tcpcast.engines.packet.configuration import make_configuration, to_nanoseconds
from tcpcast.process.errors import DomainError

from tcpcast_papers import simulations
from tcpcast_papers.pftk.simulated_traces import TracePieces, calibrate_loss, simulate_pieces
from tcpcast_papers.simulations import SEED

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from tcpcast_papers.pftk.paths import Path

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Rounds:
    """Round-trip samples of one flow, ``[samples]``.

    Attributes
    ----------
    duration_s
        Time from the first transmission of a packet to the ack that covers it.
    in_transit_pkts
        Number of packets outstanding after this packet was sent, including the packet itself.
    """

    duration_s: Floats
    in_transit_pkts: Floats

    @property
    def correlation(self) -> float:
        """Correlation coefficient of duration and packets in transit; nan if one is constant."""
        if min(np.ptp(self.duration_s), np.ptp(self.in_transit_pkts)) == 0:
            return float("nan")
        return float(np.corrcoef(self.duration_s, self.in_transit_pkts)[0, 1])


def simulate_rounds(path: Path, *, seconds: float, seed: int = 1) -> Rounds:
    """Simulate a path and time one packet at a time, as a sender does.

    A sample is left out if there was any retransmission or timeout while it was in flight. This is
    slightly stricter than Karn's rule.

    Raises
    ------
    DomainError
        ``seconds`` is so large that the simulator does not keep every point of the flow.
    """
    scenario = path.scenario(seed=seed, traced=True)
    run = _native.Simulation(make_configuration(scenario, 0.0), 1)
    run.advance(transfers=None, until_ns=to_nanoseconds(seconds), threads=1)
    traces = run.traces()
    if traces["mark_bin_ns"] or traces["window_bin_ns"]:
        raise DomainError(
            f"{seconds:,.0f} s are too long to time every packet; use a smaller number"
        )
    marks = np.array(traces["mark"])
    times = traces["mark_time_ns"].astype(np.int64)
    sent = np.sort(times[marks == "sent"])
    again = np.sort(times[(marks == "retransmitted") | (marks == "timeout")])
    seen, flight = traces["window_time_ns"].astype(np.int64), traces["flight"].astype(np.int64)
    # Packets are numbered at their first transmission; those not outstanding are acknowledged.
    acked = np.maximum.accumulate(np.searchsorted(sent, seen, side="right") - flight)
    result = []
    number = 0
    while number < len(sent):
        start = sent[number]
        end = int(np.searchsorted(acked, number, side="right"))
        if end >= len(seen):
            break
        disturbed = np.searchsorted(again, start) != np.searchsorted(again, seen[end], side="right")
        if seen[end] > start and not disturbed:
            outstanding = flight[np.searchsorted(seen, start, side="left")]
            result.append((1e-9 * (seen[end] - start), float(outstanding)))
        number = max(number + 1, int(np.searchsorted(sent, seen[end], side="left")))
    duration, transit = np.array(result).reshape(-1, 2).T
    return Rounds(duration, transit)


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
