"""A row of the table, and what is measured of other programs."""

from __future__ import annotations

import re
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Row:
    """A figure beside its target; ``value`` is None, with a reason, where it cannot be had."""

    what: str
    unit: str
    value: float | None
    target: float | None = None
    note: str = ""


def engine_figures(example: Path, workload: tuple[str, ...]) -> dict[str, float]:
    """Return the figures that the engine's example prints of a workload."""
    run = subprocess.run([example, *workload], capture_output=True, text=True, check=True)
    return {name: float(value) for name, value in re.findall(r"(\w+)=([\d.]+)", run.stdout)}


def peak_bytes(command: list[str], feed: Iterable[bytes] = ()) -> float:
    """Return a program's largest resident size; ``feed`` is its standard input.

    As the kernel counts it for the program itself (VmHWM, looked at until the end): ``ru_maxrss``
    of a child is never below what its parent had when it was started.
    """
    peak = 0.0
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        for part in feed:
            process.stdin.write(part)
            peak = max(peak, _peak_so_far(process.pid))
        process.stdin.close()
        while process.poll() is None:
            peak = max(peak, _peak_so_far(process.pid))
            time.sleep(0.002)
    if process.returncode != 0:
        raise RuntimeError(f"{command[0]} ended with {process.returncode}")
    return peak


def _peak_so_far(process: int) -> float:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    return float(found[1]) * 1024 if found else 0.0
