"""CUBIC's response function against simulated CUBIC on a long, fast path."""

import pytest
import tcpcast
from tcpcast.scenario import Scenario


@pytest.mark.long
def test_steady_cubic_agrees_at_10_gbit_and_138_ms() -> None:
    """The first 200 s are excluded, because slow start overshoots far on this path.

    The run is long because only 120 of 19 million packets are lost. At a loss of 1e-4,
    ``test_long_fast_path_differs_by_random_losses_only`` shows the same agreement.
    """
    scenario = Scenario.from_dict(
        {
            "network": {
                "rtt": "138ms",
                "bottleneck": {"rate": "10gbit", "buffer": "1bdp", "loss": "0.001%"},
            },
            "traffic": {"kind": "bulk", "flows": 2},
            "tcp": {"stack": "linux-cubic"},
            "run": {"warmup": "200s", "duration": "800s", "replications": 1},
        }
    )
    model, packet = tcpcast.run(scenario, ["cubic-response", "packet"])
    sent = packet.metrics["send_rate_pps"]
    assert sent.low is not None
    assert sent.high is not None
    half = (sent.high - sent.low) / 2
    assert packet["loss_indication_ratio"] == pytest.approx(1e-5, rel=0.15)
    tolerance = 0.15 * sent.value + half
    assert model["send_rate_pps"] == pytest.approx(sent.value, abs=tolerance)
