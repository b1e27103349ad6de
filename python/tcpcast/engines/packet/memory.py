"""Memory limits of a run, checked before it starts and while packets accumulate."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tcpcast import _native
from tcpcast.process.errors import NotApplicable, Suggestion
from tcpcast.scenario.classes import COUNT_KEYS

if sys.platform != "win32":
    import resource

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcpcast.engines.packet.config_types import Config
    from tcpcast.scenario import Scenario

MEMINFO = Path("/proc/meminfo")
PROCESS_STATUS = Path("/proc/self/status")
CGROUP = Path("/sys/fs/cgroup")

GIB = 2.0**30

MIN_FREE_BYTES = 0.25 * GIB
"""Memory that every supported machine has free."""

ARRAY_GROWTH_FACTOR = 2.0
"""Growing arrays are copied into twice their size, so this factor must remain free."""


class OutOfMemoryError(Exception):
    """Packets in flight and in queues exceed the free memory; the message contains the amount."""


class MemoryWatch:
    """Progress callback that stops a run before its packets exhaust the memory.

    :func:`check_memory` checks the memory of the sources before the run. The number of packets in
    flight is only known during the run: without loss and with an unlimited buffer, it may exceed
    the memory.

    Parameters
    ----------
    config
        The simulator's configuration.
    replications
        Number of replications that are advanced.
    progress
        Receives the finished share of the run.
    """

    def __init__(
        self, config: Config, replications: int, progress: Callable[[float], None] | None
    ) -> None:
        self._begun = (read_resident_bytes() or 0) + _native.run_bytes(config, replications)
        self._progress = progress

    def __call__(self, share: float) -> None:
        """Forward the progress; raise :class:`OutOfMemoryError` if memory is nearly exhausted."""
        gathered = (read_resident_bytes() or 0) - self._begun
        free = read_free_bytes() if gathered > MIN_FREE_BYTES else None
        if free is not None and ARRAY_GROWTH_FACTOR * gathered > free:
            raise OutOfMemoryError(
                f"stopped with {gathered / GIB:.3g} GiB of packets in flight and in queues, "
                f"because only {free / GIB:.3g} GiB of memory are still free; use a smaller "
                "buffer, rate or RTT"
            )
        if self._progress is not None:
            self._progress(share)


def read_resident_bytes() -> int | None:
    """Return the resident memory of this process, None if unknown."""
    return _read_kib_line(PROCESS_STATUS, "VmRSS")


def check_memory(
    scenario: Scenario, config: Config, run_bytes: Callable[[Config, int], int] = _native.run_bytes
) -> None:
    """Raise an error if a run does not fit into free memory.

    Parameters
    ----------
    scenario
        The scenario.
    config
        The simulator's configuration of the scenario.
    run_bytes
        Returns the memory of a number of replications of the configuration, in bytes.

    Raises
    ------
    NotApplicable
        The sources of all replications need more bytes than are free; the suggestion contains the
        number of replications or sources that fit.
    """
    replications = scenario.run.replications
    needed, free = run_bytes(config, replications), read_free_bytes()
    if free is None or needed <= free:
        return
    each = run_bytes(config, 1)
    sources = scenario.senders
    if each <= free:
        fewer = [Suggestion({"run.replications": free // each})]
    else:
        fewer = [Suggestion(engine="mean-field")]
        if not scenario.classes and (kind := COUNT_KEYS.get(scenario.traffic.kind)):
            # A fixed part of the memory is shared by all sources: fewer sources need more per
            # source.
            limit = int(0.95 * sources * free / each)
            fewer.append(Suggestion({f"traffic.{kind}": limit}))
    of = "1 replication" if replications == 1 else f"{replications:,} replications"
    raise NotApplicable(
        f"{of} of {sources:,} sources would take about {needed / GIB:.3g} GiB of memory, but "
        f"only {free / GIB:.3g} GiB are free; fewer "
        f"{'replications' if each <= free else 'sources'} fit",
        *fewer,
    )


def read_free_bytes() -> int | None:
    """Return the free memory for this process, None if unknown."""
    limits = []
    available = _read_kib_line(MEMINFO, "MemAvailable")
    if available is not None:
        limits.append(available)
    elif hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    # A container (cgroup v2), including the reclaimable page cache.
    with suppress(OSError):
        limit, used = ((CGROUP / name).read_text() for name in ("memory.max", "memory.current"))
        if limit.strip().isdigit():
            rows: dict[str, str] = {}
            with suppress(OSError, ValueError):
                lines = (CGROUP / "memory.stat").read_text().splitlines()
                rows = dict(line.split() for line in lines)
            cached = int(rows.get("active_file", 0)) + int(rows.get("inactive_file", 0))
            limits.append(int(limit) - int(used) + cached)
    if sys.platform != "win32":
        for kind, name in ((resource.RLIMIT_AS, "VmSize"), (resource.RLIMIT_DATA, "VmData")):
            most, _ = resource.getrlimit(kind)
            if most != resource.RLIM_INFINITY:
                limits.append(most - (_read_kib_line(PROCESS_STATUS, name) or 0))
    return max(0, min(limits)) if limits else None


def _read_kib_line(file: Path, name: str) -> int | None:
    """Return the bytes of a line ``name: 123 kB``."""
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return None
    values = [line.split()[1] for line in lines if line.startswith(f"{name}:")]
    return int(values[0]) * 1024 if values else None
