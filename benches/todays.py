"""Modern stacks: time per packet compared with classic TCP, and run times of large scenarios.

EVEN compares stacks in similar conditions: the same windows, and less than 1 % loss for each. On
W134 classic TCP loses 4 % with its window of 44 packets, and modern stacks lose more than 25 % of
their packets, because they fill the small buffer. On LONG BBR loses 10 %. There each delivered
packet includes the cost of retransmissions and recovery: these rows show the time of a run, not
the cost of a stack.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from benches.row import Row, engine_figures

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TIMES = {"linux-cubic": 2.0, "linux-bbr": 3.0}
"""Stacks, and maximum time of one of their packets relative to a classic packet."""
UNIT = "s per million packets"
USERS, WEB_SECONDS, WEB_TARGET_S = 10_000, 600, 4.0
WEB = ("web", str(USERS), str(WEB_SECONDS), "1")
FLOWS, MBIT, RTT_MS, PATH_SECONDS, PATH_TARGET_S = 16, 10_000, 138, 60, 15.0
BDP = 115_000
"""Packets of 1500 bytes."""
PATH = ("path", str(FLOWS), str(MBIT), str(RTT_MS), str(BDP), "{loss}", str(PATH_SECONDS), "1")
LOSSES = ("0", "0.00001")
BURSTS_GAIN = 1.5
"""How many times as fast a run must be if its packets are bursts of segmentation offload."""


def rows(example: Path, workloads: dict[str, tuple[str, ...]], runs: int) -> Iterator[Row]:
    """Yield each stack compared with classic TCP on the same workloads, then large scenarios."""
    for name, workload in workloads.items():
        yield from against_classic(example, name, workload, runs)
    seconds, rate = walls(example, WEB, runs)
    note = f"{rate / 1e6:.2f} million packets/s; linux-cubic, FQ-CoDel, one connection per file"
    yield Row(f"{USERS:,} web users, {WEB_SECONDS} s", "s", seconds, WEB_TARGET_S, note)
    for loss in LOSSES:
        path = tuple(word.format(loss=loss) for word in PATH)
        seconds, rate = walls(example, path, runs)
        note = f"{rate / 1e6:.2f} million packets/s; {FLOWS} linux-cubic flows, loss {loss}"
        what = f"{MBIT // 1000} Gbit/s, {RTT_MS} ms, {PATH_SECONDS} s"
        yield Row(what, "s", seconds, PATH_TARGET_S, note)
        bursts, rate = walls(example, path, runs, tso=True)
        note = f"{rate / 1e6:.2f} million packets/s; {seconds / bursts:.1f} times as fast"
        yield Row(f"{what}, bursts", "s", bursts, seconds / BURSTS_GAIN, note)


def against_classic(
    example: Path, name: str, workload: tuple[str, ...], runs: int
) -> Iterator[Row]:
    """Yield one row per stack; runs alternate, so that other load affects all stacks equally."""
    taken: dict[str | None, list[float]] = {stack: [] for stack in (None, *TIMES)}
    for _ in range(runs):
        for stack, times in taken.items():
            times.append(engine_figures(example, workload, stack)["wall_per_million_s"])
    classic = statistics.median(taken[None])
    yield Row(f"classic on {name}", UNIT, classic)
    for stack, maximum in TIMES.items():
        seconds = statistics.median(taken[stack])
        note = f"{seconds / classic:.1f} times a classic packet"
        yield Row(f"{stack} on {name}", UNIT, seconds, maximum * classic, note)


def walls(
    example: Path, workload: tuple[str, ...], runs: int, *, tso: bool = False
) -> tuple[float, float]:
    """Return the median run time of linux-cubic, and its delivered packets per second."""
    figures = [engine_figures(example, workload, "linux-cubic", tso=tso) for _ in range(runs)]
    rates = [1e6 / each["wall_per_million_s"] for each in figures]
    return statistics.median(each["wall_s"] for each in figures), statistics.median(rates)
