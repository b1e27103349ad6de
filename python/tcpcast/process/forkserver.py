"""Forkserver of worker processes, which imports their modules in parallel with this process."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from contextlib import contextmanager
from multiprocessing import forkserver
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_PRELOADED = "tcpcast.sweeps.worker"
"""Module with the imports of every worker."""

_ENVIRONMENT = {
    "PYTHONSAFEPATH": "1",  # imports nothing from the current directory, as python -P
    "OPENBLAS_NUM_THREADS": "1",  # the forkserver has one thread, and each worker one core
    "PYDANTIC_DISABLE_PLUGINS": "__all__",
}


@contextmanager
def worker_environment() -> Iterator[None]:
    """Set environment variables for interpreters that start in the block.

    ``multiprocessing`` starts ``python -c ...`` without a parameter for options.
    """
    added = _ENVIRONMENT.keys() - os.environ.keys()
    os.environ.update({name: _ENVIRONMENT[name] for name in added})
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


def get_start_context(preload: Sequence[str] = ()) -> Any:
    """Return the start context of processes; on Linux a forkserver with preloaded modules."""
    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    result = multiprocessing.get_context("forkserver")
    result.set_forkserver_preload([_PRELOADED, *preload])
    return result


def start_forkserver() -> None:
    """Start the forkserver before workers are needed, so that its imports run in parallel.

    An unused forkserver ends with this process. On systems other than Linux, outside the main
    thread, and on a single core, the first worker starts it instead.
    """
    if sys.platform != "linux" or threading.current_thread() is not threading.main_thread():
        return
    if len(os.sched_getaffinity(0)) == 1:
        return
    get_start_context()
    # Only this process handles Ctrl-C; the forkserver and its workers ignore SIGINT.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with worker_environment():
            forkserver.ensure_running()
    finally:
        signal.signal(signal.SIGINT, before)
