"""Inverse questions: which buffer, how many users, what link rate, how many flows, what loss.

The first three are answered by TCP-Engset turned round, the other two by the models of one path.
How many users have a quality, a rate that most of their files exceed, no formula tells: there an
engine is asked for one population after another.
Each can be checked by simulation: the packet engine runs at the answer and beside it, and says
what it would have answered itself.
"""

from tcpcast.plan.buffer import plan_buffer
from tcpcast.plan.capacity import plan_rate, plan_rate_quality, plan_users
from tcpcast.plan.loss import plan_max_loss
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
