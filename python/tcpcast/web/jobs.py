"""Jobs: long calculations (simulations and captures) with progress and a time limit."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tcpcast.errors import TcpcastError
from tcpcast.web.processes import TimeLimitExceeded, Worker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

MAX_RUNNING_JOBS = 2
MAX_FINISHED_JOBS = 20
"""Maximum number of finished jobs whose results are kept."""

JOB_LIMIT_S = 120.0
"""Maximum duration of a job in seconds."""

UPLOAD_LIMIT_S = 600.0
"""Maximum duration of an upload in seconds, after which its file is deleted."""


class TooManyJobs(TcpcastError):  # noqa: N818 - the request is valid
    """The maximum number of jobs is running."""


class UnknownJob(TcpcastError):  # noqa: N818 - as above
    """There is no job with that name."""


@dataclass(slots=True)
class Job:
    """A calculation.

    ``state`` is ``running``, ``done``, ``failed`` or ``cancelled``; ``points`` holds the finished
    results.
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
        """Return the JSON form of the job for the page."""
        return {
            "id": self.name,
            "do": self.request["do"],
            "state": self.state,
            "progress": self.progress,
            "points": self.points,
            "result": self.result,
            "error": self.error,
        }

    def process_message(self, message: dict[str, Any]) -> None:
        """Process an intermediate message of the worker."""
        if "progress" in message:
            self.progress = message["progress"]
        if "point" in message:
            self.points.append(message["point"])


class Jobs:
    """All jobs by name."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._uploads = 0

    @asynccontextmanager
    async def upload(self) -> AsyncIterator[None]:
        """Count an upload as a job until it is complete, for at most :data:`UPLOAD_LIMIT_S`.

        Raises
        ------
        TooManyJobs
            The maximum number of jobs is running.
        TimeLimitExceeded
            The upload took too long.
        """
        self.check_capacity()
        self._uploads += 1
        try:
            async with asyncio.timeout(UPLOAD_LIMIT_S):
                yield
        except TimeoutError:
            raise TimeLimitExceeded(f"the upload took more than {UPLOAD_LIMIT_S:.0f} s") from None
        finally:
            self._uploads -= 1

    def check_capacity(self) -> None:
        """Raise TooManyJobs if no further job can start."""
        running = sum(job.state == "running" for job in self._jobs.values())
        if running + self._uploads >= MAX_RUNNING_JOBS:
            raise TooManyJobs(
                f"{MAX_RUNNING_JOBS} jobs are running; cancel one, or wait until one is done"
            )

    def start(self, request: dict[str, Any], on_end: Callable[[], None] = lambda: None) -> Job:
        """Start a job; ``on_end`` is called when the job has ended for any reason.

        Raises
        ------
        TooManyJobs
            The maximum number of jobs is running.
        """
        self.check_capacity()
        job = Job(secrets.token_urlsafe(12), request)
        self._jobs[job.name] = job
        finished = [name for name, each in self._jobs.items() if each.state != "running"]
        for name in finished[:-MAX_FINISHED_JOBS]:
            del self._jobs[name]
        job.task = asyncio.create_task(_run_job_in_worker(job, on_end))
        return job

    def find(self, name: str) -> Job:
        """Return a job.

        Raises
        ------
        UnknownJob
            The job does not exist, or no longer exists.
        """
        if name not in self._jobs:
            raise UnknownJob("there is no such job; its result may have been deleted")
        return self._jobs[name]

    async def cancel(self, job: Job) -> None:
        """Stop a job immediately; a finished job does not change."""
        if job.task is not None and not job.task.done():
            job.task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await job.task
        if job.state == "running":  # the task has not started
            job.state = "cancelled"

    async def end(self) -> None:
        """Cancel all jobs."""
        for job in list(self._jobs.values()):
            await self.cancel(job)


async def _run_job_in_worker(job: Job, on_end: Callable[[], None]) -> None:
    worker = None
    try:
        worker = await Worker.start()
        job.result = await worker.ask(
            job.request, limit_s=JOB_LIMIT_S, on_message=job.process_message
        )
        job.state, job.progress = "done", 1.0
    except asyncio.CancelledError:
        job.state = "cancelled"
    except TcpcastError as error:
        job.state = "failed"
        job.error = {"message": str(error), "field": getattr(error, "field", "")}
    finally:
        if worker is not None:
            await worker.end()
        on_end()
