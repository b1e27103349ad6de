"""A link changes nothing outside its namespaces, however it ends."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from emulation.conftest import TCPCAST, Mode
from emulation.outside import outside

FOREVER = "86399"


def processes(word: str) -> list[int]:
    """Return the processes whose command line contains a word."""
    result = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                if word in (entry / "cmdline").read_bytes().decode(errors="replace").split("\0"):
                    result.append(int(entry.name))
    return result


def within(seconds: float) -> Iterator[None]:
    """Yield repeatedly for this time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        yield
        time.sleep(0.05)
    pytest.fail("it did not happen in time")


def changing(name: str) -> bool:
    """Return True if the kernel changes a setting by itself."""
    return name.rsplit("/", 1)[-1] in {"nf_conntrack_count", "hash_stats"}


@pytest.mark.parametrize("whom", ["nobody", "command", "process"])
def test_link_restores_host_state_and_ends_programs(mode: Mode, tmp_path: Path, whom: str) -> None:
    before = outside()
    marker = f"{FOREVER}.{os.getpid()}{len(whom)}"
    lasts = f"setsid sleep {marker} & exec sleep {marker}"
    near = "sleep 0.3" if whom == "nobody" else lasts
    arguments = [
        "link",
        "--rtt",
        "5ms",
        "--device",
        mode.device,
        "--server-command",
        lasts,
        "--",
        near,
    ]
    link = subprocess.Popen(
        [*mode.prefix, *TCPCAST, *arguments], cwd=tmp_path, stderr=subprocess.PIPE
    )
    expected = 4 if whom != "nobody" else 2
    for _ in within(60):
        if len(processes(marker)) >= expected:
            break
    if whom == "command":
        os.kill(link.pid, signal.SIGKILL)
    elif whom == "process":
        (own,) = [p for p in processes("tcpcast.emulation.link_process") if parent(p) == link.pid]
        os.kill(own, signal.SIGKILL)
    for _ in within(60):
        if not processes(marker):
            break
    code = link.wait(120)
    assert code == {"nobody": 0, "command": -signal.SIGKILL, "process": 3}[whom]
    after = outside()
    assert {name for name in before if before[name] != after.get(name) and not changing(name)} == (
        set()
    )
    assert before.keys() == after.keys()


def parent(process: int) -> int:
    """Return the parent of a process, 0 if it has ended."""
    with suppress(OSError):
        return int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])
    return 0


def test_interrupt_is_handled_by_the_program(mode: Mode) -> None:
    near = "trap 'exit 9' INT; echo ready; sleep 60 & wait"
    link = subprocess.Popen(
        [*mode.prefix, *TCPCAST, "link", "--rtt", "1ms", "--device", mode.device, "--", near],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert link.stdout is not None
    assert link.stdout.readline() == "ready\n"
    os.killpg(link.pid, signal.SIGINT)
    _, errors = link.communicate(timeout=120)
    assert link.returncode == 9
    assert "near to far" in errors


def test_sigterm_ends_the_link_and_the_program(mode: Mode) -> None:
    marker = f"{FOREVER}.{os.getpid()}9"
    near = f"echo ready; exec sleep {marker}"
    arguments = ["link", "--rtt", "1ms", "--device", mode.device, "--", near]
    with subprocess.Popen(
        [*mode.prefix, *TCPCAST, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as link:
        assert link.stdout is not None
        assert link.stdout.readline() == b"ready\n"
        link.terminate()
        assert link.wait(120) == 130
    for _ in within(60):
        if not processes(marker):
            break


def test_programs_keep_user_and_have_no_privileges(mode: Mode) -> None:
    if mode.name != "user":
        pytest.skip("root keeps its privileges")
    show = "id -u; grep CapEff /proc/self/status; readlink /proc/self/ns/net"
    done = subprocess.run(
        [*mode.prefix, *TCPCAST, "link", "--rtt", "1ms", "--", show],
        capture_output=True,
        text=True,
        check=False,
    )
    user, capabilities, network = done.stdout.split("\n")[:3]
    assert int(user) == 65534 if os.geteuid() == 0 else os.geteuid()
    assert int(capabilities.split()[1], 16) == 0
    assert network != os.readlink("/proc/self/ns/net")


@pytest.mark.skipif(sys.platform != "linux", reason="links require Linux")
def test_missing_namespaces_report_a_remedy() -> None:
    # In a separate user namespace a limit of 0 prevents creating another one.
    closed = "echo 0 > /proc/sys/user/max_net_namespaces && exec"
    command = " ".join([closed, *TCPCAST, "link", "--rtt", "1ms", "--", "true"])
    if subprocess.run(["unshare", "-Ur", "true"], check=False).returncode != 0:
        pytest.skip("this machine does not allow user namespaces")
    done = subprocess.run(
        ["unshare", "-Ur", "sh", "-c", command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert "does not allow you to create network namespaces" in done.stderr
    assert "run as root" in done.stderr
