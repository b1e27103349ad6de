"""Run batches in this process, in several local processes, or in any executor."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import threading
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import connection
from typing import TYPE_CHECKING, Any

from tcpcast.process import forkserver
from tcpcast.process.errors import MachineError, TcpcastError
from tcpcast.sweeps.table import import_sweep_packages
from tcpcast.sweeps.worker import CellRun, StoredAnswer, SweepSpec, answer_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from multiprocessing.synchronize import Event

Batch = tuple[CellRun, ...]
AnsweredBatch = tuple[Batch, list[StoredAnswer]]
BATCHES_PER_WORKER = 3
"""Number of outstanding batches per worker, so that workers never wait."""

_DEFAULT_OUTSTANDING_BATCHES = 64
"""Number of outstanding batches if the number of an executor's workers is unknown."""

_WORKER_ENDED_TEXT = (
    "a worker process ended during its batch, because it was killed or ran out of memory, or "
    "because a script calls a sweep without `if __name__ == '__main__':`"
)

_stop_event: Event | None = None


def run_locally(spec: SweepSpec, batches: Iterable[Batch]) -> Iterator[AnsweredBatch]:
    """Run batches sequentially in this process."""
    for batch in batches:
        yield batch, answer_batch(spec, batch)


def run_in_executor(
    executor: Executor,
    spec: SweepSpec,
    batches: Iterable[Batch],
    ahead: int = _DEFAULT_OUTSTANDING_BATCHES,
) -> Iterator[AnsweredBatch]:
    """Run batches in an executor, and yield their answers as they finish.

    Raises
    ------
    MachineError
        A worker ended or failed.
    """
    waiting = iter(batches)
    pending: dict[Future[list[StoredAnswer]], Batch] = {}
    try:
        while True:
            for batch in itertools.islice(waiting, ahead - len(pending)):
                pending[_submit_batch(executor, spec, batch)] = batch
            if not pending:
                return
            done, _ = wait(pending, return_when=FIRST_COMPLETED)
            for future in done:
                yield pending.pop(future), _get_result(future)
    finally:
        for future in pending:
            future.cancel()


def _submit_batch(executor: Executor, spec: SweepSpec, batch: Batch) -> Future[list[StoredAnswer]]:
    """Submit a batch; the first calls start threads and processes."""
    local = isinstance(executor, ProcessPoolExecutor)
    try:
        return executor.submit(_answer_batch_in_worker if local else answer_batch, spec, batch)
    except BrokenProcessPool:
        raise MachineError(_WORKER_ENDED_TEXT) from None
    except (RuntimeError, MemoryError, OSError, EOFError) as error:
        raise MachineError(_cannot_start_error(error)) from error


def _cannot_start_error(error: Exception) -> str:
    return (
        f"cannot start worker processes: {str(error) or type(error).__name__}; raise the memory "
        "and process limits (ulimit -v, ulimit -u), or use fewer processes"
    )


def _get_result(future: Future[list[StoredAnswer]]) -> list[StoredAnswer]:
    try:
        return future.result()
    except TcpcastError:
        raise
    except BrokenProcessPool:
        raise MachineError(_WORKER_ENDED_TEXT) from None
    except Exception as error:
        raise MachineError(f"a worker failed: {type(error).__name__}: {error}") from error


@contextmanager
def local_processes(count: int, preload: Sequence[str]) -> Iterator[Executor]:
    """Yield an executor of local processes, which end when this process ends for any reason."""
    context = forkserver.get_start_context(preload)
    with forkserver.worker_environment():  # processes start when the first batches are submitted
        others = multiprocessing.active_children()
        try:
            stop = context.Event()
            executor = ProcessPoolExecutor(
                count, context, initializer=_init_worker, initargs=(stop,)
            )
        except (RuntimeError, MemoryError, OSError) as error:
            raise MachineError(_cannot_start_error(error)) from error
        try:
            yield executor
        except BaseException:
            stop.set()
            raise
        finally:
            # End an executor, or its processes directly if its thread did not start.
            try:
                executor.shutdown(wait=True, cancel_futures=True)
            except RuntimeError:
                for process in multiprocessing.active_children():
                    if process not in others:
                        process.kill()


class _DaskExecutor(Executor):
    """An executor for the workers of a Dask client.

    ``client.get_executor()`` fails if a worker dies after its task and before the result arrives;
    ``result()`` of Dask's own futures waits until another worker has repeated the task.
    """

    def __init__(self, client: Any) -> None:
        self._client = client

    def submit(self, task: Callable[..., Any], /, *arguments: Any) -> Future[Any]:  # type: ignore[override]
        """Submit a task; its result is copied from Dask's future when it arrives."""
        remote = self._client.submit(task, *arguments, pure=False)
        local: Future[Any] = Future()
        local.set_running_or_notify_cancel()

        def copy_result(done: Any) -> None:
            try:
                local.set_result(done.result())
            except BaseException as error:  # also Dask's cancellations
                local.set_exception(error)

        remote.add_done_callback(copy_result)
        return local


@contextmanager
def dask_workers(address: str) -> Iterator[Executor]:
    """Yield an executor for the workers of a Dask scheduler.

    Raises
    ------
    MachineError
        Dask is not installed, or no scheduler answers at the address.
    """
    (distributed,) = import_sweep_packages("distributed", what="sweeps on Dask")
    try:
        client = distributed.Client(address, timeout="10s", set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise MachineError(
            f"no Dask scheduler responds at {address} ({error}); use its address, such as "
            "tcp://host:8786, and start it with `dask scheduler`"
        ) from error
    with client:
        yield _DaskExecutor(client)


def count_available_cores() -> int:
    """Return the number of cores available to this process."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _init_worker(stop: Event) -> None:
    """Initialise a worker process, which ends with its parent or at the stop event."""
    global _stop_event  # noqa: PLW0603 - an event cannot be passed with a task
    _stop_event = stop
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the parent handles Ctrl-C and sets the stop event
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def _answer_batch_in_worker(spec: SweepSpec, batch: Batch) -> list[StoredAnswer]:
    assert _stop_event is not None
    return answer_batch(spec, batch, _stop_event.is_set)
