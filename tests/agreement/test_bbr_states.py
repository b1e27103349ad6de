"""States of BBR over time in the table ``bbr``, and the phases that its rules require."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import tcpcast
from tcpcast.array_types import Table
from tcpcast.scenario import Scenario

PAYLOAD_RATE = 50e6 * 1448 / 1500

SUCCESSORS = {
    "startup": {"drain", "probe_rtt"},
    "drain": {"probe_down", "probe_cruise", "probe_rtt"},
    "probe_down": {"probe_cruise", "probe_refill", "probe_rtt"},
    "probe_cruise": {"probe_refill", "probe_rtt"},
    "probe_refill": {"probe_up", "probe_rtt"},
    "probe_up": {"probe_down", "probe_cruise", "probe_rtt"},
    "probe_rtt": {"probe_cruise", "startup"},
}
"""Figure 1 of the draft; two transitions at one acknowledgement are one."""


def run_states(tcp: dict[str, Any], **traffic: Any) -> dict[str, Table]:
    scenario = tcpcast.Scenario.from_dict(
        {
            "network": {"rtt": "40ms", "bottleneck": {"rate": "50mbit", "buffer": "1000pkt"}},
            "traffic": {"kind": "bulk", "flows": 1} | traffic,
            "tcp": tcp,
            "run": {"duration": "12s", "warmup": "0s", "replications": 1},
            "probes": {"flows": [0]},
        }
    )
    (answer,) = tcpcast.run(scenario, ["packet"])
    return answer.tables


def phases(table: Table) -> list[str]:
    names = table["phase"].tolist()
    return [names[0], *(after for before, after in pairwise(names) if after != before)]


@pytest.mark.parametrize(
    "tcp", [{"stack": "bbr3"}, {"stack": "quic", "congestion_control": "bbr3"}]
)
def test_states_of_version_3_follow_the_state_machine(tcp: dict[str, Any]) -> None:
    table = run_states(tcp)["bbr"]
    order = phases(table)
    assert order[:2] == ["startup", "drain"]
    assert set(SUCCESSORS) - {"probe_down"} <= set(order)
    assert all(after in SUCCESSORS[before] for before, after in pairwise(order))
    gains = {
        name: set(np.round(table["pacing_gain"][table["phase"] == name], 2).tolist())
        for name in order
    }
    assert gains["drain"] == {0.5}
    assert gains["probe_up"] == {1.25}
    assert gains["probe_cruise"] == {1.0}
    assert set(table["cwnd_gain"][table["phase"] == "probe_rtt"]) == {0.5}
    assert table["max_bw_bps"][-1] == pytest.approx(PAYLOAD_RATE, rel=0.02)
    assert table["min_rtt_s"][-1] == pytest.approx(0.04, rel=0.02)
    cruising = table["phase"] == "probe_cruise"
    paced = table["pacing_rate_bps"][cruising] / table["bw_bps"][cruising]
    assert np.allclose(paced, 0.99, rtol=1e-3)
    assert (np.diff(table["time_s"]) >= 0).all()


def test_states_of_version_1_have_one_phase_with_eight_gains() -> None:
    table = run_states({"stack": "linux-bbr"})["bbr"]
    assert phases(table)[:3] == ["startup", "drain", "probe_bw"]
    gains = np.round(table["pacing_gain"][table["phase"] == "probe_bw"], 2)
    assert set(gains.tolist()) == {0.75, 1.0, 1.25}
    assert np.isinf(table["inflight_longterm_pkts"]).all()


def test_other_controls_have_no_states() -> None:
    tables = run_states({"stack": "linux-cubic"})
    assert "windows" in tables
    assert "bbr" not in tables


def test_writer_that_pauses_later_has_the_states_of_a_greedy_one_before() -> None:
    tcp = {"stack": "bbr3", "notsent_lowat": "16KB"}
    writes = {"size": "40KB", "gap": "20ms"}
    whole = run_states(tcp, writes=writes | {"after": "1000s"})["bbr"]
    table = run_states(tcp, writes=writes | {"after": "6s"})["bbr"]
    before = {name: column[table["time_s"] < 6] for name, column in table.items()}
    for name, column in before.items():
        assert (whole[name][: column.size] == column).all(), name
    # An application that is limited never ends a probe without losses.
    assert phases(whole).count("probe_up") > phases(table).count("probe_up")


def _mean_queue_delay_ms(rtt: str, *, ecn: bool) -> float:
    queue = {"kind": "codel", "ecn": True, "ce_threshold": "300us"}
    tables = {
        "network": {
            "rtt": rtt,
            "bottleneck": {"rate": "100mbit", "buffer": "1000pkt", "queue": queue},
        },
        "traffic": {"kind": "bulk", "flows": 4},
        "tcp": {"stack": "bbr3", "ecn": ecn, "host_noise": "10us"},
        "run": {"duration": "15s", "warmup": "5s", "seed": 1},
    }
    scenario = Scenario.from_dict(tables)
    ignores = any("bbr3 ignores marks" in warning for warning in scenario.warnings())
    assert ignores == (ecn and rtt == "10ms")
    (answer,) = tcpcast.run(scenario, ["packet"])
    return 1e3 * answer.metrics["queue_delay_mean_s"].value


def test_bbr3_responds_to_marks_on_short_paths_only() -> None:
    """As in google/bbr with ``ecn_low``; the queue marks above 0.3 ms."""
    assert _mean_queue_delay_ms("2ms", ecn=True) < 0.6
    assert _mean_queue_delay_ms("2ms", ecn=False) > 3.0
    assert _mean_queue_delay_ms("10ms", ecn=True) > 6.0
