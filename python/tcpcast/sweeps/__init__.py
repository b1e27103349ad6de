"""Sweeps: run a scenario over a grid of values with several engines, into one table.

``axes.py`` reads ranges and lists, ``grid.py`` numbers their combinations, and
``check_swept_keys.py`` checks them against the scenario. ``worker.py`` runs a batch of cells in any
process, and ``table.py`` converts it to a Parquet file. ``processes.py`` starts workers,
``folder.py`` stores parts, ``results.py`` holds the results, and ``query.py`` runs SQL.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpcast import forkserver
from tcpcast.engines import REGISTRY, check_engine_names, may_simulate
from tcpcast.engines.registry import Formula
from tcpcast.errors import DomainError, MachineError, TcpcastError
from tcpcast.scenario import Scenario, load
from tcpcast.sweeps import processes as workers
from tcpcast.sweeps.check_swept_keys import check_swept_keys, get_column_kinds
from tcpcast.sweeps.earlier_rows import EarlierRows
from tcpcast.sweeps.folder import DIGEST_KEY, SweepFolder
from tcpcast.sweeps.grid import make_grid
from tcpcast.sweeps.results import SweepResults, count_statuses
from tcpcast.sweeps.table import get_column_unit, import_sweep_packages
from tcpcast.sweeps.worker import CellReplication, SweepSpec, get_version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from concurrent.futures import Executor
    from os import PathLike

    from tcpcast.sweeps.grid import SweepGrid
    from tcpcast.sweeps.worker import BatchResult

    RunBatches = Callable[
        [SweepSpec, int, Iterator[workers.Batch]], Iterator[tuple[int, BatchResult]]
    ]
    """Function that runs a number of batches and yields their parts."""

FORMULA_BATCHES, MIN_FORMULA_CELLS, MAX_FORMULA_CELLS = 64, 500, 5000
"""Approximate number of batches for formulas, and minimum and maximum cells per batch."""

MAX_SIMULATED_BATCHES = 1000
"""Maximum number of batches for simulations; with fewer cells, each batch has one cell."""

_NO_PROBES: dict[str, Any] = {"probes.flows": [], "probes.pcap": []}


@dataclass(frozen=True, slots=True)
class PreparedSweep:
    """A prepared sweep: its cells, their common parameters, and the division into batches."""

    grid: SweepGrid
    spec: SweepSpec
    definition: Mapping[str, Any]
    replications: int
    seed: int
    batch: int

    @property
    def units(self) -> int:
        """Number of cells times replications."""
        return len(self.grid) * self.replications

    @property
    def batches(self) -> int:
        """Number of batches."""
        return math.ceil(self.units / self.batch)

    @property
    def digest(self) -> str:
        """Digest that identifies the sweep."""
        return str(self.definition[DIGEST_KEY])

    def variants_of_batch(self, number: int) -> tuple[CellReplication, ...]:
        """Return the variants of a batch."""
        last = min((number + 1) * self.batch, self.units)
        return tuple(self._variant_of_unit(unit) for unit in range(number * self.batch, last))

    def _variant_of_unit(self, unit: int) -> CellReplication:
        cell, again = divmod(unit, self.replications)
        values = self.grid.cell(cell)
        return CellReplication(cell, again, int(values.get("run.seed", self.seed)) + again, values)


def sweep(  # noqa: PLR0913 - keyword options of the run
    scenario: Scenario | str | PathLike[str],
    vary: Mapping[str, Any] | None = None,
    *,
    engines: str | Sequence[str] | None = None,
    replications: int | None = None,
    feed: str | None = None,
    out: str | PathLike[str] | None = None,
    processes: int | None = None,
    dask: str | None = None,
    executor: Executor | None = None,
    progress: Callable[[float], None] | None = None,
) -> SweepResults:
    """Run a scenario for all combinations of values, with several engines.

    Parameters
    ----------
    scenario
        The scenario, as for :func:`tcpcast.run`; its optional table ``[sweep]`` defines the varied
        keys.
    vary
        Varied keys, added to that table: dotted keys with a range, ``"10ms..200ms log 8"``, or a
        list of values. The keys ``zip`` and ``latin`` of the table are also accepted.
    engines, replications, feed
        Values that replace the values of the table ``[sweep]``.
    out
        Folder for the results; None keeps them in memory. Existing results of the same sweep, or of
        one with fewer values of the same keys, are reused.
    processes
        Number of worker processes on this machine, 1 or more; None uses one per core. Results do
        not depend on it.
    dask
        Address of a Dask scheduler whose workers run the sweep, such as ``"tcp://host:8786"``.
    executor
        Any other executor whose workers have tcpcast installed.
    progress
        Called with the share of the finished cells, 0 to 1.

    Returns
    -------
    SweepResults
        One row per cell, replication and engine; after Ctrl-C, the finished rows.

    Raises
    ------
    ScenarioError
        The scenario, a key or a value is wrong; the message says what to write instead.
    UnknownEngine
        No engine has the given name.
    TcpcastError
        The folder contains another sweep.
    MachineError
        pyarrow is not installed, the folder cannot be written, or a worker ended.

    Examples
    --------
    >>> results = sweep("lossy-path", {"network.rtt": "10ms..160ms log 5"}, engines="pftk")
    >>> results.to_arrow()["network.rtt"].to_pylist()
    [0.01, 0.02, 0.04, 0.08, 0.16]
    """
    _check_workers(processes, dask, executor)
    if (dask, executor) == (None, None) and processes != 1 and may_simulate(engines):
        forkserver.start_forkserver()
    import_sweep_packages("pyarrow", "pyarrow.parquet")
    plan = prepare_sweep(scenario, vary, engines=engines, replications=replications, feed=feed)
    run = partial(_run_batches, processes=processes, dask=dask, executor=executor)
    progress = progress or (lambda _share: None)
    if out is None:
        plan = replace(plan, spec=replace(plan.spec, marks=None))
        return _run_missing_batches(plan, None, run, progress)
    folder = SweepFolder(Path(out))
    with folder.locked(plan.definition, plan.batches):
        return _run_missing_batches(plan, folder, run, progress)


def prepare_sweep(
    scenario: Scenario | str | PathLike[str],
    vary: Mapping[str, Any] | None = None,
    *,
    engines: str | Sequence[str] | None = None,
    replications: int | None = None,
    feed: str | None = None,
) -> PreparedSweep:
    """Return a prepared sweep; see :func:`sweep` for the arguments and errors."""
    source = scenario if isinstance(scenario, Scenario) else load(scenario)
    named = engines if engines is None or isinstance(engines, str) else list(engines)
    given: dict[str, Any] = {"engines": named, "replications": replications, "feed": feed}
    own = {name: value for name, value in given.items() if value is not None}
    source = source.with_sweep({} if vary is None else vary).with_sweep(own)
    table = source.sweep
    assert table is not None
    names = tuple(table.engines) or None
    check_engine_names(names or ())
    base = source.with_changes({"sweep": None, **_NO_PROBES})
    seed = base.run.seed
    grid = make_grid(table, seed)
    check_swept_keys(base, grid)
    only_formulas = _has_only_formulas(names, table.feed)
    replications = 1 if only_formulas else table.replications
    batch = _choose_batch_size(len(grid) * replications, only_formulas)
    tables, folder = base.source_tables()
    kinds = get_column_kinds(base, grid.axes)
    version = get_version()
    definition: dict[str, Any] = {
        "version": version,
        "scenario": base.resolved(),
        "tables": tables,
        "axes": [{axis.key: list(axis.values) for axis in group} for group in grid.groups],
        "engines": None if names is None else list(names),
        "replications": replications,
        "feed": table.feed,
        "batch": batch,
    }
    text = json.dumps(definition, sort_keys=True, separators=(",", ":"), default=str)
    definition[DIGEST_KEY] = "sha256:" + hashlib.sha256(text.encode()).hexdigest()
    marks = {
        "tcpcast.sweep": definition[DIGEST_KEY],
        "tcpcast.version": version,
        "tcpcast.seed": str(seed),
        "tcpcast.scenario": json.dumps(definition["scenario"], sort_keys=True),
    }
    digest = marks["tcpcast.sweep"]
    classes = tuple(group.name for group in base.populations)
    classes = classes if len(classes) > 1 else ()
    spec = SweepSpec(tables, folder, names, table.feed, kinds, digest, version, marks, classes)
    return PreparedSweep(grid, spec, definition, replications, seed, batch)


def _has_only_formulas(names: Sequence[str] | None, feed: str) -> bool:
    """Return True if all replications of a cell have equal results."""
    return (
        names is not None
        and feed == "scenario"
        and all(isinstance(REGISTRY[name], Formula) for name in names)
    )


def _choose_batch_size(units: int, only_formulas: bool) -> int:
    """Return the number of cells per batch, which does not depend on the workers."""
    if only_formulas:
        size = math.ceil(units / FORMULA_BATCHES)
        return min(max(size, MIN_FORMULA_CELLS), MAX_FORMULA_CELLS)
    return math.ceil(units / MAX_SIMULATED_BATCHES)


def _check_workers(processes: int | None, dask: str | None, executor: Executor | None) -> None:
    if sum(each is not None for each in (processes, dask, executor)) > 1:
        raise TcpcastError("processes, dask and executor exclude each other; give one of them")
    if processes is not None and (type(processes) is not int or processes < 1):
        raise DomainError(
            f"processes: {processes!r} is not a number of processes; write 1 or more, or leave it "
            "out for one per core"
        )


def _run_missing_batches(
    plan: PreparedSweep,
    folder: SweepFolder | None,
    run: RunBatches,
    progress: Callable[[float], None],
) -> SweepResults:
    """Run all batches that do not exist yet."""
    existing = [
        number
        for number in range(plan.batches)
        if folder is not None and folder.is_complete(number, plan.digest)
    ]
    todo = sorted(set(range(plan.batches)) - set(existing))
    known = EarlierRows(
        None if folder is None else folder.earlier_rows_file(plan.digest), plan.replications
    )
    done, data, interrupted = len(existing), dict[int, bytes](), False
    statuses: dict[bytes | Path, dict[str, int]] = {}
    progress(done / plan.batches)
    try:
        for number, part in _iter_parts(plan, todo, known, run):
            if folder is None:
                data[number] = part.data
            else:
                folder.write(number, part)
            statuses[part.data if folder is None else folder.part_file(number)] = part.statuses
            done += 1
            progress(done / plan.batches)
    except KeyboardInterrupt:
        interrupted = True
    except MachineError as error:
        raise MachineError(f"{error}{_finished_parts_text(folder, done, plan.batches)}") from error
    if folder is not None and done == plan.batches:
        folder.remove_unneeded_files()
    parts: list[bytes | Path] = [data[number] for number in sorted(data)]
    if folder is not None:
        parts = [*folder.existing_parts()]
    return SweepResults(
        parts,
        count_statuses(parts, statuses),
        plan.batches,
        interrupted,
        folder=None if folder is None else folder.path,
        keys={key: get_column_unit(kind) for key, kind in plan.spec.kinds.items()},
    )


def _finished_parts_text(folder: SweepFolder | None, done: int, batches: int) -> str:
    """Return the end of an error message: the finished parts of a failed sweep."""
    if folder is None:
        return ""
    return (
        f"; {done} of {batches} parts are complete in {folder.path}; run the sweep again "
        "to continue"
    )


def _iter_parts(
    plan: PreparedSweep,
    todo: Sequence[int],
    known: EarlierRows,
    run: RunBatches,
) -> Iterator[tuple[int, BatchResult]]:
    """Yield parts as they finish: batches with known rows first, the others from workers."""
    if not known:
        lazily = ((number, plan.variants_of_batch(number)) for number in todo)
        yield from run(plan.spec, len(todo), lazily)
        return
    new = {
        number: [v for v in plan.variants_of_batch(number) if not known.has_rows_of(v)]
        for number in todo
    }
    for number in [number for number in todo if not new[number]]:
        yield number, known.join_rows(plan.spec, plan.variants_of_batch(number), None)
    left = [number for number in todo if new[number]]
    batches = ((number, tuple(new[number])) for number in left)
    for number, part in run(plan.spec, len(left), batches):
        variants = plan.variants_of_batch(number)
        same = len(new[number]) == len(variants)
        yield number, part if same else known.join_rows(plan.spec, variants, part)


def _run_batches(  # noqa: PLR0913 - the batches, and the workers
    spec: SweepSpec,
    count: int,
    batches: Iterator[workers.Batch],
    *,
    processes: int | None,
    dask: str | None,
    executor: Executor | None,
) -> Iterator[tuple[int, BatchResult]]:
    """Yield the parts of ``count`` batches as workers finish them."""
    if not count:
        return
    if dask is not None:
        with workers.dask_workers(dask) as remote:
            yield from workers.run_in_executor(remote, spec, batches)
        return
    if executor is not None:
        yield from workers.run_in_executor(executor, spec, batches)
        return
    processes = min(processes or workers.count_available_cores(), count)
    if processes == 1:
        yield from workers.run_locally(spec, batches)
        return
    preload = [REGISTRY[name].module for name in spec.engines or ()]
    with workers.local_processes(processes, preload) as local:
        ahead = workers.BATCHES_PER_WORKER * processes
        yield from workers.run_in_executor(local, spec, batches, ahead)
