"""Sweeps: run a scenario over a grid of values with several engines, into one table.

``axes.py`` reads ranges and lists, ``grid.py`` numbers their combinations. ``prepared.py`` checks
them against the scenario and holds a checked sweep.
``worker.py`` runs a batch of cells in any process, and ``processes.py`` starts workers.
``database.py`` stores the answers, ``table.py`` converts them to a table, and ``results.py`` holds
the results.
"""

from __future__ import annotations

import math
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpcast.engines import REGISTRY, may_simulate
from tcpcast.process import forkserver
from tcpcast.process.errors import DomainError, MachineError, TcpcastError
from tcpcast.sweeps import processes as workers
from tcpcast.sweeps.database import open_database, write_results
from tcpcast.sweeps.prepared import prepare_sweep
from tcpcast.sweeps.table import import_sweep_packages

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
    from concurrent.futures import Executor
    from os import PathLike

    from tcpcast.scenario import Scenario
    from tcpcast.sweeps.prepared import PreparedSweep
    from tcpcast.sweeps.results import SweepResults
    from tcpcast.sweeps.worker import CellRun, SweepSpec

FORMULA_BATCHES, MIN_FORMULA_CELLS, MAX_FORMULA_CELLS = 64, 500, 5000
"""Approximate number of batches for formulas, and minimum and maximum cells per batch."""

MAX_SIMULATED_BATCHES = 1000
"""Maximum number of batches for simulations; with fewer cells, each batch has one cell."""


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
        Folder for the results; None keeps them in memory. Existing answers in the folder to equal
        cells are reused.
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
        The folder contains other files, or another sweep is writing into it.
    MachineError
        pyarrow is not installed, the folder cannot be written, or a worker ended.

    Examples
    --------
    >>> results = sweep("lossy-path", {"network.rtt": "10ms..160ms log 5"}, engines="pftk")
    >>> results.to_arrow()["network.rtt"].to_pylist()
    [0.01, 0.02, 0.04, 0.08, 0.16]
    """
    if sum(each is not None for each in (processes, dask, executor)) > 1:
        raise TcpcastError("processes, dask and executor are mutually exclusive; use one")
    if processes is not None and (type(processes) is not int or processes < 1):
        raise DomainError(
            f"processes: {processes!r} is not a number of processes; use 1 or more, or remove "
            "it for one per core"
        )
    if (dask, executor) == (None, None) and processes != 1 and may_simulate(engines):
        forkserver.start_forkserver()
    import_sweep_packages("pyarrow", "pyarrow.parquet")
    prepared = prepare_sweep(scenario, vary, engines=engines, replications=replications, feed=feed)
    folder = None if out is None else Path(out)
    progress = progress or (lambda _share: None)
    done = 0
    try:
        with open_database(prepared, folder) as database:

            def select(number: int) -> CellRun:
                return database.select_missing(prepared.run(number))

            missing = [number for number in range(prepared.runs) if select(number).keys]
            done = prepared.runs - len(missing)
            size = _choose_batch_size(len(missing), prepared)
            starts = range(0, len(missing), size)
            batches = (tuple(map(select, missing[at : at + size])) for at in starts)
            spec = prepared.spec()
            progress(done / prepared.runs)
            with (
                suppress(KeyboardInterrupt),  # the finished runs are the result
                closing(
                    _run_batches(
                        spec, len(starts), batches, executor, processes=processes, dask=dask
                    )
                ) as answered,
            ):
                for batch, answers in answered:
                    database.write(answers)
                    done += len(batch)
                    progress(done / prepared.runs)
            results = database.read_results(prepared, folder)
            if folder is not None:
                write_results(results, folder)
    except MachineError as error:
        if folder is None or not done:
            raise
        text = f"{done} of {prepared.runs} runs are complete in {folder}; run the sweep again to"
        raise MachineError(f"{error}; {text} continue") from error
    return results


def _choose_batch_size(runs: int, prepared: PreparedSweep) -> int:
    """Return the number of runs per batch."""
    if prepared.has_only_formulas:
        size = math.ceil(runs / FORMULA_BATCHES)
        return min(max(size, MIN_FORMULA_CELLS), MAX_FORMULA_CELLS)
    return max(1, math.ceil(runs / MAX_SIMULATED_BATCHES))


def _run_batches(  # noqa: PLR0913 - the batches, and the workers
    spec: SweepSpec,
    count: int,
    batches: Iterator[workers.Batch],
    executor: Executor | None,
    *,
    processes: int | None,
    dask: str | None,
) -> Generator[workers.AnsweredBatch]:
    """Yield the answers of ``count`` batches as workers finish them."""
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
