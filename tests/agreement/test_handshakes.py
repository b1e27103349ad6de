"""Handshakes and delayed starts of flows, against values computed by hand.

`crates/tcp` checks the number and times of SYN-ACK retransmissions packet by packet.
"""

from typing import Any

import numpy as np
import pytest
import tcpcast
from tcpcast.engines.packet.configuration import make_configuration
from tcpcast.scenario import Scenario

RTT_S = 0.1
SHORT: dict[str, Any] = {
    "network": {"rtt": "100ms", "bottleneck": {"rate": "100mbit", "buffer": "100pkt"}},
    "traffic": {"kind": "transfers", "size": ["1pkt", "8pkt"], "count": 200},
    "tcp": {"stack": "linux-cubic", "host_noise": "0s"},
    "run": {"seed": 1},
}


def simulate(*changes: dict[str, Any]) -> tcpcast.Answer:
    scenario = Scenario.from_dict(SHORT)
    for change in changes:
        scenario = scenario.with_changes(change)
    (answer,) = tcpcast.run(scenario, engines=["packet"])
    return answer


@pytest.mark.parametrize(
    ("handshake", "round_trips"), [("tcp", 1.5), ("tls13", 2.5), ("tls12", 3.5)]
)
def test_data_follows_the_syn_after_the_handshake_round_trips(
    handshake: str, round_trips: float
) -> None:
    answer = simulate({"tcp.handshake": handshake})
    before = answer["total_time_s"] - answer["delivery_time_s"]
    # The packets of a handshake have other transmission times than the packets of the RTT.
    assert before == pytest.approx(round_trips * RTT_S, abs=0.002)
    rows = answer.tables["by_size"]
    assert rows["total_time_s"] - rows["delivery_time_s"] == pytest.approx(before, abs=1e-9)
    for end, side in (("low", -1), ("high", 1)):
        assert all(side * (rows[f"total_time_s_{end}"] - rows["total_time_s"]) >= 0)


@pytest.mark.parametrize("size", ["1pkt", "8pkt", "60pkt"])
@pytest.mark.parametrize("handshake", ["tcp", "tls13", "tls12"])
def test_fast_open_saves_a_round_trip(handshake: str, size: str) -> None:
    changes = {"tcp.handshake": handshake, "traffic.size": [size], "traffic.count": 20}
    usual = simulate(changes)
    early = simulate(changes, {"tcp.fast_open": True})
    assert early["total_time_s"] == pytest.approx(usual["total_time_s"] - RTT_S, abs=0.002)
    assert early["delivery_time_s"] == pytest.approx(usual["delivery_time_s"], abs=0.002)


def test_formula_knows_fast_open() -> None:
    scenario = Scenario.from_dict(SHORT).with_changes({"tcp.fast_open": True})
    formula, packet = tcpcast.run(scenario, ["short", "packet"])
    assert formula["total_time_s"] == pytest.approx(packet["total_time_s"], rel=0.02)
    lossy = scenario.with_changes({"network.bottleneck.loss": "3%", "traffic.count": 10_000})
    formula, packet = tcpcast.run(lossy, ["short", "packet"])
    assert formula["total_time_s"] == pytest.approx(packet["total_time_s"], rel=0.05)


@pytest.mark.parametrize(
    ("size", "packets", "saved_rtts"), [("1400B", 1, 1), ("1450B", 2, 0), ("8pkt", 9, 0)]
)
def test_syn_carries_the_first_data_of_an_upload(size: str, packets: int, saved_rtts: int) -> None:
    upload = {
        "name": "up",
        "route": ["line"],
        "delay": "50ms",
        "sends": "client",
        "traffic": {
            "kind": "transfers",
            "size": size,
            "arrivals": {"distribution": "poisson", "rate": "1/s"},
        },
    }
    tables: dict[str, Any] = {
        "link": {"line": {"rate": "100mbit", "buffer": "100pkt"}},
        "class": [upload],
        "tcp": {"stack": "linux-cubic", "host_noise": "0s"},
        "run": {"duration": "60s", "warmup": "0s"},
    }
    scenario = Scenario.from_dict(tables)
    early = scenario.with_changes({"tcp.fast_open": True})
    (usual_answer,), (early_answer,) = (tcpcast.run(each, ["packet"]) for each in (scenario, early))
    saved = usual_answer["total_time_s"] - early_answer["total_time_s"]
    # What a SYN does not carry, at most 1420 bytes, waits for the SYN-ACK.
    assert saved == pytest.approx(saved_rtts * RTT_S, abs=0.002)
    for name in ("goodput_bps", "transfers", "retransmit_ratio"):
        assert early_answer[name] == usual_answer[name]
    # Packets are in flight for an RTT, that of the SYN as well.
    in_flight_s = early_answer["rtt_packet_mean_s"] * early_answer["mean_size_pkts"]
    assert in_flight_s == pytest.approx(packets * RTT_S, rel=0.001)


