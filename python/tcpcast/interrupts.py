"""Ctrl-C and SIGTERM: both end a command with what is finished.

A handler raises KeyboardInterrupt wherever the command is. Amid an import that may come out as
another exception, or be dropped by a callback of the import; so it is remembered, and raised once
more before what takes long.
"""

# Nothing is imported that takes a moment: until this is, Ctrl-C finds the command unready.
from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn, Self

INTERRUPTED = 130
TOO_EARLY = "tcpcast: interrupted before there was an answer"

_NUMBERS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """Have Ctrl-C and SIGTERM raise KeyboardInterrupt within a ``with`` block.

    What the caller ignores stays ignored. ``seen`` says whether one came.
    """

    _current: Interrupts | None = None

    def __init__(self) -> None:
        self.seen = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        import threading  # noqa: PLC0415 - see above

        if threading.current_thread() is not threading.main_thread():
            return self
        sys.unraisablehook = self._dropped
        Interrupts._current = self
        for number in _NUMBERS:
            handler = signal.getsignal(number)
            if handler != signal.SIG_IGN:
                self._before[number] = handler
                signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        sys.unraisablehook = sys.__unraisablehook__
        Interrupts._current = None

    def _handle(self, *_: object) -> NoReturn:
        self.seen = True
        raise KeyboardInterrupt

    def _dropped(self, unraisable: Any) -> None:
        """Leave at once where a KeyboardInterrupt is about to be dropped."""
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            _leave()
        sys.__unraisablehook__(unraisable)


def raise_what_was_dropped() -> None:
    """Raise KeyboardInterrupt if Ctrl-C or SIGTERM came and what was imported has swallowed it.

    Called before what takes long, where nothing was asked to end.
    """
    if Interrupts._current is not None and Interrupts._current.seen:
        raise KeyboardInterrupt


def leave_early() -> None:
    """Have Ctrl-C and SIGTERM end the process, until :class:`Interrupts` takes them over."""
    for number in _NUMBERS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _leave)


def ignore() -> None:
    """Have neither disturb the end of a process that has told its answer."""
    for number in _NUMBERS:
        signal.signal(number, signal.SIG_IGN)


def _leave(*_: object) -> NoReturn:
    """Say that it was too early, and end the process as it stands."""
    try:  # noqa: SIM105 - contextlib takes a moment
        os.write(2, f"{TOO_EARLY}\n".encode())
    except OSError:  # closed
        pass
    os._exit(INTERRUPTED)
