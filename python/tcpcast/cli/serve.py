"""``tcpcast serve``: a page on this machine to explore with sliders, models and simulation."""

from __future__ import annotations

import sys

from tcpcast.web.server import bind
from tcpcast.web.server import serve as serve_page


def serve(*, port: int, no_browser: bool) -> None:
    """Serve the page until Ctrl-C."""

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
