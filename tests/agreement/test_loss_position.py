"""Random loss before or after a link's queue: load of the link and delivered packets."""

from typing import Any

import pytest
import tcpcast
from tcpcast.scenario import Scenario

RATE_PPS = 10e6 / 12e3
LOSS = 0.1
LINK = {"rate": "10mbit", "buffer": "100pkt", "loss": LOSS}
OTHER = {"name": "wide", "rate": "40mbit", "buffer": "500pkt", "measured": True}


def metrics(network: dict[str, Any]) -> dict[str, float]:
    """Return the metrics of one BBR flow, which fills a link despite losses."""
    scenario = Scenario.from_dict(
        {
            "network": {"rtt": "40ms", **network},
            "traffic": {"kind": "bulk", "flows": 1},
            "tcp": {"stack": "linux-bbr"},
            "run": {"warmup": "5s", "duration": "35s", "replications": 4, "seed": 1},
        }
    )
    result = tcpcast.run(scenario, "packet")["packet"].metrics
    return {name: metric.value for name, metric in result.items()}


@pytest.mark.parametrize("queue", ["droptail", "codel"])
@pytest.mark.parametrize(("position", "transmitted"), [("before", 1 - LOSS), ("behind", 1.0)])
def test_packets_lost_after_the_link_load_it(position: str, transmitted: float, queue: str) -> None:
    result = metrics({"bottleneck": {**LINK, "loss_at": position, "queue": queue}})
    passed = result["send_rate_pps"] * (1 - result["queue_loss_ratio"])
    assert result["utilisation"] * RATE_PPS == pytest.approx(transmitted * passed, rel=0.01)
    assert result["random_loss_ratio"] == pytest.approx(LOSS, rel=0.05)
    assert result["loss_ratio"] >= result["random_loss_ratio"]
    assert result["goodput_pps"] == pytest.approx((1 - LOSS) * passed, rel=0.01)


@pytest.mark.parametrize(
    "network",
    [
        {"bottleneck": LINK},
        {"ingress": LINK, "bottleneck": {"rate": "40mbit"}},
        {"egress": LINK, "bottleneck": {"rate": "40mbit"}},
        {"hop": [{**LINK, "name": "shared"}, OTHER]},
        {"hop": [OTHER, {**LINK, "name": "own", "shared": False}]},
    ],
    ids=["bottleneck", "ingress", "egress", "shared hop", "own hop"],
)
def test_bbr_goodput_is_lower_if_loss_is_after_the_queue(network: dict[str, Any]) -> None:
    """BBR's bandwidth is the maximum delivery rate: (1 - p) times the link rate, or all of it."""
    before = metrics(network)["goodput_pps"] / RATE_PPS
    after_queue = metrics(_after_queue(network))["goodput_pps"] / RATE_PPS
    assert 0.87 < before < 0.92
    assert 0.80 < after_queue < 0.875


def _after_queue(network: dict[str, Any]) -> dict[str, Any]:
    def move_loss(link: dict[str, Any]) -> dict[str, Any]:
        return {**link, "loss_at": "behind"} if "loss" in link else link

    return {
        key: [move_loss(item) for item in table] if isinstance(table, list) else move_loss(table)
        for key, table in network.items()
    }
