"""DualPI2: what RFC 9332 promises for a scalable flow beside a classic one."""

from typing import Any

import numpy as np
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


@pytest.mark.parametrize("ecn", ["ect1", "ect0", None])
def test_unresponsive_traffic_harms_the_queue_of_its_codepoint(ecn: str | None) -> None:
    """RFC 9332, section 4.2.3: overload of either queue is limited by drops of both."""
    messages: dict[str, Any] = {"kind": "messages", "size": "1500B", "interval": "0.2ms"}
    flows = {"route": ["line"], "delay": "5ms"}
    tables: dict[str, Any] = {
        "link": {"line": {"rate": "40mbit", "buffer": "1000pkt", "queue": "dualpi2"}},
        "class": [
            *(flows | {"name": name, "flows": 1, "tcp": {"stack": name}} for name in _STACKS),
            flows | {"name": "udp", "flows": 1},
        ],
        "traffic": {"kind": "bulk"},
        "run": {"duration": "20s", "warmup": "5s"},
    }
    tables["class"][2]["traffic"] = messages | ({} if ecn is None else {"ecn": ecn})
    (answer,) = tcpcast.run(tcpcast.Scenario.from_dict(tables), ["packet"])
    table = answer.tables["by_link_class"]
    prague, cubic, udp = (
        {key: column[table["class"] == name].item() for key, column in table.items()}
        for name in (*_STACKS, "udp")
    )
    overloaded, other = (prague, cubic) if ecn == "ect1" else (cubic, prague)
    # 60 Mbit/s on a link of 40: the rest is dropped, and the delay is the target of 15 ms.
    assert udp["loss_ratio"] == pytest.approx(1 / 3, abs=0.03)
    assert udp["queue_delay_mean_s"] == pytest.approx(0.015, abs=0.001)
    assert overloaded["queue_delay_mean_s"] == pytest.approx(0.015, abs=0.002)
    assert other["queue_delay_p99_s"] < 0.008
    # Nothing stalls, but little is left.
    rates = np.array([prague["rate_bps"], cubic["rate_bps"]])
    assert (rates > 10_000).all()
    assert (rates < 2e6).all()
    assert (udp["ecn_mark_ratio"] > 0) == (ecn == "ect1")


_STACKS = ("prague", "linux-cubic")


def _share_of_prague(ecn: bool | str, **up: Any) -> float:
    """Return the share of Prague beside CUBIC behind DualPI2."""
    link = {"rate": "40mbit", "buffer": "1000pkt", "queue": "dualpi2"}
    flows = {"flows": 1, "route": ["line"], "back": ["up"], "delay": "10ms"}
    tables: dict[str, Any] = {
        "link": {"line": link, "up": {"rate": "10mbit", "buffer": "100pkt"} | up},
        "class": [
            flows | {"name": "prague", "tcp": {"stack": "prague", "ecn": ecn}},
            flows | {"name": "cubic", "tcp": {"stack": "linux-cubic"}},
        ],
        "traffic": {"kind": "bulk"},
        "run": {"duration": "60s", "warmup": "10s"},
    }
    (answer,) = tcpcast.run(tcpcast.Scenario.from_dict(tables), ["packet"])
    rates = answer.tables["by_class"]["goodput_bps"]
    return float(rates[0] / rates.sum())


def test_accurate_feedback_gives_the_share_of_an_echo_of_each_mark() -> None:
    accurate = _share_of_prague("accurate")
    assert accurate == pytest.approx(_share_of_prague(True), abs=0.06)
    # Acks that the filter drops report nothing, but the counters of later acks do.
    filtered = {"kind": "cake", "ack_filter": "on"}
    assert _share_of_prague("accurate", rate="1mbit", queue=filtered) > 0.3
