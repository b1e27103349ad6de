"""Round trip of captures: reading the simulator's capture gives the simulator's counters."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tcpcast
from tcpcast import _native
from tcpcast.captures import Capture
from tcpcast.engines.packet.configuration import make_configuration
from tcpcast.scenario import Scenario

SECONDS = 200
BASE: dict[str, Any] = {
    "network": {"rtt": "60ms", "bottleneck": {"rate": "4mbit", "buffer": "20pkt", "loss": "2%"}},
    "traffic": {"kind": "bulk", "flows": 3},
    "tcp": {"stack": "rfc-newreno", "receiver_window": 30},
    "run": {"duration": f"{SECONDS}s", "warmup": "0s"},
}

PATHS: dict[str, dict[str, Any]] = {
    "random loss": {},
    "much loss": {"network.bottleneck.loss": "8%"},
    "only the queue": {"network.bottleneck.loss": "0%"},
    "delayed acks": {"tcp.delayed_acks": True},
    "one flow": {"traffic.flows": 1, "network.bottleneck.rate": "100mbit"},
    "reno": {"tcp.stack": "rfc-reno"},
    "patient": {"tcp.stack": "rfc-newreno-patient", "network.bottleneck.loss": "5%"},
}


@dataclass(frozen=True)
class Loop:
    """The simulator's counters and the results of its captures."""

    answer: tcpcast.Answer
    counted: dict[str, int]
    sender: Capture
    receiver: Capture

    def summed(self, column: str) -> int:
        return int(self.sender.connections[column].sum())


@pytest.fixture(scope="module", params=PATHS)
def loop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Loop:
    folder = tmp_path_factory.mktemp("loop")
    taps = [
        {"link": tap, "file": str(folder / f"{tap}.pcap"), "packets": 1_000_000}
        for tap in ("sender", "receiver")
    ]
    scenario = apply_changes(BASE | {"probes": {"pcap": taps}}, PATHS[request.param])
    (answer,) = tcpcast.run(scenario, ["packet"])
    run = _native.Simulation(make_configuration(scenario, 0.0), 1)
    run.advance(transfers=None, until_ns=SECONDS * 10**9, threads=1)
    cells = run.counters()[0][-1].tolist()[len(_native.LINK_CELLS) :]
    return Loop(
        answer,
        dict(zip(_native.CLASS_CELLS, cells, strict=False)),
        tcpcast.trace(folder / "sender.pcap"),
        tcpcast.trace(folder / "receiver.pcap"),
    )


def apply_changes(base: dict[str, Any], changes: dict[str, Any]) -> Scenario:
    """Return the scenario with dotted keys replaced."""
    document = {name: dict(v) if isinstance(v, dict) else v for name, v in base.items()}
    document["network"]["bottleneck"] = dict(base["network"]["bottleneck"])
    for key, value in changes.items():
        *path, last = key.split(".")
        section = document
        for name in path:
            section = section[name]
        section[last] = value
    return Scenario.from_dict(document)


def test_loss_indications_equal_engine_counters(loop: Loop) -> None:
    assert loop.summed("td") == loop.counted["fast_retransmits"] > 10
    table = loop.sender.connections
    sent = table["data_packets"]
    ratio = (table["loss_indication_ratio"] * sent).sum() / sent.sum()
    assert ratio == pytest.approx(loop.answer["loss_indication_ratio"], rel=1e-12)
    kinds = loop.sender.loss_indications["kind"]
    assert (kinds == "td").sum() == loop.summed("td")
    assert (kinds == "to").sum() == loop.summed("to")


def test_loss_events_of_all_flows_equal_engine_counters(loop: Loop) -> None:
    """p_e with the engine's RTT: at most one event per round trip over all flows."""
    (ratio,) = loop.sender.groups("all", rtt_s=loop.answer["rtt_mean_s"])[
        "loss_event_ratio_cumulative"
    ]
    assert ratio == pytest.approx(loop.answer["loss_event_ratio_cumulative"], rel=1e-12)
    table = loop.sender.connections
    if table["src"].size > 1:
        assert ratio < (table["td"] + table["to"]).sum() / table["data_packets"].sum()


