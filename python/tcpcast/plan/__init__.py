"""Solve for a target: buffer, number of users, link rate, number of flows, or maximum loss.

The inverse of TCP-Engset gives the buffer, the number of users and the link rate. Models of a
single path give the number of flows and the maximum loss. No formula gives the number of users with
a minimum goodput for most of their files; for this target, an engine simulates one population after
another.

Each plan can be checked by simulation: the packet engine simulates the answer and values near it,
and searches the value at which the simulation meets the target.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tcpcast.plan.questions import QUESTIONS

if TYPE_CHECKING:
    from tcpcast.plan.buffer import plan_buffer as plan_buffer
    from tcpcast.plan.capacity import plan_rate as plan_rate
    from tcpcast.plan.capacity import plan_rate_quality as plan_rate_quality
    from tcpcast.plan.capacity import plan_users as plan_users
    from tcpcast.plan.max_loss import plan_max_loss as plan_max_loss
    from tcpcast.plan.quality import plan_quality as plan_quality
    from tcpcast.plan.result import Plan as Plan
    from tcpcast.plan.streams import plan_streams as plan_streams

_MODULES = {each.solver: each.module for row in QUESTIONS.values() for each in row.targets}
_MODULES["Plan"] = "result"
__all__ = sorted(_MODULES)  # noqa: PLE0605 - a list


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: the solvers import numpy."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
