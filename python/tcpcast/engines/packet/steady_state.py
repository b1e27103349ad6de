"""Test whether endless flows have reached a steady state, judging by their losses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpcast.engines.formula.collect_inputs import find_limiting_link
from tcpcast.engines.packet.reliability import count_effective_marks
from tcpcast.scenario.modern_tcp import RATE_BASED

if TYPE_CHECKING:
    from tcpcast import _native
    from tcpcast.answer import Answer
    from tcpcast.engines.packet.metric_estimates import Snapshot
    from tcpcast.scenario import Population, Scenario

LOSSLESS_STAGE, FIRST_RECOVERY_STAGE = 0, 1
"""Stages of a flow in ``Simulation.stages``; larger values are later stages."""

MIN_FULL_SHARE = 0.95
"""Minimum rate of a lossless flow in a steady state, as a share of the rate that its receiver
window or its links allow."""

MAX_UNSETTLED_SHARE = 0.1
"""Largest share of flows without a steady state for which values are kept."""


def no_steady_state_reason(
    scenario: Scenario, snapshot: Snapshot, run: _native.Simulation, answer: Answer
) -> str | None:
    """Return the reason why the flows of a run are not in a steady state, None if they are.

    A flow without a loss or mark still grows its window, unless the receiver window or a link
    limits it. A flow in its first fast recovery repairs the losses of slow start, one packet per
    RTT.
    """
    bulk = [
        index for index, group in enumerate(scenario.populations) if _can_reach_steady_state(group)
    ]
    if not bulk:
        return None
    growing, repairing, flows = 0, 0, 0
    first = np.cumsum([0, *(group.count for group in scenario.populations)])
    for index in bulk:
        of_class = slice(first[index], first[index + 1])
        stages = np.concatenate([each[of_class] for each in run.stages()])
        flows += stages.size
        repairing += int(np.count_nonzero(stages == FIRST_RECOVERY_STAGE))
        is_limited = _is_limited_by_window_or_link(
            scenario, scenario.populations[index], snapshot, answer, index
        )
        if (
            not is_limited
            and count_effective_marks(scenario, snapshot.units, (index,)) < stages.size
        ):
            growing += _count_growing_flows(stages, snapshot, index)
    if growing + repairing <= MAX_UNSETTLED_SHARE * flows:
        return None
    marked = any(scenario.populations[index].tcp.ecn for index in bulk)
    return _no_steady_state_message(
        growing, repairing, flows, "a loss or a mark" if marked else "a loss"
    )


def _can_reach_steady_state(group: Population) -> bool:
    """Return True if the senders never finish, and losses end the growth of their windows."""
    tcp = group.tcp
    return (
        group.traffic.kind == "bulk" and not tcp.has_loss_feedback and tcp.control not in RATE_BASED
    )


def _count_growing_flows(
    stages: np.ndarray[tuple[int], np.dtype[np.uint8]], snapshot: Snapshot, index: int
) -> int:
    """Count flows without a loss since their start, or during the measured time."""
    indications = snapshot.units.total("fast_retransmits", [index])
    indications += snapshot.units.total("timeout_sequences", [index])
    beyond = np.count_nonzero(stages > FIRST_RECOVERY_STAGE) if indications == 0 else 0
    return int(np.count_nonzero(stages == LOSSLESS_STAGE) + beyond)


def _is_limited_by_window_or_link(
    scenario: Scenario, group: Population, snapshot: Snapshot, answer: Answer, index: int
) -> bool:
    """Return True if a class sends as fast as its receiver windows or the links allow."""
    seconds = snapshot.units.measured_s
    if not seconds:
        return False
    rate = snapshot.units.total("sent", [index]) / seconds
    rtt = answer.metrics.get("rtt_mean_s")
    rtt_s = group.rtt_s if rtt is None else max(rtt.value, group.rtt_s)
    # Excludes start-up, in which the window opens, and the truncated last round trip.
    rounds = seconds / rtt_s - snapshot.units.replications
    if (
        rounds > 0
        and rate * seconds >= MIN_FULL_SHARE * group.count * group.tcp.receiver_window * rounds
    ):
        return True
    utilisation = answer.metrics.get("utilisation")
    if utilisation is not None and utilisation.value >= MIN_FULL_SHARE:
        return True
    link = find_limiting_link(scenario, group)
    return link is not None and rate >= MIN_FULL_SHARE * link.pps


def _no_steady_state_message(growing: int, repairing: int, flows: int, end: str) -> str:
    parts = []
    if repairing:
        parts.append(f"{_some_flows_text(repairing, flows)} still in the first fast recovery")
    if growing:
        parts.append(
            f"{_some_flows_text(growing, flows)} still increasing the window without {end}"
        )
    return (
        f"no steady state: {' and '.join(parts)}; run longer (run.duration), or limit the window "
        "(tcp.receiver_window)"
    )


def _some_flows_text(some: int, flows: int) -> str:
    if flows == 1:
        return "the flow is"
    return f"{some} of {flows} flows {'is' if some == 1 else 'are'}"
