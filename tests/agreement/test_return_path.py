"""The return path: a link shared by all acks, ack loss, and their effect on senders."""

from pathlib import Path
from typing import Any

import pytest
import tcpcast
from tcpcast.scenario import Scenario
from tcpcast.scenario.modern_tcp import MODERN_PRESETS
from tcpcast.scenario.queue import QUEUE_NAMES

OF_RETURN = {"return_utilisation", "return_loss_ratio", "return_queue_delay_mean_s"}

BASE: dict[str, Any] = {
    "network": {"rtt": "60ms", "bottleneck": {"rate": "8mbit", "buffer": "60pkt"}},
    "traffic": {"kind": "bulk", "flows": 1},
    "tcp": {"stack": "rfc-newreno"},
    "run": {"duration": "20s", "warmup": "5s", "seed": 1},
}

WEB: dict[str, Any] = {
    **BASE,
    "traffic": {
        "kind": "on-off",
        "sources": 20,
        "off": {"distribution": "exponential", "mean": "1s"},
        "size": {"distribution": "exponential", "mean": "15pkt"},
    },
}


def simulate(
    changes: dict[str, Any], base: dict[str, Any] = BASE, *, threads: int | None = None
) -> tcpcast.Answer:
    scenario = Scenario.from_dict(base).with_changes(changes)
    (answer,) = tcpcast.run(scenario, ["packet"], threads=threads)
    return answer


@pytest.mark.parametrize("base", [BASE, WEB], ids=["bulk", "web"])
def test_fast_return_link_equals_no_return_link(base: dict[str, Any]) -> None:
    plain, same = simulate({}, base), simulate({"network.return.rate": "8mbit"}, base)
    assert same["return_loss_ratio"] == 0
    assert set(same.metrics) == set(plain.metrics) | OF_RETURN
    # The simulator calls receivers at other times, so that batches of delivered packets end
    # differently.
    for name, metric in plain.metrics.items():
        assert same[name] == pytest.approx(metric.value, rel=1e-12, nan_ok=True)


def test_queued_acks_pace_their_sender() -> None:
    # RFC 3449, section 2: one ack per packet, and the return link carries 400 acks per second.
    answer = simulate({"network.return.rate": "128kbit", "tcp.receiver_window": 100})
    assert answer["goodput_pps"] == pytest.approx(400, rel=1e-3)
    assert answer["return_utilisation"] == pytest.approx(1, abs=1e-3)
    assert answer["return_loss_ratio"] == 0
    # A window of packets is in flight; the RTT above the base RTT is the wait of acks.
    assert answer["rtt_packet_mean_s"] == pytest.approx(100 / 400, rel=1e-3)
    assert answer["return_queue_delay_mean_s"] == pytest.approx(100 / 400 - 0.06, rel=0.01)


def test_later_acks_replace_acks_that_a_full_return_link_drops() -> None:
    narrow = {"network.return.rate": "128kbit", "network.return.buffer": "10pkt"}
    answer = simulate({**narrow, "tcp.receiver_window": 100})
    # 400 of 667 acks per second arrive, and the download is as fast as with all of them.
    assert answer["goodput_pps"] > 630
    assert answer["return_loss_ratio"] == pytest.approx(1 - 400 / answer["goodput_pps"], abs=0.02)
    # At most nine acks wait before one.
    assert answer["return_queue_delay_mean_s"] <= 9 * 320 / 128e3


@pytest.mark.parametrize("stack", ["rfc-newreno", *MODERN_PRESETS])
def test_random_ack_loss_hardly_slows_a_long_flow(stack: str) -> None:
    changes = {"network.ack_loss": "10%", "tcp.stack": stack, "tcp.receiver_window": 60}
    answer = simulate(changes)
    assert answer["return_loss_ratio"] == pytest.approx(0.1, abs=0.02)
    assert answer["goodput_pps"] > 0.9 * 8e6 / 12e3
    assert answer["loss_ratio"] == 0


def test_ack_losses_can_be_bursty() -> None:
    distribution = {"model": "gilbert-elliott", "to_bad": "1%", "to_good": "20%"}
    answer = simulate({"network.ack_loss": distribution})
    assert answer["return_loss_ratio"] == pytest.approx(1 / 21, abs=0.02)


@pytest.mark.parametrize("stack", ["rfc-newreno", "linux-cubic", "linux-bbr"])
@pytest.mark.parametrize("handshake", ["none", "tcp", "tls13"])
def test_all_transfers_end_despite_lost_acks(stack: str, handshake: str) -> None:
    if stack == "rfc-newreno" and handshake != "none":
        return
    tcp = {"stack": stack} | ({} if stack == "rfc-newreno" else {"handshake": handshake})
    base = {
        "network": {**BASE["network"], "ack_loss": "30%"},
        "traffic": {"kind": "transfers", "size": ["1pkt", "20pkt"], "count": 40},
        "tcp": tcp,
        "run": {"seed": 3},
    }
    answer = simulate({}, base)
    assert answer["transfers"] == pytest.approx(80)
    assert answer["return_loss_ratio"] == pytest.approx(0.3, abs=0.1)
    if handshake == "tcp":
        # SYN or the ack of SYN-ACK is lost, and retransmitted after a second.
        assert answer["total_time_s"] > answer["delivery_time_s"] + 0.2


