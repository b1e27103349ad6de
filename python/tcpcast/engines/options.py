"""Options of a run."""

from __future__ import annotations

import time
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING

from tcpcast.process.errors import DomainError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcpcast.scenario import Scenario

MAX_THREADS = 10_000


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of a run that do not change the results of a complete run.

    ``threads`` is the number of worker threads (None: one per core, at most one per replication).
    ``progress`` is called with the finished share, from 0 to 1. ``deadline`` is the value of
    :func:`time.perf_counter` at which several runs that share one ``run.max_wall`` must end.
    ``force`` lets files of ``[[probes.pcap]]`` overwrite any file. ``over_time`` adds the tables
    of ``packet`` for plots over time and of completion times. ``by_replication`` adds its tables
    ``by_replication`` and ``time_distribution``. ``accept_late`` lets ``kernel``
    continue although this machine is too busy for its link.
    """

    threads: int | None = None
    progress: Callable[[float], None] | None = None
    deadline: float | None = None
    force: bool = False
    over_time: bool = False
    by_replication: bool = False
    accept_late: bool = False

    def __post_init__(self) -> None:
        """Validate and convert the number of threads."""
        count = self.threads
        if count is not None and (
            not isinstance(count, Integral) or isinstance(count, bool) or count < 1
        ):
            raise DomainError(
                f"threads: {count!r} is not a number of threads; use 1 or more, or omit "
                "threads (default: one per core)"
            )
        if count is not None and count > MAX_THREADS:
            raise DomainError(f"threads: {count} is too large; use at most {MAX_THREADS}")
        if count is not None:
            object.__setattr__(self, "threads", int(count))

    def compute_deadline(self, scenario: Scenario) -> float | None:
        """Return the time at which a run that begins now must stop, None for no limit."""
        limit = scenario.run.max_wall_s
        own = None if limit is None else time.perf_counter() + limit
        return min((end for end in (self.deadline, own) if end is not None), default=None)
