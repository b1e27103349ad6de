"""Runs a command line in a worker process, for the page and for agents.

:func:`run_in_worker` starts a command in a pool of processes, which it can kill. In the process,
:func:`run_words` reads files only below one folder, writes no files, and limits memory and time. At
the time limit, the command is interrupted, so that it returns the finished results.
"""

# ruff: noqa: PLC0415 - the time limit includes imports
from __future__ import annotations

import _thread
import io
import os
import signal
import sys
import threading
import time
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tcpcast.cli import progress, reports, streams
from tcpcast.process import protected_inputs
from tcpcast.process.errors import TcpcastError, WorkerDied, speaking

if sys.platform != "win32":
    import resource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tcpcast.cli.streams import Message
    from tcpcast.process.errors import Words
    from tcpcast.report.document import Document

GRACE_S = 10.0
"""Time in seconds after the time limit for a command to return its finished results."""
MAX_DATA_BYTES = 2 * 2**30
"""Memory limit of a command in bytes, besides the memory that its process already has."""


class Result(NamedTuple):
    """The exit code of a command, its output and messages, and the reports that it would write."""

    code: int
    output: str
    messages: list[Message]
    documents: list[Document]


class TimeLimitExceeded(TcpcastError):  # noqa: N818 - the request is valid
    """A command did not end after its time limit."""


async def run_in_worker(function: Callable[..., Any], *arguments: Any, limit_s: float) -> Any:
    """Return the result of a function in a worker process, which is killed if it is cancelled.

    Parameters
    ----------
    function, arguments
        The function, which calls :func:`run_words`, and its arguments.
    limit_s
        Its time limit; the process is killed :data:`GRACE_S` later.

    Raises
    ------
    TimeLimitExceeded
        The function did not end in time.
    WorkerDied
        The process ended without a result, or the function raised another error than a
        TcpcastError.
    """
    from anyio import BrokenWorkerProcess, CancelScope, CapacityLimiter, fail_after, to_process

    limiter = CapacityLimiter(1)
    try:
        # anyio would leave a process behind if its start is cancelled.
        with CancelScope(shield=True), _new_processes_ignore_interrupts():
            await to_process.run_sync(_ignore_interrupts, limiter=limiter)
        with fail_after(limit_s + GRACE_S):
            return await to_process.run_sync(
                function, *arguments, cancellable=True, limiter=limiter
            )
    except TimeoutError:
        raise TimeLimitExceeded(f"no answer after {limit_s:g} s") from None
    except BrokenWorkerProcess:
        raise WorkerDied("the calculation ended without an answer") from None
    except Exception as error:
        if isinstance(error, TcpcastError):
            raise
        raise WorkerDied(f"internal error of tcpcast: {error!r}") from error


@contextmanager
def _new_processes_ignore_interrupts() -> Iterator[None]:
    """Block Ctrl-C, which new processes inherit; this process receives it afterwards."""
    if sys.platform == "win32":
        yield
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _ignore_interrupts() -> None:
    """Leave Ctrl-C, which the terminal sends to all processes, to the server, which ends this one.

    Otherwise the server would raise the interrupt of this process as an error of its request.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def run_words(  # noqa: PLR0913 - limits by name
    words: Sequence[str],
    *,
    folder: str | None,
    refusal: str,
    limit_s: float,
    speech: Words,
    text: str = "",
    on_progress: Callable[[float], None] | None = None,
) -> Result:
    """Run a command line in this process, which afterwards remains restricted.

    Parameters
    ----------
    words
        Words of the command line, without the name of the program.
    folder
        Folder below which files may be read; None for no files.
    refusal
        Reason and advice in the error for another file.
    limit_s
        Time in seconds after which the command is interrupted.
    speech
        Words of the front end in messages and in the result.
    text
        Text of standard input.
    on_progress
        Called with the finished share.

    Raises
    ------
    TcpcastError
        The memory limit was exceeded, or the folder does not exist.
    """
    # End this process if its server ends in any way, also during a calculation.
    if not _watch:
        _watch.append(threading.Thread(target=_wait_for_parent, args=(os.getppid(),), daemon=True))
        _watch[0].start()
    _restrict_files_and_memory(folder, refusal)
    alarm = threading.Timer(limit_s, _thread.interrupt_main, (signal.SIGTERM,))
    alarm.daemon = True
    alarm.start()
    from tcpcast.cli import main

    out, err = io.StringIO(), io.StringIO()
    sys.stdin = io.StringIO(text)
    progress.listener, reports.documents, streams.collected = on_progress, [], []
    try:
        with redirect_stdout(out), redirect_stderr(err), speaking(speech):
            code = main(list(words))
    except MemoryError:
        raise TcpcastError("out of memory; use a smaller scenario or capture") from None
    finally:
        alarm.cancel()
    return Result(code, out.getvalue(), streams.collected, reports.documents)


def _restrict_files_and_memory(folder: str | None, refusal: str) -> None:
    from tcpcast.scenario.loading import PACKAGED

    try:
        os.chdir(folder or PACKAGED)
    except OSError as error:
        raise TcpcastError(f"{folder}: {error.strerror}; start the server again") from None
    protected_inputs.restrict_process(PACKAGED, *filter(None, [folder]), refusal=refusal)
    if sys.platform != "win32":
        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        allowed = _data_bytes() + MAX_DATA_BYTES
        allowed = allowed if most == resource.RLIM_INFINITY else min(most, allowed)
        resource.setrlimit(resource.RLIMIT_DATA, (allowed, most))


def _data_bytes() -> int:
    """Return the memory of this process that counts towards the limit; 0 if it is unknown."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    except OSError:
        return 0


_watch: list[threading.Thread] = []


def _wait_for_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(0)


def file_name(name: str) -> str:
    """Return the name of an uploaded file without folders and control characters."""
    shown = "".join(each for each in Path(name.replace("\\", "/")).name if each.isprintable())
    return shown.lstrip("-.").encode(errors="replace")[-200:].decode(errors="ignore") or "capture"
