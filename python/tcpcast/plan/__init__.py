"""Solve for a target: buffer, number of users, link rate, number of flows, or maximum loss.

The first three come from the inverse of TCP-Engset, the other two from the models of a single
path. No formula gives the number of users with a minimum goodput for most of their files; for this,
an engine runs one population after another.

Each plan can be checked by simulation: the packet engine runs at the answer and next to it, and
searches its own answer.
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
