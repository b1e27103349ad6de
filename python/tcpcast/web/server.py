"""The server of the page: binds to 127.0.0.1, reports the start URL, and opens a browser."""

from __future__ import annotations

import html
import logging
import socket
import tempfile
import threading
import webbrowser
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpcast.process.errors import MachineError, TcpcastError
from tcpcast.web.guard import LOOPBACK_ADDRESS, Access

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from tcpcast.web.app import Ask, Form

MAX_PORT = 65_535
STOP_CHECK_S = 0.1
"""Interval in seconds at which an answer checks whether the server stops."""

_REDIRECT = """<!doctype html><html lang="en"><meta charset="utf-8"><title>tcpcast</title>
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={url}">
<p><a href="{url}">Open tcpcast</a></p></html>
"""


def bind(port: int) -> socket.socket:
    """Return a socket bound to a port of this machine; 0 chooses a free port.

    Raises
    ------
    TcpcastError
        The port is out of range.
    MachineError
        The port is in use, or binding it is not permitted.
    """
    if not 0 <= port <= MAX_PORT:
        raise TcpcastError(f"--port: {port} must be between 0 and {MAX_PORT}")
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((LOOPBACK_ADDRESS, port))
    except OSError as error:
        bound.close()
        why = error.strerror or str(error)
        raise MachineError(
            f"--port: cannot bind port {port} ({why}); omit the option to use a free port"
        ) from None
    return bound


def serve(
    bound: socket.socket,
    on_ready: Callable[[str], None],
    forms: Mapping[str, Form],
    ask: Ask,
    *,
    browser: bool,
) -> None:
    """Serve the page until Ctrl-C.

    Parameters
    ----------
    bound
        Socket from :func:`bind`.
    on_ready
        Called with the start URL as soon as it can be opened.
    forms, ask
        Forms, and the function that answers them, see :func:`tcpcast.web.app.create_app`.
    browser
        Open the start URL in a browser.

    Raises
    ------
    MachineError
        The packages of the extra ``web`` are not installed.
    """
    try:
        import uvicorn  # noqa: PLC0415 - only needed here

        from tcpcast.web.app import create_app  # noqa: PLC0415 - imports starlette
    except ImportError:
        raise MachineError(
            "the page requires starlette and uvicorn; install them: pip install starlette uvicorn"
        ) from None
    access = Access(bound.getsockname()[1])
    bound.listen()  # from now on, connections wait instead of being refused
    on_ready(access.start_url)

    async def ask_while_serving(request: Any, folder: str) -> dict[str, Any]:
        return await _ask_until(lambda: server.should_exit, ask(request, folder))

    # Before Python 3.13, killing a worker that has just ended can log an unknown child process
    # (https://github.com/python/cpython/issues/87744).
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    config = uvicorn.Config(
        create_app(access, forms, ask_while_serving),
        log_level="error",  # no warnings about malformed requests from other local programs
        access_log=False,
        lifespan="on",
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    with _redirect_file(access.start_url) as file:
        if browser:
            threading.Thread(target=webbrowser.open, args=(file.as_uri(),), daemon=True).start()
        server.run(sockets=[bound])


async def _ask_until(
    is_over: Callable[[], bool], asked: Awaitable[dict[str, Any]]
) -> dict[str, Any]:
    """Return the answer; cancel its work and raise if the server stops first.

    Otherwise uvicorn would cancel the response itself and print a traceback.
    """
    import anyio  # noqa: PLC0415 - of the extra web

    answer: dict[str, Any] | TcpcastError = TcpcastError("the server was stopped")

    async def cancel_if_over(work: anyio.CancelScope) -> None:
        while not is_over():
            await anyio.sleep(STOP_CHECK_S)
        work.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cancel_if_over, tasks.cancel_scope)
        try:
            answer = await asked
        except TcpcastError as error:
            answer = error
        tasks.cancel_scope.cancel()
    if isinstance(answer, TcpcastError):
        raise answer
    return answer


@contextmanager
def _redirect_file(url: str) -> Iterator[Path]:
    """Yield a file that redirects to the start URL and that other users cannot read.

    The browser is started with the name of the file instead of the URL, because every user can read
    its command line, and the URL contains the token.
    """
    with tempfile.TemporaryDirectory(prefix="tcpcast-serve-") as folder:  # mode 0700
        file = Path(folder) / "open.html"
        file.touch(mode=0o600)
        file.write_text(_REDIRECT.format(url=html.escape(url)), encoding="utf-8")
        yield file
