"""A killed run of the kernel engine leaves nothing behind."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from emulation.conftest import TCPCAST, Mode
from emulation.outside import outside
from emulation.test_nothing_left import changing, parent, processes, within

SCENARIO = """
name = "long"
[network]
rtt = "20ms"
[network.bottleneck]
rate = "5mbit"
buffer = "40pkt"
[traffic]
kind = "bulk"
flows = 3
[tcp]
stack = "linux-cubic"
[run]
duration = "1h"
"""


@pytest.mark.parametrize("whom", ["command", "process", "sandbox"])
def test_killed_run_leaves_no_state(mode: Mode, tmp_path: Path, whom: str) -> None:
    if mode.name == "veth":
        pytest.skip("the engine uses TAP as root and veth as another user")
    before = outside()
    file = tmp_path / "long.toml"
    file.write_text(SCENARIO)
    run = subprocess.Popen(
        [*mode.prefix, *TCPCAST, "run", str(file), "--engine", "kernel"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    process = sandbox = 0
    for _ in within(120):
        started = processes("tcpcast.emulation.link_process")
        process = next((p for p in started if parent(p) == run.pid), 0)
        sandbox = next((p for p in started if process and parent(p) == process), 0)
        if sandbox and len(namespaces(sandbox)) > 0:
            break
        if run.poll() is not None:
            pytest.skip(f"this machine has no link: {run.communicate()}")
    os.kill({"command": run.pid, "process": process, "sandbox": sandbox}[whom], signal.SIGKILL)
    for _ in within(60):
        if not {process, sandbox} & set(processes("tcpcast.emulation.link_process")):
            break
    out, err = run.communicate(timeout=120)
    assert run.returncode == {"command": -signal.SIGKILL}.get(whom, run.returncode)
    assert run.returncode != 0, (out, err)
    after = outside()
    assert {name for name in before if before[name] != after.get(name) and not changing(name)} == (
        set()
    )
    assert before.keys() == after.keys()


def namespaces(process: int) -> list[str]:
    """Return the network namespaces of a process: those of its flows, after they are created."""
    result = []
    for number in os.listdir(f"/proc/{process}/fd"):
        try:
            result.append(os.readlink(f"/proc/{process}/fd/{number}"))
        except OSError:
            continue
    return [name for name in result if name.startswith("net:")]