def test_fairness_of_flows_equals_the_engine(loop: Loop) -> None:
    (index,) = loop.sender.groups("all")["jain_index"]
    assert index == pytest.approx(loop.answer["jain_index"], abs=0.002)


def test_first_timeout_duration_equals_the_engine(loop: Loop) -> None:
    if loop.counted["timeout_sequences"] == 0:
        assert np.isnan(loop.sender.connections["t0_s"]).all()
        return
    table = loop.sender.connections
    has_timeouts = table["to"] > 0
    mean = (table["t0_s"] * table["to"])[has_timeouts].sum() / table["to"].sum()
    assert mean == pytest.approx(loop.answer["t0_s"], rel=0.02)


@pytest.mark.parametrize("loop", ["one flow"], indirect=True)
def test_round_trip_time_equals_the_engine(loop: Loop) -> None:
    """Without a standing queue: the engine times one packet per round, the reader all packets."""
    (mean,) = loop.sender.connections["rtt_mean_s"]
    assert mean == pytest.approx(loop.answer["rtt_mean_s"], rel=0.01)


def test_round_trip_time_of_rounds_equals_the_engine(loop: Loop) -> None:
    """Both time one packet at a time and exclude retransmissions."""
    table = loop.sender.connections
    samples = table["rtt_round_samples"]
    mean = (table["rtt_round_mean_s"] * samples).sum() / samples.sum()
    assert mean == pytest.approx(loop.answer["rtt_mean_s"], rel=0.01)


def test_table_of_rounds_adds_up(loop: Loop) -> None:
    rounds = loop.sender.rounds
    for row, sent in enumerate(loop.sender.connections["bytes"]):
        own = rounds["direction"] == row
        assert rounds["sent_bytes"][own].sum() == sent
        assert 100 < own.sum() <= 2048
        assert (np.diff(rounds["time"][own]) > np.timedelta64(0)).all()
    assert rounds["retransmissions"].sum() == loop.summed("retransmissions")


ALONE: dict[str, Any] = BASE | {
    "network": {"rtt": "60ms", "bottleneck": {"rate": "100mbit", "buffer": "200pkt"}},
    "traffic": {"kind": "bulk", "flows": 1},
    "run": {"duration": "60s", "warmup": "0s"},
}


def test_capture_announces_the_window_to_the_models(tmp_path: Path) -> None:
    """Without a window limit PFTK predicts 2.4 times this rate."""
    tap = {"link": "sender", "file": str(tmp_path / "sender.pcap"), "packets": 1_000_000}
    network = {"rtt": "40ms", "bottleneck": {"rate": "20mbit", "buffer": "100pkt", "loss": "0.1%"}}
    changes = {"receiver_window": 16, "stack": "rfc-newreno"}
    document = ALONE | {"network": network, "tcp": changes, "probes": {"pcap": [tap]}}
    tcpcast.run(apply_changes(document, {"traffic.flows": 1}), ["packet"])
    table = tcpcast.trace(tmp_path / "sender.pcap").connections
    assert table["syn_captured"].tolist() == [True]
    assert (table["mss_bytes"][0], table["w_max_pkts"][0]) == (1460, 16)
    assert table["handshake_rtt_s"][0] == pytest.approx(0.040, rel=0.03)
    assert table["pftk_pps"][0] == pytest.approx(table["send_rate_pps"][0], rel=0.10)


def test_capture_after_the_loss_contains_arrived_packets_only(loop: Loop) -> None:
    lost = loop.counted["queue_drops"] + loop.counted["random_drops"]
    table = loop.receiver.connections
    # Packets in flight at the end have not arrived.
    in_flight = loop.counted["sent"] - lost - int(table["data_packets"].sum())
    assert 0 <= in_flight <= 30 * len(table["src"])