@pytest.mark.parametrize("handshake", ["none", "tls13", "tls12"])
@pytest.mark.parametrize("warmup", ["0s", "60ms", "200ms"])
def test_flights_of_tls_are_not_packets_in_flight(handshake: str, warmup: str) -> None:
    # Many flights of TLS are outstanding at the ends of the warm-up, of each slot and of the run.
    network = {"rtt": "8.59ms", "bottleneck": {"rate": "5.923mbit"}}
    tables: dict[str, Any] = {
        "network": network,
        "traffic": {"kind": "bulk", "flows": 20},
        "tcp": {"stack": "linux-cubic", "receiver_window": 2, "handshake": handshake},
        "run": {"duration": "1s", "warmup": warmup},
    }
    (answer,) = tcpcast.run(Scenario.from_dict(tables), engines=["packet"])
    metric = answer.metrics["rtt_packet_mean_s"]
    assert 0.0086 < metric.value < 0.12
    # Without losses, each acknowledged packet is one sample or shares one with another packet.
    assert metric.value == pytest.approx(answer["rtt_mean_s"], rel=0.15)
    assert metric.low is None or metric.low >= 0
    assert metric.high is None or metric.high < 0.3


@pytest.mark.parametrize("handshake", ["none", "tcp", "tls13"])
def test_loss_of_other_hops_counts_all_packets_sent(handshake: str) -> None:
    hops = [
        {"name": "first", "rate": "20mbit", "loss": "10%"},
        {"name": "second", "rate": "10mbit", "buffer": "100pkt"},
    ]
    arrivals = {"distribution": "poisson", "rate": "50/s"}
    tables: dict[str, Any] = {
        "network": {"rtt": "50ms", "hop": hops},
        "traffic": {"kind": "transfers", "size": "1pkt", "arrivals": arrivals},
        "tcp": {"stack": "linux-cubic", "handshake": handshake},
        "run": {"duration": "600s", "warmup": "10s"},
    }
    (answer,) = tcpcast.run(Scenario.from_dict(tables), engines=["packet"])
    metric = answer.metrics["other_loss_ratio"]
    assert metric.value == pytest.approx(0.1, rel=0.05)
    assert metric.low is not None
    assert metric.high is not None
    assert metric.low < 0.1 < metric.high
    rows = answer.tables["by_link"]
    assert metric.value == pytest.approx(rows["loss_ratio"][0], rel=0.002)
    # Each transfer sends one packet of data, and losses of other packets are no loss indications.
    assert answer["loss_indication_ratio"] < 0.15


def test_total_time_is_absent_without_a_handshake() -> None:
    answer = simulate({"tcp.handshake": "none"})
    assert "total_time_s" not in answer.metrics
    assert "total_time_s" not in answer.tables["by_size"]
    assert set(answer.tables["transfer_times"]["quantity"]) == {"completion_time", "delivery_time"}


def test_file_time_is_independent_of_the_handshake() -> None:
    without_handshake, with_handshake = (
        simulate({"tcp.handshake": name}) for name in ("none", "tls13")
    )
    assert with_handshake["delivery_time_s"] == pytest.approx(
        without_handshake["delivery_time_s"], abs=0.001
    )
    # A client that has just sent data would delay the ack of a single packet by 40 ms, but the FIN
    # after it is acknowledged immediately.
    ends = with_handshake.tables["by_size"]["completion_time_s"]
    before = without_handshake.tables["by_size"]["completion_time_s"]
    assert ends - before == pytest.approx([0.0, 0.0], abs=1e-5)


def test_lost_syn_acks_appear_in_the_tail_of_total_times() -> None:
    lossy = {"network.bottleneck.loss": "3%", "traffic.size": ["1pkt"], "traffic.count": 20_000}
    answer = simulate(lossy)
    times = answer.tables["transfer_times"]
    total = {
        name: values[list(times["quantity"]).index("total_time")] for name, values in times.items()
    }
    # 3 % of the SYN-ACKs are lost and retransmitted after a second. With this many transfers, the
    # 99th percentile is among them and the 90th is not.
    assert total["p90"] < 0.3
    assert 1.2 < total["p99"] < 1.3
    late = answer["total_time_s"] - answer["delivery_time_s"] - 1.5 * RTT_S
    # SYN-ACK is retransmitted after one or two seconds, with timers up to 32 ms late.
    assert 0.03 / (1 - 0.03**2) - 0.004 < late < 1.03 * 0.03 / 0.97 + 0.005


