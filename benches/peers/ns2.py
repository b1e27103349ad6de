"""ns-2 with the two workloads that it can run like tcpcast."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).with_name("ns2.tcl")


def is_installed() -> bool:
    """Whether ns-2 is installed (``make peers``)."""
    return shutil.which("ns") is not None


def w134(*, connections: int, warmup: int, seed: int, patient: bool = False) -> dict[str, float]:
    """Run 134 on/off sources; return values of the connections after the first ``warmup``."""
    return run(SCRIPT, "w134", int(patient), seed, connections, warmup)


def long(  # noqa: PLR0913 - parameters of the workload
    *,
    flows: int = 10,
    mbit: float = 100,
    buffer: int = 500,
    loss: float = 0,
    seconds: float = 300,
    warmup: float = 0,
    quantum: int = 0,
    seed: int,
    patient: bool = False,
) -> dict[str, float]:
    """Run endless flows over 60 ms; return values from the time ``warmup`` to ``seconds``.

    They use DRR with a quantum of ``quantum`` bytes unless it is 0.
    """
    network = (flows, mbit, buffer, loss)
    return run(SCRIPT, "long", int(patient), seed, *network, seconds, warmup, quantum)


def run(script: Path, *arguments: object) -> dict[str, float]:
    """Run an ns-2 script and return the values that it prints as ``name=value``."""
    ran = subprocess.run(
        ["ns", script.name, *map(str, arguments)],
        cwd=script.parent,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    pairs = (pair.split("=") for pair in ran.stdout.split())
    return {name: float(value) for name, value in pairs}
