"""Runs ``tcpcast`` as a process of its own, without the start of an interpreter.

Most of what a short command takes is importing. A server that has imported everything once forks
itself for each command: what a command does to its process (signals, streams, settings of
matplotlib) ends with it, as ever. That a command imports what it needs, and little else, is for
those tests that start an interpreter.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import subprocess
import sys
from functools import cache
from multiprocessing import forkserver
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

IMPORTED = ["pytest", "warm"]
"""What pytest's own start imports again in each process, and what a command finds ready."""


def tcpcast(
    arguments: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    out: Path | None,
    err: Path | None,
    timeout: float | None = None,
) -> int:
    """Run a command line in a folder and return its exit code; one that lasts too long fails.

    ``out`` and ``err`` take what it prints; they may be the same file, and None is a closed stream.
    """
    process = server().Process(
        target=command, args=(list(arguments), folder, dict(environment), out, err)
    )
    process.start()
    process.join(timeout)
    if process.exitcode is None:
        process.kill()
        pytest.fail(f"{arguments} did not end in {timeout} s")
    code: int = process.exitcode
    return code


def completed(
    arguments: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    timeout: float | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command line in a folder as :func:`tcpcast` does, and return what it printed, too."""
    out, err = files = folder / ".out", folder / ".err"
    for file in files:
        file.write_bytes(b"")
    code = tcpcast(
        arguments, folder=folder, environment=environment, out=out, err=err, timeout=timeout
    )
    return subprocess.CompletedProcess(arguments, code, out.read_text(), err.read_text())


@cache
def server() -> Any:
    """Start the server; one of Python before 3.13 finds only what its environment tells of."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(IMPORTED)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
        forkserver.ensure_running()
    return context


def command(
    arguments: list[str],
    folder: Path,
    environment: dict[str, str],
    out: Path | None,
    err: Path | None,
) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.stdout = _stream(1, out, "strict")
    sys.stderr = _stream(2, err, "backslashreplace")
    sys.path[:0] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    sys.argv = ["tcpcast", *arguments]
    from tcpcast.__main__ import main  # noqa: PLC0415 - in the forked process alone

    sys.exit(main())


def _stream(number: int, file: Path | None, errors: str) -> TextIO | None:
    """Open a standard stream as an interpreter does that begins with this descriptor."""
    if file is None:
        os.close(number)
        return None
    opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.dup2(opened, number)
    os.close(opened)
    binary = io.BufferedWriter(io.FileIO(number, "w", closefd=False))
    return io.TextIOWrapper(binary, "utf-8", errors, line_buffering=number == 2)
