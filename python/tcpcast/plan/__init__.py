"""Inverse questions: which buffer, how many users, what link rate.

Each is answered by TCP-Engset turned round, and can be checked by simulation: the packet engine
runs at the answer and beside it, and says what it would have answered itself.
"""

from tcpcast.plan.buffer import plan_buffer
from tcpcast.plan.capacity import plan_rate, plan_users
from tcpcast.plan.result import Plan

__all__ = ["Plan", "plan_buffer", "plan_rate", "plan_users"]
