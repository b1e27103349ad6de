"""Classes with their own TCP in the packet engine."""

from typing import Any

import pytest
import tcpcast

WEB = {"run.transfers": 1500, "run.warmup": "5s"}
WINDOWS: dict[str, Any] = {
    "network": {"rtt": "60ms", "bottleneck": {"rate": "1gbit"}},
    "traffic": {"kind": "bulk"},
    "tcp": {"stack": "rfc-newreno", "receiver_window": 20},
    "class": [
        {"name": "wide", "flows": 3},
        {"name": "narrow", "flows": 3, "tcp": {"receiver_window": 5}},
    ],
    "run": {"duration": "40s", "warmup": "10s"},
}


def simulate(scenario: tcpcast.Scenario) -> tcpcast.Answer:
    return tcpcast.run(scenario, ["packet"])[0]


def test_class_with_top_level_tcp_gives_the_same_run() -> None:
    tcp = {"stack": "rfc-newreno", "receiver_window": 44}
    plain = tcpcast.load("two-classes", changes=WEB)
    by_class_tcp = plain.with_changes({"class.near.tcp": tcp, "class.far.tcp": tcp})
    assert simulate(by_class_tcp).metrics == simulate(plain).metrics


def test_each_class_has_its_own_receiver_window() -> None:
    wide, narrow = simulate(tcpcast.Scenario.from_dict(WINDOWS)).tables["by_class"]["goodput_pps"]
    assert wide == pytest.approx(3 * 20 / 0.06, rel=0.005)
    assert narrow == pytest.approx(3 * 5 / 0.06, rel=0.005)


def test_initial_window_applies_to_its_class_only() -> None:
    tables = WINDOWS | {
        "traffic": {
            "kind": "on-off",
            "off": {"distribution": "exponential", "mean": "1s"},
            "size": {"distribution": "constant", "value": "10pkt"},
        },
        "class": [
            {"name": "two", "sources": 5},
            {"name": "ten", "sources": 5, "tcp": {"initial_window": 10}},
        ],
    }
    two, ten = simulate(tcpcast.Scenario.from_dict(tables)).tables["by_class"]["on_time_s"]
    # 2 + 4 + 4 packets take three round trips, 10 packets take one.
    assert two == pytest.approx(3 * 0.06, rel=0.01)
    assert ten == pytest.approx(0.06, rel=0.01)
