"""``run.report_at``: data delivered by given times after the start of each flow."""

from typing import Any

import numpy as np
import pytest
import tcpcast
from tcpcast.scenario import Scenario

BASE: dict[str, Any] = {
    "network": {"rtt": "100ms", "bottleneck": {"rate": "1gbit"}},
    "traffic": {"kind": "bulk", "flows": 1},
    "tcp": {"stack": "rfc-newreno"},
    "run": {
        "duration": "1s",
        "warmup": "0s",
        "report_at": ["49ms", "90ms", "190ms", "290ms", "390ms"],
    },
}


def simulate(changes: dict[str, Any], base: dict[str, Any] = BASE) -> tcpcast.Answer:
    scenario = Scenario.from_dict(base).with_changes(changes)
    (answer,) = tcpcast.run(scenario, ["packet"])
    return answer


def test_slow_start_doubles_the_delivered_data_per_round() -> None:
    table = simulate({}).tables["delivered"]
    assert table["t_s"].tolist() == [0.049, 0.09, 0.19, 0.29, 0.39]
    # Two packets, then twice as many in each round; half of the propagation comes before the first.
    assert (table["bytes"] / 1460).tolist() == [0, 2, 6, 14, 30]
    assert set(table) == {"t_s", "bytes", "low", "high", "flows"}


@pytest.mark.parametrize("handshake", ["none", "tcp", "tls13", "tls12"])
def test_handshake_time_and_bytes_are_excluded(handshake: str) -> None:
    tcp = {"tcp.stack": "linux-reno", "tcp.handshake": handshake}
    table = simulate({**tcp, "run.report_at": ["90ms"]}).tables["delivered"]
    delivered = (table["bytes"] / 1448).tolist()
    if handshake in ("none", "tcp"):
        assert delivered == [10]
    else:
        # The server's certificates have opened its window.
        assert 10 <= delivered[0] <= 20


def test_delivered_bytes_exclude_data_after_a_gap() -> None:
    lossy = {"network.bottleneck.loss": "20%", "run.duration": "6s", "run.replications": 40}
    answer = simulate({**lossy, "run.report_at": ["90ms", "1s", "5s"], "traffic.flows": 5})
    table = answer.tables["delivered"]
    # Of two initial packets, on average 0.8 x 1.8 arrive in order: a packet is lost with 0.2.
    assert table["bytes"][0] / 1460 == pytest.approx(0.8 * 1.8, abs=0.25)
    assert (np.diff(table["bytes"]) > 0).all()
    assert table["flows"].tolist() == [200, 200, 200]
    assert (table["low"] < table["bytes"]).all()
    assert (table["high"] > table["bytes"]).all()


def test_each_class_of_flows_has_its_own_rows() -> None:
    base = {
        **BASE,
        "traffic": {"kind": "bulk"},
        "class": [
            {"name": "near", "flows": 2},
            {"name": "far", "flows": 1, "rtt": "300ms"},
            {"name": "short", "flows": 1, "stop": "150ms"},
            {
                "name": "web",
                "sources": 3,
                "traffic": {
                    "kind": "on-off",
                    "off": {"distribution": "exponential", "mean": "1s"},
                    "size": {"distribution": "constant", "value": "5pkt"},
                },
            },
        ],
    }
    answer = simulate({"run.report_at": ["90ms", "190ms"]}, base)
    table = answer.tables["delivered"]
    assert table["class"].tolist() == ["near", "near", "far", "far", "short"]
    assert table["flows"].tolist() == [2, 2, 1, 1, 1]
    assert (table["bytes"] / 1460).tolist() == [2, 6, 0, 2, 2]


def test_times_beyond_the_flows_are_omitted_with_a_warning() -> None:
    answer = simulate({"run.report_at": ["90ms", "990ms"]})
    assert answer.tables["delivered"]["t_s"].tolist() == [0.09]
    assert any("ends before 0.99 s, a time in run.report_at" in text for text in answer.warnings)


def test_other_results_are_unchanged() -> None:
    reported, plain = simulate({"tcp.stack": "linux-cubic"}), None
    tables = {**BASE, "run": {"duration": "1s", "warmup": "0s"}, "tcp": {"stack": "linux-cubic"}}
    plain = simulate({}, tables)
    assert reported.metrics == plain.metrics
