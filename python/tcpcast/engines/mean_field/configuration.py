"""Configuration of the simulator for a population in which some sources represent all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast.engines.packet.configuration import extra_byte_ns, make_configuration
from tcpcast.engines.packet.network_scale import NetworkScale

if TYPE_CHECKING:
    from tcpcast.engines.packet.config_types import Config
    from tcpcast.scenario import Scenario


def scaled_configuration(scenario: Scenario, warmup_s: float, *, scale_factor: float) -> Config:
    """Return the simulator's configuration of a network scaled to 1/``scale_factor``.

    Parameters
    ----------
    scenario
        The full population.
    warmup_s
        Length of the warm-up in seconds.
    each
        Sources per simulated source, at least 1; 1 gives the configuration of ``packet``.
    """
    return make_configuration(scenario, warmup_s, NetworkScale(scale_factor))


def count_simulated_sources(count: int, scale_factor: float) -> int:
    """Return the number of simulated sources of a class, at least one."""
    return NetworkScale(scale_factor).sources(count)


def max_excess_delay_s(scenario: Scenario, scale_factor: float) -> float:
    """Return the excess delay of the idle path in seconds, for the class with the largest excess.

    A packet takes longer on a scaled link, and a path with too little propagation delay cannot be
    shortened by as much.
    """
    config = make_configuration(scenario, 0.0)
    size = config["packet_bytes"] + config["ack_bytes"]
    longer = extra_byte_ns(scenario, NetworkScale(scale_factor)) * size
    lacking = [longer - group["forward_ns"] - group["back_ns"] for group in config["classes"]]
    return max(0.0, 1e-9 * float(max(lacking)))
