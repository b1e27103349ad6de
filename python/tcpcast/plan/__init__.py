"""Solve for a target: buffer, number of users, link rate, number of flows, or maximum loss.

The inverse of TCP-Engset gives the buffer, the number of users and the link rate. Models of a
single path give the number of flows and the maximum loss. No formula gives the number of users with
a minimum goodput for most of their files; for this target, an engine simulates one population after
another.

Each plan can be checked by simulation: the packet engine simulates the answer and values near it,
and searches the value at which the simulation meets the target.
"""

from tcpcast.plan.buffer import plan_buffer
from tcpcast.plan.capacity import plan_rate, plan_rate_quality, plan_users
from tcpcast.plan.max_loss import plan_max_loss
from tcpcast.plan.quality import plan_quality
from tcpcast.plan.result import Plan
from tcpcast.plan.streams import plan_streams

__all__ = [
    "Plan",
    "plan_buffer",
    "plan_max_loss",
    "plan_quality",
    "plan_rate",
    "plan_rate_quality",
    "plan_streams",
    "plan_users",
]
