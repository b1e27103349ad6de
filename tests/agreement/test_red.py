"""RED against ns-2, which has the same algorithm and automatic parameters."""

from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import tcpcast
from tcpcast.scenario import Scenario

from benches.peers import ns2

SCRIPT = Path(__file__).with_name("ns2_queues.tcl")
WARMUP_S, SECONDS = 20, 220

needs_ns2 = pytest.mark.skipif(not ns2.is_installed(), reason="no ns-2 here: make peers")


def ns2_red(
    *, seed: int, flows: int, mbit: int, buffer: int, gentle: bool, seconds: int = SECONDS
) -> dict[str, float]:
    """Run flows through ns-2's RED; return its results from 20 s onwards, and its parameters."""
    queue = "gentle-red" if gentle else "red"
    return ns2.run(SCRIPT, seed, flows, mbit, buffer, queue, seconds, min(WARMUP_S, seconds / 2))


def scenario(*, flows: int, mbit: int, buffer: int, gentle: bool) -> dict[str, Any]:
    """Scenario of the ns-2 run for tcpcast; round trips differ to prevent synchronisation."""
    red = {"kind": "red", "gentle": gentle}
    round_trips_ms = [60 + 20 * index / flows for index in range(flows)]
    return {
        "network": {
            "rtt": "60ms",
            "ingress": {"rate": "10gbit"},
            "bottleneck": {"rate": f"{mbit}mbit", "buffer": f"{buffer}pkt", "queue": red},
            "egress": {"rate": "10gbit"},
        },
        "traffic": {
            "kind": "bulk",
            "start": {"distribution": "uniform", "low": "0s", "high": "1s"},
        },
        "class": [
            {"name": f"flow{index}", "flows": 1, "rtt": f"{rtt:.6f}ms"}
            for index, rtt in enumerate(round_trips_ms)
        ],
        "tcp": {"stack": "rfc-newreno-patient"},
        "run": {"duration": f"{SECONDS}s", "warmup": f"{WARMUP_S}s", "replications": 2},
    }


@needs_ns2
@pytest.mark.parametrize("mbit", [1, 10, 100, 1000])
def test_red_parameters_equal_those_of_ns2(mbit: int) -> None:
    question: dict[str, Any] = {"flows": 1, "mbit": mbit, "buffer": 100, "gentle": True}
    expected = ns2_red(seed=1, seconds=1, **question)
    own = Scenario.from_dict(scenario(**question)).network.red_parameters()
    assert own is not None
    for name, value in (
        ("min_threshold", own.min_threshold_pkts),
        ("max_threshold", own.max_threshold_pkts),
        ("max_probability", own.max_probability),
        ("weight", own.weight),
    ):
        assert value == pytest.approx(expected[name], rel=1e-9), name


@needs_ns2
@pytest.mark.parametrize(
    ("flows", "mbit", "buffer", "gentle"),
    [
        pytest.param(20, 10, 100, True, id="twenty flows"),
        pytest.param(
            20, 100, 500, True, id="thresholds above five packets", marks=pytest.mark.long
        ),
        pytest.param(60, 10, 100, True, id="gentle above max_threshold"),
        pytest.param(
            60, 10, 100, False, id="not gentle above max_threshold", marks=pytest.mark.long
        ),
        pytest.param(20, 10, 20, True, id="full at times"),
    ],
)
def test_red_agrees_with_ns2(flows: int, mbit: int, buffer: int, gentle: bool) -> None:
    question: dict[str, Any] = {"flows": flows, "mbit": mbit, "buffer": buffer, "gentle": gentle}
    expected = [ns2_red(seed=seed, **question) for seed in (1, 2)]
    (own,) = tcpcast.run(Scenario.from_dict(scenario(**question)), ["packet"])
    # ns-2 does not count the packet in transmission.
    values = {
        "goodput_pps": (own["goodput_pps"], 0.01),
        "loss_ratio": (own["loss_ratio"], 0.05),
        "waiting_mean_pkts": (own["queue_mean_pkts"] - own["utilisation"], 0.05),
    }
    for name, (value, tolerance) in values.items():
        mean = fmean(run[name] for run in expected)
        assert abs(value / mean - 1) <= tolerance, f"{name}: {value} against {mean}"
