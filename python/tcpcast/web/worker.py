"""A worker process of the page that reads one request per line and writes one message per line.

:mod:`tcpcast.web.processes` starts it as ``python -m tcpcast.web.worker`` and stops it by killing
it, so the worker does not check for cancellation.
"""

# ruff: noqa: PLC0415 - a process imports only the modules that a request needs
from __future__ import annotations

import json
import os
import sys
import traceback
from typing import TYPE_CHECKING, Any

from tcpcast import extras
from tcpcast.errors import TcpcastError
from tcpcast.sanitize import escape_control_characters

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Send = Callable[[dict[str, Any]], None]


def main() -> None:
    """Process requests until standard input ends."""
    extras.is_own_process = True
    # Redirect other output to standard error, because responses use standard output.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def send(message: dict[str, Any]) -> None:
        try:
            print(json.dumps(message, allow_nan=False), file=out, flush=True)
        except BrokenPipeError:  # the server has ended
            os._exit(0)

    for line in sys.stdin:
        send(_answered(json.loads(line), send))


def _answered(request: Mapping[str, Any], send: Send) -> dict[str, Any]:
    """Return ``done`` with the result, or ``error`` with a message."""
    try:
        return {"done": _ACTIONS[request["do"]](request, send)}
    except TcpcastError as error:
        field = getattr(error, "field", "")
        return {"error": {"message": escape_control_characters(str(error)), "field": field}}
    except Exception:
        traceback.print_exc()
        return {"fault": f"{sys.exc_info()[1]!r}"}


def _questions(request: Mapping[str, Any], send: Send) -> Any:  # noqa: ARG001 - common signature
    from tcpcast.web.evaluation import offered

    return offered()


def _evaluate(request: Mapping[str, Any], send: Send) -> Any:  # noqa: ARG001
    from tcpcast.web.evaluation import evaluate

    return evaluate(request)


def _curve(request: Mapping[str, Any], send: Send) -> Any:  # noqa: ARG001
    from tcpcast.web.evaluation import curve

    return curve(request)


def _simulate(request: Mapping[str, Any], send: Send) -> Any:
    from tcpcast.web.simulation import simulate

    return simulate(request, send)


def _capture(request: Mapping[str, Any], send: Send) -> Any:  # noqa: ARG001
    from tcpcast.web.upload import read

    return read(request["path"], request["name"])


def _report(request: Mapping[str, Any], send: Send) -> Any:  # noqa: ARG001
    from tcpcast.web.report import report

    return report(request)


_ACTIONS: dict[str, Callable[[Mapping[str, Any], Send], Any]] = {
    "questions": _questions,
    "evaluate": _evaluate,
    "curve": _curve,
    "simulate": _simulate,
    "capture": _capture,
    "report": _report,
}


if __name__ == "__main__":
    main()