@pytest.mark.parametrize("queue", [name for name in QUEUE_NAMES if name not in ("red", "fq")])
@pytest.mark.parametrize("stack", ["rfc-newreno", "linux-cubic"])
def test_return_link_supports_all_disciplines(queue: str, stack: str) -> None:
    narrow = {"rate": "100kbit", "buffer": "100pkt", "queue": queue}
    base = {**WEB, "network": {**BASE["network"], "return": narrow}, "tcp": {"stack": stack}}
    answer = simulate({"run.duration": "12s"}, base)
    assert answer["return_utilisation"] > 0.7
    assert 0 < answer["return_queue_delay_mean_s"] < 100 * 8 * 80 / 100e3
    assert answer["transfers"] > 50


def test_codel_limits_the_queueing_delay_of_acks() -> None:
    narrow = {"network.return.rate": "64kbit", "tcp.receiver_window": 100}
    queueing_delays = [
        simulate({**narrow, "network.return.queue": queue})["return_queue_delay_mean_s"]
        for queue in ("droptail", "codel")
    ]
    assert queueing_delays[0] == pytest.approx(100 / 200 - 0.06, rel=0.01)
    assert queueing_delays[1] < 0.7 * queueing_delays[0]


def test_upload_traffic_delays_the_acks() -> None:
    narrow = {"rate": "1mbit", "buffer": "50pkt"}
    base = {**BASE, "network": {**BASE["network"], "return": narrow}}
    cross = [{"hop": "return", "model": "poisson", "mean": "70%"}]
    changes = {"tcp.receiver_window": 60}
    alone, delayed = simulate(changes, base), simulate(changes, {**base, "cross": cross})
    # M/D/1 of packets of 12 ms at a load of 0.7: a wait of 0.7 x 12 ms / (2 x 0.3).
    assert delayed["return_queue_delay_mean_s"] > 0.01 > alone["return_queue_delay_mean_s"]
    row = {name: column[0] for name, column in delayed.tables["cross"].items()}
    assert row["hop"] == "return"
    assert row["offered_bps"] == pytest.approx(0.7e6, rel=0.1)
    acks = delayed["goodput_pps"] * 320
    carried = delayed["return_utilisation"] * 1e6
    assert carried == pytest.approx(row["carried_bps"] + acks, rel=0.03)


def test_hops_and_classes_share_the_return_link(tmp_path: Path) -> None:
    base: dict[str, Any] = {
        "network": {
            "rtt": "60ms",
            "hop": [
                {"name": "near", "rate": "20mbit", "shared": False},
                {"name": "core", "rate": "8mbit", "buffer": "60pkt", "measured": True},
                {"name": "far", "rate": "10mbit", "buffer": "60pkt"},
            ],
            "return": {"rate": "200kbit", "buffer": "40pkt"},
            "ack_loss": "1%",
        },
        "traffic": {"kind": "bulk"},
        "class": [
            {"name": "old", "flows": 2, "tcp": {"stack": "rfc-newreno"}},
            {"name": "new", "flows": 2, "rtt": "100ms", "tcp": {"stack": "linux-cubic"}},
        ],
        "probes": {"pcap": [{"link": "bottleneck-in", "file": str(tmp_path / "in.pcap")}]},
        "run": BASE["run"] | {"replications": 2},
    }
    one, two = (
        simulate({}, base, threads=1),
        simulate(
            {"probes.pcap": [{"link": "bottleneck-in", "file": str(tmp_path / "again.pcap")}]},
            base,
            threads=2,
        ),
    )
    assert one.metrics == two.metrics
    assert (tmp_path / "in.pcap").read_bytes() == (tmp_path / "again.pcap").read_bytes()
    assert one["return_utilisation"] > 0.9
    assert one["return_loss_ratio"] > 0.01
    assert set(one.tables["by_link"]["link"]) == {"near", "core", "far", "return"}


def test_formulas_warn_that_they_ignore_the_return_path() -> None:
    base = {**BASE, "network": {**BASE["network"], "ack_loss": "5%"}}
    scenario = Scenario.from_dict(base).with_changes({"network.bottleneck.loss": "1%"})
    pftk, mathis = tcpcast.run(scenario, ["pftk", "mathis"])
    for answer in (pftk, mathis):
        assert any("ACKs are neither queued nor lost" in text for text in answer.warnings)
    scenario = Scenario.from_dict({**WEB, "network": base["network"]})
    for engine in ("mean-field", "fixed-point"):
        (answer,) = tcpcast.run(scenario, [engine])
        assert answer.not_applicable is not None


@pytest.mark.parametrize("stack", ["rfc-newreno", "linux-cubic"])
def test_reordered_data_does_not_affect_acks(stack: str) -> None:
    late = {"distribution": "exponential", "mean": "3ms", "reorder": True}
    changes = {"tcp.stack": stack, "network.jitter": late}
    plain = simulate(changes)
    same = simulate(changes | {"network.return.rate": "8mbit"})
    assert same["return_loss_ratio"] == 0
    assert same["goodput_bps"] == pytest.approx(plain["goodput_bps"], rel=0.1)
