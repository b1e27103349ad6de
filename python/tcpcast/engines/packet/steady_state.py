"""Whether endless flows have reached a steady state, by the outcome of their losses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpcast.engines.formula.feed import limiting_link
from tcpcast.engines.packet.reliability import marks_heeded
from tcpcast.scenario.modern_tcp import RATE_BASED

if TYPE_CHECKING:
    from tcpcast import _native
    from tcpcast.answer import Answer
    from tcpcast.engines.packet.metric_estimates import Snapshot
    from tcpcast.scenario import Population, Scenario

LOSSLESS, FIRST_RECOVERY = 0, 1
"""Stages of a flow, as ``Simulation.stages`` has them; later ones are beyond."""

FULL = 0.95
"""A flow without loss is in a steady state where it has so much of what link or window allow."""

MOST_UNSETTLED = 0.1
"""Of more flows than this share the values say nothing of a steady state."""


def unsettled(
    scenario: Scenario, seen: Snapshot, run: _native.Simulation, answer: Answer
) -> str | None:
    """Say why the flows of a run are in no steady state, None where they are.

    A flow that has found no loss and no mark only grows its window, unless the receiver window or a
    link holds it; one in its first fast recovery repairs what slow start lost, a packet each round
    trip.
    """
    bulk = [at for at, people in enumerate(scenario.populations) if _can_settle(people)]
    if not bulk:
        return None
    growing, repairing, flows = 0, 0, 0
    first = np.cumsum([0, *(people.count for people in scenario.populations)])
    for at in bulk:
        of_class = slice(first[at], first[at + 1])
        stages = np.concatenate([each[of_class] for each in run.stages()])
        flows += stages.size
        repairing += int(np.count_nonzero(stages == FIRST_RECOVERY))
        held = _is_held(scenario, scenario.populations[at], seen, answer, at)
        if not held and marks_heeded(scenario, seen.units, (at,)) < stages.size:
            growing += _growing(stages, seen, at)
    if growing + repairing <= MOST_UNSETTLED * flows:
        return None
    marked = any(scenario.populations[at].tcp.ecn for at in bulk)
    return _words(growing, repairing, flows, "a loss or a mark" if marked else "a loss")


def _can_settle(people: Population) -> bool:
    """Say whether the senders go on for ever, and losses end the growth of their windows."""
    tcp = people.tcp
    return (
        people.traffic.kind == "bulk"
        and not tcp.has_loss_feedback
        and tcp.control not in RATE_BASED
    )


def _growing(stages: np.ndarray[tuple[int], np.dtype[np.uint8]], seen: Snapshot, at: int) -> int:
    """Count flows whose windows only grew: since the beginning, or in all that was measured."""
    indications = seen.units.of_class("fast_retransmits", [at]).sum()
    indications += seen.units.of_class("timeout_sequences", [at]).sum()
    beyond = np.count_nonzero(stages > FIRST_RECOVERY) if indications == 0 else 0
    return int(np.count_nonzero(stages == LOSSLESS) + beyond)


def _is_held(
    scenario: Scenario, people: Population, seen: Snapshot, answer: Answer, at: int
) -> bool:
    """Say whether the flows of a class have all that their windows or the links let through."""
    seconds = seen.units.link("time_ns").sum() * 1e-9
    if not seconds:
        return False
    rate = seen.units.of_class("sent", [at]).sum() / seconds
    rtt = answer.metrics.get("rtt_mean_s")
    rtt_s = people.rtt_s if rtt is None else max(rtt.value, people.rtt_s)
    # The first round trips, in which the window opens, and the one that the end cuts are less.
    rounds = seconds / rtt_s - seen.units.replications
    if rounds > 0 and rate * seconds >= FULL * people.count * people.tcp.receiver_window * rounds:
        return True
    utilisation = answer.metrics.get("utilisation")
    if utilisation is not None and utilisation.value >= FULL:
        return True
    link = limiting_link(scenario, people)
    return link is not None and rate >= FULL * link.pps


def _words(growing: int, repairing: int, flows: int, end: str) -> str:
    parts = []
    if repairing:
        parts.append(f"{_of(repairing, flows)} still in the first fast recovery")
    if growing:
        parts.append(f"{_of(growing, flows)} without {end} that ends the growth of the window")
    return (
        f"no steady state: {' and '.join(parts)}; run longer (run.duration), or limit the window "
        "(tcp.receiver_window)"
    )


def _of(some: int, flows: int) -> str:
    if flows == 1:
        return "the flow is"
    return f"{some} of {flows} flows {'is' if some == 1 else 'are'}"
