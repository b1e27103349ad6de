"""How the tests of the link run it: as whoever runs them, and as a user without privileges."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import started

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

ROOT = Path(__file__).parents[2]
TCPCAST = [sys.executable, "-m", "tcpcast"]
NOBODY = "65534"


def works(*command: str) -> bool:
    """Say whether a command is there and succeeds."""
    if shutil.which(command[0]) is None:
        return False
    return subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 0


AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]


def user_prefix() -> list[str] | None:
    """Return what makes a command one of an unprivileged user; None where that cannot be."""
    as_user = AS_NOBODY if os.geteuid() == 0 else []
    # One that starts another: the first may be found with privileges that the second lacks.
    again = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'pass'], check=True)"
    able = works(*as_user, "unshare", "-Urn", "true") and works(
        *as_user, sys.executable, "-c", again
    )
    return as_user if able else None


def is_open(path: str) -> bool:
    """Say whether a device can be opened."""
    try:
        os.close(os.open(path, os.O_RDWR))
    except OSError:
        return False
    return True


MODES = ("tun", "veth", "user")


@dataclass(frozen=True)
class Mode:
    """Who runs the link, and over which device."""

    name: str
    prefix: tuple[str, ...]
    device: str


@pytest.fixture(scope="session", params=MODES)
def mode(request: pytest.FixtureRequest) -> Mode:
    """A way of running a link that this machine offers."""
    name: str = request.param
    if sys.platform != "linux":
        pytest.skip("links are of Linux")
    if name == "user":
        prefix = user_prefix()
        if prefix is None:
            pytest.skip("no namespaces, or no interpreter, for another user on this machine")
        return Mode(name, tuple(prefix), "veth")
    if not works("unshare", "-n", "true") and not works("unshare", "-Urn", "true"):
        pytest.skip("this machine lets nobody make network namespaces")
    if name == "tun" and not is_open("/dev/net/tun"):
        pytest.skip("no /dev/net/tun can be opened")
    return Mode(name, (), name)


@dataclass(frozen=True)
class Ran:
    """What a link and the program over it did."""

    code: int
    out: str
    err: str
    numbers: dict[str, Any]

    def skip_if_distorted(self) -> None:
        """Skip what depends on when programs and link get the processor, on a busy machine."""
        if self.numbers["distortion"]:
            pytest.skip(f"this machine is too busy: {self.numbers['distortion']}")


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder that anybody may write to, which pytest's own are not."""
    with tempfile.TemporaryDirectory(prefix="tcpcast-link-") as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


@pytest.fixture
def run(mode: Mode, tmp_path: Path) -> Callable[..., Ran]:
    """Run ``tcpcast link`` in a folder of its own."""

    def _run(options: Sequence[str], command: Sequence[str], timeout: float = 120) -> Ran:
        numbers = tmp_path / "numbers.json"
        given = [*options, "--device", mode.device, "--statistics", str(numbers), "--force"]
        arguments = ["link", *given, "--", *command]
        if mode.prefix:  # another user's is a process from the start
            done = subprocess.run(
                [*mode.prefix, *TCPCAST, *arguments],
                capture_output=True,
                text=True,
                check=False,
                cwd=tmp_path,
                timeout=timeout,
                stdin=subprocess.DEVNULL,
            )
        else:
            done = started.completed(
                arguments, folder=tmp_path, environment=os.environ, timeout=timeout
            )
        told = json.loads(numbers.read_text()) if numbers.exists() else {"none": done.stderr}
        return Ran(done.returncode, done.stdout, done.stderr, told)

    return _run
