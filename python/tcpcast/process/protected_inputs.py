"""Input files of a command, which no output may overwrite, not even with ``--force``.

Files are compared by device and inode, so other names of a file and links are also protected.

A process that handles requests of other programs (``tcpcast mcp``) calls :func:`restrict_process`.
It can then read only below some folders, and write no files.
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING

from tcpcast.process.errors import TcpcastError

if TYPE_CHECKING:
    from collections.abc import Iterator

    Name = str | os.PathLike[str] | int

_remembered: ContextVar[set[tuple[int, int]] | None] = ContextVar("_remembered", default=None)
"""Device and inode of each protected file; None in a script, which may overwrite its inputs."""
_readable: tuple[str, ...] | None = None
"""Folders below which this process may read, without symbolic links; None: everywhere."""
_refusal = ""
"""Reason and advice in the error for a file outside the folders."""


def restrict_process(*folders: str | os.PathLike[str], refusal: str) -> None:
    """Restrict this process, until it ends, to files below ``folders``; it can write no file.

    Parameters
    ----------
    folders
        The folders; symbolic links are resolved.
    refusal
        Reason and advice in the error for a file outside the folders; the name of the file precedes
        it.
    """
    global _readable, _refusal
    _readable, _refusal = tuple(map(os.path.realpath, folders)), refusal


def may_write() -> bool:
    """Return True unless this process is restricted."""
    return _readable is None


@contextmanager
def input_protection_scope() -> Iterator[None]:
    """Protect each file passed to :func:`protect_inputs` until the end of the ``with`` block."""
    token = _remembered.set(set())
    try:
        yield
    finally:
        _remembered.reset(token)


def protect_inputs(*files: Name) -> None:
    """Protect the existing ones of these input files, given by name or descriptor.

    Raises
    ------
    TcpcastError
        This process is restricted, and a file is outside the permitted folders or not regular.
    """
    for file in files:
        if _readable is not None:
            if isinstance(file, int):
                raise TcpcastError("standard input cannot be read here; use the name of a file")
            try:
                target = os.path.realpath(file)
                is_below = any(
                    os.path.commonpath((target, folder)) == folder for folder in _readable
                )
                mode = (
                    os.stat(target).st_mode if is_below and os.path.exists(target) else stat.S_IFREG
                )
            except (OSError, ValueError):  # the name is not possible, or the file has been removed
                is_below, mode = False, stat.S_IFREG
            if not is_below:
                raise TcpcastError(f"{os.fsdecode(file)}: {_refusal}")
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                raise TcpcastError(
                    f"{os.fsdecode(file)} is a pipe or a device; use the name of a file"
                )
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
