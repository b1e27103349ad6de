"""A row of the table, and what is measured of other programs."""

from __future__ import annotations

import os
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


def engine_figures(
    example: Path, workload: tuple[str, ...], stack: str | None = None
) -> dict[str, float]:
    """Return the figures that the engine's example prints of a workload, classic TCP by default."""
    run = subprocess.run(
        [example, *workload], capture_output=True, text=True, check=True, env=with_stack(stack)
    )
    return {name: float(value) for name, value in re.findall(r"(\w+)=([\d.]+)", run.stdout)}


def with_stack(stack: str | None) -> dict[str, str]:
    """Return the environment in which the engine's senders have a stack of today, or none."""
    return os.environ | ({"STACK": stack} if stack else {})


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
