"""Speed and size of thousands of HTTP sources with a fair queue, compared with ns-2's DRR."""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benches.peers import ns2
from benches.row import Row, engine_figures, peak_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCES, SECONDS = 10_000, 600
LOOPS = {
    "arriving packet is dropped": ("loop", str(SOURCES), str(SECONDS), "1"),
    "from the longest queue": ("loop", str(SOURCES), str(SECONDS), "1", "longest"),
}
TARGET_S = 1.2

FLOWS, MBIT, BUFFER, QUANTUM, DRR_SECONDS = 200, 100, 2_000, 1500, 60

MANY, MAX_MIB = 100_000, 150.0
SCENARIO = f"""
[network]
rtt = "100ms"
ingress = {{ rate = "10mbit" }}
egress = {{ rate = "10mbit" }}

[network.bottleneck]
rate = "1gbit"
buffer = "{MANY}pkt"
queue = {{ kind = "fq", drop = "longest" }}

[traffic]
kind = "on-off"
sources = {MANY}
off = {{ distribution = "lognormal", mean = "30s", sd = "30s" }}
size = {{ distribution = "lognormal", mean = "50pkt", sd = "50pkt" }}
connection = "persistent"
start = "equilibrium"

[tcp]
stack = "max-plus-reno"
receiver_window = 40
idle_restart = "10s"

[run]
duration = "60s"
warmup = "20s"
"""


def rows(example: Path, runs: int) -> Iterator[Row]:
    """Yield seconds for ten minutes of 10,000 sources, memory of 100,000, and ns-2's time."""
    for how, workload in LOOPS.items():
        walls, rates = zip(*(_walls(example, workload) for _ in range(runs)), strict=True)
        note = f"{statistics.median(rates) / 1e6:.2f} million packets/s; {how}"
        what = f"{SOURCES:,} HTTP sources, {SECONDS} s"
        yield Row(what, "s", statistics.median(walls), TARGET_S, note)
    yield from memory()
    yield from drr(example, min(runs, 3))


def _walls(example: Path, workload: tuple[str, ...]) -> tuple[float, float]:
    """Return seconds, and delivered packets per second, including those of the warm-up."""
    figures = engine_figures(example, workload)
    share = (figures["simulated_s"] - figures["warmup_s"]) / figures["simulated_s"]
    return figures["wall_s"], figures["delivered"] / share / figures["wall_s"]


def memory() -> Iterator[Row]:
    """Yield the peak resident size of a whole command with 100,000 sources."""
    what, unit = f"{MANY:,} HTTP sources", "MiB in total"
    if not Path("/proc/self/status").exists():
        yield Row(what, unit, None, MAX_MIB, "/proc is missing")
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "loop.toml"
        file.write_text(SCENARIO)
        command = [sys.executable, "-m", "tcpcast", "run", str(file), "--engine", "packet"]
        yield Row(what, unit, peak_bytes(command) / 2**20, MAX_MIB, "60 s at 1 Gbit/s, with Python")


def drr(example: Path, runs: int) -> Iterator[Row]:
    """Yield the time of endless NewReno flows with deficit round robin, here and in ns-2."""
    what, unit = f"ns-2's DRR, {FLOWS} flows", "s per million packets"
    if not ns2.is_installed():
        yield Row(what, unit, None, None, "ns-2 is missing: make peers")
        return
    network = (FLOWS, MBIT, BUFFER)
    workload = ("long", *map(str, network), "0", str(DRR_SECONDS), "1", str(QUANTUM))
    ours = statistics.median(
        engine_figures(example, workload)["wall_per_million_s"] for _ in range(runs)
    )
    results = [
        ns2.long(
            flows=FLOWS, mbit=MBIT, buffer=BUFFER, seconds=DRR_SECONDS, quantum=QUANTUM, seed=seed
        )
        for seed in range(1, runs + 1)
    ]
    theirs = statistics.median(r["wall_s"] / r["delivered"] * 1e6 for r in results)
    yield Row(what, unit, theirs, None, f"{theirs / ours:.0f} times tcpcast's {ours:.3f}")
