"""``tcpcast serve``: a page on this machine to explore with sliders, models and simulation."""

# ruff: noqa: PLC0415 - heavy modules are imported when the command runs, not for its help
from __future__ import annotations

import sys
from typing import Annotated

import typer

EXAMPLE = "tcpcast serve"


def serve(
    port: Annotated[
        int, typer.Option("--port", metavar="N", help="Port on 127.0.0.1; 0 takes a free one.")
    ] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Only print the address; open no browser.")
    ] = False,
) -> None:
    """Serve a local page: sliders, every model at once, simulation, captures.

    Prints the address that opens it, once; Ctrl-C ends it.
    """
    from tcpcast.web.server import bind
    from tcpcast.web.server import serve as serve_page

    def say(url: str) -> None:
        print(url, flush=True)
        print("tcpcast: serving the page; Ctrl-C ends it", file=sys.stderr)

    bound = bind(port)
    try:
        serve_page(bound, say, browser=not no_browser)
    except KeyboardInterrupt:  # how it is meant to end
        return
    finally:
        bound.close()
