"""The simulations of the reproduction: asked for first, run once each, side by side on threads."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from tcpcast.papers.pftk.rounds import Rounds, rounds
from tcpcast.papers.pftk.traces import Cut, calibrated, cut

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcpcast.papers.pftk.paths import Path

SEED = 1


@dataclass(frozen=True, slots=True)
class Effort:
    """How much to simulate.

    Parameters
    ----------
    hours
        Independent traces of an hour for each path: the paper has one of each.
    calibration_hours
        Length of the traces that find the loss which gives a path's p.
    gap_piece_s
        Length of each piece of the runs beside the window chain.
    """

    hours: int
    calibration_hours: int
    gap_piece_s: float


WHOLE = Effort(hours=40, calibration_hours=16, gap_piece_s=2000.0)
QUICK = Effort(hours=4, calibration_hours=2, gap_piece_s=100.0)


@dataclass(frozen=True, slots=True)
class Done:
    """A simulated trace: the path as it was in the end, and its pieces."""

    path: Path
    cut: Cut


Result_co = TypeVar("Result_co", covariant=True)


class Job(Protocol[Result_co]):
    """Something to simulate: equal ones are the same."""

    @property
    def weight(self) -> float:
        """About how many packets it takes, for order and progress."""

    def run(self) -> Result_co:
        """Simulate it."""


@dataclass(frozen=True, slots=True)
class TraceJob:
    """A trace in pieces.

    Parameters
    ----------
    path
        Over what; its loss is corrected first if ``p`` is given.
    pieces, piece_s, replications
        As in :func:`~tcpcast.papers.pftk.traces.cut`.
    p
        Loss indications per packet that the trace is to have.
    calibration_hours
        As in :class:`Effort`.
    weight
        About how many packets it takes.
    """

    path: Path
    pieces: int
    piece_s: float
    replications: int
    weight: float
    p: float | None = None
    calibration_hours: int = 1

    def run(self) -> Done:
        """Simulate it, after the traces that find its loss."""
        path = self.path
        if self.p is not None:
            path = calibrated(path, self.p, hours=self.calibration_hours)
        found = cut(
            path,
            pieces=self.pieces,
            piece_s=self.piece_s,
            replications=self.replications,
            seed=SEED,
        )
        return Done(path, found)


@dataclass(frozen=True, slots=True)
class RoundsJob:
    """Round-trip samples of a flow over ``seconds``."""

    path: Path
    seconds: float
    weight: float

    def run(self) -> Rounds:
        """Simulate it."""
        return rounds(self.path, seconds=self.seconds, seed=SEED)


@dataclass(slots=True)
class Runs:
    """Simulations by what was asked: :meth:`want` them all, :meth:`simulate`, then look them up.

    Parameters
    ----------
    effort
        How much is simulated.
    threads
        How many run at once (None: one a core).
    progress
        Called with the share of the work done, 0 to 1.
    """

    effort: Effort
    threads: int | None = None
    progress: Callable[[float], None] | None = None
    _wanted: dict[Job[Any], None] = field(default_factory=dict)
    _done: dict[Job[Any], Any] = field(default_factory=dict)

    def want(self, job: Job[Result_co]) -> Job[Result_co]:
        """Ask for a simulation, and return what to look it up by."""
        self._wanted[job] = None
        return job

    def simulate(self) -> None:
        """Run what was asked for and is not yet there."""
        # The longest first, so that no thread is left with one at the end.
        todo = sorted(self._wanted.keys() - self._done.keys(), key=_order)
        total, ready = sum(job.weight for job in todo), 0.0
        with ThreadPoolExecutor(self.threads or os.cpu_count() or 1) as pool:
            pending = {pool.submit(job.run): job for job in todo}
            try:
                for future in as_completed(pending):
                    self._done[pending[future]] = future.result()
                    ready += pending[future].weight
                    if self.progress is not None:
                        self.progress(min(1.0, ready / total))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def __getitem__(self, job: Job[Result_co]) -> Result_co:
        """Return what came out of a simulation."""
        found: Result_co = self._done[job]
        return found

    def __len__(self) -> int:
        """Return the number of simulations asked for."""
        return len(self._wanted)


def _order(job: Job[Any]) -> tuple[float, str]:
    return -job.weight, repr(job)
