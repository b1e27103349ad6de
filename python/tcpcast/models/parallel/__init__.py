"""Throughput of n parallel TCP flows on one path (Damjanovic, Welzl, Telek and Heiss, 2008).

Equation and algorithm numbers are the paper's. All flows have the same RTT and synchronised rounds;
a period ends with a loss event. There are two models with different measures of loss:

- ``loss_event_ratio``, p: loss events of any flow, at most one per flow and RTT, per packet sent
  (section II, algorithm 1);
- ``loss_event_ratio_cumulative``, p_e: loss events of the aggregate, at most one per RTT over all
  flows; with ``loss_ratio``, p_r, packets lost per packet sent (section IV, algorithm 2).

The default is the algorithms of the appendix as printed, with 1 + 32 p^2 for f(p).
``equations=True`` selects the equations of the text: the full f(p) of (23), Q = 1 up to a window of
3 (26), and at most n flows, not 1, that time out in an event (47). Here, at most n flows wait for a
timer at the same time. In the text, (24) can exceed n, which gives a negative rate.

Misprints: q1 of algorithm 1 lacks the parentheses of (27); the second fraction of (29) is
subtracted. At w = 3, (27) is 0.70, but (26) is 1; for smaller w, (27) is between 0.70 and 1.
Therefore the rate of the equations jumps at w = 3, but the rate of the algorithm is continuous. For
w <= 1, where algorithm 1 takes the power of a negative number, Q is 1, the limit from above.

There is no slow start except for that after a timeout, and no recovery time. The paper has neither
a receiver window nor a bottleneck: :func:`limited_rate_pps` limits B(n) by both.
"""

from tcpcast.models.parallel.throughput import (
    MAX_FLOWS,
    ParallelThroughput,
    cumulative_throughput,
    flows_to_fill,
    limited_rate_pps,
    multiplied_pftk_rate_pps,
    parallel_td_only_rate_pps,
    parallel_throughput,
    parallel_tolerated_loss_ratio,
)

__all__ = [
    "MAX_FLOWS",
    "ParallelThroughput",
    "cumulative_throughput",
    "flows_to_fill",
    "limited_rate_pps",
    "multiplied_pftk_rate_pps",
    "parallel_td_only_rate_pps",
    "parallel_throughput",
    "parallel_tolerated_loss_ratio",
]
