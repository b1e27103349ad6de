"""Configuration of the shared link of all ACKs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tcpcast.engines.packet.loss_config import loss_model_config
from tcpcast.engines.packet.queue_config import buffer_capacity, queue_config

if TYPE_CHECKING:
    from tcpcast.engines.packet.config_types import Config
    from tcpcast.scenario import Scenario


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
