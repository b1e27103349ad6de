"""RTT at a receiver's tap: the RTT of the path without its queue, never above the true RTT.

The simulator captures the same transfer at both ends. The side of a tap is inferred from the
captured handshake.
"""

from pathlib import Path
from typing import Any

import pytest
import tcpcast

RTT_NS = 60_000_000
PATHS: dict[str, dict[str, Any]] = {
    "a queue": {},
    "random loss": {"rate": "20mbit", "loss": "3%"},
    "both": {"loss": "2%"},
}


@pytest.mark.parametrize("path", PATHS)
def test_receiver_tap_gives_a_lower_estimate(path: str, tmp_path: Path) -> None:
    taps = ("sender", "receiver")
    bottleneck = {"rate": "4mbit", "buffer": "20pkt", **PATHS[path]}
    question = tcpcast.Scenario.from_dict(
        {
            "network": {"rtt": f"{RTT_NS}ns", "bottleneck": bottleneck},
            "traffic": {"kind": "bulk", "flows": 1},
            "tcp": {"stack": "rfc-newreno"},
            "run": {"duration": "60s", "warmup": "0s"},
            "probes": {"pcap": [{"link": t, "file": str(tmp_path / t)} for t in taps]},
        }
    )
    tcpcast.run(question, ["packet"])
    near, far = (tcpcast.trace(tmp_path / tap).connections for tap in taps)
    assert [near["tap_side"][0], far["tap_side"][0]] == ["sender", "receiver"]
    # The handshake's packets are shorter than data on the link.
    empty_s = near["handshake_rtt_s"][0]
    data_s = 1500 * 8 / question.network.bottleneck.rate_bps
    assert RTT_NS / 1e9 - data_s <= empty_s < RTT_NS / 1e9
    assert far["handshake_rtt_s"][0] == pytest.approx(empty_s)
    truth = near["rtt_mean_s"][0]
    assert 0.99 * empty_s < far["rtt_mean_s"][0] < truth
