"""Shared code of replay tests: a simulated capture, and the scenario of its replay."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tcpcast
from tcpcast.captures import Capture
from tcpcast.scenario import Scenario

FAST = {"network.bottleneck.rate": "100mbit", "network.bottleneck.buffer": "100pkt"}
"""A link that is never full."""
OF_WHAT_IF = 0.15
"""Tolerance of the rate of :func:`what_if`."""


def simulated(
    base: Mapping[str, Any], folder: Path, changes: Mapping[str, Any], link: str = "sender"
) -> tuple[Scenario, tcpcast.Answer, Capture]:
    file = str(folder / f"{link}.pcap")
    scenario = Scenario.from_dict(base).with_changes(changes)
    tap = {"link": link, "file": file, "packets": 1_000_000}
    (answer,) = tcpcast.run(scenario.with_changes({"probes.pcap": [tap]}), ["packet"])
    return scenario, answer, tcpcast.trace(file)


def rate(scenario: Scenario) -> float:
    return tcpcast.run(scenario, ["packet"])["packet"]["send_rate_pps"]


def what_if(scenario: Scenario) -> Scenario:
    """Half of the loss, and four flows."""
    loss = scenario.network.bottleneck.loss
    half = 0.0 if loss is None else loss.mean_ratio() / 2
    return scenario.with_changes({"network.bottleneck.loss": half, "traffic.flows": 4})
