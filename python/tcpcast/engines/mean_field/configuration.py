"""The network of a population of which some sources stand for all, as the simulator takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast.engines.packet.configuration import configuration, longer_ns
from tcpcast.engines.packet.scale import Scale

if TYPE_CHECKING:
    from tcpcast.engines.packet.config_types import Config
    from tcpcast.scenario import Scenario


def scaled_configuration(scenario: Scenario, warmup_s: float, *, each: float) -> Config:
    """Return the simulator's configuration of a network of 1/``each`` of the size.

    Parameters
    ----------
    scenario
        The whole.
    warmup_s
        Length of the warm-up in seconds.
    each
        Sources that each simulated one stands for, at least 1; with 1 it is that of ``packet``.
    """
    return configuration(scenario, warmup_s, Scale(each))


def simulated_sources(count: int, each: float) -> int:
    """Return how many sources of a class are simulated, at least one."""
    return Scale(each).sources(count)


def path_too_long_s(scenario: Scenario, each: float) -> float:
    """Return by how much the empty path is longer than it is, of the class where it is most.

    A packet takes longer on a smaller link, and a path of too little propagation cannot be
    shortened by as much.
    """
    found = configuration(scenario, 0.0)
    size = found["packet_bytes"] + found["ack_bytes"]
    longer = longer_ns(scenario, Scale(each)) * size
    lacking = [longer - group["forward_ns"] - group["back_ns"] for group in found["classes"]]
    return max(0.0, 1e-9 * float(max(lacking)))
