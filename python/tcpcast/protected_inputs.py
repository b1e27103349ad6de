"""Input files of a command, which no output may overwrite, not even with ``--force``.

Files are compared by device and inode, so another name or a link of the same file counts.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    Name = str | os.PathLike[str] | int

_remembered: ContextVar[set[tuple[int, int]] | None] = ContextVar("_remembered", default=None)
"""Device and inode of each file; None in a script, which may overwrite its own files."""


@contextmanager
def input_protection_scope() -> Iterator[None]:
    """Protect each file passed to :func:`protect_inputs` until the end of the ``with`` block."""
    token = _remembered.set(set())
    try:
        yield
    finally:
        _remembered.reset(token)


def protect_inputs(*files: Name) -> None:
    """Protect input files of the current command, by name or descriptor, as far as they exist."""
    remembered = _remembered.get()
    if remembered is not None:
        for file in files:
            with suppress(OSError, ValueError):
                remembered.add(_file_identity(file))


def is_protected_input(file: Name) -> bool:
    """Return True if a file, or the target of a link, is an input of the current command."""
    with suppress(OSError, ValueError):
        return _file_identity(file) in (_remembered.get() or ())
    return False


def _file_identity(file: Name) -> tuple[int, int]:
    status = os.stat(file)
    return status.st_dev, status.st_ino
