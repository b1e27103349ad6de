"""ns-2 on the two workloads that it can run as tcpcast does."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).with_name("ns2.tcl")


def is_here() -> bool:
    """Whether ns-2 is installed (``make peers``)."""
    return shutil.which("ns") is not None


def w134(*, connections: int, warmup: int, seed: int) -> dict[str, float]:
    """134 on/off sources; figures of the connections after the first ``warmup`` ones."""
    return _run("w134", connections, warmup, seed)


def long(  # noqa: PLR0913 - what tells the workload
    *, flows: int, mbit: float, buffer: int, loss: float, seconds: float, seed: int, warmup: float
) -> dict[str, float]:
    """Endless flows over 60 ms; figures from the time ``warmup`` to ``seconds``."""
    return _run("long", flows, mbit, buffer, loss, seconds, seed, warmup)


def _run(*arguments: object) -> dict[str, float]:
    run = subprocess.run(
        ["ns", SCRIPT.name, *map(str, arguments)],
        cwd=SCRIPT.parent,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    pairs = (pair.split("=") for pair in run.stdout.split())
    return {name: float(value) for name, value in pairs}
