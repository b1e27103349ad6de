"""``start = "iperf3"``: flows of a class connect one after another, and then start at once."""

from typing import Any

import pytest
import tcpcast
from tcpcast.engines.packet.configuration import make_configuration
from tcpcast.scenario import Scenario


def make_scenario(start: Any, flows: int = 4) -> Scenario:
    classes = [
        {"name": "few", "flows": 1, "route": ["link"], "delay": "40ms", "start": "1s"},
        {"name": "many", "flows": flows, "route": ["link"], "delay": "40ms"},
    ]
    if start != "iperf3":
        del classes[0]["start"]
    return Scenario.from_dict(
        {
            "link": {"link": {"rate": "50mbit", "buffer": "20bdp"}},
            "class": classes,
            "traffic": {"kind": "bulk", "start": start},
            "run": {"duration": "20s", "warmup": "0s", "seed": 1},
        }
    )


def test_each_connection_delays_the_common_start_by_one_rtt() -> None:
    scenario = make_scenario("iperf3")
    first, second = (
        entry["traffic"]["files"]["bulk"]["start"]["times"]
        for entry in make_configuration(scenario, 0.0)["classes"]
    )
    rtt_s = scenario.populations[1].rtt_s
    assert first == [1.0]
    assert second == pytest.approx([3 * rtt_s] * 4)


def test_class_with_few_flows_gets_more_in_a_deep_buffer() -> None:
    def share(start: Any) -> float:
        (answer,) = tcpcast.run(make_scenario(start, flows=49), ["packet"])
        rates = answer.tables["by_class"]["goodput_bps"]
        return float(rates[0] / sum(rates))

    together = {"distribution": "constant", "value": "0s"}
    assert share("iperf3") > 2 * share(together)
