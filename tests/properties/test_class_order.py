"""The order of classes only changes the order of the rows."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import tcpcast
from tcpcast.scenario import Scenario

CLASSES = (
    {"name": "near", "flows": 2, "rtt": "20ms"},
    {"name": "far", "flows": 3, "rtt": "80ms"},
)


def scenario(stack: str, classes: tuple[dict[str, Any], ...], **network: Any) -> Scenario:
    """Return endless flows whose round-trip times differ by 100 packet transmission times."""
    return Scenario.from_dict(
        {
            "network": {
                "rtt": "20ms",
                "bottleneck": {"rate": "20mbit", "buffer": "50pkt"},
                **network,
            },
            "traffic": {"kind": "bulk"},
            "tcp": {"stack": stack},
            "class": list(classes),
            "run": {"duration": "120s", "warmup": "20s", "replications": 4, "seed": 1},
        }
    )


@pytest.mark.parametrize("stack", ["rfc-newreno", "rfc-sack", "linux-reno", "linux-cubic"])
def test_shares_do_not_depend_on_class_order(stack: str) -> None:
    result: dict[str, list[tuple[float, float]]] = {"near": [], "far": []}
    for classes in itertools.permutations(CLASSES):
        answer = tcpcast.run(scenario(stack, classes), ["packet"])["packet"]
        table = answer.tables["by_class"]
        rates, highs = table["goodput_pps"], table["goodput_pps_high"]
        for index, group in enumerate(classes):
            result[str(group["name"])].append((rates[index], highs[index] - rates[index]))
    for (one, one_half), (other, other_half) in result.values():
        assert abs(one - other) <= one_half + other_half


def test_exact_hosts_have_a_warning_of_phase_effects() -> None:
    (warning,) = scenario("rfc-newreno", CLASSES).warnings()
    assert "hosts of near, far send without random delay" in warning
    assert 'write tcp.host_noise = "0.1ms"' in warning
    jitter = {"distribution": "exponential", "mean": "1ms"}
    assert scenario("rfc-newreno", CLASSES, jitter=jitter).warnings() == []
    assert scenario("linux-cubic", CLASSES).warnings() == []
    alike = tuple({**group, "rtt": "20ms"} for group in CLASSES)
    assert scenario("rfc-newreno", alike).warnings() == []
