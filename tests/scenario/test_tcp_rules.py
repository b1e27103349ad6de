"""``[tcp.rules]``: presets of papers, what a class changes, and keys of earlier versions."""

from __future__ import annotations

from typing import Any

import pytest
from tcpcast.errors import ScenarioError
from tcpcast.scenario import PRESETS, Scenario


def bulk(changes: dict[str, Any] | None = None) -> Scenario:
    tables = {
        "network": {"rtt": "50ms", "bottleneck": {"rate": "10mbit"}},
        "traffic": {"kind": "bulk", "flows": 1},
        "run": {"duration": "60s"},
    }
    return Scenario.from_dict(tables).with_changes(changes or {})


OF_PAPERS: dict[str, dict[str, Any]] = {
    "engset-newreno": {"timer_restart": "send", "slow_start_at_ssthresh": True},
    "pftk-reno": {"recovery": "reno"},
    "parallel-newreno": {"recovery": "newreno-patient"},
    "short-newreno": {"limited_transmit_on": "second"},
}
"""Presets of papers, and the rules of each that are not the defaults."""


@pytest.mark.parametrize(("stack", "rules"), OF_PAPERS.items())
def test_a_paper_has_a_preset_that_names_its_rules(stack: str, rules: dict[str, Any]) -> None:
    own = bulk({"tcp.stack": stack})
    plain = bulk().tcp.rules.model_dump()
    assert own.tcp.rules.model_dump() == plain | rules
    assert Scenario.from_dict(own.resolved()) == own
    # A rule is changed alone; the others are the preset's.
    changed = bulk({"tcp.stack": stack, "tcp.rules.backoff_until": "ack"}).tcp.rules
    assert changed.model_dump() == plain | rules | {"backoff_until": "ack"}


OLD_KEYS: dict[str, tuple[dict[str, Any], str]] = {
    "slow_start_at_ssthresh": (
        {"tcp.slow_start_at_ssthresh": True},
        "tcp.slow_start_at_ssthresh: is now tcp.rules.slow_start_at_ssthresh; write "
        "rules.slow_start_at_ssthresh = true here",
    ),
    "window_unit": (
        {"tcp.window_unit": "bytes"},
        'tcp.window_unit: is now tcp.rules.window_unit; write rules.window_unit = "bytes" here',
    ),
    "timer_restart": (
        {"tcp.timer_restart": "send"},
        "tcp.timer_restart: is now tcp.rules.timer_restart; write "
        'rules.timer_restart = "send" here',
    ),
    "backoff_until": (
        {"tcp.backoff_until": "ack"},
        'tcp.backoff_until: is now tcp.rules.backoff_until; write rules.backoff_until = "ack" here',
    ),
    "last_packets_threshold": (
        {"tcp.last_packets_threshold": 1},
        "tcp.last_packets_threshold: is now tcp.rules.last_packets_threshold; write "
        "rules.last_packets_threshold = 1 here",
    ),
    "max_plus": (
        {"tcp.stack": "max-plus-reno", "tcp.max_plus": {"timeout": False}},
        "tcp.max_plus: is now tcp.rules.max_plus; write rules.max_plus = { timeout = false } here",
    ),
    "on-second": (
        {"tcp.limited_transmit": "on-second"},
        'tcp.limited_transmit: "on-second" is now a rule; write limited_transmit = true and '
        'rules.limited_transmit_on = "second" here',
    ),
}


@pytest.mark.parametrize("name", OLD_KEYS)
def test_an_old_key_is_refused_with_the_text_to_write(name: str) -> None:
    changes, line = OLD_KEYS[name]
    with pytest.raises(ScenarioError) as caught:
        bulk(changes)
    assert str(caught.value) == f"{line}, or rewrite the file: tcpcast migrate FILE"


def test_an_old_key_of_all_classes_is_told_once() -> None:
    tables = bulk().resolved() | {"tcp": {"window_unit": "bytes"}}
    tables["traffic"] = {"kind": "bulk"}
    tables["class"] = [{"name": "a", "flows": 1, "tcp": {"min_rto": "2s"}}]
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_dict(tables)
    (only,) = str(caught.value).splitlines()
    assert only.startswith("tcp.window_unit: is now tcp.rules.window_unit")


def test_a_class_changes_a_rule_of_the_top_level() -> None:
    tables = bulk().resolved()
    tables["tcp"] = {"stack": "rfc-newreno", "rules": {"timer_restart": "send"}}
    tables["traffic"] = {"kind": "bulk"}
    tables["class"] = [
        {"name": "a", "flows": 1},
        {"name": "b", "flows": 1, "tcp": {"rules": {"backoff_until": "ack"}}},
        {"name": "c", "flows": 1, "tcp": {"stack": "linux-cubic"}},
    ]
    scenario = Scenario.from_dict(tables)
    rules = [group.tcp.rules for group in scenario.populations]
    assert [rule.timer_restart for rule in rules] == ["send", "send", "ack"]
    assert [rule.backoff_until for rule in rules[:2]] == ["sample", "ack"]
    assert Scenario.from_dict(scenario.resolved()) == scenario


def test_every_preset_reads_back() -> None:
    for stack in PRESETS:
        scenario = bulk({"tcp.stack": stack})
        assert Scenario.from_dict(scenario.resolved()) == scenario
