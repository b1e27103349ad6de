"""Cross traffic in its scenario: what is wrong with it there, and what to check."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tcpcast.scenario.table import fault, suggestion

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic_core import InitErrorDetails

    from tcpcast.scenario.cross import Cross
    from tcpcast.scenario.model import Scenario

BOTTLENECK = "bottleneck"
"""What the one shared hop of a network is called."""


def cross_faults(scenario: Scenario) -> list[InitErrorDetails]:
    """Find what is wrong with streams that are each right by themselves."""
    found = []
    names: set[str] = set()
    for place, stream in enumerate(scenario.cross):
        for key, message in _faults(scenario, stream):
            found.append(fault(message, "cross", place, *([key] if key else [])))
        if stream.name in names:
            message = f'"{stream.name}" is another stream; write a new name'
            found.append(fault(message, "cross", place, "name"))
        names |= {stream.name} if stream.name else set()
    return found


def _faults(scenario: Scenario, stream: Cross) -> Iterator[tuple[str, str]]:
    if scenario.transfers_alone is not None:
        yield (
            "",
            "transfers that are each alone meet no others; "
            'write traffic.arrivals = { law = "poisson", rate = "20/s" }',
        )
    if stream.hop not in (None, BOTTLENECK):
        near = suggestion(stream.hop, [BOTTLENECK])
        yield "hop", f'there is no hop "{stream.hop}"{near}; write "{BOTTLENECK}", or leave it out'
    if math.isinf(scenario.network.bottleneck.rate_bps):
        message = "takes time where packets wait; write network.bottleneck.rate"
        yield stream.needs_rate or "", f"cross traffic {message}"


def cross_load(scenario: Scenario) -> float:
    """Return what the streams offer together, over the bottleneck's rate; 0 without any."""
    rate, packet = scenario.network.bottleneck.rate_bps, scenario.network.packet_bytes
    return math.fsum(stream.mean_bps(rate, packet) for stream in scenario.cross) / rate


def cross_warnings(scenario: Scenario) -> list[str]:
    """Return what to check before trusting any answer with this cross traffic."""
    if not scenario.cross:
        return []
    load = cross_load(scenario)
    if load < 1:
        return []
    text = f"cross traffic alone offers {load:.3g} of what the bottleneck carries"
    if math.isinf(scenario.buffer_pkts):
        text += ", into an unlimited buffer: the queue grows as long as the run lasts"
    return [text]
