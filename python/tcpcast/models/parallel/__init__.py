"""Throughput of n parallel TCP flows on one path (Damjanovic, Welzl, Telek and Heiss, 2008).

Equation and algorithm numbers are the paper's. All flows have the same RTT and run in common
rounds; a period ends with a loss event. Two measures of loss feed two models:

- ``loss_event_ratio``, p: a loss event of any flow counts, at most one per flow and RTT, per packet
  sent (section II, algorithm 1);
- ``loss_event_ratio_cumulative``, p_e: events within one RTT of the first count once, whichever the
  flow; with ``loss_ratio``, p_r, packets lost per packet sent (section IV, algorithm 2).

By default the algorithms of the appendix as printed, with 1 + 32 p^2 for f(p). ``equations=True``
is the text instead: the whole f(p) of (23), Q = 1 up to a window of 3 (26), and at most n, not 1,
flows timing out in an event (47). There, too, no more than n flows wait for a timer at a time: the
text lets their number (24) grow past n and its rate fall below 0.

Misprints: q1 of algorithm 1 lacks the parentheses of (27); the second fraction of (29) is
subtracted. (27) is *not* the 1 of (26) at w = 3 but 0.70, and stays between 0.70 and 1 below: the
algorithm's rate is continuous, the equation's jumps there. At w <= 1, where algorithm 1 takes the
power of a negative number, Q is 1, the limit from above.

No slow start but that after a timeout, no recovery time. Nor is there a receiver window or a
bottleneck in the paper: :func:`limited_rate_pps` cuts B(n) at both.
"""

from tcpcast.models.parallel.capacity import (
    MOST_FLOWS,
    competing_flow_rate_pps,
    flows_to_fill,
    limited_rate_pps,
    marginal_rate_pps,
    parallel_tolerated_loss_ratio,
)
from tcpcast.models.parallel.throughput import (
    ParallelThroughput,
    cumulative_throughput,
    multiplied_pftk_rate_pps,
    parallel_td_only_rate_pps,
    parallel_throughput,
)

__all__ = [
    "MOST_FLOWS",
    "ParallelThroughput",
    "competing_flow_rate_pps",
    "cumulative_throughput",
    "flows_to_fill",
    "limited_rate_pps",
    "marginal_rate_pps",
    "multiplied_pftk_rate_pps",
    "parallel_td_only_rate_pps",
    "parallel_throughput",
    "parallel_tolerated_loss_ratio",
]
