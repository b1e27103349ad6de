"""Tests that need a real process: broken pipes, terminals, the environment."""

import os
import pty
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import started

TCPCAST = [sys.executable, "-m", "tcpcast"]
QUICK = ["run", "web-10mbit", "--engine", "engset"]


@pytest.mark.parametrize(
    "arguments", [["schema"], ["--help"], [*QUICK, "--json"], QUICK, ["engines"]]
)
def test_closed_pipe_is_not_an_error(arguments: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)  # from now on, every write fails with EPIPE
    done = subprocess.run([*TCPCAST, *arguments], stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


def run_on_terminal(arguments: list[str], columns: int, **environment: str) -> str:
    master, slave = pty.openpty()
    variables = {k: v for k, v in os.environ.items() if k not in {"NO_COLOR", "COLUMNS"}}
    variables |= {"TERM": "xterm-256color", "COLUMNS": str(columns), **environment}
    terminal = Path(os.ttyname(slave))
    with ThreadPoolExecutor(1) as reader:
        text = reader.submit(read_until_closed, master)
        code = started.tcpcast(
            arguments, folder=Path.cwd(), environment=variables, out=terminal, err=terminal
        )
        os.close(slave)
        assert code == 0
        return text.result().decode()


def read_until_closed(master: int) -> bytes:
    """Read a terminal until its other end is closed."""
    text = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:
            piece = b""
        if not piece:
            os.close(master)
            return text
        text += piece


def test_colours_on_terminal_respect_no_color() -> None:
    assert "\x1b[" in run_on_terminal(QUICK, 100)
    assert "\x1b[" not in run_on_terminal(QUICK, 100, NO_COLOR="1")
    assert "\x1b[" not in run_on_terminal(QUICK, 100, TERM="dumb")


def test_ascii_encoding_is_supported() -> None:
    variables = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([*TCPCAST, *QUICK], capture_output=True, env=variables, check=False)
    assert done.returncode == 0
    done.stdout.decode("ascii")
