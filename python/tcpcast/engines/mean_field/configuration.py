"""The network of a population of which some sources stand for all, as the simulator takes it.

Links that the sources share have 1/k of the rate and 1/k of the buffer, and every k-th packet
of the cross traffic there comes. What a source has to itself stays what it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcpcast.engines.packet.configuration import configuration
from tcpcast.scenario.crossing import places

if TYPE_CHECKING:
    from tcpcast.scenario import Scenario

RATE_OF_MEASURED, RATE_OF_HOP = "bottleneck_bps", "rate_bps"


def scaled_configuration(scenario: Scenario, warmup_s: float, *, each: float) -> dict[str, Any]:
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
    found = configuration(scenario, warmup_s)
    if each == 1:
        return found
    ns_of_byte = _shrink_links(found, each)
    for group in found["classes"]:
        sources = group["sources"]
        group["sources"] = simulated_sources(sources, each)
        group["stands_for"] = max(1.0, sources / group["sources"])
        _shorten(group, ns_of_byte * found["packet_bytes"], ns_of_byte * found["ack_bytes"])
    shared = [place.shared for place in places(scenario.network)]
    for stream in found["cross"]:
        if shared[stream["stage"]]:
            stream["law"] = every_packet_of(stream["law"], each)
    return found


def simulated_sources(count: int, each: float) -> int:
    """Return how many sources of a class are simulated, at least one."""
    return max(1, round(count / each))


def path_too_long_s(scenario: Scenario, each: float) -> float:
    """Return by how much the empty path is longer than it is, of the class where it is most.

    A packet takes longer on a smaller link, and a path of too little propagation cannot be
    shortened by as much.
    """
    found = configuration(scenario, 0.0)
    longer_ns = _shrink_links(found, each) * (found["packet_bytes"] + found["ack_bytes"])
    lacking = [longer_ns - group["forward_ns"] - group["back_ns"] for group in found["classes"]]
    return max(0.0, 1e-9 * float(max(lacking)))


def _shrink_links(found: dict[str, Any], each: float) -> float:
    """Make the shared links smaller; return how much longer a byte takes on all, in ns."""
    hops = [hop for hop in found["hops_before"] + found["hops_after"] if hop["shared"]]
    longer = _shrink(found, RATE_OF_MEASURED, each)
    return longer + sum(_shrink(hop, RATE_OF_HOP, each) for hop in hops)


def _shrink(link: dict[str, Any], key: str, each: float) -> float:
    """Make one link smaller; return how much longer a byte takes on it, in ns."""
    individual = link["fair"] is not None and link["fair"]["room"] == "individual"
    if link["buffer_pkts"] is not None and not individual:
        link["buffer_pkts"] = max(1, round(link["buffer_pkts"] / each))
    rate = link[key]
    if rate is None:
        return 0.0
    link[key] = max(1, round(rate / each))
    longer: float = (each - 1) * 8e9 / rate
    return longer


def _shorten(group: dict[str, Any], there_ns: float, back_ns: float) -> None:
    """Take time from the forward and the return path; what one lacks from the other."""
    there, back = (
        group[key] - round(by) for key, by in (("forward_ns", there_ns), ("back_ns", back_ns))
    )
    group["forward_ns"] = max(0, there + min(0, back))
    group["back_ns"] = max(0, back + min(0, there))


def every_packet_of(law: dict[str, Any], each: float) -> dict[str, Any]:
    """Return the law of every k-th packet of a stream, so that its work is that of all.

    Parameters
    ----------
    law
        As :func:`tcpcast.engines.packet.cross.streams` tells it.
    each
        k, above 1.
    """
    if law["law"] == "poisson":
        return {"law": "gamma", "rate": law["rate"] / each, "shape": each}
    if law["law"] == "fgn":
        return law | {"mean": law["mean"] / each, "sd": law["sd"] / each}
    if law["law"] == "pareto":
        # Each source's packets, so few, would be spaced by chance.
        return law | {"peak": law["peak"] / each, "together": 1.0}
    return law | {"packets": [packets / each for packets in law["packets"]]}
