"""Shared link of all ACKs: its configuration and its metrics."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tcpcast.engines.packet.loss_config import loss_model_config
from tcpcast.engines.packet.queue_config import buffer_capacity, queue_config

if TYPE_CHECKING:
    from tcpcast.engines.packet.config_types import Config
    from tcpcast.engines.packet.metric_estimates import Snapshot
    from tcpcast.scenario import Scenario
    from tcpcast.statistics import Estimate


def return_link_config(scenario: Scenario) -> Config | None:
    """Return the return link; None if ACKs neither queue nor get lost.

    If ACKs can only get lost, the link has the rate of the bottleneck and an unlimited buffer.
    """
    network = scenario.network
    if not network.has_return:
        return None
    room, link = network.return_buffer_acks, network.return_link
    return {
        "rate_bps": None if math.isinf(network.return_bps) else max(1, round(network.return_bps)),
        "buffer_pkts": buffer_capacity(room, network.return_bps, network.ack_bytes),
        "queue": "drop-tail" if link is None else queue_config(scenario, link),
        "loss": loss_model_config(network.ack_loss),
    }


def estimate_return_link_metrics(
    scenario: Scenario, snapshot: Snapshot
) -> dict[str, Estimate | None]:
    """Return the utilisation, loss and queueing delay of the return link."""
    network = scenario.network
    if not network.has_return:
        return {}
    names = ["return_loss_ratio"]
    if not math.isinf(network.return_bps):
        names += ["return_utilisation", "return_queue_delay_mean_s"]
    return {name: snapshot.units.metric(name) for name in names}
