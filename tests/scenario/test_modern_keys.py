"""Keys of modern TCP: defaults of presets, keys that a stack rejects, classes of both kinds."""

from typing import Any

import pytest
from tcpcast.process.errors import ScenarioError
from tcpcast.scenario import Scenario
from tcpcast.scenario.modern_tcp import MODERN_PRESETS

BASE: dict[str, Any] = {
    "network": {"rtt": "60ms", "bottleneck": {"rate": "20mbit", "buffer": "100pkt"}},
    "traffic": {"kind": "bulk", "flows": 1},
    "tcp": {"stack": "linux-cubic"},
    "run": {"duration": "60s"},
}


def changed(changes: dict[str, Any]) -> Scenario:
    return Scenario.from_dict(BASE).with_changes(changes)


@pytest.mark.parametrize("stack", MODERN_PRESETS)
def test_preset_supplies_omitted_tcp_keys(stack: str) -> None:
    scenario = changed({"tcp.stack": stack})
    tcp = scenario.tcp
    assert tcp.is_modern
    assert scenario.is_modern
    first = 3 if stack == "tfrc" else 10
    assert (tcp.initial_window, tcp.delayed_acks, tcp.initial_rto_s) == (first, True, 1.0)
    linux = stack != "rfc-sack"
    assert (tcp.min_rto_s, tcp.rto_granularity_s) == ((0.2, 0.004) if linux else (1.0, 0.0))
    # The timestamp option takes 12 bytes of each packet.
    assert scenario.payload_bytes == (1448 if linux else 1460)
    # The timeout of Linux is the sum of RTT and min_rto, that of TFRC's equation is four RTTs.
    timeout_s = {"rfc-sack": 1.0, "tfrc": 0.24}.get(stack, 0.26)
    assert tcp.timeout_s(0.06) == pytest.approx(timeout_s)
    # Linux increases its window by the acknowledged packets, independent of delayed acks.
    assert tcp.packets_per_growth == (1 if linux else 2)


@pytest.mark.parametrize("stack", MODERN_PRESETS)
def test_resolved_scenario_has_stack_keys_and_reads_back(stack: str) -> None:
    scenario = changed({"tcp.stack": stack, "tcp.min_rto": "300ms"})
    resolved = scenario.resolved()
    assert Scenario.from_dict(resolved) == scenario
    assert "timestamps" in resolved["tcp"]
    assert not {"rules", "initial_ssthresh"} & resolved["tcp"].keys()


def test_resolved_classic_stack_is_unchanged() -> None:
    classic = changed({"tcp": {"stack": "rfc-newreno"}})
    assert not {"timestamps", "handshake"} & classic.resolved()["tcp"].keys()


@pytest.mark.parametrize("tcp", [{}, {"tcp": {}}, {"tcp": {"min_rto": "300ms"}}])
def test_default_stack_is_linux_cubic(tcp: dict[str, Any]) -> None:
    tables = {key: value for key, value in BASE.items() if key != "tcp"}
    scenario = Scenario.from_dict(tables | tcp)
    named = {"stack": "linux-cubic", **tcp.get("tcp", {})}
    assert scenario == Scenario.from_dict(tables | {"tcp": named})
    assert scenario.tcp.control == "cubic"
    assert scenario.payload_bytes == 1448


def test_classic_class_inherits_no_key_of_the_default_stack() -> None:
    scenario = classes({"timestamps": False}, None, {"stack": "rfc-reno"})
    assert [group.tcp.timestamps for group in scenario.populations] == [False, None]


def test_classic_key_without_stack_names_classic_stack() -> None:
    with pytest.raises(ScenarioError, match='omit this key, or use stack = "rfc-newreno"'):
        changed({"tcp": {"initial_ssthresh": 8}})


@pytest.mark.parametrize("stack", MODERN_PRESETS)
def test_linux_stacks_open_connections_with_a_handshake(stack: str) -> None:
    tcp = changed({"tcp.stack": stack}).tcp
    assert tcp.handshake == ("none" if stack == "rfc-sack" else "tcp")
    assert changed({"tcp": {"stack": stack, "handshake": "tls12"}}).tcp.handshake == "tls12"


def test_payload_excludes_the_timestamp_option() -> None:
    assert changed({"tcp.receiver_window": "14480B"}).tcp.receiver_window == 10
    without = {"tcp.receiver_window": "14600B", "tcp.timestamps": False}
    assert changed(without).tcp.receiver_window == 10
    classic = {"tcp": {"stack": "rfc-newreno", "receiver_window": "14600B"}}
    assert changed(classic).tcp.receiver_window == 10


def classes(top: dict[str, Any], *tables: dict[str, Any] | None) -> Scenario:
    """Build a scenario with one class of one flow per TCP table."""
    entries = [
        {"name": f"class-{index}", "flows": 1} | ({} if table is None else {"tcp": table})
        for index, table in enumerate(tables)
    ]
    return Scenario.from_dict(BASE | {"traffic": {"kind": "bulk"}, "tcp": top, "class": entries})


def test_mixed_classes_inherit_common_keys() -> None:
    scenario = classes(
        {
            "stack": "rfc-newreno",
            "initial_window": 4,
            "rules": {"window_unit": "bytes"},
            "max_rto": "30s",
        },
        None,
        {"stack": "linux-bbr"},
        {"stack": "linux-cubic", "initial_window": 20},
    )
    first, bbr, cubic = (group.tcp for group in scenario.populations)
    assert (first.initial_window, bbr.initial_window, cubic.initial_window) == (4, 4, 20)
    assert (first.rules.window_unit, bbr.max_rto_s) == ("bytes", 30)
    assert [tcp.control for tcp in (first, bbr, cubic)] == ["reno", "bbr", "cubic"]
    assert Scenario.from_dict(scenario.resolved()) == scenario


def test_classic_class_inherits_no_timestamps() -> None:
    scenario = classes({"stack": "linux-reno", "timestamps": False}, None, {"stack": "rfc-reno"})
    assert [group.tcp.timestamps for group in scenario.populations] == [False, None]
    assert Scenario.from_dict(scenario.resolved()) == scenario


def test_window_units_mix_only_with_modern_stacks() -> None:
    units = {"stack": "rfc-reno"}, {"stack": "rfc-reno", "rules": {"window_unit": "bytes"}}
    assert classes({}, *units, {"stack": "rfc-sack"})
    with pytest.raises(ScenarioError, match="window_unit"):
        classes({}, *units)


def test_instant_loss_feedback_is_not_mixed() -> None:
    with pytest.raises(ScenarioError, match="cannot be combined with"):
        classes({}, {"stack": "max-plus-reno"}, {"stack": "linux-cubic"})
