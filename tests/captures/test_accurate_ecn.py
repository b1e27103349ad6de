"""Captures of connections with accurate ECN: the mode and the marks agree at both ends."""

from pathlib import Path
from typing import Any

import pytest
import tcpcast
from tcpcast.captures import Capture
from tcpcast.scenario import Scenario


def _capture_at_both_ends(folder: Path, ecn: bool | str, **tcp: Any) -> list[Capture]:
    taps = ("sender", "receiver")
    tables: dict[str, Any] = {
        "link": {"line": {"rate": "40mbit", "buffer": "500pkt", "queue": "dualpi2"}},
        "class": [{"name": "a", "flows": 1, "route": ["line"], "delay": "5ms"}],
        "traffic": {"kind": "bulk"},
        "tcp": {"stack": "prague", "ecn": ecn} | tcp,
        "run": {"duration": "5s", "warmup": "0s"},
        "probes": {"pcap": [{"link": tap, "file": str(folder / f"{tap}.pcap")} for tap in taps]},
    }
    tcpcast.run(Scenario.from_dict(tables), ["packet"])
    return [tcpcast.trace(folder / f"{tap}.pcap") for tap in taps]


@pytest.mark.parametrize("handshake", ["tcp", "none"])
def test_reported_marks_are_those_that_arrived(tmp_path: Path, handshake: str) -> None:
    sender, receiver = (
        {name: column[0] for name, column in capture.connections.items()}
        for capture in _capture_at_both_ends(tmp_path, "accurate", handshake=handshake)
    )
    for row in (sender, receiver):
        assert row["ecn"]
        assert row["accurate_ecn"]
        assert row["window_reductions"] == 0
    # The sender's tap sees packets before they are marked; the last acks are in flight.
    assert sender["ce_marks"] == 0
    assert receiver["ce_marks"] > 100
    assert 0 <= receiver["ce_marks"] - sender["reported_ce_packets"] < 10
    bytes_in_flight = receiver["ce_bytes"] - sender["reported_ce_bytes"]
    assert 0 <= bytes_in_flight < 0.05 * receiver["ce_bytes"]
    assert 0 < sender["ecn_echoes"] <= sender["reported_ce_packets"]


def test_an_echo_of_each_mark_is_classic_ecn(tmp_path: Path) -> None:
    (capture, _) = _capture_at_both_ends(tmp_path, ecn=True)
    row = {name: column[0] for name, column in capture.connections.items()}
    assert (row["ecn"], row["accurate_ecn"], row["reported_ce_packets"]) == (True, False, 0)
    assert row["ecn_echoes"] > 100
