"""Additional configuration of a fixed point, and checks of scenarios that it does not support."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tcpcast.engines.packet.configuration import to_nanoseconds
from tcpcast.engines.packet.equilibrium import equilibrium_on_times_s
from tcpcast.engines.registry import changes_to_set_stack
from tcpcast.errors import NotApplicable, Suggestion
from tcpcast.models.local_loop import open_loop_load
from tcpcast.scenario.cross_checks import find_stream_hop
from tcpcast.scenario.tcp_rules import MAX_PLUS
from tcpcast.scenario.traffic import Bulk, OnOff

if TYPE_CHECKING:
    from tcpcast.engines.packet.config_types import Config
    from tcpcast.scenario import FixedPoint, Scenario

MIN_OFF_S = 1e-9
"""The engine's unit of time. It replaces OFF times of 0, for which the load would be infinite."""

_START_STOP_KEYS = ("start", "stop")

MIN_FLOWS_PER_REFERENCE = 10
"""At most one in this many flows is a reference flow; the others are cross flows."""


def raise_if_unsupported(scenario: Scenario) -> None:
    """Raise NotApplicable, with suggestions, if a scenario is not supported."""
    if scenario.isolated_transfers is not None:
        raise NotApplicable(
            'a fixed point needs competing sources; write traffic of kind "on-off" or "bulk"'
        )
    if any(group.tcp.stack != MAX_PLUS for group in scenario.populations):
        other_stack = Suggestion(changes_to_set_stack(scenario, MAX_PLUS))
        raise NotApplicable(
            "the reference flows of a fixed point have instantaneous loss feedback, but the flows "
            "of the scenario do not",
            Suggestion(engine="packet") if certain_failure_reason(scenario) else other_stack,
        )
    if scenario.run.transfers is not None or scenario.run.precision is not None:
        raise NotApplicable(
            "a fixed point needs a fixed duration; write run.duration, and omit run.precision",
            Suggestion({"run.duration": "60s", "run.precision": None}),
        )
    _check_hops(scenario)
    if scenario.network.has_return:
        raise NotApplicable(
            "in a fixed point, ACKs are neither queued nor lost, but the scenario has a queue or "
            "a loss on the return path",
            Suggestion({"network.return": None, "network.ack_loss": None}),
        )
    if any(group.has_start_or_stop for group in scenario.populations):
        spans = {
            f"class.{g.name}.{key}": None for g in scenario.classes for key in _START_STOP_KEYS
        }
        raise NotApplicable(
            "in a fixed point, flows are always on, but a class has start or stop times",
            Suggestion(spans),
        )
    for group in scenario.populations:
        if not isinstance(group.traffic, OnOff | Bulk):
            who = f" of class {group.name}" if scenario.classes else ""
            raise NotApplicable(
                f"a fixed point does not support transfers{who} that arrive "
                'and end; write traffic of kind "on-off" or "bulk"'
            )
        links = (group.ingress, scenario.network.bottleneck, group.egress)
        if any(link.loss is not None for link in links):
            losses: dict[str, str | None] = {
                f"network.{name}.loss": None for name in ("ingress", "bottleneck", "egress")
            }
            if math.isinf(scenario.network.bottleneck.rate_bps):
                losses["network.bottleneck.rate"] = "10mbit"  # the loss was the only limit
            raise NotApplicable(
                "in a fixed point, packets are lost only in the shared queue, but the scenario "
                "has random loss",
                Suggestion(losses),
            )
        own = (group.ingress, group.egress)
        if any(math.isfinite(scenario.network.buffer_pkts(link)) for link in own):
            raise NotApplicable(
                "in a fixed point, network.ingress and network.egress have unlimited buffers; for "
                "a limited buffer, add a hop with shared = false",
                Suggestion({"network.ingress.buffer": None, "network.egress.buffer": None}),
            )


