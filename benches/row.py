"""Rows of the table, and measurements of other programs."""

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
    """A value and its target; if ``value`` is None, ``note`` is the reason."""

    what: str
    unit: str
    value: float | None
    target: float | None = None
    note: str = ""


def engine_figures(
    example: Path, workload: tuple[str, ...], stack: str | None = None, *, tso: bool = False
) -> dict[str, float]:
    """Return the values that the engine's example prints for a workload, by default classic TCP.

    With ``tso``, senders with a modern stack send bursts of segmentation offload.
    """
    environment = with_stack(stack, tso=tso)
    run = subprocess.run(
        [example, *workload], capture_output=True, text=True, check=True, env=environment
    )
    return {name: float(value) for name, value in re.findall(r"(\w+)=([\d.]+)", run.stdout)}


def with_stack(stack: str | None, *, quic: bool = False, tso: bool = False) -> dict[str, str]:
    """Return an environment that selects a modern stack for the senders, or the default.

    With ``quic``, the congestion control of the stack runs over QUIC. With ``tso``, its senders
    send bursts of segmentation offload.
    """
    wanted = {"STACK": stack, "QUIC": "1" if quic else None, "TSO": "1" if tso else None}
    return os.environ | {name: value for name, value in wanted.items() if value}


def peak_bytes(command: list[str], feed: Iterable[bytes] = ()) -> float:
    """Return a program's peak resident size; ``feed`` is its standard input.

    The value is VmHWM of the program itself, polled until its end: ``ru_maxrss``
    of a child is never below the size of its parent at the start.
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
    result = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    return float(result[1]) * 1024 if result else 0.0
