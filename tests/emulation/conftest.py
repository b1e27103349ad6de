"""Fixtures that run the link, as the current user and as a user without privileges."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import started

ROOT = Path(__file__).parents[2]
TCPCAST = [sys.executable, "-m", "tcpcast"]
NOBODY = "65534"


def works(*command: str) -> bool:
    """Return True if a command exists and succeeds."""
    if shutil.which(command[0]) is None:
        return False
    return subprocess.run(command, capture_output=True, check=False, timeout=120).returncode == 0


AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]


def user_prefix() -> list[str] | None:
    """Return a command prefix for an unprivileged user, or None if that is impossible."""
    as_user = AS_NOBODY if os.geteuid() == 0 else []
    # Start a second process: the first may be found with privileges that the second lacks.
    again = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'pass'], check=True)"
    able = works(*as_user, "unshare", "-Urn", "true") and works(
        *as_user, sys.executable, "-c", again
    )
    return as_user if able else None


def is_open(path: str) -> bool:
    """Return True if a device can be opened."""
    try:
        os.close(os.open(path, os.O_RDWR))
    except OSError:
        return False
    return True


MODES = ("tun", "veth", "user")


@dataclass(frozen=True)
class Mode:
    """User who runs the link, and type of device."""

    name: str
    prefix: tuple[str, ...]
    device: str


@pytest.fixture(scope="session", params=MODES)
def mode(request: pytest.FixtureRequest) -> Mode:
    """Return a mode of running a link that this machine supports."""
    name: str = request.param
    if sys.platform != "linux":
        pytest.skip("links require Linux")
    if name == "user":
        prefix = user_prefix()
        if prefix is None:
            pytest.skip("no namespaces, or no interpreter, for another user on this machine")
        return Mode(name, tuple(prefix), "veth")
    if not works("unshare", "-n", "true") and not works("unshare", "-Urn", "true"):
        pytest.skip("this machine does not allow network namespaces")
    if name == "tun" and not is_open("/dev/net/tun"):
        pytest.skip("/dev/net/tun cannot be opened")
    return Mode(name, (), name)


@dataclass(frozen=True)
class Ran:
    """Results of a link and of its program."""

    code: int
    out: str
    err: str
    numbers: dict[str, Any]

    def skip_if_distorted(self) -> None:
        """Skip on a busy machine if a test depends on when processes run."""
        if self.numbers["distortion"]:
            pytest.skip(f"this machine is too busy: {self.numbers['distortion']}")


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Return a folder that every user may write to, unlike pytest's own."""
    with tempfile.TemporaryDirectory(prefix="tcpcast-link-") as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


@pytest.fixture
def run(mode: Mode, tmp_path: Path) -> Callable[..., Ran]:
    """Run ``tcpcast link`` in a separate folder."""

    def _run(options: Sequence[str], command: Sequence[str], timeout: float = 120) -> Ran:
        numbers = tmp_path / "numbers.json"
        given = [*options, "--device", mode.device, "--out", str(numbers), "--force"]
        arguments = ["link", *given, "--", *command]
        if mode.prefix:  # another user needs a new process
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
        link_numbers = (
            json.loads(numbers.read_text()) if numbers.exists() else {"none": done.stderr}
        )
        return Ran(done.returncode, done.stdout, done.stderr, link_numbers)

    return _run
