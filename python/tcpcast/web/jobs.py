"""What takes long: simulations and captures, with progress, cancelled at once, few at a time."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tcpcast.errors import TcpcastError
from tcpcast.web.processes import Overdue, Worker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

MOST_RUNNING = 2
MOST_KEPT = 20
"""Jobs that are over and can still be asked for."""

LIMIT_S = 120.0
"""So long a job may take."""

UPLOAD_S = 600.0
"""Seconds that an upload may take, so that a stalled one does not keep its file."""


class Full(TcpcastError):  # noqa: N818 - nothing is wrong with the request
    """As many jobs run as may."""


class NoJob(TcpcastError):  # noqa: N818 - as above
    """No job of that name."""


@dataclass(slots=True)
class Job:
    """One of them.

    ``state`` is ``running``, ``done``, ``failed`` or ``cancelled``; ``points`` came so far.
    """

    name: str
    request: dict[str, Any]
    state: str = "running"
    progress: float = 0.0
    points: list[dict[str, Any]] = field(default_factory=list)
    result: Any = None
    error: dict[str, str] | None = None
    task: asyncio.Task[None] | None = None

    def describe(self) -> dict[str, Any]:
        """Return what the page is told of it."""
        return {
            "id": self.name,
            "do": self.request["do"],
            "state": self.state,
            "progress": self.progress,
            "points": self.points,
            "result": self.result,
            "error": self.error,
        }

    def hear(self, told: dict[str, Any]) -> None:
        """Take what the process tells in between."""
        if "progress" in told:
            self.progress = told["progress"]
        if "point" in told:
            self.points.append(told["point"])


class Jobs:
    """All of them, by name."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._uploads = 0

    @asynccontextmanager
    async def upload(self) -> AsyncIterator[None]:
        """Count an upload as a job until it is complete, for at most :data:`UPLOAD_S`.

        Raises
        ------
        Full
            As many run as may.
        Overdue
            It took longer.
        """
        self.room()
        self._uploads += 1
        try:
            async with asyncio.timeout(UPLOAD_S):
                yield
        except TimeoutError:
            raise Overdue(f"the upload took more than {UPLOAD_S:.0f} s") from None
        finally:
            self._uploads -= 1

    def room(self) -> None:
        """Raise Full unless another may begin."""
        running = sum(job.state == "running" for job in self._jobs.values())
        if running + self._uploads >= MOST_RUNNING:
            raise Full(f"{MOST_RUNNING} are running; cancel one, or wait until one is done")

    def start(self, request: dict[str, Any], after: Callable[[], None] = lambda: None) -> Job:
        """Start one; ``after`` is called when it is over, however it ended.

        Raises
        ------
        Full
            As many run as may.
        """
        self.room()
        job = Job(secrets.token_urlsafe(12), request)
        self._jobs[job.name] = job
        over = [name for name, each in self._jobs.items() if each.state != "running"]
        for name in over[:-MOST_KEPT]:
            del self._jobs[name]
        job.task = asyncio.create_task(_run(job, after))
        return job

    def find(self, name: str) -> Job:
        """Return a job.

        Raises
        ------
        NoJob
            None has that name, or not any more.
        """
        if name not in self._jobs:
            raise NoJob("no such job; it may have been cleared away")
        return self._jobs[name]

    async def cancel(self, job: Job) -> None:
        """End a job at once; one that is over stays as it is."""
        if job.task is not None and not job.task.done():
            job.task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await job.task
        if job.state == "running":  # it had not begun
            job.state = "cancelled"

    async def end(self) -> None:
        """Cancel all."""
        for job in list(self._jobs.values()):
            await self.cancel(job)


async def _run(job: Job, after: Callable[[], None]) -> None:
    worker = None
    try:
        worker = await Worker.start()
        job.result = await worker.ask(job.request, limit_s=LIMIT_S, hear=job.hear)
        job.state, job.progress = "done", 1.0
    except asyncio.CancelledError:
        job.state = "cancelled"
    except TcpcastError as fault:
        job.state = "failed"
        job.error = {"message": str(fault), "field": getattr(fault, "field", "")}
    finally:
        if worker is not None:
            await worker.end()
        after()
