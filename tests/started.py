"""Runs ``tcpcast`` as a separate process, without starting an interpreter.

Most of the time of a short command is spent on imports. A server that has imported everything once
forks for each command, so changes of the process (signals, streams, settings of
matplotlib) end with the command. Tests that start an interpreter
check that a command imports only what it needs.
"""

import io
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from multiprocessing import forkserver
from pathlib import Path
from typing import Any, TextIO

import pytest

IMPORTED = ["pytest", "warm"]
"""Modules that pytest's start imports again in each process, and the state that a command uses."""


def tcpcast(
    arguments: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    out: Path | None,
    err: Path | None,
    timeout: float | None = None,
) -> int:
    """Run a command line in a folder and return its exit code; fail on a timeout.

    ``out`` and ``err`` are files for its output; they may be the same, and None closes the stream.
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
    """Run a command line in a folder like :func:`tcpcast`, and return its output."""
    out, err = files = folder / ".out", folder / ".err"
    for file in files:
        file.write_bytes(b"")
    code = tcpcast(
        arguments, folder=folder, environment=environment, out=out, err=err, timeout=timeout
    )
    return subprocess.CompletedProcess(arguments, code, out.read_text(), err.read_text())


@cache
def server() -> Any:
    """Start the server; before Python 3.13 it finds only modules on the path of its environment."""
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
    from tcpcast.__main__ import main  # noqa: PLC0415 - only in the forked process

    sys.exit(main())


def _stream(number: int, file: Path | None, errors: str) -> TextIO | None:
    """Open a standard stream as an interpreter does for this descriptor."""
    if file is None:
        os.close(number)
        return None
    opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.dup2(opened, number)
    os.close(opened)
    binary = io.BufferedWriter(io.FileIO(number, "w", closefd=False))
    return io.TextIOWrapper(binary, "utf-8", errors, line_buffering=number == 2)
