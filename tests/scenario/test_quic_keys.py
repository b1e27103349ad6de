"""Keys of the QUIC stacks: defaults, classes beside TCP, and messages."""

from typing import Any

import pytest
from tcpcast.scenario import Scenario
from tcpcast.scenario.modern_tcp import QUIC_PRESETS

BASE: dict[str, Any] = {
    "network": {"rtt": "60ms", "bottleneck": {"rate": "20mbit", "buffer": "100pkt"}},
    "traffic": {"kind": "bulk", "flows": 1},
    "tcp": {"stack": "quic"},
    "run": {"duration": "60s"},
}


def changed(changes: dict[str, Any]) -> Scenario:
    return Scenario.from_dict(BASE).with_changes(changes)


@pytest.mark.parametrize("stack", QUIC_PRESETS)
def test_stack_supplies_keys_and_reads_back(stack: str) -> None:
    scenario = changed({"tcp.stack": stack})
    assert scenario.tcp.is_quic
    assert scenario.tcp.control == ("reno" if stack == "aioquic" else "cubic")
    # IPv4, UDP, a short header with packet number and tag, and a STREAM frame.
    assert scenario.payload_bytes == 1500 - 63
    assert Scenario.from_dict(scenario.resolved()) == scenario


def test_sizes_in_bytes_are_divided_by_the_payload_of_the_stack() -> None:
    transfers = {"kind": "transfers", "size": "14370B", "count": 5}
    tables = {key: value for key, value in BASE.items() if key != "run"}
    scenario = Scenario.from_dict(tables | {"traffic": transfers})
    assert scenario.traffic.size == 10  # type: ignore[union-attr]


def test_classes_have_tcp_and_quic_on_one_link() -> None:
    classes = [
        {"name": "web", "flows": 1, "tcp": {"stack": "quic", "congestion_control": "bbr"}},
        {"name": "old", "flows": 1, "tcp": {"stack": "linux-cubic"}},
    ]
    tables = BASE | {"traffic": {"kind": "bulk"}, "tcp": {"min_rto": "300ms"}, "class": classes}
    scenario = Scenario.from_dict(tables)
    web, old = (group.tcp for group in scenario.populations)
    assert (web.control, old.control) == ("bbr", "cubic")
    # The timeout of TCP is not inherited by QUIC.
    assert old.min_rto_s == 0.3
