"""Requests of the page leave neither memory nor processes behind."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

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

    def request_json(self, path: str, body: Any = None, method: str | None = None) -> Any:
        headers = {"cookie": self.cookie, "origin": self.origin, "content-type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.origin + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=120) as response:
            return json.load(response)


def process_tree(process: int) -> list[int]:
    """Return a process and its children."""
    processes = [process]
    for task in Path(f"/proc/{process}/task").iterdir():
        processes += map(int, (task / "children").read_text().split())
    return processes


def memory(process: int) -> int:
    """Return the resident bytes of a process and its children."""
    text = "".join(
        Path(f"/proc/{process_id}/status").read_text() for process_id in process_tree(process)
    )
    lines = [line for line in text.splitlines() if line.startswith("VmRSS:")]
    return sum(int(line.split()[1]) * 1024 for line in lines)


def run(browser: Browser, number: int) -> None:
    """Request an answer, a curve and a simulation; cancel every second simulation."""
    body = {"question": "path", "values": {**SMALL, "loss": f"{1 + number % 5}%"}}
    browser.request_json("/api/evaluate", {**body, "quick": True})
    browser.request_json("/api/curve", body)
    job = browser.request_json("/api/jobs", body)
    if number % 2:
        browser.request_json(f"/api/jobs/{job['id']}", method="DELETE")
    while browser.request_json(f"/api/jobs/{job['id']}")["state"] == "running":
        time.sleep(0.02)


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
            before = memory(server.pid)
            for number in range(RUNS):
                run(browser, number)
            assert memory(server.pid) - before < MAX_BYTES
            assert len(process_tree(server.pid)) == 3, "the server and its two formula processes"
        finally:
            server.terminate()
