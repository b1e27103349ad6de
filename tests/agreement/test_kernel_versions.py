"""Releases of Linux: their effects in whole runs. Each rule has a test in ``crates/tcp``."""

from typing import Any

import pytest
import tcpcast
from tcpcast.comparison.verdict import limit_of_answer
from tcpcast.scenario import Scenario
from tcpcast.scenario.modern_stacks import RECEIVE_BUFFERS

KERNELS = tuple(RECEIVE_BUFFERS)


def make_scenario(tcp: dict[str, Any], **traffic: Any) -> Scenario:
    run = {"duration": "20s", "warmup": "10s"} if not traffic else {}
    return Scenario.from_dict(
        {
            "network": {"rtt": "100ms", "bottleneck": {"rate": "1gbit", "buffer": "1bdp"}},
            "traffic": traffic or {"kind": "bulk", "flows": 1},
            "tcp": tcp,
            "run": {"seed": 1, **run},
        }
    )


@pytest.mark.parametrize("kernel", KERNELS)
def test_buffers_of_the_release_limit_the_rate(kernel: str) -> None:
    scenario = make_scenario({"kernel": kernel, "socket_buffers": "kernel"})
    (answer,) = tcpcast.run(scenario, ["packet"])
    memory, share = RECEIVE_BUFFERS[kernel]
    window = min(memory * share, 4.18e6)  # tcp_wmem
    rate = answer.metrics["goodput_bps"].value
    assert rate == pytest.approx(8 * window / 0.1, rel=0.02)
    limit = "window" if memory * share < 4.18e6 else "send_buffer"
    assert limit_of_answer(answer, scenario) == limit


def test_6_18_is_the_default() -> None:
    assert make_scenario({}) == make_scenario({"kernel": "6.18"})
    assert make_scenario({"kernel": 6.12}) == make_scenario({"kernel": "6.12"})


def test_hystart_ends_slow_start_elsewhere_in_6_1_and_6_12() -> None:
    def loss(kernel: str) -> float:
        tables = {
            "network": {"rtt": "60ms", "bottleneck": {"rate": "100mbit", "buffer": "2bdp"}},
            "traffic": {"kind": "transfers", "size": ["20MB"], "count": 40},
            "tcp": {"kernel": kernel, "host_noise": "0.3ms"},
            "run": {"seed": 1},
        }
        (answer,) = tcpcast.run(Scenario.from_dict(tables), ["packet"])
        return answer.metrics["loss_ratio"].value

    assert loss("5.15") > 2 * max(loss("6.1"), loss("6.12"), 2e-5)
