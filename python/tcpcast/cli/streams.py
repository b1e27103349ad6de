"""Standard output and standard error: what may be closed, full or left by its reader.

While a command runs, both are replaced (:func:`own_streams`). All words pass through them, so
that no name and no value acts on the terminal: see :mod:`tcpcast.sanitize`. Colours, which
are escapes of ours, go to the ``styled`` stream below.
"""

from __future__ import annotations

import errno
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO, cast

from tcpcast.sanitize import escape_control_characters

if TYPE_CHECKING:
    from collections.abc import Iterator


class Stream:
    """A stream that remembers its ``fault``.

    One that ``goes_on`` takes what follows and drops it, so that a command whose reader has left
    still writes its files; any other raises the fault.
    """

    def __init__(self, under: TextIO, *, goes_on: bool = False) -> None:
        self.under = under
        self.goes_on = goes_on
        self.fault: OSError | None = None

    def write(self, text: str) -> int:
        """Write text as it is."""
        if self.fault is None or not self.goes_on:
            try:
                self.under.write(text)
            except OSError as fault:
                self._failed(fault)
        return len(text)

    def flush(self) -> None:
        """Write what waits in buffers."""
        if self.fault is None or not self.goes_on:
            try:
                self.under.flush()
            except OSError as fault:
                self._failed(fault)

    def _failed(self, fault: OSError) -> None:
        self.fault = fault
        if not self.goes_on:
            raise fault

    def __getattr__(self, name: str) -> Any:
        return getattr(self.under, name)


class TextStream:
    """What ``print`` writes to: text with nothing hidden in it, passed on to ``styled``."""

    def __init__(self, styled: Stream) -> None:
        self.styled = styled

    def write(self, text: str) -> int:
        """Write text with what would not be shown written out."""
        return self.styled.write(escape_control_characters(text))

    def writelines(self, lines: list[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Write what waits in buffers."""
        self.styled.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.styled, name)


class Closed:
    """A stream that was closed before the command began (``>&-``)."""

    encoding = "utf-8"
    errors = "replace"

    def write(self, _text: str) -> int:
        """Refuse."""
        raise OSError(errno.EBADF, "it is closed")

    def flush(self) -> None:
        """Do nothing: nothing waits."""

    def isatty(self) -> bool:
        """Return False."""
        return False

    def fileno(self) -> int:
        """Refuse."""
        raise OSError(errno.EBADF, "it is closed")


def ignore_broken_pipe() -> None:
    """Go on where standard output fails, for there are files still to be written."""
    if isinstance(sys.stdout, TextStream):
        sys.stdout.styled.goes_on = True


@contextmanager
def own_streams() -> Iterator[Stream]:
    """Put streams of our own in the place of standard output and error, and yield the former's."""
    before = sys.stdout, sys.stderr
    _hold_descriptors()
    out = Stream(_open(sys.stdout))
    sys.stdout = cast("TextIO", TextStream(out))
    # TextStream that cannot be told are no reason to give no answer.
    sys.stderr = cast("TextIO", TextStream(Stream(_open(sys.stderr), goes_on=True)))
    try:
        yield out
    finally:
        sys.stdout, sys.stderr = before


def _open(stream: TextIO | None) -> TextIO:
    if stream is None:
        return cast("TextIO", Closed())
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="replace")  # a terminal without ± is no reason to fail
    return stream


def _hold_descriptors() -> None:
    """Take the places of closed streams, so that no file that is opened gets what is printed."""
    for number, stream in enumerate((sys.stdin, sys.stdout, sys.stderr)):
        if stream is None:
            try:
                os.fstat(number)
            except OSError:
                os.open(os.devnull, os.O_RDONLY)


def abandon(stream: Stream) -> None:
    """Point a stream nowhere, so that the flush at exit does not complain of the same fault."""
    try:
        number = stream.fileno()
    except (OSError, ValueError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)
