"""DualPI2: what RFC 9332 promises for a scalable flow beside a classic one."""

from typing import Any

import pytest
import tcpcast


@pytest.mark.parametrize(
    ("stack", "classify", "coupling"),
    [("dctcp", "any_ect", 2), ("dctcp", "any_ect", 8), ("prague", "l4s_ect", 2)],
)
def test_scalable_flow_waits_a_millisecond_and_shares_by_coupling(
    stack: str, classify: str, coupling: int
) -> None:
    queue = {"kind": "dualpi2", "classify": classify, "coupling_factor": coupling}
    tables: dict[str, Any] = {
        "name": "two flows",
        "network": {
            "rtt": "10ms",
            "bottleneck": {"rate": "40mbit", "buffer": "1000pkt", "queue": queue},
        },
        "class": [
            {"name": stack, "traffic": {"kind": "bulk", "flows": 1}, "tcp": {"stack": stack}}
            for stack in (stack, "linux-cubic")
        ],
        "run": {"duration": "60s", "warmup": "10s"},
    }
    (answer,) = tcpcast.run(tcpcast.Scenario.from_dict(tables), ["packet"])
    table = answer.tables["by_class"]
    scalable, classic = ({key: table[key][row] for key in table} for row in (0, 1))
    # The step is at 1 ms, the target of the classic queue 15 ms.
    assert scalable["queue_delay_mean_s"] < 0.001
    assert classic["queue_delay_mean_s"] == pytest.approx(0.015, abs=0.002)
    assert (scalable["loss_ratio"], classic["ecn_mark_ratio"]) == (0, 0)
    # Appendix A.1: about equal windows with k = 2, so that the shorter RTT gives a higher rate; a
    # larger k marks the scalable flow more often.
    share = scalable["goodput_bps"] / (scalable["goodput_bps"] + classic["goodput_bps"])
    assert 0.45 < share < 0.65 if coupling == 2 else share < 0.35
