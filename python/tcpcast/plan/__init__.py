"""Solve for a target: buffer, number of users, link rate, number of flows, or maximum loss.

:func:`solve` finds the value of the asked quantity at which a metric of an engine meets its target.
The packet engine simulates one value after another; a formula is bisected.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tcpcast.plan.result import Plan as Plan
    from tcpcast.plan.solver import solve as solve

_MODULES = {"Plan": "result", "solve": "solver"}
_FORMER_NAMES = {
    "plan_buffer": "buffer",
    "plan_users": "users",
    "plan_quality": "users",
    "plan_rate": "rate",
    "plan_rate_quality": "rate",
    "plan_streams": "streams",
    "plan_max_loss": "max-loss",
}
__all__ = sorted(_MODULES)  # noqa: PLE0605 - a list


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: the solver imports numpy."""
    if name in _FORMER_NAMES:
        raise ImportError(
            f"tcpcast.plan has no {name}; use tcpcast.plan.solve({_FORMER_NAMES[name]!r}, scenario,"
            " ...)"
        )
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
