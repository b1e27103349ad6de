"""Wi-Fi links: capacity, errors, and the size of aggregates."""

from typing import Any

import pytest
import tcpcast
from tcpcast.scenario import Scenario


def metrics(rate: dict[str, Any], **traffic: Any) -> dict[str, float]:
    tables: dict[str, Any] = {
        "network": {"rtt": "20ms", "bottleneck": {"rate": rate, "buffer": "1000pkt"}},
        "traffic": {"kind": "bulk", "flows": 4, **traffic},
        "run": {"duration": "12s", "warmup": "2s", "seed": 1},
    }
    (answer,) = tcpcast.run(Scenario.from_dict(tables), ["packet"])
    return {name: metric.value for name, metric in answer.metrics.items()}


@pytest.mark.parametrize(
    ("rate", "expected_bps"),
    [
        # 64 frames of 1558 B at 390 Mbit/s take 2045 us, and 199 us pass between aggregates.
        ({"wifi": "390mbit"}, 64 * 12_000 / 2244.4e-6),
        ({"wifi": "390mbit", "error": "10%"}, 0.9 * 64 * 12_000 / 2244.4e-6),
        ({"wifi": "390mbit", "frames": 8}, 8 * 12_000 / 454.2e-6),
        # 80 frames of 192 us exceed 4 ms, which has 20.
        ({"wifi": "65mbit"}, 20 * 12_000 / 4033.8e-6),
    ],
)
def test_full_link_has_the_rate_of_full_aggregates(
    rate: dict[str, Any], expected_bps: float
) -> None:
    got = metrics(rate)
    # Headers take 52 of 1500 B.
    assert got["goodput_bps"] == pytest.approx(expected_bps * 1448 / 1500, rel=0.02)
    assert got["utilisation"] == pytest.approx(1.0, abs=0.02)


def test_formulas_use_the_mean_rate() -> None:
    scenario = Scenario.from_dict(
        {
            "network": {
                "rtt": "20ms",
                "bottleneck": {"rate": {"wifi": "390mbit", "error": "10%"}, "buffer": "1000pkt"},
            },
            "traffic": {"kind": "bulk", "flows": 4},
            "run": {"duration": "12s"},
        }
    )
    assert scenario.bottleneck.rate == pytest.approx(0.9 * 64 * 12_000 / 2244.4e-6, rel=1e-3)
    assert Scenario.from_dict(scenario.resolved()) == scenario
