"""Transfers by implementations of QUIC over the emulated link, beside the simulation.

Prints a table: ``python tests/emulation/quic_peers.py [COUNT]``. The Python with aioquic is that of
the environment variable ``AIOQUIC_PYTHON``, or the current one.
"""

import json
import math
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import tcpcast
from tcpcast.scenario import Scenario
from tcpcast.units import parse_duration

PEER = Path(__file__).with_name("aioquic_peer.py")
STACK = "aioquic"
RATE, BUFFER = "2mbit", "50pkt"
CERTIFICATE = "500B"
"""Size of the self-signed certificate of the peer, with its chain of one."""
BUSY = 3
"""Exit code of the link if the machine was too busy for exact times."""
SIMULATED_TRANSFERS = 400


@dataclass(frozen=True, slots=True)
class Cell:
    """A path and the size of its transfers in bytes."""

    rtt: str
    loss: str
    size: int


CELLS = [
    Cell(rtt, loss, size)
    for rtt, loss, size in product(
        ("40ms", "100ms", "200ms"), ("0%", "1%", "3%"), (50_000, 200_000)
    )
]


def find_python() -> str | None:
    """Return a Python that has aioquic, or None."""
    python = os.environ.get("AIOQUIC_PYTHON", sys.executable)
    has_aioquic = subprocess.run([python, "-c", "import aioquic"], capture_output=True, check=False)
    return python if has_aioquic.returncode == 0 else None


def measure(python: str, cell: Cell, count: int) -> list[float]:
    """Return the times of transfers over the emulated link in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        times = Path(folder) / "times.json"
        command = [
            *(sys.executable, "-m", "tcpcast", "link", "--rtt", cell.rtt, "--rate", RATE),
            *("--buffer", BUFFER, "--loss", cell.loss, "--sender", "far"),
            *("--server-command", f"{python} {PEER} server", "--"),
            f"sleep 1.5; {python} {PEER} client {cell.size} {count} > {times}",
        ]
        status = subprocess.run(command, capture_output=True, check=False, timeout=300).returncode
        if status not in (0, BUSY):
            raise RuntimeError(f"the link ended with status {status}")
        return list(json.loads(times.read_text(encoding="utf-8")))


def simulate(cell: Cell) -> float:
    """Return the mean simulated time from the request to the last byte in seconds.

    A transfer of one packet without loss takes the handshake and one round trip.
    """
    one = _simulate_total(Cell(cell.rtt, "0%", 1))
    return _simulate_total(cell) - one + float(parse_duration(cell.rtt))


def _simulate_total(cell: Cell) -> float:
    tables: dict[str, Any] = {
        "network": {
            "rtt": cell.rtt,
            "packet": "1228B",
            "ack": "63B",
            "bottleneck": {"rate": RATE, "buffer": BUFFER, "loss": cell.loss},
        },
        "traffic": {
            "kind": "transfers",
            "size": f"{cell.size}B",
            "count": 1 if cell.loss == "0%" else SIMULATED_TRANSFERS,
        },
        "tcp": {"stack": STACK, "certificate": CERTIFICATE},
    }
    (answer,) = tcpcast.run(Scenario.from_dict(tables), ["packet"])
    return float(answer.metrics["total_time_s"].value)


def interval(times: list[float]) -> float:
    """Return half the 95 % confidence interval of the mean."""
    return 1.96 * float(np.std(times, ddof=1)) / math.sqrt(len(times))


def typical(cell: Cell, times: list[float]) -> float:
    """Return the mean time; without random loss the shortest, as the machine only adds time."""
    return min(times) if cell.loss == "0%" else float(np.mean(np.asarray(times)))


def is_within(cell: Cell, times: list[float], simulated: float, share: float) -> bool:
    """Return True if the simulated time differs by at most a share, or the interval."""
    time, random = typical(cell, times), 0.0 if cell.loss == "0%" else interval(times)
    return abs(simulated - time) <= max(share * time, random)


def main(count: int) -> None:
    """Print the table."""
    python = find_python()
    if python is None:
        sys.exit("aioquic is missing; use AIOQUIC_PYTHON to name a Python that has it")
    print("| RTT | loss | size | shortest | mean | simulated | difference |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    within = 0
    for cell in CELLS:
        times, simulated = measure(python, cell, count), simulate(cell)
        within += is_within(cell, times, simulated, 0.1)
        mean = f"{1e3 * float(np.mean(times)):.0f} ms (± {1e3 * interval(times):.0f})"
        print(
            f"| {cell.rtt} | {cell.loss} | {cell.size // 1000} kB | {1e3 * min(times):.0f} ms "
            f"| {mean} | {1e3 * simulated:.0f} ms "
            f"| {100 * (simulated / typical(cell, times) - 1):+.0f} % |",
            flush=True,
        )
    print(f"\n{within} of {len(CELLS)} within 10 % or the interval")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
