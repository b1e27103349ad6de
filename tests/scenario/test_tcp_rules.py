"""``[tcp.rules]``: presets of papers, and changes by classes."""

from typing import Any

import pytest
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
"""Presets of papers with their rules that differ from the defaults."""


@pytest.mark.parametrize(("stack", "rules"), OF_PAPERS.items())
def test_paper_preset_changes_its_rules_only(stack: str, rules: dict[str, Any]) -> None:
    own = bulk({"tcp.stack": stack})
    plain = bulk().tcp.rules.model_dump()
    assert own.tcp.rules.model_dump() == plain | rules
    assert Scenario.from_dict(own.resolved()) == own
    # Only one rule changes; the others keep the values of the preset.
    changed = bulk({"tcp.stack": stack, "tcp.rules.backoff_until": "ack"}).tcp.rules
    assert changed.model_dump() == plain | rules | {"backoff_until": "ack"}


def test_class_overrides_a_top_level_rule() -> None:
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
