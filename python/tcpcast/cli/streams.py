"""Replacements of standard output and standard error, which may be closed, full or broken pipes.

:func:`replace_standard_streams` replaces both streams while a command runs. The replacements escape
control characters in all texts, so that no name or value can control the terminal: see
:mod:`tcpcast.process.sanitize`. Texts with colours are written to the underlying stream ``styled``.
"""

from __future__ import annotations

import errno
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO, cast

from tcpcast.process.sanitize import escape_control_characters

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcpcast.process.errors import TcpcastError


class ErrorRecordingStream:
    """A stream that stores the ``error`` of a failed write.

    With ``ignores_errors``, the stream drops all output after an error, so that a command still
    writes its files after a broken pipe. Otherwise, the stream raises the error.
    """

    def __init__(self, under: TextIO, *, ignores_errors: bool = False) -> None:
        self.under = under
        self.ignores_errors = ignores_errors
        self.error: OSError | None = None

    def write(self, text: str) -> int:
        """Write text unchanged."""
        if self.error is None or not self.ignores_errors:
            try:
                self.under.write(text)
            except OSError as error:
                self._record_error(error)
        return len(text)

    def flush(self) -> None:
        """Flush the stream below."""
        if self.error is None or not self.ignores_errors:
            try:
                self.under.flush()
            except OSError as error:
                self._record_error(error)

    def _record_error(self, error: OSError) -> None:
        self.error = error
        if not self.ignores_errors:
            raise error

    def __getattr__(self, name: str) -> Any:
        return getattr(self.under, name)


class EscapingStream:
    """The stream for ``print``, which escapes control characters and writes to ``styled``."""

    def __init__(self, styled: ErrorRecordingStream) -> None:
        self.styled = styled

    def write(self, text: str) -> int:
        """Write text with control characters escaped."""
        return self.styled.write(escape_control_characters(text))

    def writelines(self, lines: list[str]) -> None:
        """Write several lines."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Flush the stream below."""
        self.styled.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.styled, name)


class FailingClosedStream:
    """A stream that was closed before the command began (``>&-``)."""

    encoding = "utf-8"
    errors = "replace"

    def write(self, _text: str) -> int:
        """Raise OSError."""
        raise OSError(errno.EBADF, "it is closed")

    def flush(self) -> None:
        """Do nothing."""

    def isatty(self) -> bool:
        """Return False."""
        return False

    def fileno(self) -> int:
        """Raise OSError."""
        raise OSError(errno.EBADF, "it is closed")


class Message(NamedTuple):
    """A message of a command: the key or option of an error ("" without one), and the text."""

    key: str
    text: str
    is_error: bool = False


collected: list[Message] | None = None
"""Messages of the command in this process, if it is a worker: front ends read data, no text."""


def print_message(message: object) -> None:
    """Print a message of the program to standard error."""
    collect_message(Message("", str(message)))
    print(f"tcpcast: {message}", file=sys.stderr)


def print_error(error: TcpcastError) -> None:
    """Print an error to standard error, one line per error of a scenario."""
    lines = error.lines()
    for key, text in lines:
        collect_message(Message(key, text, is_error=True))
    print("tcpcast:", "\n  ".join(text for _, text in lines), file=sys.stderr)


def collect_message(message: Message) -> None:
    """Add a message to those of the worker."""
    if collected is not None:
        collected.append(message)


def ignore_broken_pipe() -> None:
    """Ignore errors of standard output, because the command must still write files."""
    if isinstance(sys.stdout, EscapingStream):
        sys.stdout.styled.ignores_errors = True


@contextmanager
def replace_standard_streams() -> Iterator[ErrorRecordingStream]:
    """Replace standard output and standard error, and yield the new standard output."""
    before = sys.stdout, sys.stderr
    # Occupy the file descriptors of closed streams, so that no opened file gets their number.
    for number, stream in enumerate((sys.stdin, sys.stdout, sys.stderr)):
        if stream is None:
            try:
                os.fstat(number)
            except OSError:
                os.open(os.devnull, os.O_RDONLY)
    out = ErrorRecordingStream(_open_stream(sys.stdout))
    sys.stdout = cast("TextIO", EscapingStream(out))
    # Messages that cannot be printed must not prevent the answer.
    sys.stderr = cast(
        "TextIO",
        EscapingStream(ErrorRecordingStream(_open_stream(sys.stderr), ignores_errors=True)),
    )
    try:
        yield out
    finally:
        sys.stdout, sys.stderr = before


def _open_stream(stream: TextIO | None) -> TextIO:
    if stream is None:
        return cast("TextIO", FailingClosedStream())
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="replace")  # for encodings without characters such as ±
    return stream


def redirect_to_null_device(stream: ErrorRecordingStream) -> None:
    """Redirect a stream to the null device, so that the flush at exit does not fail again."""
    try:
        number = stream.fileno()
    except (OSError, ValueError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)
