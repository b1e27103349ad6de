"""Classes with packets of another size than ``network.packet``: accepted and rejected values."""

import tomllib
from typing import Any

import pytest
from tcpcast.engines import REGISTRY, answer
from tcpcast.plan import solve
from tcpcast.process.errors import NotApplicable, ScenarioError
from tcpcast.scenario import Scenario
from tcpcast.scenario.traffic import OnOff

BULK = """
[network]
rtt = "50ms"
bottleneck = { rate = "10mbit", buffer = "100pkt" }
[traffic]
kind = "bulk"
flows = 2
[run]
duration = "60s"
warmup = "5s"
[[class]]
name = "large"
[[class]]
name = "small"
packet = "200B"
"""

WEB = """
[network]
rtt = "50ms"
bottleneck = { rate = "10mbit", buffer = "100pkt" }
[traffic]
kind = "on-off"
sources = 20
off = { distribution = "exponential", mean = "1s" }
size = { distribution = "constant", value = "29200B" }
[tcp]
stack = "engset-newreno"
[run]
duration = "60s"
[[class]]
name = "small"
packet = "200B"
"""

KEY = "class.small.packet"
ONE_SIZE = "requires packets of one size; set the size with network.packet"


def scenario(text: str, **changes: Any) -> Scenario:
    return Scenario.from_dict(tomllib.loads(text)).with_changes(changes)


def refused(changes: dict[str, Any]) -> str:
    with pytest.raises(ScenarioError) as caught:
        scenario(BULK).with_changes(changes)
    return str(caught.value)


def test_class_packet_size_overrides_network_packet_size() -> None:
    large, small = scenario(BULK).populations
    assert (large.packet_bytes, small.packet_bytes) == (1500, 200)
    assert (large.payload_bytes, small.payload_bytes) == (1448, 148)
    reread = Scenario.from_dict(scenario(BULK).resolved())
    assert reread.populations == [large, small]
    # Half of the propagation: the RTT minus the time of 240 B or 1,540 B at 10 Mbit/s.
    assert small.forward_delay_s == pytest.approx((0.050 - 8 * 240 / 10e6) / 2)
    assert large.forward_delay_s == pytest.approx((0.050 - 8 * 1540 / 10e6) / 2)


def test_sizes_in_bytes_use_the_payload_of_the_class() -> None:
    traffic = scenario(WEB).populations[0].traffic
    assert isinstance(traffic, OnOff)
    assert traffic.size.mean_value() == 29200 / 160
    window = scenario(BULK + '[class.tcp]\nreceiver_window = "14800B"\n').populations[1]
    assert window.tcp.receiver_window == 100


def test_invalid_packet_size_is_rejected() -> None:
    assert refused({KEY: "2000B"}) == (
        'class.small.packet: "2000B" is more than network.packet; use at most "1500B" here'
    )
    assert refused({KEY: "45B"}) == (
        "class.small.packet: 45 B leaves no room for payload after 52 B of headers; use at "
        'least "53B"'
    )
    assert refused({"network.packet": "1B", KEY: None}) == (
        'network.packet: "1B" is not the size of an IP packet with 52 B of headers and '
        'at least 1 B of payload; use "53B" to "65535B"'
    )
    assert refused({KEY: "40B"}).startswith('class.small.packet: "40B" is not the size of')
    assert refused({KEY: 200}).startswith("class.small.packet: ")
    assert refused({"class.small.rtt": "0.1ms"}).startswith("class.small.rtt: 100us is less")


@pytest.mark.parametrize("name", [name for name in REGISTRY if not REGISTRY[name].any_packet_size])
def test_single_packet_size_engines_reject_mixed_sizes(name: str) -> None:
    if name == "trace":
        return
    (result,) = answer(scenario(WEB), [name])
    assert result.not_applicable is not None
    assert str(result.not_applicable).startswith(f"{KEY}: the model {ONE_SIZE}")


@pytest.mark.parametrize(
    ("text", "question", "target"),
    [
        (WEB, "buffer", {}),
        (WEB, "users", {"rate_bps": 1e6}),
        (WEB, "rate", {"share": 0.9, "above_bps": 1e6}),
        (BULK, "max-loss", {"goodput_bps": 1e6}),
        (BULK, "streams", {}),
    ],
)
def test_plans_reject_mixed_packet_sizes(text: str, question: str, target: dict[str, Any]) -> None:
    with pytest.raises(NotApplicable) as caught:
        solve(question, scenario(text), **target)
    assert str(caught.value).startswith(f"{KEY}: ")
    assert f"{ONE_SIZE}; remove {KEY}" in str(caught.value)
