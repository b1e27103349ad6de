"""Worker of a sweep: run the cells of one batch, and return a Parquet file as bytes.

A worker may be another process or another machine, so the batch contains all inputs. The results
depend only on these inputs.
"""

from __future__ import annotations

import functools
import platform
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpcast.answer import Answer, Status
from tcpcast.engines import RunOptions, answer
from tcpcast.errors import MachineError, TcpcastError
from tcpcast.scenario import Scenario
from tcpcast.sweeps.table import (
    AnswerRow,
    encode_as_arrow_stream,
    encode_as_parquet_file,
    make_answer_row,
    make_record_batch,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

NO_ENGINE = ""
"""Engine name of a row with the reason why no engine answered."""


@dataclass(frozen=True, slots=True)
class SweepSpec:
    """Common parameters of all cells of a sweep.

    ``tables`` are the scenario's tables as typed, with relative file names in ``folder``.
    ``engines`` = None selects all applicable engines that run by default. ``kinds`` has the kind of
    the column of each varied key. ``digest`` identifies the sweep, and ``version`` is the version
    of tcpcast. ``marks`` are the metadata of the part files; None for parts in memory.
    ``classes`` has the names of the classes if there are several; each then has its own columns.
    """

    tables: Mapping[str, Any]
    folder: str | None
    engines: tuple[str, ...] | None
    feed: str
    kinds: Mapping[str, str]
    digest: str
    version: str
    marks: Mapping[str, str] | None
    classes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CellReplication:
    """One replication of a cell: its number, changes and seed."""

    cell: int
    replication: int
    seed: int
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The result of a batch: its rows, their statuses, and their computing times.

    ``data`` is a Parquet file, or an Arrow stream for results in memory. ``wall`` has the cell,
    replication, engine and seconds of each row.
    """

    data: bytes
    statuses: dict[str, int]
    host: str
    wall: list[tuple[int, int, str, float]]


def answer_batch(
    spec: SweepSpec,
    variants: tuple[CellReplication, ...],
    stopped: Callable[[], bool] | None = None,
) -> BatchResult:
    """Run all variants of a batch with all engines.

    Parameters
    ----------
    spec
        Common parameters.
    variants
        The batch.
    stopped
        Function that returns True to stop; it is called regularly.

    Returns
    -------
    BatchResult
        The rows; a failure is a row with a reason.

    Raises
    ------
    MachineError
        The worker has another version of tcpcast.
    KeyboardInterrupt
        ``stopped`` returned True.
    """
    _check_version(spec.version)
    rows: list[AnswerRow] = []
    watch = None if stopped is None else _make_stop_callback(stopped)
    options = RunOptions(threads=1, progress=watch, tables=bool(spec.classes))
    for variant in variants:
        if stopped is not None and stopped():
            raise KeyboardInterrupt
        rows += [
            make_answer_row(variant, answer) for answer in _answer_variant(spec, variant, options)
        ]
    statuses = dict(Counter(row.status for row in rows))
    wall = [(r.variant.cell, r.variant.replication, r.engine, r.wall_s) for r in rows]
    batch = make_record_batch(rows, spec.kinds, spec.classes)
    data = (
        encode_as_arrow_stream(batch)
        if spec.marks is None
        else encode_as_parquet_file(batch, spec.marks)
    )
    return BatchResult(data, statuses, platform.node(), wall)


def _check_version(expected: str) -> None:
    version = get_version()
    if version != expected:
        raise MachineError(
            f"the worker on {platform.node()} has tcpcast {version}, but the sweep was started "
            f"with {expected}; install the same version everywhere"
        )


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


def _answer_variant(spec: SweepSpec, variant: CellReplication, options: RunOptions) -> list[Answer]:
    """Return the answers to a variant, one per engine; failures have a reason."""
    began = time.perf_counter()
    names = spec.engines
    if variant.replication > 0 and names is not None and spec.feed == "scenario":
        names = _select_simulators(names)
    try:
        scenario = _make_variant_scenario(spec, variant)
    except TcpcastError as error:
        wall_s = time.perf_counter() - began
        return [_make_failed_answer(name, error, wall_s) for name in names or (NO_ENGINE,)]
    try:
        answers = answer(scenario, names, options, feed=spec.feed)
    except Exception as error:
        wall_s = time.perf_counter() - began
        if names is None:
            return [_make_failed_answer(NO_ENGINE, error, wall_s)]
        answers = [_run_engine_or_fail(name, scenario, options, spec.feed) for name in names]
    if any(each.interrupted for each in answers):
        raise KeyboardInterrupt
    return answers or [Answer(NO_ENGINE, status=Status.NOT_APPLICABLE, reason="no engine applies")]


def _make_variant_scenario(spec: SweepSpec, variant: CellReplication) -> Scenario:
    base = _get_base_scenario(spec.digest, spec)
    changes = dict(variant.values)
    if variant.replication > 0:
        changes["run.seed"] = variant.seed
    return base.with_changes(changes)


class _ScenarioCache(dict[str, Scenario]):
    """Cache of the scenario of a worker's current sweep."""

    def get_base_scenario(self, sweep: str, spec: SweepSpec) -> Scenario:
        if sweep not in self:
            self.clear()
            folder = None if spec.folder is None else Path(spec.folder)
            self[sweep] = Scenario.from_dict(spec.tables, folder=folder)
        return self[sweep]


_get_base_scenario = _ScenarioCache().get_base_scenario


def _select_simulators(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names without formulas, whose replications are all equal."""
    from tcpcast.engines import REGISTRY  # noqa: PLC0415 - replaced in tests
    from tcpcast.engines.registry import Formula  # noqa: PLC0415

    return tuple(name for name in names if not isinstance(REGISTRY[name], Formula))


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
