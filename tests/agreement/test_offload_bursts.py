"""Bursts of segmentation offload: one unit for loss and queue, one ack for each with GRO."""

from typing import Any

import numpy as np
import pytest
import tcpcast
from tcpcast import Answer
from tcpcast.scenario import Scenario


def make_scenario(loss: str = "0%", **tcp: Any) -> Scenario:
    return Scenario.from_dict(
        {
            "network": {
                "rtt": "40ms",
                "bottleneck": {"rate": "100mbit", "buffer": "1MB", "loss": loss},
            },
            "traffic": {"kind": "bulk", "flows": 1},
            "tcp": tcp,
            "run": {"duration": "40s", "warmup": "10s", "seed": 1},
        }
    )


def simulate(loss: str = "0%", **tcp: Any) -> Answer:
    (answer,) = tcpcast.run(make_scenario(loss, **tcp), ["packet"])
    return answer


@pytest.mark.parametrize("gro", [True, False])
def test_random_loss_of_bursts_costs_cubic_less(gro: bool) -> None:
    """A lost burst is one loss event, however many packets it has."""
    packets, bursts = simulate("1%"), simulate("1%", tso="auto", gro=gro)
    lost = [answer.metrics["random_loss_ratio"].value for answer in (packets, bursts)]
    assert lost == pytest.approx([0.01, 0.01], rel=0.25)
    events = bursts.metrics["td_indications"].value / packets.metrics["td_indications"].value
    assert events < 0.85 * bursts["send_rate_pps"] / packets["send_rate_pps"]
    assert bursts["goodput_bps"] > 1.25 * packets["goodput_bps"]


def answer_over_a_link(queue: str | dict[str, Any], tso: str = "auto") -> Answer:
    tables = {
        "link": {"link": {"rate": "100mbit", "buffer": "3MB", "queue": queue, "loss": "0.1%"}},
        "class": [{"name": "all", "flows": 1, "route": ["link"], "delay": "20ms"}],
        "traffic": {"kind": "bulk"},
        "tcp": {"stack": "linux-bbr", "tso": tso},
        "run": {"duration": "40s", "warmup": "10s", "seed": 1},
    }
    (answer,) = tcpcast.run(Scenario.from_dict(tables), ["packet"])
    assert answer["goodput_bps"] == pytest.approx(100e6 * 1448 / 1500, rel=0.03)
    return answer


@pytest.mark.parametrize(
    "queue",
    [
        "droptail",
        {"kind": "codel"},
        {"kind": "cake", "split_gso": False},
        {"kind": "dualpi2", "split_gso": False},
    ],
    ids=str,
)
def test_links_count_bursts_and_receivers_packets(queue: str | dict[str, Any]) -> None:
    answer = answer_over_a_link(queue)
    (units,) = answer.tables["by_link"]["packets"]
    packets = answer["send_rate_pps"] * 30
    # BBR sends about a millisecond of data at once: 8 packets at 100 Mbit/s.
    assert 6 < packets / units < 10


@pytest.mark.parametrize("queue", ["cake", "dualpi2"])
def test_queues_that_split_bursts_see_the_packets_of_a_sender_without_offload(queue: str) -> None:
    """The packets of a burst reach the first queue at the same time, as without offload."""
    bursts, packets = (answer_over_a_link(queue, tso) for tso in ("auto", "off"))
    for table in ("by_link_class", "by_class"):
        for name, column in packets.tables[table].items():
            np.testing.assert_array_equal(bursts.tables[table][name], column, name)


def test_kernel_refuses_bursts() -> None:
    (answer,) = tcpcast.run(make_scenario(gro=False), ["kernel"])
    assert "tcp.gro: the hosts of the kernel engine" in str(answer.not_applicable)
