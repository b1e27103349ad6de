"""Socket buffers that grow: their maximum limits the window, short transfers are unaffected."""

from typing import Any

import pytest
import tcpcast
from tcpcast.comparison.verdict import limit_of_answer
from tcpcast.process.errors import ScenarioError
from tcpcast.scenario import Scenario

RTT_S = 0.2


def make_scenario(buffers: Any, **tcp: Any) -> Scenario:
    return Scenario.from_dict(
        {
            "network": {"rtt": "200ms", "bottleneck": {"rate": "1gbit", "buffer": "100000pkt"}},
            "traffic": {"kind": "bulk", "flows": 1},
            "tcp": {"socket_buffers": buffers, **tcp},
            "run": {"duration": "20s", "seed": 1, "warmup": "10s"},
        }
    )


@pytest.mark.parametrize(
    ("buffers", "window_bytes", "limit"),
    [
        ("linux-5.15", 3 * 2**20, "window"),
        ("linux-6.18", 4.18e6, "send_buffer"),  # tcp_wmem
        ({"send": "64MiB", "receive": "8MiB"}, 5 * 2**20, "window"),
        ({"send": "1MiB", "receive": "8MiB"}, 1.0426e6, "send_buffer"),
    ],
)
def test_maximum_limits_the_rate(buffers: Any, window_bytes: float, limit: str) -> None:
    scenario = make_scenario(buffers)
    answer, formula = tcpcast.run(scenario, ["packet", "cubic-response"])
    assert formula["goodput_bps"] == pytest.approx(answer["goodput_bps"], rel=0.03)
    rate = answer.metrics["goodput_bps"]
    assert rate.value == pytest.approx(8 * window_bytes / RTT_S, rel=0.02)
    assert rate.low is not None
    assert limit_of_answer(answer, scenario) == limit


def test_bound_of_bbr_respects_the_buffers() -> None:
    scenario = make_scenario({"send": "1MiB", "receive": "8MiB"}, stack="linux-bbr")
    answer, bound = tcpcast.run(scenario, ["packet", "bbr-bound"])
    assert answer["goodput_bps"] < bound["goodput_bps"] < 1.1 * answer["goodput_bps"]


def test_unlimited_buffers_are_the_default() -> None:
    scenario = make_scenario("unlimited")
    assert scenario == make_scenario("unlimited", stack="linux-cubic")
    (answer,) = tcpcast.run(scenario, ["packet"])
    assert answer.metrics["goodput_bps"].value > 9e8


def test_receiver_window_replaces_the_growing_buffer() -> None:
    (answer,) = tcpcast.run(make_scenario("linux-5.15", receiver_window=100), ["packet"])
    rate = answer.metrics["goodput_bps"].value
    assert rate == pytest.approx(8 * 100 * 1448 / RTT_S, rel=0.01)


def test_short_transfer_takes_the_same_time_without_losses() -> None:
    def seconds(buffers: str) -> float:
        tables = {
            "network": {"rtt": "60ms", "bottleneck": {"rate": "20mbit", "buffer": "1000pkt"}},
            "traffic": {"kind": "transfers", "size": ["500KB"], "count": 20},
            "tcp": {"socket_buffers": buffers},
        }
        (answer,) = tcpcast.run(Scenario.from_dict(tables), ["packet"])
        return answer.metrics["completion_time_s"].value

    assert seconds("linux-6.18") == pytest.approx(seconds("unlimited"), rel=0.01)


def test_kernel_refuses_the_key_and_buffers_have_the_least_size_of_linux() -> None:
    (answer,) = tcpcast.run(make_scenario("linux-6.18"), ["kernel"])
    assert "tcp.socket_buffers: the buffers of the kernel engine" in str(answer.not_applicable)
    with pytest.raises(
        ScenarioError, match=r'receive: must be at least "2304B", .*; use "32MiB", for example$'
    ):
        make_scenario({"send": "1MiB", "receive": "1KB"})