def _check_hops(scenario: Scenario) -> None:
    network = scenario.network
    shared = {
        f"network.hop.{index}.shared": False
        for index, hop in enumerate(network.hops)
        if hop.shared and index != network.measured_index
    }
    if shared:
        raise NotApplicable(
            "the reference flows of a fixed point share only one router, but the scenario has "
            "other shared hops",
            Suggestion(shared),
        )
    if network.bottleneck.varying is not None:
        raise NotApplicable(
            "the reference flows of a fixed point share a link of constant rate, but "
            f"network.bottleneck.rate is a {network.bottleneck.varying.kind}",
            Suggestion({"network.bottleneck.rate": "10mbit"}),
        )
    if network.jitter is not None:
        raise NotApplicable(
            "a fixed point has constant delays, but the scenario has jitter",
            Suggestion({"network.jitter": None}),
        )
    for stream in scenario.cross:
        place = find_stream_hop(network, stream)
        if place is not None and place.shared:
            raise NotApplicable(
                "the shared router of a fixed point has no cross traffic; put the cross "
                "traffic at a hop with shared = false",
                Suggestion({"cross": None}),
            )


def certain_failure_reason(scenario: Scenario) -> str:
    """Return the reason why the tests of a fixed point must fail, "" if they can pass."""
    load = compute_offered_load(scenario)
    if load > 1:
        return (
            f"the sources offer {load:.3g} times the capacity of the link. At a load above the "
            "capacity, the schemes violate Little's law"
        )
    bulk = any(isinstance(group.traffic, Bulk) for group in scenario.populations)
    if bulk and scenario.senders > 1:
        return "bulk flows never end, so their differences from the reference flows persist"
    return ""


def compute_offered_load(scenario: Scenario) -> float:
    """Return the load that the on/off sources would offer the link if files took no time.

    It is N B / (C I), summed over classes, and 1 at the threshold of section 7.2. Endless flows do
    not contribute.
    """
    network = scenario.network
    if math.isinf(network.bottleneck.rate_bps):
        return 0.0
    link_pps = network.bottleneck.rate_bps / (8 * network.packet_bytes)
    return sum(
        float(
            open_loop_load(
                sources=group.count,
                link_pps=link_pps,
                mean_off_s=max(group.traffic.off.mean_value(), MIN_OFF_S),
                mean_size_pkts=max(1.0, group.traffic.size.mean_value()),
            )
        )
        for group in scenario.populations
        if isinstance(group.traffic, OnOff)
    )


def flows_per_reference_flow(scenario: Scenario, table: FixedPoint) -> list[float]:
    """Return the number of flows per reference flow, by class."""
    return [
        group.count / count
        for group, count in zip(
            scenario.populations, reference_flow_counts(scenario, table), strict=True
        )
    ]


def reference_flow_counts(scenario: Scenario, table: FixedPoint) -> list[int]:
    """Return the number of reference flows per class: as specified, at most a tenth, at least 1."""
    return [
        min(table.references, max(1, group.count // MIN_FLOWS_PER_REFERENCE))
        for group in scenario.populations
    ]


def native_configuration(scenario: Scenario, table: FixedPoint) -> Config:
    """Return the native configuration of a fixed point."""
    return {
        "scheme": str(table.scheme),
        "queue_rule": table.queue_rule,
        "conditional": table.conditional,
        "moments": table.moments,
        "references": reference_flow_counts(scenario, table),
        "steps": table.steps,
        "step_ns": to_nanoseconds(table.step),
        "initial": _initial_class_values(scenario),
    }


def _initial_class_values(scenario: Scenario) -> list[tuple[float, float]]:
    """Return the initial values of each class: time between packets, and service time, in seconds.

    They are means of an equilibrium in which active sources share the link; on a full link, a
    packet waits for one packet of each active source.
    """
    rate = scenario.network.bottleneck.rate_bps
    turn_s = 8 * scenario.network.packet_bytes / rate
    gaps = []
    active = load = 0.0
    for group, on_s in zip(scenario.populations, equilibrium_on_times_s(scenario), strict=True):
        if on_s is None or not isinstance(group.traffic, OnOff):
            gaps.append(scenario.senders * max(turn_s, 1e-9))
            active += group.count
            load = 1.0
            continue
        size = group.traffic.size.mean_value()
        gaps.append(on_s / size)
        cycle_s = on_s + group.traffic.off.mean_value()
        active += group.count * on_s / cycle_s
        load += group.count * size / cycle_s * turn_s
    full = load > 0.99
    return [(gap, max(1e-9, turn_s * (max(1.0, active) if full else 1.0))) for gap in gaps]


def measured_duration_s(scenario: Scenario) -> float:
    """Return the duration of a replication after its warm-up, in seconds."""
    return (scenario.run.duration_s or 0.0) - (scenario.run.warmup_s or 0.0)
