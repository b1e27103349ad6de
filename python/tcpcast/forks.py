"""The process that workers are forked from: it imports what they need while this one plans."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import threading
from multiprocessing import forkserver
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

SIMULATING = (
    "tcpcast.sweeps.warm",
    "tcpcast.sweeps.work",
    "tcpcast.engines.packet",
    "pyarrow.parquet",
)
"""What a worker of a sweep needs that simulates packets."""


def context(preload: Sequence[str] = SIMULATING) -> Any:
    """Return the context in which processes are started, those on Linux with ``preload``."""
    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload(list(preload))
    return found


def begin(preload: Sequence[str] = SIMULATING) -> None:
    """Have the process begin with its imports before it is asked for workers.

    Nothing is lost if it never is: it ends with this process. Elsewhere than on Linux, and in
    other threads than the main one, it is left to the first worker.
    """
    if sys.platform != "linux" or threading.current_thread() is not threading.main_thread():
        return
    context(preload)
    # Ctrl-C is this process's, who says when to stop; from a fork on the workers ignore it, too.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        forkserver.ensure_running()
    finally:
        signal.signal(signal.SIGINT, before)
