"""Configuration of the emulated path, derived from the simulator's configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast.engines.packet.configuration import make_configuration, to_nanoseconds

if TYPE_CHECKING:
    from tcpcast.engines.packet.config_types import Config
    from tcpcast.scenario import Scenario


def path_configuration(scenario: Scenario) -> Config:
    """Return the simulator's configuration, so that the emulated link has the same parameters.

    The links of sources and receivers become constant delays, of a full packet and of an ACK.
    """
    config, network = make_configuration(scenario, 0.0), scenario.network
    for only, group in zip(config["classes"], scenario.populations, strict=True):
        for own in (group.ingress, group.egress):
            delay = own.delay_s or 0.0
            for_packet, for_ack = (
                to_nanoseconds(delay + 8 * length / own.serial_bps)
                for length in (group.packet_bytes, network.ack_bytes)
            )
            only["forward_ns"] += for_packet
            only["back_ns"] += for_ack
    return config
