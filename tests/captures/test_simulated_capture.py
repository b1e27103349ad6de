"""The capture of a simulated run has the values that the simulator counts."""

from pathlib import Path
from typing import Any

import pytest
import tcpcast
from tcpcast.captures.capture_stats import estimated_loss_ratio
from tcpcast.scenario import Scenario

PATH: dict[str, Any] = {
    "network": {"rtt": "60ms", "bottleneck": {"rate": "4mbit", "buffer": "20pkt", "loss": "3%"}},
    "traffic": {"kind": "bulk", "flows": 3},
    "tcp": {"stack": "rfc-newreno"},
    "run": {"duration": "650s", "warmup": "0s"},
}
COUNTS = {"td": "td_indications", "to": "to_indications", "timeouts": "timeouts"}
NEAR = {
    "send_rate_pps": 1e-3,
    "goodput_bps": 2e-3,
    "t0_s": 0.02,
    "rtt_mean_s": 0.05,
    "loss_event_ratio_cumulative": 0.05,
    "jain_index": 2e-3,
}
"""Values that depend on the end of a run, the timed packets, or the packets in flight."""


def test_capture_values_equal_simulator_counters(tmp_path: Path) -> None:
    tap = {"link": "sender", "file": str(tmp_path / "flows.pcap"), "packets": 1_000_000}
    (answer,) = tcpcast.run(Scenario.from_dict(PATH | {"probes": {"pcap": [tap]}}), ["packet"])
    capture = tcpcast.trace(tmp_path / "flows.pcap")
    total = {name: column[0] for name, column in capture.groups(by="all").items()}
    for column, metric in COUNTS.items():
        assert total[column] == answer[metric], metric
    sent = total["packets_sent"]
    assert total["retransmissions"] / sent == pytest.approx(answer["retransmit_ratio"], rel=1e-9)
    assert total["loss_indication_ratio"] == pytest.approx(
        answer["loss_indication_ratio"], rel=1e-9
    )
    for name, tolerance in NEAR.items():
        assert total[name] == pytest.approx(answer[name], rel=tolerance), name
    assert total["parallel_flows"] == pytest.approx(3, abs=0.1)
    # One capture point shows only retransmissions, which exceed the losses after a timeout.
    lost = estimated_loss_ratio(capture.connections)
    assert lost == pytest.approx(answer["loss_ratio"], rel=0.1)
