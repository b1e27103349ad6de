"""Classes with their own TCP settings, packet by packet."""

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


def answer(scenario: tcpcast.Scenario) -> tcpcast.Answer:
    return tcpcast.run(scenario, ["packet"])[0]


def test_a_class_that_says_what_the_top_level_says_is_the_same_run() -> None:
    told = {"stack": "rfc-newreno", "receiver_window": 44}
    plain = tcpcast.load("two-classes", changes=WEB)
    named = plain.with_changes({"class.near.tcp": told, "class.far.tcp": told})
    assert answer(named).metrics == answer(plain).metrics


def test_one_class_with_its_tcp_is_the_run_in_which_all_have_it() -> None:
    own = {"stack": "rfc-reno", "initial_window": 4, "min_rto": "300ms"}
    changes = {f"tcp.{key}": value for key, value in own.items()}
    of_all = tcpcast.load("two-classes", changes=WEB | changes)
    tables = tcpcast.load("two-classes", changes=WEB).resolved()
    for entry in tables["class"]:
        entry["tcp"] = own
    assert answer(tcpcast.Scenario.from_dict(tables)).metrics == answer(of_all).metrics


def test_each_class_keeps_to_its_own_window() -> None:
    wide, narrow = answer(tcpcast.Scenario.from_dict(WINDOWS)).tables["by_class"]["goodput_pps"]
    assert wide == pytest.approx(3 * 20 / 0.06, rel=0.005)
    assert narrow == pytest.approx(3 * 5 / 0.06, rel=0.005)


def test_a_larger_initial_window_is_of_its_class_alone() -> None:
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
    two, ten = answer(tcpcast.Scenario.from_dict(tables)).tables["by_class"]["on_time_s"]
    # 2 + 4 + 4 packets take three round trips, 10 packets one.
    assert two == pytest.approx(3 * 0.06, rel=0.01)
    assert ten == pytest.approx(0.06, rel=0.01)
