"""Share of on/off sources that are active when a run begins in equilibrium.

The share follows from means: a source is active during the ON time of each ON/OFF cycle. If the
bottleneck can carry the load, the ON time is that on the idle path. Otherwise, all sources have the
same rate while active, which just fills the bottleneck. The warm-up covers the effects of queues
and losses.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tcpcast.scenario.traffic import OnOff

if TYPE_CHECKING:
    from tcpcast.scenario import Scenario
    from tcpcast.scenario.classes import Population

_BISECTION_STEPS = 100


def initial_class_states(scenario: Scenario) -> list[tuple[float, float] | None]:
    """Return the initial state of each class; None if all its sources begin with a new OFF time."""
    rate = _equilibrium_rate_pps(scenario)
    return [
        (_active_probability(group, group.traffic, rate), group.rtt_s)
        if isinstance(group.traffic, OnOff) and group.traffic.start == "equilibrium"
        else None
        for group in scenario.populations
    ]


def equilibrium_on_times_s(scenario: Scenario) -> list[float | None]:
    """Return the mean ON time of each class's files in equilibrium; None if it has no files."""
    rate = _equilibrium_rate_pps(scenario)
    return [
        _mean_on_time_s(group, group.traffic.size.mean_value(), rate)
        if isinstance(group.traffic, OnOff)
        else None
        for group in scenario.populations
    ]


def _mean_on_time_s(group: Population, size: float, rate_pps: float) -> float:
    """Return the mean ON time at a given rate, at least the mean ON time on the idle path.

    On the idle path the window doubles per RTT, from the initial to the receiver window.
    """
    first, max_window = group.tcp.initial_window, group.tcp.receiver_window
    rounds = math.log2(1 + size / first)
    if size > max_window:
        rounds = math.log2(1 + max_window / first) + (size - max_window) / max_window
    transmission_s = max(8 * group.packet_bytes / group.ingress.rate_bps, 1e-12) * size
    return max(max(1.0, rounds) * group.rtt_s, transmission_s, size / rate_pps)


def _active_probability(group: Population, traffic: OnOff, rate_pps: float) -> float:
    on_s = _mean_on_time_s(group, traffic.size.mean_value(), rate_pps)
    return on_s / (on_s + traffic.off.mean_value())


def _equilibrium_rate_pps(scenario: Scenario) -> float:
    """Return the rate of an active source that fills the bottleneck.

    The result is the link's rate if the sources cannot fill the bottleneck. Packets are weighted by
    their size relative to ``network.packet``.
    """
    usual = scenario.network.packet_bytes
    capacity = scenario.bottleneck.rate_bps / (8 * usual)
    if math.isinf(capacity):
        return math.inf

    def load_pps(rate_pps: float) -> float:
        total = 0.0
        for group in scenario.populations:
            if isinstance(group.traffic, OnOff):
                size = group.traffic.size.mean_value()
                on_s = _mean_on_time_s(group, size, rate_pps)
                weight = group.packet_bytes / usual
                total += group.count * size * weight / (on_s + group.traffic.off.mean_value())
        return total

    smallest = min(group.packet_bytes for group in scenario.populations)
    low, high = 0.0, capacity / (smallest / usual)
    if load_pps(high) <= capacity:
        return high
    for _ in range(_BISECTION_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if load_pps(middle) <= capacity else (low, middle)
    return high
