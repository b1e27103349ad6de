"""Worker processes; each handles one request at a time and can be killed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from typing import TYPE_CHECKING, Any

from tcpcast.errors import TcpcastError, WorkerDied

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Callable

MAX_LINE_BYTES = 64 * 2**20


class InvalidRequest(TcpcastError):  # noqa: N818 - the request is invalid
    """The request is invalid; ``field`` is the field with the error, or ""."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class TimeLimitExceeded(TcpcastError):  # noqa: N818 - as above
    """The calculation exceeded its time limit."""


class Worker:
    """A running worker process, see :func:`tcpcast.web.worker.process_requests`."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._is_busy = False

    @classmethod
    async def start(cls, module: str = "tcpcast.web.worker") -> Worker:
        """Start a process, which imports modules only when a request needs them."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", module),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=MAX_LINE_BYTES,
            start_new_session=True,  # Ctrl-C reaches only the server, which then ends the process
        )
        return cls(process)

    @property
    def alive(self) -> bool:
        """True if the process is running."""
        return self._process.returncode is None

    async def ask(
        self,
        request: dict[str, Any],
        *,
        limit_s: float,
        on_message: Callable[[dict[str, Any]], None] = lambda _: None,
    ) -> Any:
        """Return the response to a request.

        Parameters
        ----------
        request
            The name of the calculation in ``do``, and its arguments.
        limit_s
            Time limit in seconds, after which the process is killed.
        on_message
            Called with each intermediate message.

        Raises
        ------
        InvalidRequest
            The request is invalid.
        TimeLimitExceeded
            The time limit was exceeded.
        WorkerDied
            The process ended without a response.
        """
        try:
            async with asyncio.timeout(limit_s):
                return await self._ask(request, on_message)
        except TimeoutError:
            raise TimeLimitExceeded(
                f"the calculation takes more than {limit_s:.0f} s; choose values that need "
                "less time, such as fewer flows"
            ) from None
        finally:
            # Kill the process; otherwise, the next request would receive this response.
            if self._is_busy:
                self.kill()

    async def _ask(
        self, request: dict[str, Any], on_message: Callable[[dict[str, Any]], None]
    ) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._is_busy = True
        with contextlib.suppress(ConnectionError):
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            await self._process.stdin.drain()
        while line := await self._process.stdout.readline():
            message = json.loads(line)
            if message.keys() & {"done", "error", "fault"}:
                self._is_busy = False
                return _result_or_raise(message)
            on_message(message)
        raise WorkerDied(
            "the calculation ended without a response; the terminal may show the reason"
        )

    def kill(self) -> None:
        """Kill the process immediately."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def end(self) -> None:
        """Kill the process and wait until it has ended."""
        self.kill()
        await self._process.wait()
        # Close the pipes now instead of at garbage collection.
        self._process._transport.close()  # type: ignore[attr-defined]


def _result_or_raise(message: dict[str, Any]) -> Any:
    if "error" in message:
        raise InvalidRequest(message["error"]["message"], message["error"]["field"])
    if "fault" in message:
        raise WorkerDied(f"internal error of tcpcast: {message['fault']}")
    return message["done"]


class FormulaProcess:
    """A process that evaluates formulas, one request at a time."""

    LIMIT_S = 20.0
    IMPORT_S = 120.0
    """Time limit in seconds to import the models, which may be slow on a busy machine."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._worker: Worker | None = None

    async def start(self) -> None:
        """Start the process before the first request."""
        async with self._turn:
            await self._ready_worker()

    async def _ready_worker(self) -> Worker:
        if self._worker is None or not self._worker.alive:
            self._worker = await Worker.start()
            await self._worker.ask({"do": "questions"}, limit_s=self.IMPORT_S)
        return self._worker

    async def ask(self, request: dict[str, Any]) -> Any:
        """Return the response to a request; see :meth:`Worker.ask` for errors."""
        async with self._turn:
            worker = await self._ready_worker()
            try:
                return await worker.ask(request, limit_s=self.LIMIT_S)
            except (TimeLimitExceeded, WorkerDied):
                await worker.end()
                self._worker = None
                raise

    async def end(self) -> None:
        """End the process."""
        if self._worker is not None:
            await self._worker.end()
            self._worker = None
