"""Handling of Ctrl-C and SIGTERM, which end a command with the finished results.

A handler raises KeyboardInterrupt at any point of the command. During an import, the exception may
be converted or dropped by a callback. Therefore the handler also records the signal, and the
exception is raised again before a long computation.
"""

# Only fast imports here: until this module is loaded, Ctrl-C is not handled.
from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn, Self

INTERRUPTED_EXIT_CODE = 130
NO_ANSWER_TEXT = "tcpcast: interrupted before there was an answer"

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """Raise KeyboardInterrupt on Ctrl-C and SIGTERM within a ``with`` block.

    Signals that were ignored before stay ignored. ``seen`` is True after a signal.
    """

    _current: Interrupts | None = None

    def __init__(self) -> None:
        self.seen = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        import threading  # noqa: PLC0415 - see above

        if threading.current_thread() is not threading.main_thread():
            return self
        sys.unraisablehook = self._exit_if_interrupt_is_dropped
        Interrupts._current = self
        for number in _SIGNALS:
            handler = signal.getsignal(number)
            if handler != signal.SIG_IGN:
                self._before[number] = handler
                signal.signal(number, self._record_and_raise)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        sys.unraisablehook = sys.__unraisablehook__
        Interrupts._current = None

    def _record_and_raise(self, *_: object) -> NoReturn:
        self.seen = True
        raise KeyboardInterrupt

    def _exit_if_interrupt_is_dropped(self, unraisable: Any) -> None:
        """Exit immediately if a KeyboardInterrupt is about to be dropped."""
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            _print_and_exit()
        sys.__unraisablehook__(unraisable)


def raise_dropped_interrupt() -> None:
    """Raise KeyboardInterrupt if an import dropped the exception of Ctrl-C or SIGTERM.

    Called before a long computation.
    """
    if Interrupts._current is not None and Interrupts._current.seen:
        raise KeyboardInterrupt


def exit_on_interrupt() -> None:
    """End the process on Ctrl-C and SIGTERM, until :class:`Interrupts` handles them."""
    for number in _SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _print_and_exit)


def ignore_interrupts() -> None:
    """Ignore Ctrl-C and SIGTERM while a process exits after its output."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _print_and_exit(*_: object) -> NoReturn:
    """Print a message and end the process without cleanup."""
    try:  # noqa: SIM105 - contextlib is a slow import
        os.write(2, f"{NO_ANSWER_TEXT}\n".encode())
    except OSError:  # standard error is closed
        pass
    os._exit(INTERRUPTED_EXIT_CODE)
