"""CUBIC's response function against simulated CUBIC, and why random losses give higher rates."""

from typing import Any

import numpy as np
import pytest
import tcpcast
from scipy.optimize import brentq
from tcpcast.models.cubic import CUBIC_BETA, CUBIC_C, cubic_response
from tcpcast.scenario import Scenario

RANDOM_LOSS_FACTOR = 1.13
"""Rate of the cubic window function at random losses, relative to its rate at periodic losses,
which RFC 9438 (section 5) assumes. With fast convergence; it does not depend on loss and RTT."""

RTT_S = 0.138
EPOCHS, FIRST = 4000, 200


def sending_time_s(packets: float, max_window: float, k: float) -> float:
    """Return the time in seconds that the window function takes to send ``packets``."""

    def missing(t: float) -> float:
        # Packets sent in t seconds: most t + C/4 ((t - K)^4 - K^4), divided by the RTT.
        return max_window * t + CUBIC_C / 4 * ((t - k) ** 4 - k**4) - packets * RTT_S

    latest = k + 1.0
    while missing(latest) < 0:
        latest *= 2
    return float(brentq(missing, 0.0, latest, xtol=1e-9))


def window_function_pps(loss: float, *, random: bool) -> float:
    """Return the rate of RFC 9438's window function with fast convergence.

    A loss comes after 1/p packets, or after a geometric number of packets as for independent
    losses; the rest is equal.
    """
    rng = np.random.default_rng(1)
    at_loss, before, packets, seconds = (RTT_S / loss) ** 0.75, 0.0, 0.0, 0.0
    for epoch in range(EPOCHS):
        max_window = at_loss * (1 + CUBIC_BETA) / 2 if at_loss < before else at_loss
        before, start = max_window, CUBIC_BETA * at_loss
        k = np.cbrt(max(max_window - start, 0.0) / CUBIC_C)
        sent = rng.exponential(1 / loss) if random else 1 / loss
        took = sending_time_s(sent, max_window, k)
        at_loss = max_window + CUBIC_C * (took - k) ** 3
        if epoch >= FIRST:
            packets, seconds = packets + sent, seconds + took
    return packets / seconds


@pytest.mark.parametrize("loss", [1e-4, 1e-5])
def test_random_intervals_raise_the_rate_by_one_eighth(loss: float) -> None:
    formula = float(cubic_response(rtt_s=RTT_S, loss_ratio=loss).rate_pps)
    assert window_function_pps(loss, random=False) == pytest.approx(formula, rel=0.03)
    assert window_function_pps(loss, random=True) == pytest.approx(
        RANDOM_LOSS_FACTOR * formula, rel=0.02
    )


def test_long_fast_path_differs_by_random_losses_only() -> None:
    """Equivalent to 16 flows at 10 Gbit/s with a loss of 1e-5, with a tenth of the packets."""
    tables: dict[str, Any] = {
        "network": {
            "rtt": "138ms",
            "bottleneck": {"rate": "2gbit", "buffer": "1bdp", "loss": "0.01%"},
        },
        "traffic": {"kind": "bulk", "flows": 8},
        "run": {"duration": "260s", "warmup": "60s"},
    }
    scenario = Scenario.from_dict(tables)
    (formula,) = tcpcast.run(scenario, ["cubic-response"])
    packet, measured = tcpcast.run(scenario, ["packet", "cubic-response"], feed="measured")
    sent = packet["send_rate_pps"]
    assert -0.25 < formula["send_rate_pps"] / sent - 1 < -0.08
    # The losses of one window are one loss indication; with random intervals the rates agree.
    assert RANDOM_LOSS_FACTOR * measured["send_rate_pps"] == pytest.approx(sent, rel=0.06)


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
