"""The link that all acks share: what the simulator is told of it, and what it says of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tcpcast.engines.packet.loss import loss_model
from tcpcast.engines.packet.queues import queue, whole_room

if TYPE_CHECKING:
    from tcpcast.engines.packet.config_types import Config
    from tcpcast.engines.packet.metric_estimates import Snapshot
    from tcpcast.scenario import Scenario
    from tcpcast.statistics import Estimate


def return_link(scenario: Scenario) -> Config | None:
    """Return the return link; None where acks neither wait at one nor are lost.

    Acks that are lost alone have the rate of the bottleneck, and room for any number.
    """
    network = scenario.network
    if not network.has_return:
        return None
    room, link = network.return_buffer_acks, network.return_link
    return {
        "rate_bps": None if math.isinf(network.return_bps) else max(1, round(network.return_bps)),
        "buffer_pkts": whole_room(room, network.return_bps, network.ack_bytes),
        "queue": "drop-tail" if link is None else queue(scenario, link),
        "loss": loss_model(network.ack_loss),
    }


def estimates(scenario: Scenario, seen: Snapshot) -> dict[str, Estimate | None]:
    """Return how busy the return link is, and which share of the acks it loses and delays."""
    network = scenario.network
    if not network.has_return:
        return {}
    names = ["return_loss_ratio"]
    if not math.isinf(network.return_bps):
        names += ["return_utilisation", "return_queue_delay_mean_s"]
    return {name: seen.units.metric(name) for name in names}
