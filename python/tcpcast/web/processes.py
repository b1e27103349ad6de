"""Processes that calculate for the page: each is asked one thing at a time, and can be killed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from typing import TYPE_CHECKING, Any

from tcpcast.errors import TcpcastError

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Callable

MOST_BYTES_OF_A_LINE = 64 * 2**20


class Refused(TcpcastError):  # noqa: N818 - what was asked is at fault
    """What was asked cannot be answered; ``field`` is where it was typed, "" for none."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class Overdue(TcpcastError):  # noqa: N818 - as above
    """It took longer than it may."""


class Died(TcpcastError):  # noqa: N818 - as above
    """The process ended before it had answered, or has a fault of its own."""


class Worker:
    """A running ``tcpcast.web.worker``."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._asked = False

    @classmethod
    async def start(cls) -> Worker:
        """Start one; it imports what it needs when it is asked."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "tcpcast.web.worker"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=MOST_BYTES_OF_A_LINE,
            start_new_session=True,  # Ctrl-C is the server's, which ends it
        )
        return cls(process)

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return self._process.returncode is None

    async def ask(
        self,
        request: dict[str, Any],
        *,
        limit_s: float,
        hear: Callable[[dict[str, Any]], None] = lambda _: None,
    ) -> Any:
        """Return the answer to a request.

        Parameters
        ----------
        request
            ``do`` and what goes with it.
        limit_s
            After so many seconds the process is killed.
        hear
            Called with what it tells before the answer.

        Raises
        ------
        Refused
            The request is at fault; the message says how.
        Overdue
            There was no answer in time.
        Died
            The process ended without one.
        """
        try:
            async with asyncio.timeout(limit_s):
                return await self._ask(request, hear)
        except TimeoutError:
            raise Overdue(f"this takes more than {limit_s:.0f} s; ask for less") from None
        finally:
            # Whoever was left in the middle of an answer would take it for the next one's.
            if self._asked:
                self.kill()

    async def _ask(self, request: dict[str, Any], hear: Callable[[dict[str, Any]], None]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._asked = True
        with contextlib.suppress(ConnectionError):
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            await self._process.stdin.drain()
        while line := await self._process.stdout.readline():
            told = json.loads(line)
            if told.keys() & {"done", "error", "fault"}:
                self._asked = False
                return _result(told)
            hear(told)
        raise Died("the calculation ended without an answer; the terminal may say why")

    def kill(self) -> None:
        """End it at once, whatever it is doing."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def end(self) -> None:
        """End it and wait until it has."""
        self.kill()
        await self._process.wait()
        # Without this its pipes would wait for the garbage collector.
        self._process._transport.close()  # type: ignore[attr-defined]


def _result(told: dict[str, Any]) -> Any:
    if "error" in told:
        raise Refused(told["error"]["message"], told["error"]["field"])
    if "fault" in told:
        raise Died(f"a fault of tcpcast: {told['fault']}")
    return told["done"]


class Models:
    """The process that answers by formulas, one question after another."""

    LIMIT_S = 20.0
    IMPORT_S = 120.0
    """What a process may take to import the models; seconds on a machine that is busy."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._worker: Worker | None = None

    async def start(self) -> None:
        """Start the process before it is asked."""
        async with self._turn:
            await self._ready()

    async def _ready(self) -> Worker:
        if self._worker is None or not self._worker.alive:
            self._worker = await Worker.start()
            await self._worker.ask({"do": "questions"}, limit_s=self.IMPORT_S)
        return self._worker

    async def ask(self, request: dict[str, Any]) -> Any:
        """Return the answer to a request; raises as :meth:`Worker.ask`."""
        async with self._turn:
            worker = await self._ready()
            try:
                return await worker.ask(request, limit_s=self.LIMIT_S)
            except (Overdue, Died):
                await worker.end()
                self._worker = None
                raise

    async def end(self) -> None:
        """End the process."""
        if self._worker is not None:
            await self._worker.end()
            self._worker = None
