"""``tcpcast serve``: a local web page with the forms of the commands."""

from __future__ import annotations

from typing import Any

from tcpcast.cli.page import answer, make_forms
from tcpcast.cli.streams import print_message
from tcpcast.cli.worker import run_in_worker
from tcpcast.web.server import bind
from tcpcast.web.server import serve as serve_page

LIMIT_S = 120.0
"""Time limit of an answer in seconds."""


def serve(*, port: int, no_browser: bool) -> None:
    """Serve the page until Ctrl-C."""

    def on_ready(url: str) -> None:
        print(url, flush=True)
        print_message("serving the page; press Ctrl-C to stop")

    bound = bind(port)
    try:
        serve_page(bound, on_ready, make_forms(), ask, browser=not no_browser)
    except KeyboardInterrupt:  # the normal end
        return
    finally:
        bound.close()


async def ask(request: Any, folder: str) -> Any:
    """Answer a request in a worker process."""
    return await run_in_worker(answer, request, folder, LIMIT_S, limit_s=LIMIT_S)
