"""The simulations of a reproduction: asked for first, run once each, side by side on threads."""

from __future__ import annotations

import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from tcpcast.engines import RunOptions, answer

from tcpcast_papers.reproduction import Unfinished

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from tcpcast.answer import Answer
    from tcpcast.scenario import Scenario

SEED = 1

Result_co = TypeVar("Result_co", covariant=True)
SampleSizes = TypeVar("SampleSizes")
Key = TypeVar("Key")
Result = TypeVar("Found")


class Job(Protocol[Result_co]):
    """Something to simulate: equal ones are the same."""

    @property
    def weight(self) -> float:
        """About how much work it is, for order and progress."""

    def run(self, progress: Callable[[float], None]) -> Result_co:
        """Simulate it; ``progress`` may be called with the share done, 0 to 1."""

    def __hash__(self) -> int:
        """Return the hash of a job, which is looked up by itself."""


@dataclass(slots=True)
class Simulations(Generic[SampleSizes]):
    """Simulations by a key: each paper asks for all of them, has them run, then looks them up.

    Parameters
    ----------
    effort
        How much is simulated, as each paper has it.
    threads
        How many run at once (None: one a core).
    progress
        Called with the share of the work done, 0 to 1.
    """

    sample_sizes: SampleSizes
    threads: int | None = None
    progress: Callable[[float], None] | None = None
    _jobs: dict[Hashable, Job[Any]] = field(default_factory=dict)
    _done: dict[Hashable, Any] = field(default_factory=dict)
    _shares: dict[Hashable, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stopped: threading.Event = field(default_factory=threading.Event)

    def simulate(self) -> None:
        """Run what was asked for and is not yet there, in the order asked.

        A reader who gives up ends it: those that run are stopped, :attr:`interrupted` is true,
        and what is finished is kept.
        """
        todo = [key for key in self._jobs if key not in self._done]
        self._done |= side_by_side(todo, self._run, self.threads, self._stopped)

    @property
    def interrupted(self) -> bool:
        """Whether the reader gave up before all was simulated."""
        return self._stopped.is_set()

    @property
    def packets(self) -> float:
        """About how many packets all of them have."""
        return sum(job.weight for job in self._jobs.values())

    def __len__(self) -> int:
        """Return the number of simulations asked for."""
        return len(self._jobs)

    def _result(self, key: Hashable) -> Any:
        """Return what came out of a simulation; raise Unfinished if the reader gave up before."""
        if self.interrupted and key not in self._done:
            raise Unfinished
        return self._done[key]

    def _run(self, key: Hashable) -> Any:
        result = self._jobs[key].run(lambda share: self._report(key, share))
        self._report(key, 1.0)
        return result

    def _report(self, key: Hashable, share: float) -> None:
        if self._stopped.is_set():
            raise KeyboardInterrupt
        if self.progress is None:
            return
        with self._lock:
            self._shares[key] = share
            done = sum(self._jobs[each].weight * part for each, part in self._shares.items())
            self.progress(min(1.0, done / self.packets))


class Runs(Simulations[SampleSizes]):
    """Simulations by what was asked: :meth:`want` them all, :meth:`simulate`, then look them up."""

    def request(self, job: Job[Result_co]) -> Job[Result_co]:
        """Ask for a simulation, and return what to look it up by."""
        self._jobs[job] = job
        return job

    def __getitem__(self, job: Job[Result_co]) -> Result_co:
        """Return what came out of a simulation.

        Raises
        ------
        Unfinished
            The reader gave up before.
        """
        result: Result_co = self._result(job)
        return result

    @property
    def jobs(self) -> tuple[Job[Any], ...]:
        """What was asked for, in the order asked."""
        return tuple(self._jobs.values())


def simulated(
    scenario: Scenario, progress: Callable[[float], None], *, engine: str = "packet"
) -> Answer:
    """Return an engine's answer, on one thread: others run beside it.

    Raises
    ------
    KeyboardInterrupt
        The reader gave up.
    """
    (given,) = answer(scenario, [engine], RunOptions(threads=1, progress=progress))
    if given.interrupted:
        raise KeyboardInterrupt
    return given


def side_by_side(
    todo: Sequence[Key], run: Callable[[Key], Result], threads: int | None, stopped: threading.Event
) -> dict[Key, Result]:
    """Run jobs on threads, in their order, and return what came out of those that ended.

    Parameters
    ----------
    todo
        The jobs.
    run
        Does one.
    threads
        How many run at once (None: one a core).
    stopped
        Set by Ctrl-C; those that run are to look at it and raise KeyboardInterrupt.
    """
    pending: dict[Future[Result], Key] = {}
    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        try:
            for job in todo:
                pending[pool.submit(run, job)] = job
            for future in as_completed(pending):
                future.result()
        except BaseException as error:
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            if not isinstance(error, KeyboardInterrupt):
                raise
    ended = {future: job for future, job in pending.items() if not future.cancelled()}
    return {job: future.result() for future, job in ended.items() if future.exception() is None}
