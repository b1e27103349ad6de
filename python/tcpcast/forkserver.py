"""The process that workers are forked from: it imports what they need while this one plans."""

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

WARM = "tcpcast.preload"
"""What every worker needs."""


_SAFE_PATH = "PYTHONSAFEPATH"


@contextmanager
def safe_path() -> Iterator[None]:
    """Start interpreters that import nothing from the current folder, as ``python -P`` does.

    ``multiprocessing`` starts ``python -c ...`` and takes no options for it, so the environment
    holds the option during the ``with`` block.
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


def context(preload: Sequence[str] = ()) -> Any:
    """Return the context in which processes are started, those on Linux warm and with more."""
    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload([WARM, *preload])
    return found


def begin() -> None:
    """Have the process begin with its imports before it is asked for workers.

    Nothing is lost if it never is: it ends with this process. Elsewhere than on Linux, in other
    threads than the main one, and on a single core, it is left to the first worker.
    """
    if sys.platform != "linux" or threading.current_thread() is not threading.main_thread():
        return
    if len(os.sched_getaffinity(0)) == 1:
        return
    context()
    # Ctrl-C is this process's, who says when to stop; from a fork on the workers ignore it, too.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with safe_path():
            forkserver.ensure_running()
    finally:
        signal.signal(signal.SIGINT, before)
