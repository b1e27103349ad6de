"""Reject scenarios whose classes need packets of one size but set different ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast.engines.registry import changes_to_set_stack
from tcpcast.errors import NotApplicable, Suggestion
from tcpcast.scenario.cross_checks import find_stream_hop

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcpcast.scenario import Scenario


def check_packet_sizes(scenario: Scenario) -> None:
    """Raise NotApplicable if the simulator needs packets of one size for the scenario."""
    keys = [f"class.{name}.packet" for name in scenario.packet_size_classes]
    for reason, *instead in _find_features_for_one_size(scenario) if keys else ():
        raise NotApplicable(f"{keys[0]}: {reason}", *instead, Suggestion(dict.fromkeys(keys)))


def _find_features_for_one_size(
    scenario: Scenario,
) -> Iterator[tuple[str, *tuple[Suggestion, ...]]]:
    """Yield reasons, each with suggested changes."""
    if scenario.has_loss_feedback:
        changes = changes_to_set_stack(scenario, "rfc-newreno")
        yield "max-plus-reno supports only packets of one size", Suggestion(changes)
    network = scenario.network
    if any(link.is_policer for link in (network.bottleneck, *network.hops)):
        yield ("a policer supports only packets of one size",)
    for hop in network.hops:
        if hop.buffer.unit == "bytes" and not hop.shared:
            key = f"network.hop.{hop.name}.buffer"
            packets = f"{network.buffer_pkts(hop):.0f}pkt"
            yield (
                f"{key}: a buffer in bytes is supported at a hop with shared = false only if all "
                "packets have one size",
                Suggestion({key: packets}),
            )
    places = [find_stream_hop(network, stream) for stream in scenario.cross]
    if any(place is not None and not place.shared for place in places):
        yield (
            "cross traffic at a hop with shared = false supports only packets of one size",
            Suggestion({"cross": None}),
        )