def test_files_on_a_persistent_connection_have_no_total_time() -> None:
    web = {
        "traffic": {
            "kind": "on-off",
            "sources": 5,
            "off": {"distribution": "exponential", "mean": "1s"},
            "size": {"distribution": "exponential", "mean": "10pkt"},
        },
        "run.transfers": 500,
    }
    new = simulate(web)
    assert new["total_time_s"] == pytest.approx(new["on_time_s"] + RTT_S, abs=0.01)
    persistent = simulate(web, {"traffic.connection": "persistent"})
    assert "total_time_s" not in persistent.metrics


PAIR: dict[str, Any] = {
    "network": {"rtt": "50ms", "bottleneck": {"rate": "20mbit", "buffer": "1bdp"}},
    "traffic": {"kind": "bulk"},
    "tcp": {"stack": "linux-cubic"},
    "class": [{"name": "stays", "flows": 1}, {"name": "guest", "flows": 1}],
    "run": {"duration": "60s", "warmup": "10s", "seed": 1},
}


def pair(*stacks: str, **span: str) -> tcpcast.Answer:
    tables = {**PAIR, "class": [dict(entry) for entry in PAIR["class"]]}
    for entry, stack in zip(tables["class"], stacks, strict=True):
        entry["tcp"] = {"stack": stack}
    tables["class"][1] |= span
    (answer,) = tcpcast.run(Scenario.from_dict(tables), engines=["packet"])
    return answer


@pytest.mark.parametrize("stack", ["linux-cubic", "linux-bbr", "rfc-newreno"])
def test_class_rates_cover_its_active_time(stack: str) -> None:
    answer = pair("linux-cubic", stack, start="20s", stop="40s")
    permanent, guest = answer.tables["by_class"]["goodput_pps"]
    # The guest class is active for 20 of the 50 measured seconds.
    assert permanent * 50 + guest * 20 == pytest.approx(answer["goodput_pps"] * 50, rel=1e-9)
    assert guest > 100
    rates = np.array([permanent, guest])
    jain = rates.sum() ** 2 / (2 * (rates**2).sum())
    assert answer["jain_index"] == pytest.approx(jain, rel=0.001)


def test_class_that_stops_in_the_warm_up_leaves_the_link() -> None:
    answer = pair("linux-cubic", "linux-bbr", stop="5s")
    permanent, guest = answer.tables["by_class"]["goodput_pps"]
    assert permanent > 1600
    assert not guest > 0


@pytest.mark.parametrize("key", ["start", "stop"])
def test_formulas_reject_a_class_that_starts_later_or_stops(key: str) -> None:
    tables = {**PAIR, "class": [{"name": "one", "flows": 1, key: "5s"}]}
    tables["tcp"] = {"stack": "rfc-newreno"}
    (answer,) = tcpcast.run(Scenario.from_dict(tables), engines=["pftk"])
    assert "never start or stop" in (answer.not_applicable or "")


def make_scenario(start: Any, flows: int = 4) -> Scenario:
    classes = [
        {"name": "few", "flows": 1, "route": ["link"], "delay": "40ms", "start": "1s"},
        {"name": "many", "flows": flows, "route": ["link"], "delay": "40ms"},
    ]
    if start != "iperf3":
        del classes[0]["start"]
    return Scenario.from_dict(
        {
            "link": {"link": {"rate": "50mbit", "buffer": "20bdp"}},
            "class": classes,
            "traffic": {"kind": "bulk", "start": start},
            "run": {"duration": "20s", "warmup": "0s", "seed": 1},
        }
    )


def test_each_connection_delays_the_common_start_by_one_rtt() -> None:
    scenario = make_scenario("iperf3")
    first, second = (
        entry["traffic"]["files"]["bulk"]["start"]["times"]
        for entry in make_configuration(scenario, 0.0)["classes"]
    )
    rtt_s = scenario.populations[1].rtt_s
    assert first == [1.0]
    assert second == pytest.approx([3 * rtt_s] * 4)


def test_class_with_few_flows_gets_more_in_a_deep_buffer() -> None:
    def share(start: Any) -> float:
        (answer,) = tcpcast.run(make_scenario(start, flows=49), ["packet"])
        rates = answer.tables["by_class"]["goodput_bps"]
        return float(rates[0] / sum(rates))

    together = {"distribution": "constant", "value": "0s"}
    assert share("iperf3") > 2 * share(together)
