"""Where there is no Linux: what needs none works, and a link says that it needs one.

A wheel for Windows cannot be run here. What Windows' Python lacks can be taken away from this one,
after the libraries, which have their own ways there, are imported.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

WITHOUT = """
import asyncio, multiprocessing, os, signal, subprocess, sys, tempfile
import matplotlib.backends.backend_agg, numpy, pydantic, scipy.optimize, scipy.sparse, typer

for name in ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"):
    sys.modules[name] = None
has = {"SIGABRT", "SIGFPE", "SIGILL", "SIGINT", "SIGSEGV", "SIGTERM"}
for name in [name for name in dir(signal) if name.startswith("SIG") and name.isupper()]:
    if name not in has | {"SIG_DFL", "SIG_IGN"}:
        delattr(signal, name)
del signal.pthread_sigmask, signal.setitimer, signal.siginterrupt
lacking = "chown fchmod fchown fork forkpty geteuid getpgid getpgrp getuid killpg mkfifo O_CLOEXEC"
lacking += " O_DIRECTORY O_NOFOLLOW O_NONBLOCK posix_spawn pread pwrite register_at_fork"
lacking += " sched_getaffinity setsid sysconf tcgetpgrp tcsetpgrp uname wait4"
for name in lacking.split():
    delattr(os, name)
sys.platform = "win32"
from tcpcast.__main__ import main
sys.exit(main())
"""


def tcpcast(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "command",
    [
        "--help",
        "engines --json",
        "run web-10mbit --engine engset,packet --set run.connections=2000 --plot figures",
        "predict --rtt 50ms --loss 1% --json",
        "plan buffer web-10mbit",
        "trace --help",
        "man",
    ],
)
def test_what_needs_no_linux_answers(command: str, tmp_path: Path) -> None:
    done = tcpcast(tmp_path, *command.split())
    assert done.returncode == 0, done.stderr
    assert done.stdout


KERNEL = "run bufferbloat --engine kernel --set run.duration=3s --set run.warmup=1s"


@pytest.mark.parametrize(
    ("command", "code"), [("link --rtt 50ms --rate 10mbit -- true", 3), (KERNEL, 2)]
)
def test_a_link_says_that_it_needs_linux(command: str, code: int, tmp_path: Path) -> None:
    done = tcpcast(tmp_path, *command.split())
    assert done.returncode == code
    assert "Linux network namespaces" in " ".join((done.stdout + done.stderr).split())
    assert "Traceback" not in done.stderr
