"""Worker of a sweep: run the cells of one batch, and return their answers as JSON.

A worker may be another process or another machine, so the batch contains all inputs. The results
depend only on these inputs.
"""

from __future__ import annotations

import functools
import platform
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpcast.answer import Answer, Status
from tcpcast.engines import RunOptions, answer
from tcpcast.process.errors import MachineError, TcpcastError
from tcpcast.scenario import Scenario
from tcpcast.sweeps.table import write_answer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ALL_ENGINES = ""
"""Key of the answers of all engines, where these depend on each other or follow from the scenario.

It is also the engine name of a row with the reason why no engine answered.
"""

StoredAnswer = tuple[bytes, int, str, float, str, str]
"""Key of an answer, its position among those of the key, its JSON, its computing time in seconds,
and the computer and time of its computation."""


@dataclass(frozen=True, slots=True)
class SweepSpec:
    """Common parameters of all runs of a sweep.

    ``tables`` are the scenario's tables as typed, with relative file names in ``folder``.
    ``engines`` = None selects all applicable engines that run by default. ``digest`` identifies the
    scenario, and ``version`` is the version of tcpcast. ``by_class`` is True if the main metrics of
    each class are wanted.
    """

    tables: Mapping[str, Any]
    folder: str | None
    engines: tuple[str, ...] | None
    feed: str
    digest: str
    version: str
    by_class: bool


@dataclass(frozen=True, slots=True)
class CellRun:
    """One replication of a cell: its number, seed and values, and the keys of its answers.

    ``keys`` has a key for each engine, or one for :data:`ALL_ENGINES`.
    """

    cell: int
    replication: int
    seed: int
    values: Mapping[str, Any]
    keys: Mapping[str, bytes]


def answer_batch(
    spec: SweepSpec,
    runs: Sequence[CellRun],
    stopped: Callable[[], bool] | None = None,
) -> list[StoredAnswer]:
    """Run all runs of a batch with all engines.

    Parameters
    ----------
    spec
        Common parameters.
    runs
        The batch.
    stopped
        Function that returns True to stop; it is called regularly.

    Returns
    -------
    list of StoredAnswer
        The answers; a failure has a reason.

    Raises
    ------
    MachineError
        The worker has another version of tcpcast.
    KeyboardInterrupt
        ``stopped`` returned True.
    """
    version = get_version()
    if version != spec.version:
        raise MachineError(
            f"the worker on {platform.node()} has tcpcast {version}, but the sweep was started "
            f"with {spec.version}; install the same version everywhere"
        )
    watch = None if stopped is None else _make_stop_callback(stopped)
    options = RunOptions(threads=1, progress=watch)
    stored: list[StoredAnswer] = []
    for run in runs:
        if stopped is not None and stopped():
            raise KeyboardInterrupt
        answers = _answer_run(spec, run, options)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        for position, each in enumerate(answers):
            key = run.keys.get(ALL_ENGINES) or run.keys[each.engine]
            text = write_answer(each, by_class=spec.by_class)
            stored.append((key, position, text, each.wall_s, platform.node(), now))
    return stored


@functools.cache
def get_version() -> str:
    """Return the version of tcpcast."""
    import tcpcast  # noqa: PLC0415 - its version reads files

    return tcpcast.__version__


def _make_stop_callback(stopped: Callable[[], bool]) -> Callable[[float], None]:
    def look(_share: float) -> None:
        if stopped():
            raise KeyboardInterrupt

    return look


def _answer_run(spec: SweepSpec, run: CellRun, options: RunOptions) -> list[Answer]:
    """Return the answers to a run, one per engine; failures have a reason."""
    began = time.perf_counter()
    names = spec.engines if ALL_ENGINES in run.keys else tuple(run.keys)
    try:
        changes = dict(run.values) | ({"run.seed": run.seed} if run.replication > 0 else {})
        scenario = _get_base_scenario(spec).with_changes(changes)
    except TcpcastError as error:
        wall_s = time.perf_counter() - began
        return [_make_failed_answer(name, error, wall_s) for name in names or (ALL_ENGINES,)]
    try:
        answers = answer(scenario, names, options, feed=spec.feed)
    except Exception as error:
        if names is None:
            return [_make_failed_answer(ALL_ENGINES, error, time.perf_counter() - began)]
        answers = [_run_engine_or_fail(name, scenario, options, spec.feed) for name in names]
    if any(each.interrupted for each in answers):
        raise KeyboardInterrupt
    return answers or [
        Answer(ALL_ENGINES, status=Status.NOT_APPLICABLE, reason="no engine applies")
    ]


class _ScenarioCache(dict[str, Scenario]):
    """Cache of the scenario of a worker's current sweep."""

    def get_base_scenario(self, spec: SweepSpec) -> Scenario:
        if spec.digest not in self:
            self.clear()
            folder = None if spec.folder is None else Path(spec.folder)
            self[spec.digest] = Scenario.from_dict(spec.tables, folder=folder)
        return self[spec.digest]


_get_base_scenario = _ScenarioCache().get_base_scenario


def _run_engine_or_fail(name: str, scenario: Scenario, options: RunOptions, feed: str) -> Answer:
    began = time.perf_counter()
    try:
        (result,) = answer(scenario, [name], options, feed=feed)[:1]
    except Exception as error:
        return _make_failed_answer(name, error, time.perf_counter() - began)
    return result


def _make_failed_answer(engine: str, error: Exception, wall_s: float) -> Answer:
    """Return a failed answer with the reason."""
    reason = str(error) if isinstance(error, TcpcastError) else f"{type(error).__name__}: {error}"
    return Answer(engine, status=Status.FAILED, reason=reason, wall_s=wall_s)
