"""Simulations of a reproduction: all are requested first, then each runs once, in parallel."""

from __future__ import annotations

import os
import threading
import zlib
from collections import defaultdict
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from tcpcast.engines import RunOptions, answer

from tcpcast_papers.reproduction import NotSelected, Row, Section, Unfinished

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

    from tcpcast.answer import Answer, Metric
    from tcpcast.scenario import Scenario

SEED = 1
_MAX_TABLE_ROWS = 100
"""Maximum number of rows of a recorded table; papers print no numbers of larger tables, such as
traces."""

Result_co = TypeVar("Result_co", covariant=True)
SampleSizes = TypeVar("SampleSizes")
Key = TypeVar("Key")
Result = TypeVar("Result")


def seed_of_cell(*names: str) -> int:
    """Return the first seed of a cell of measurements, a different one for each name.

    Sign tests and counts of agreeing cells take the cells as independent. With one seed, all cells
    would lose the same packets.
    """
    return SEED + zlib.crc32(" ".join(names).encode())


def progress_of_run(
    progress: Callable[[float], None], index: int, count: int
) -> Callable[[float], None]:
    """Return the function that reports the progress of one of several runs as that of all."""
    return lambda share: progress((index + share) / count)


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A run of an engine, and the numbers of its answer by name.

    A number is a metric or a cell of a table. The name of a cell consists of the table, its column
    and the first cell of its row, for example ``by_size.completion_time_s, size_pkts 8``.
    """

    scenario: Scenario
    engine: str
    numbers: Mapping[str, float]


RowPlace = tuple[str, tuple[str, ...]]
"""Title of the section and label of a row."""


@dataclass(slots=True)
class ResultReaders:
    """Sections and rows whose values are computed from the result of a job."""

    sections: list[Section] = field(default_factory=list)
    rows: set[RowPlace] = field(default_factory=set)


_recorded_runs_of_job: ContextVar[list[RecordedRun] | None] = ContextVar(
    "_runs_of_job", default=None
)


class Selection(Protocol):
    """Rows to compute, instead of all rows of a reproduction."""

    def has_section(self, title: str) -> bool:
        """Return whether the section with this title has such rows."""

    def has_row(self, section: Section, label: tuple[str, ...]) -> bool:
        """Return whether the row with this label is one of them."""


class Job(Protocol[Result_co]):
    """A simulation to run; equal jobs run once."""

    @property
    def weight(self) -> float:
        """Approximate amount of work, for order and progress."""

    def run(self, progress: Callable[[float], None]) -> Result_co:
        """Run the simulation; it may call ``progress`` with the completed share, 0 to 1."""

    def __hash__(self) -> int:
        """Return the hash, because the job is the key of its result."""


@dataclass(slots=True)
class Simulations(Generic[SampleSizes]):
    """Simulations by key: each paper requests all of them, runs them, then reads the results.

    Parameters
    ----------
    sample_sizes
        Sample sizes, as each paper defines them.
    threads
        Maximum number of simultaneous simulations (None: one per core).
    progress
        Called with the completed share of the work, 0 to 1.
    selection
        Rows to compute; a simulation then runs when such a row reads its result. None for all rows.
    """

    sample_sizes: SampleSizes
    threads: int | None = None
    progress: Callable[[float], None] | None = None
    selection: Selection | None = None
    _jobs: dict[Hashable, Job[Any]] = field(default_factory=dict)
    _results: dict[Hashable, Any] = field(default_factory=dict)
    _completed_shares: dict[Hashable, float] = field(default_factory=dict)
    _recorded_runs: dict[Hashable, list[RecordedRun]] = field(default_factory=dict)
    _keys_read: dict[Hashable, None] = field(default_factory=dict)
    _keys_of_rows: defaultdict[tuple[str, ...], set[Hashable]] = field(
        default_factory=lambda: defaultdict(set)
    )
    _readers: defaultdict[Hashable, ResultReaders] = field(
        default_factory=lambda: defaultdict(ResultReaders)
    )
    _section: Section = field(default_factory=lambda: Section(""))
    _has_rows: bool = False
    _may_simulate: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stopped: threading.Event = field(default_factory=threading.Event)

    def simulate(self, keys: Iterable[Hashable] | None = None) -> None:
        """Run these simulations, or all requested ones, unless they have run, in this order.

        Ctrl-C stops the running simulations and sets :attr:`interrupted`. Finished results
        are kept.
        """
        todo = [key for key in keys or self._jobs if key not in self._results]
        self._results |= run_in_parallel(todo, self._run_job, self.threads, self._stopped)

    @property
    def interrupted(self) -> bool:
        """Whether the user pressed Ctrl-C before all simulations had finished."""
        return self._stopped.is_set()

    @property
    def packets(self) -> float:
        """Approximate number of packets of all simulations."""
        return sum(job.weight for job in self._jobs.values())

    def __len__(self) -> int:
        """Return the number of requested simulations."""
        return len(self._jobs)

    def _result(self, key: Hashable) -> Any:
        """Return the result of a simulation.

        Raises
        ------
        Unfinished
            Ctrl-C prevented it, or no selected row reads it.
        """
        (result,) = self._results_of([key])
        return result

    def _results_of(self, keys: Sequence[Hashable]) -> tuple[Any, ...]:
        """Return the results of simulations, which run in parallel if they are still to run."""
        if self._may_simulate:
            self.simulate(keys)
        if (self.interrupted or self.selection) and not all(key in self._results for key in keys):
            raise Unfinished
        self._keys_read.update(dict.fromkeys(keys))
        return tuple(self._results[key] for key in keys)

    def section(
        self, title: str, columns: tuple[str, ...] = (), others: tuple[str, ...] = ()
    ) -> Section:
        """Return a new section, whose rows :meth:`row` computes.

        Raises
        ------
        NotSelected
            The section contains no selected row.
        """
        if self.selection is not None and not self.selection.has_section(title):
            raise NotSelected
        self._section = Section(title, columns, others=others)
        return self._section

    def row(
        self, label: tuple[str, ...], compute: Callable[..., Row | None], *given: Any
    ) -> list[Row]:
        """Return the row with this label from ``compute(*given)``; record the results it reads.

        The list is empty if the row is not selected, or if ``compute`` returns None.
        """
        self._has_rows = True
        if not (self._may_simulate or self._is_selected(label)):
            return []
        before, self._keys_read = self._keys_read, {}
        may_simulate, self._may_simulate = self._may_simulate, self.selection is not None
        try:
            row = compute(*given)
        finally:
            self._keys_of_rows[label].update(self._keys_read)
            self._keys_read |= before
            self._may_simulate = may_simulate
        return [] if row is None else [row]

    def value(
        self, label: tuple[str, ...], unit: str, compute: Callable[..., float | None], *given: Any
    ) -> list[Row]:
        """Return the row of ``compute(*given)``, without a published value, as :meth:`row` does."""
        return self.row(label, lambda: Row(label, unit, None, compute(*given)))

    def metric(
        self, label: tuple[str, ...], unit: str, compute: Callable[..., Metric | None], *given: Any
    ) -> list[Row]:
        """Return the row of a metric as :meth:`value` does, with its interval."""
        return self.row(label, lambda: Row.from_metric(label, unit, None, compute(*given)))

    def check_all_rows(self) -> None:
        """Check that no selection leaves out rows, which the rest of the section reads.

        Raises
        ------
        Unfinished
            Some rows of the section may be missing.
        """
        if self.selection is not None and not self._may_simulate:
            raise Unfinished

    def selected_rows(self, compute: Callable[[], Section]) -> Section | None:
        """Return a section with its selected rows only; None if it has none.

        Simulates what these rows read. If the rows are only known after simulations, it computes
        the whole section.
        """
        section = Section("")
        for self._may_simulate in (False, True):
            self._has_rows = False
            try:
                section = compute()
            except NotSelected:
                break
            except Unfinished:
                section = self._section
                if not (self._has_rows or self.interrupted):
                    continue
            break
        self._may_simulate = False
        section.rows = [row for row in section.rows if self._is_selected(row.label)]
        section.figures, section.remarks = [], []
        return section if section.rows else None

    def _is_selected(self, label: tuple[str, ...]) -> bool:
        return self.selection is None or self.selection.has_row(self._section, label)

    def assign_results_to_sections(self, sections: Sequence[Section]) -> None:
        """Assign to these sections and their rows the results that were read since the last call.

        A result belongs to the rows that :meth:`row` computed from it.
        """
        for key in self._keys_read:
            self._readers[key].sections += sections
        for section in sections:
            for row in section.rows:
                for key in self._keys_of_rows.get(row.label, ()):
                    self._readers[key].rows.add((section.title, row.label))
        self._keys_read.clear()
        self._keys_of_rows.clear()

    def recorded_runs(self) -> Iterator[tuple[RecordedRun, ResultReaders]]:
        """Yield the runs of finished simulations in the order of requests, with their readers."""
        for key in self._jobs:
            yield from ((run, self._readers[key]) for run in self._recorded_runs.get(key, ()))

    def _run_job(self, key: Hashable) -> Any:
        runs: list[RecordedRun] = []
        _recorded_runs_of_job.set(runs)
        result = self._jobs[key].run(lambda share: self._report_progress(key, share))
        self._recorded_runs[key] = runs
        self._report_progress(key, 1.0)
        return result

    def _report_progress(self, key: Hashable, share: float) -> None:
        if self._stopped.is_set():
            raise KeyboardInterrupt
        if self.progress is None:
            return
        with self._lock:
            self._completed_shares[key] = share
            done = sum(
                self._jobs[each].weight * part for each, part in self._completed_shares.items()
            )
            self.progress(min(1.0, done / self.packets))


class Runs(Simulations[SampleSizes]):
    """Simulations by job: :meth:`request` all, :meth:`simulate`, then look up the results."""

    def request(self, job: Job[Result_co]) -> Job[Result_co]:
        """Request a simulation, and return the key of its result."""
        self._jobs[job] = job
        return job

    def __getitem__(self, job: Job[Result_co]) -> Result_co:
        """Return the result of a simulation.

        Raises
        ------
        Unfinished
            The user pressed Ctrl-C before it finished.
        """
        result: Result_co = self._result(job)
        return result

    @property
    def jobs(self) -> tuple[Job[Any], ...]:
        """Requested simulations, in the order of the requests."""
        return tuple(self._jobs.values())


def simulate_scenario(
    scenario: Scenario, progress: Callable[[float], None], *, engine: str = "packet"
) -> Answer:
    """Return an engine's answer, computed on one thread, because other simulations run in parallel.

    Raises
    ------
    KeyboardInterrupt
        The user pressed Ctrl-C.
    """
    (given,) = answer(scenario, [engine], RunOptions(threads=1, progress=progress))
    if given.interrupted:
        raise KeyboardInterrupt
    record_run(scenario, engine, dict(_numbers_of_answer(given)))
    return given


def record_run(scenario: Scenario, engine: str, numbers: Mapping[str, float]) -> None:
    """Record a run of the current job; :func:`simulate_scenario` does this for its own run."""
    runs = _recorded_runs_of_job.get()
    if runs is not None:
        runs.append(RecordedRun(scenario, engine, numbers))


def _numbers_of_answer(given: Answer) -> Iterator[tuple[str, float]]:
    yield from ((name, metric.value) for name, metric in given.metrics.items())
    for table, columns in given.tables.items():
        first, *others = columns
        if len(columns[first]) > _MAX_TABLE_ROWS:
            continue
        for name in others:
            if columns[name].dtype.kind in "fiu":
                for row, value in zip(columns[first], columns[name].tolist(), strict=True):
                    yield f"{table}.{name}, {first} {row}", float(value)


def run_in_parallel(
    todo: Sequence[Key], run: Callable[[Key], Result], threads: int | None, stopped: threading.Event
) -> dict[Key, Result]:
    """Run jobs in parallel, in their order, and return the results of those that finished.

    Parameters
    ----------
    todo
        The jobs.
    run
        Runs one job.
    threads
        Maximum number of simultaneous jobs (None: one per core).
    stopped
        Set by Ctrl-C; running jobs must poll it and raise KeyboardInterrupt.
    """
    pending: dict[Future[Result], Key] = {}
    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        try:
            for job in todo:
                pending[pool.submit(run, job)] = job
            running = set(pending)
            while running:
                # A wait without a limit misses a Ctrl-C that arrives just before the wait begins.
                done, running = wait(running, timeout=1.0, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
        except BaseException as error:
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            if not isinstance(error, KeyboardInterrupt):
                raise
    ended = {future: job for future, job in pending.items() if not future.cancelled()}
    return {job: future.result() for future, job in ended.items() if future.exception() is None}
