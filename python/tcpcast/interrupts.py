"""Ctrl-C and SIGTERM: both end a command with what is finished.

A handler raises KeyboardInterrupt wherever the command is. Where it is amid an import, that may
come out as another exception, or be dropped by a callback of the import; so it is remembered.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

INTERRUPTED = 130
TOO_EARLY = "tcpcast: interrupted before there was an answer"

_DEFAULTS = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}


class Interrupts:
    """Whether one was ``seen``."""

    def __init__(self) -> None:
        self.seen = False

    def handle(self, _number: int, _frame: FrameType | None) -> NoReturn:
        """Remember it, and stop whatever runs."""
        self.seen = True
        raise KeyboardInterrupt

    def dropped(self, unraisable: Any) -> None:
        """Leave at once where a KeyboardInterrupt is about to be dropped."""
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            leave(signal.SIGINT, None)
        sys.__unraisablehook__(unraisable)


@contextmanager
def interrupts() -> Iterator[Interrupts]:
    """Have Ctrl-C and SIGTERM raise KeyboardInterrupt, unless the caller has them ignored."""
    found = Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield found
        return
    before = {number: signal.getsignal(number) for number in _DEFAULTS}
    hook = sys.unraisablehook
    for number, handler in before.items():
        if handler in (_DEFAULTS[number], leave):
            signal.signal(number, found.handle)
    sys.unraisablehook = found.dropped
    try:
        yield found
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)


def leave(_number: int, _frame: FrameType | None) -> NoReturn:
    """Say that it was too early, and end the process as it stands."""
    with suppress(OSError):  # closed
        os.write(2, f"{TOO_EARLY}\n".encode())
    os._exit(INTERRUPTED)


def leave_early() -> None:
    """Have Ctrl-C and SIGTERM end the process, until :func:`interrupts` takes them over."""
    for number, default in _DEFAULTS.items():
        if signal.getsignal(number) == default:
            signal.signal(number, leave)


def ignore() -> None:
    """Have neither disturb the end of a process that has told its answer."""
    for number in _DEFAULTS:
        signal.signal(number, signal.SIG_IGN)
