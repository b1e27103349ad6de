"""The two mean round-trip times: TCP's own samples, and all acknowledged packets."""

from typing import Any

import pytest
import tcpcast
from tcpcast.scenario import Scenario

RTT_S = 0.1


def simulate(stack: str = "rfc-newreno", **changes: Any) -> tcpcast.Answer:
    """Run one flow with a window of 10 packets on an idle path of 100 ms."""
    scenario = Scenario.from_dict(
        {
            "network": {"rtt": "100ms", "bottleneck": {"rate": "100mbit", "buffer": "100pkt"}},
            "traffic": {"kind": "bulk", "flows": 1},
            "tcp": {"stack": stack, "receiver_window": 10},
            "run": {"duration": "120s", "warmup": "20s", "seed": 1},
        }
    )
    (answer,) = tcpcast.run(scenario.with_changes(changes), ["packet"])
    return answer


@pytest.mark.parametrize("stack", ["rfc-newreno", "max-plus-reno"])
def test_round_trips_agree_with_the_path_without_loss(stack: str) -> None:
    answer = simulate(stack)
    # Up to nine packets wait for the rest of their burst.
    assert RTT_S <= answer["rtt_mean_s"] <= RTT_S + 10 * 0.00012
    assert RTT_S <= answer["rtt_packet_mean_s"] <= RTT_S + 10 * 0.00012
    # Little's law: a window is in flight.
    assert answer["rtt_packet_mean_s"] * answer["goodput_pps"] == pytest.approx(10, rel=1e-3)


def test_round_trip_starts_when_a_packet_is_queued_at_its_access_link() -> None:
    slow = {"network.ingress.rate": "1.2mbit"}
    # 100 packets per second: the ten packets in flight wait at the sender's access link.
    assert simulate(**slow)["rtt_packet_mean_s"] == pytest.approx(0.1, rel=0.02)
    wider: dict[str, Any] = {**slow, "tcp.receiver_window": 40}
    assert simulate(**wider)["rtt_packet_mean_s"] == pytest.approx(0.4, rel=0.02)


def test_repair_is_timed_from_the_first_transmission() -> None:
    lossy = {"network.bottleneck.loss": "5%", "run.duration": "2000s"}
    answer = simulate(**lossy)
    # TCP's samples exclude retransmitted packets and the packets that wait behind them.
    assert answer["rtt_mean_s"] == pytest.approx(RTT_S, rel=0.02)
    assert answer["rtt_packet_mean_s"] > 1.2 * RTT_S
    metric = answer.metrics["rtt_packet_mean_s"]
    assert metric.low is not None
    assert metric.high is not None
    assert metric.low < metric.value < metric.high < 1.2 * metric.low
    # The minimum: a lost packet takes a second round trip, and so do a few packets after it.
    assert answer["rtt_packet_mean_s"] < 4 * RTT_S


def test_instantaneous_loss_feedback_times_arriving_packets_only() -> None:
    answer = simulate("max-plus-reno", **{"network.bottleneck.loss": "5%"})
    assert answer["rtt_packet_mean_s"] == answer["rtt_mean_s"]
    assert answer["rtt_packet_mean_s"] == pytest.approx(RTT_S, rel=0.02)
