"""Starts the process of an emulated link, and ensures that it ends.

The process of the link has separate namespaces and ends when its pipe closes; the kernel closes the
pipe if this process is killed. The first child of the process is init of the PID namespace, so all
other processes in the namespace end with it.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from tcpcast.emulation.link_outcome import LinkOutcome
from tcpcast.process.errors import MachineError, WorkerDied

_PROCESS_MODULE = "tcpcast.emulation.link_process"
_PROGRAM_SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGQUIT") if hasattr(signal, name)
]
"""Signals of the terminal that only the programs at the link handle, so that the link can report
its counters after they end."""


def run_link(link: Mapping[str, Any]) -> LinkOutcome:
    """Run programs over a link until the near program ends.

    Parameters
    ----------
    link
        Argument of ``_native.run_link``: ``config`` (the simulator's configuration),
        ``server``, ``near``, ``far``, ``device``, ``nat``, ``mtu``, ``capture``, ``most_bytes``.

    Raises
    ------
    MachineError
        The system is not Linux, namespaces are not available, or a program does not exist.
    WorkerDied
        The process was killed.
    """
    if sys.platform != "linux":
        raise MachineError("an emulated link requires Linux; use the packet engine on this system")
    with _ignore_terminal_signals():
        messages, status = _run_request(pickle.dumps(dict(link)))
    if "fault" in messages:
        raise MachineError(messages["fault"])
    if "way" not in messages:
        raise WorkerDied(f"the link's process ended without a result (status {status})")
    return LinkOutcome.from_lines(messages)


def _run_request(pickled_request: bytes) -> tuple[dict[str, str], int]:
    """Start the process with a request, and return its messages and exit status."""
    foreground = _get_own_foreground_group()
    try:
        with start_link(pickled_request) as (lines, process):
            messages = dict(lines)
            return messages, process.wait()
    finally:
        _restore_foreground_group(foreground)


@contextmanager
def start_link(
    pickled_request: bytes,
) -> Iterator[tuple[Iterator[tuple[str, str]], subprocess.Popen[bytes]]]:
    """Start a link's process with a request, and yield its messages and the process.

    When the context is left, the process is terminated if it is still running.
    """
    request, lifeline, result = os.pipe(), os.pipe(), os.pipe()
    ends = (request[0], lifeline[0], result[1])
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", _PROCESS_MODULE, *map(str, ends)], pass_fds=ends
        )
    except OSError:
        for pipe in (request, lifeline, result):
            for end in pipe:
                os.close(end)
        raise
    for end in ends:
        os.close(end)
    try:
        with suppress(BrokenPipeError), open(request[1], "wb") as file:
            file.write(pickled_request)
        with open(result[0], encoding="utf-8", errors="replace") as file:
            yield map(_split_key_and_value, file), process
    finally:
        os.close(lifeline[1])
        process.wait()


def _split_key_and_value(line: str) -> tuple[str, str]:
    key, _, value = line.rstrip("\n").partition(" ")
    return key, value


@contextmanager
def _ignore_terminal_signals() -> Iterator[None]:
    """Ignore the terminal's signals in this process, so that only the programs handle them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # A handler function instead of SIG_IGN, because programs would inherit SIG_IGN.
    before = {number: signal.signal(number, lambda *_: None) for number in _PROGRAM_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _get_own_foreground_group() -> int | None:
    """Return our process group if it is in the foreground of the terminal, otherwise None."""
    try:
        return os.getpgrp() if os.tcgetpgrp(0) == os.getpgrp() else None
    except OSError:
        return None


def _restore_foreground_group(group: int | None) -> None:
    """Take the terminal back from a shell, which cannot return it across PID namespaces."""
    if group is None:
        return
    before = signal.getsignal(signal.SIGTTOU)
    with suppress(OSError, ValueError):
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        os.tcsetpgrp(0, group)
    with suppress(ValueError):
        signal.signal(signal.SIGTTOU, before)
