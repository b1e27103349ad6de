"""Simultaneous links: in two threads of one process, and in several processes."""

import shlex
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from emulation.conftest import TCPCAST, Mode
from emulation.ends import ECHO, PORT, python
from emulation.test_kernel import kernel_scenario, measured

MEET = f"""
import os, socket, sys, time
from pathlib import Path
own, other = map(Path, sys.argv[1:])
own.touch()
until = time.monotonic() + 60
while not other.exists() and time.monotonic() < until:
    time.sleep(0.02)
asks = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
asks.settimeout(20)
asks.sendto(own.name.encode(), (os.environ["TCPCAST_PEER"], {PORT}))
print(other.exists(), asks.recv(100).decode())
"""
"""Waits for the program of the other link, then queries the far end of its link."""


@pytest.mark.timed
def test_threads_have_separate_links() -> None:
    rates = {"4mbit": 4e6, "8mbit": 8e6}

    def answer(rate: str) -> Any:
        bottleneck = {"rate": rate, "buffer": "40pkt"}
        return measured(kernel_scenario(network={"rtt": "20ms", "bottleneck": bottleneck}))

    with ThreadPoolExecutor(len(rates)) as threads:
        answers = list(threads.map(answer, rates))
    for result, rate_bps in zip(answers, rates.values(), strict=True):
        # A packet of 1500 bytes has a payload of 1448.
        assert result["goodput_bps"] == pytest.approx(rate_bps * 1448 / 1500, rel=0.1)


def test_processes_have_separate_links(mode: Mode, tmp_path: Path) -> None:
    names, links = ("one", "other"), []
    for own, other in (names, names[::-1]):
        near = python(MEET, tmp_path / own, tmp_path / other)
        far = shlex.join(python(ECHO))
        options = ["--rtt", "5ms", "--device", mode.device, "--server-command", far]
        links.append(
            subprocess.Popen(
                [*mode.prefix, *TCPCAST, "link", *options, "--", *near],
                cwd=tmp_path,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    for name, link in zip(names, links, strict=True):
        out, err = link.communicate(timeout=120)
        # With so few packets a single late one exceeds the tolerance of the link.
        assert link.returncode in {0, 3}, err
        assert out == f"True {name}\n", err
        assert "near to far: 1 packet, 1 delivered" in err
