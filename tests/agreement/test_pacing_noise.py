"""Host noise limits the rate of one paced flow on fast links; predict knows faster hosts."""

import pytest
import tcpcast
from tcpcast.engines.packet.notes import max_paced_bps
from tcpcast.options.path_scenario import make_path_scenario
from tcpcast.scenario import Scenario


def make_scenario(stack: str, noise: str, rate: str = "10gbit") -> Scenario:
    return Scenario.from_dict(
        {
            "network": {"rtt": "20ms", "bottleneck": {"rate": rate, "buffer": "1bdp"}},
            "traffic": {"kind": "bulk", "flows": 1},
            "tcp": {"stack": stack, "host_noise": noise},
            "run": {"duration": "1.5s", "warmup": "1s", "seed": 1},
        }
    )


def warnings_of(scenario: Scenario) -> list[str]:
    (answer,) = tcpcast.run(scenario, ["packet"])
    return [text for text in answer.warnings if "delays each paced burst" in text]


def test_late_timers_limit_one_bbr_flow() -> None:
    scenario = make_scenario("linux-bbr", "0.1ms")
    (answer,) = tcpcast.run(scenario, ["packet"])
    expected = max_paced_bps(10e9, 1e-4)
    assert expected == pytest.approx(4.15e9, rel=0.01)
    assert answer["goodput_bps"] == pytest.approx(expected, rel=0.15)
    (warning,) = [text for text in answer.warnings if "delays each paced burst" in text]
    assert "sends at most about 4.2 Gbit/s" in warning


@pytest.mark.parametrize(
    ("stack", "noise", "rate"),
    [("linux-bbr", "10us", "1gbit"), ("linux-cubic", "0.1ms", "1gbit")],
)
def test_no_warning_without_a_limit(stack: str, noise: str, rate: str) -> None:
    assert warnings_of(make_scenario(stack, noise, rate)) == []


@pytest.mark.parametrize(
    ("rtt", "rate", "noise_s"),
    [("20ms", "10gbit", 1e-5), ("0.2ms", "1gbit", 1e-5), ("20ms", "1gbit", 1e-4)],
)
def test_predict_has_faster_hosts_on_fast_paths(rtt: str, rate: str, noise_s: float) -> None:
    scenario = make_path_scenario({"rtt": rtt, "rate": rate})
    assert scenario.tcp.host_noise_s == pytest.approx(noise_s)
