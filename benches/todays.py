"""Today's stacks: a packet of theirs beside a classic one, and how long large questions take.

EVEN lays stacks beside each other in like circumstances: the same windows, and each loses less than
a packet in a hundred. On W134 classic TCP loses 4 % with its window of 44 packets and today's
stacks more than a quarter of their packets, as they fill the small buffer; on LONG BBR loses a
tenth. There a delivered packet stands for more that were sent, and for repairs: these rows say what
a run takes, not what a stack does.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from benches.row import Row, engine_figures

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TIMES = {"linux-cubic": 2.0, "linux-bbr": 3.0}
"""Each stack, and how many times as long as a classic packet one of its packets may take."""
UNIT = "s per million packets"
USERS, WEB_SECONDS, WEB_TARGET_S = 10_000, 600, 4.0
WEB = ("web", str(USERS), str(WEB_SECONDS), "1")
FLOWS, MBIT, RTT_MS, PATH_SECONDS, PATH_TARGET_S = 16, 10_000, 138, 60, 15.0
BDP = 115_000
"""Packets of 1500 bytes."""
PATH = ("path", str(FLOWS), str(MBIT), str(RTT_MS), str(BDP), "{loss}", str(PATH_SECONDS), "1")
LOSSES = ("0", "0.00001")


def rows(example: Path, workloads: dict[str, tuple[str, ...]], runs: int) -> Iterator[Row]:
    """Yield each stack beside classic TCP on the same workloads, then the large questions."""
    for name, workload in workloads.items():
        yield from beside_classic(example, name, workload, runs)
    seconds, rate = walls(example, WEB, runs)
    note = f"{rate / 1e6:.2f} million packets/s; linux-cubic, FQ-CoDel, a connection a file"
    yield Row(f"{USERS:,} web users, {WEB_SECONDS} s", "s", seconds, WEB_TARGET_S, note)
    for loss in LOSSES:
        seconds, rate = walls(example, tuple(word.format(loss=loss) for word in PATH), runs)
        note = f"{rate / 1e6:.2f} million packets/s; {FLOWS} linux-cubic flows, loss {loss}"
        what = f"{MBIT // 1000} Gbit/s, {RTT_MS} ms, {PATH_SECONDS} s"
        yield Row(what, "s", seconds, PATH_TARGET_S, note)


def beside_classic(example: Path, name: str, workload: tuple[str, ...], runs: int) -> Iterator[Row]:
    """Yield a row a stack; the runs take turns, so that a busy machine is the same for all."""
    taken: dict[str | None, list[float]] = {stack: [] for stack in (None, *TIMES)}
    for _ in range(runs):
        for stack, times in taken.items():
            times.append(engine_figures(example, workload, stack)["wall_per_million_s"])
    classic = statistics.median(taken[None])
    yield Row(f"classic on {name}", UNIT, classic)
    for stack, most in TIMES.items():
        seconds = statistics.median(taken[stack])
        note = f"{seconds / classic:.1f} times a classic one"
        yield Row(f"{stack} on {name}", UNIT, seconds, most * classic, note)


def walls(example: Path, workload: tuple[str, ...], runs: int) -> tuple[float, float]:
    """Return the median of the seconds that linux-cubic takes, and packets delivered a second."""
    figures = [engine_figures(example, workload, "linux-cubic") for _ in range(runs)]
    rates = [1e6 / each["wall_per_million_s"] for each in figures]
    return statistics.median(each["wall_s"] for each in figures), statistics.median(rates)
