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

PRELOAD = "tcpcast.preload"
"""Module with the imports of every worker."""


_SAFE_PATH = "PYTHONSAFEPATH"


@contextmanager
def use_safe_import_path() -> Iterator[None]:
    """Start interpreters that import nothing from the current directory, as ``python -P`` does.

    ``multiprocessing`` starts ``python -c ...`` without a parameter for options, so the environment
    variable is set during the ``with`` block.
    """
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = before or "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before


def get_start_context(preload: Sequence[str] = ()) -> Any:
    """Return the start context of processes; on Linux a forkserver with preloaded modules."""
    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    result = multiprocessing.get_context("forkserver")
    result.set_forkserver_preload([PRELOAD, *preload])
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
        with use_safe_import_path():
            forkserver.ensure_running()
    finally:
        signal.signal(signal.SIGINT, before)
