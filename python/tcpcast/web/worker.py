"""A process that calculates for the page: a request a line in, what it has to tell a line out.

Started by :mod:`tcpcast.web.processes` as ``python -m tcpcast.web.worker``. Whoever started it
ends it by killing it, so nothing here asks whether to go on.
"""

# ruff: noqa: PLC0415 - a process imports what it is asked for
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

    Tell = Callable[[dict[str, Any]], None]


def main() -> None:
    """Answer requests until standard input ends."""
    extras.is_own_process = True
    # Whatever prints would end up among the answers.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def tell(told: dict[str, Any]) -> None:
        try:
            print(json.dumps(told, allow_nan=False), file=out, flush=True)
        except BrokenPipeError:  # nobody is there any more
            os._exit(0)

    for line in sys.stdin:
        tell(_answered(json.loads(line), tell))


def _answered(request: Mapping[str, Any], tell: Tell) -> dict[str, Any]:
    """Return ``done`` with what was asked for, or ``error`` with what is wrong with it."""
    try:
        return {"done": _ACTIONS[request["do"]](request, tell)}
    except TcpcastError as fault:
        field = getattr(fault, "field", "")
        return {"error": {"message": escape_control_characters(str(fault)), "field": field}}
    except Exception:
        traceback.print_exc()
        return {"fault": f"{sys.exc_info()[1]!r}"}


def _questions(request: Mapping[str, Any], tell: Tell) -> Any:  # noqa: ARG001 - as all
    from tcpcast.web.evaluation import offered

    return offered()


def _evaluate(request: Mapping[str, Any], tell: Tell) -> Any:  # noqa: ARG001
    from tcpcast.web.evaluation import evaluate

    return evaluate(request)


def _curve(request: Mapping[str, Any], tell: Tell) -> Any:  # noqa: ARG001
    from tcpcast.web.evaluation import curve

    return curve(request)


def _simulate(request: Mapping[str, Any], tell: Tell) -> Any:
    from tcpcast.web.evaluation import simulate

    return simulate(request, tell)


def _capture(request: Mapping[str, Any], tell: Tell) -> Any:  # noqa: ARG001
    from tcpcast.web.upload import read

    return read(request["path"], request["name"])


def _report(request: Mapping[str, Any], tell: Tell) -> Any:  # noqa: ARG001
    from tcpcast.web.report import report

    return report(request)


_ACTIONS: dict[str, Callable[[Mapping[str, Any], Tell], Any]] = {
    "questions": _questions,
    "evaluate": _evaluate,
    "curve": _curve,
    "simulate": _simulate,
    "capture": _capture,
    "report": _report,
}


if __name__ == "__main__":
    main()
