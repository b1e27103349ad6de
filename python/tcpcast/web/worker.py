"""A worker process of the page that reads one request per line and writes one message per line.

:mod:`tcpcast.web.processes` starts it as ``python -m tcpcast.web.worker`` and stops it by killing
it, so the worker does not check for cancellation. If its server ends in any way, the worker ends
too, also during a calculation.
"""

# ruff: noqa: PLC0415 - a process imports only the modules that a request needs
from __future__ import annotations

import json
import os
import sys
import threading
import traceback
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from tcpcast import extras
from tcpcast.errors import TcpcastError
from tcpcast.sanitize import escape_control_characters

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Send = Callable[[dict[str, Any]], None]
    Actions = Mapping[str, Callable[[Mapping[str, Any], Send], Any]]


def process_requests(actions: Actions) -> None:
    """Process requests until standard input ends.

    Parameters
    ----------
    actions
        Functions by the value of ``do``; each is called with the request and a function that sends
        an intermediate message, and returns the result.
    """
    extras.is_own_process = True
    # Redirect other output to standard error, because responses use standard output.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def send(message: dict[str, Any]) -> None:
        try:
            print(json.dumps(message, allow_nan=False), file=out, flush=True)
        except BrokenPipeError:  # the server has ended
            os._exit(0)

    lines: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_forward_requests, args=(lines.put,), daemon=True).start()
    while True:
        request = json.loads(lines.get())
        send(_answer_request(actions[request["do"]], request, send))


def _forward_requests(put: Callable[[str], None]) -> None:
    """Pass on requests, and end the process when the server has ended."""
    for line in sys.stdin:
        put(line)
    os._exit(0)


def _answer_request(
    action: Callable[[Mapping[str, Any], Send], Any], request: Mapping[str, Any], send: Send
) -> dict[str, Any]:
    """Return ``done`` with the result, or ``error`` with a message."""
    try:
        return {"done": action(request, send)}
    except TcpcastError as error:
        field = getattr(error, "field", "")
        return {"error": {"message": escape_control_characters(str(error)), "field": field}}
    except Exception:
        traceback.print_exc()
        return {"fault": f"{sys.exc_info()[1]!r}"}


def _offered_questions(request: Mapping[str, Any], send: Send) -> Any:  # noqa: ARG001 - common signature
    from tcpcast.web.evaluation import describe_questions

    return describe_questions()


def _evaluate_request(request: Mapping[str, Any], send: Send) -> Any:  # noqa: ARG001
    from tcpcast.web.evaluation import evaluate

    return evaluate(request)


def _curve_request(request: Mapping[str, Any], send: Send) -> Any:  # noqa: ARG001
    from tcpcast.web.evaluation import evaluate_curve

    return evaluate_curve(request)


def _simulate_request(request: Mapping[str, Any], send: Send) -> Any:
    from tcpcast.web.simulation import simulate

    return simulate(request, send)


def _capture_request(request: Mapping[str, Any], send: Send) -> Any:  # noqa: ARG001
    from tcpcast.web.upload import analyse_upload

    return analyse_upload(request["path"], request["name"])


def _report_request(request: Mapping[str, Any], send: Send) -> Any:  # noqa: ARG001
    from tcpcast.web.report import create_report_file

    return create_report_file(request)


_ACTIONS: Actions = {
    "questions": _offered_questions,
    "evaluate": _evaluate_request,
    "curve": _curve_request,
    "simulate": _simulate_request,
    "capture": _capture_request,
    "report": _report_request,
}


if __name__ == "__main__":
    process_requests(_ACTIONS)
