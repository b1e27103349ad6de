"""Commands without Linux: portable commands work, and `link` reports that it needs Linux.

The tests cannot run a wheel for Windows. Instead, they remove the functions and modules that Python
on Windows lacks, after importing the libraries, which have their own code for Windows.
"""

import json
import subprocess
import sys

import pytest

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

import contextlib, io, json
from tcpcast.cli import main
for command in json.loads(sys.stdin.read()):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(command.split())
    print(json.dumps([code, out.getvalue(), err.getvalue()]), flush=True)
"""


COMMANDS = [
    "--help",
    "engines --json",
    "run web-10mbit --engine engset,packet --set run.transfers=2000",
    "predict --rtt 50ms --loss 1% --json --plot figures",
    "plan buffer web-10mbit --engine engset",
    "trace --help",
]
KERNEL = "run bufferbloat --engine kernel --set run.duration=3s --set run.warmup=1s"
LINKS = {"link --rtt 50ms --rate 10mbit -- true": 3, KERNEL: 2}


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str, str]]:
    """Exit code, standard output and standard error of each command, run in one process."""
    commands = [*COMMANDS, *LINKS]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT],
        cwd=tmp_path_factory.mktemp("elsewhere"),
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = map(json.loads, done.stdout.splitlines())
    return dict(zip(commands, map(tuple, lines), strict=True))


@pytest.mark.parametrize("command", COMMANDS)
def test_portable_commands_work_without_linux(
    command: str, outputs: dict[str, tuple[int, str, str]]
) -> None:
    code, out, err = outputs[command]
    assert code == 0, err
    assert out


@pytest.mark.parametrize("command", LINKS)
def test_link_and_kernel_engine_report_that_they_need_linux(
    command: str, outputs: dict[str, tuple[int, str, str]]
) -> None:
    code, out, err = outputs[command]
    assert code == LINKS[command]
    assert "requires Linux" in " ".join((out + err).split())
    assert "Traceback" not in err
