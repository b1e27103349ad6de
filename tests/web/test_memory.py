"""Requests of the page leave neither memory nor processes behind."""

import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from urllib.parse import urlencode

import pytest

pytest.importorskip("uvicorn", reason="needs uvicorn: the extra web")

RUNS = 200
WARM_UP = 20
MAX_BYTES = 20 * 2**20
SMALL = {"rate": "1mbit", "loss": "5%", "rtt": "20ms"}


class Browser:
    """Minimal HTTP client for a served page."""

    def __init__(self, url: str) -> None:
        self.origin = url.partition("/?")[0]
        with urllib.request.urlopen(url, timeout=120) as response:
            self.cookie = response.headers["set-cookie"].partition(";")[0]

    def answer(self, values: dict[str, str], *, cancel: bool = False) -> None:
        """Request an answer; with ``cancel``, close the connection before it."""
        headers = {"cookie": self.cookie, "origin": self.origin}
        url = f"{self.origin}/api/answer/predict?{urlencode(values)}"
        request = urllib.request.Request(url, b"", headers, method="POST")
        with urllib.request.urlopen(request, timeout=120) as response:
            if not cancel:
                assert "page" in json.loads(response.readlines()[-1])


def process_tree(process: int) -> list[int]:
    """Return a process and its children."""
    processes = [process]
    for task in Path(f"/proc/{process}/task").iterdir():
        processes += map(int, (task / "children").read_text().split())
    return processes


def memory(process: int) -> int:
    """Return the resident bytes of a process."""
    text = Path(f"/proc/{process}/status").read_text()
    lines = [line for line in text.splitlines() if line.startswith("VmRSS:")]
    return sum(int(line.split()[1]) * 1024 for line in lines)


def run(browser: Browser, number: int) -> None:
    """Request an answer, a curve and a simulation; cancel every fourth simulation."""
    values = {**SMALL, "loss": f"{1 + number % 5}%"}
    browser.answer(values)
    browser.answer({**values, "across": "loss"})
    browser.answer({**values, "simulate": "1"}, cancel=number % 4 == 0)


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
def test_memory_and_processes_do_not_grow_over_many_requests() -> None:
    command = [sys.executable, "-m", "tcpcast", "serve", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            browser = Browser(server.stdout.readline().strip())
            for number in range(WARM_UP):
                run(browser, number)
            before = memory(server.pid), max(map(memory, process_tree(server.pid)))
            for number in range(RUNS):
                run(browser, number)
            processes = process_tree(server.pid)
            assert len(processes) <= 3, "the server and its workers"
            # Idle workers end and start again, so their number differs.
            after = memory(server.pid), max(map(memory, processes))
            assert all(late - early < MAX_BYTES for early, late in zip(before, after, strict=True))
        finally:
            server.terminate()
