"""``tcpcast serve``: a local web page with sliders, models and simulation."""

from __future__ import annotations

from tcpcast.cli.streams import print_message
from tcpcast.web.server import bind
from tcpcast.web.server import serve as serve_page


def serve(*, port: int, no_browser: bool) -> None:
    """Serve the page until Ctrl-C."""

    def on_ready(url: str) -> None:
        print(url, flush=True)
        print_message("serving the page; stop with Ctrl-C")

    bound = bind(port)
    try:
        serve_page(bound, on_ready, browser=not no_browser)
    except KeyboardInterrupt:  # the normal end
        return
    finally:
        bound.close()
