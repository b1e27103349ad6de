"""Overhead of a sweep in addition to its engines, and ten thousand cells of a formula."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tcpcast
from tcpcast.scenario import Scenario
from tcpcast.sweeps.database import DATABASE_FILE

from benches.row import Row

if TYPE_CHECKING:
    from collections.abc import Iterator

PATH: dict[str, Any] = {
    "network": {"rtt": "50ms", "bottleneck": {"rate": "100mbit", "loss": "1%"}},
    "traffic": {"kind": "bulk", "flows": 1},
    "tcp": {"stack": "linux-reno"},
    "run": {"duration": "10s", "warmup": "2s"},
}


def rows() -> Iterator[Row]:
    """Yield overhead in milliseconds per cell, and seconds of a large sweep on all cores.

    The first cell of each engine imports modules, and is included only in the total times.
    """
    scenario = Scenario.from_dict(PATH)
    for engine, cells, target in (("pftk", 2000, 0.2), ("packet", 100, 5.0)):
        tcpcast.sweep(scenario, {"network.rtt": ["10ms"]}, engines=engine, processes=1)
        vary = {"network.rtt": f"10ms..200ms log {cells}"}
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "out"
            began = time.perf_counter()
            tcpcast.sweep(scenario, vary, engines=engine, processes=1, out=out)
            took = time.perf_counter() - began
            with closing(sqlite3.connect(out / DATABASE_FILE)) as database:
                (options,) = database.execute("SELECT sum(wall_s) FROM answers").fetchone()
        yield Row(f"sweep without {engine}", "ms per cell", (took - options) / cells * 1e3, target)
    vary = {
        "network.rtt": "10ms..200ms log 100",
        "network.bottleneck.loss": "0.01%..10% log 100",
    }
    began = time.perf_counter()
    tcpcast.sweep(scenario, vary, engines="pftk")
    yield Row("sweep of 10,000 cells of pftk", "s", time.perf_counter() - began, 5.0)
    yield _on_two_cores("200 packet cells on two cores", [])
    yield _on_two_cores("200 cells of a fifth of the length", ["--set", "run.duration=60s"])


def _on_two_cores(what: str, changes: list[str]) -> Row:
    """Return the time of 200 simulated cells on two cores, including the command's start.

    The start has a larger weight for shorter cells.
    """
    command = [sys.executable, "-m", "tcpcast", "sweep", "one-path", "--engine", "packet"]
    command += ["--set", "traffic.flows=2", *changes, "--processes"]
    vary = ["--vary", "network.rtt=10ms..200ms log 200"]
    took = []
    for count in ("1", "2"):
        began = time.perf_counter()
        done = [*command, count, *vary]
        subprocess.run(done, stdout=subprocess.DEVNULL, check=True)
        took.append(time.perf_counter() - began)
    one, two = took
    note = f"{one:.1f} s on one, {two:.1f} s on two: {one / two:.2f} times as fast"
    return Row(what, "ratio to one core", two / one, 1 / 1.8, note)
