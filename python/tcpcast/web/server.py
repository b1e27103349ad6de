"""Serving the page: binds to 127.0.0.1, prints the start URL, and opens it in a browser."""

from __future__ import annotations

import html
import socket
import tempfile
import threading
import webbrowser
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tcpcast.errors import MachineError, TcpcastError
from tcpcast.web.guard import ADDRESS, Access

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LARGEST_PORT = 65_535

_REDIRECT = """<!doctype html><html lang="en"><meta charset="utf-8"><title>tcpcast</title>
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={url}">
<p><a href="{url}">Open tcpcast</a></p></html>
"""


def bind(port: int) -> socket.socket:
    """Return a socket that is bound to a port of this machine; 0 takes a free one.

    Raises
    ------
    TcpcastError
        No number of a port.
    MachineError
        The port is taken, or may not be bound.
    """
    if not 0 <= port <= LARGEST_PORT:
        raise TcpcastError(f"--port: {port} is out of range; write from 0 to {LARGEST_PORT}")
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((ADDRESS, port))
    except OSError as fault:
        bound.close()
        why = fault.strerror or str(fault)
        raise MachineError(
            f"--port: cannot bind port {port} ({why}); leave it out to take a free one"
        ) from None
    return bound


def serve(bound: socket.socket, say: Callable[[str], None], *, browser: bool) -> None:
    """Serve the page until Ctrl-C.

    Parameters
    ----------
    bound
        From :func:`bind`.
    say
        Called with the start URL as soon as it can be opened.
    browser
        Whether a browser is opened on it.

    Raises
    ------
    MachineError
        The packages of the extra ``web`` are not installed.
    """
    try:
        import uvicorn  # noqa: PLC0415 - only who serves needs it

        from tcpcast.web.app import create_app  # noqa: PLC0415 - imports starlette
    except ImportError:
        raise MachineError(
            "the page needs starlette and uvicorn; install them by: pip install starlette uvicorn"
        ) from None
    access = Access(bound.getsockname()[1])
    bound.listen()  # from here on a browser waits for the answer rather than being refused
    say(access.start_url)
    config = uvicorn.Config(
        create_app(access),
        log_level="error",  # a warning per malformed request, from any program on this machine
        access_log=False,
        lifespan="on",
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=1,
    )
    with _redirect_file(access.start_url) as file:
        if browser:
            threading.Thread(target=webbrowser.open, args=(file.as_uri(),), daemon=True).start()
        uvicorn.Server(config).run(sockets=[bound])


@contextmanager
def _redirect_file(url: str) -> Iterator[Path]:
    """Yield a file that leads to the start URL and that other users cannot read.

    The browser gets the name of the file: every user can read the arguments of its process, and
    the URL has the token.
    """
    with tempfile.TemporaryDirectory(prefix="tcpcast-serve-") as folder:  # mode 0700
        file = Path(folder) / "open.html"
        file.touch(mode=0o600)
        file.write_text(_REDIRECT.format(url=html.escape(url)), encoding="utf-8")
        yield file
