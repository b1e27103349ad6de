"""Requests and grants of a cable network, without other traffic and beside an upload."""

from typing import Any

import pytest
import tcpcast
from tcpcast.scenario import Scenario

LINE: dict[str, Any] = {
    "link": {
        "up": {"rate": "20mbit", "buffer": "400pkt", "docsis": {}},
        "down": {"rate": "200mbit"},
    },
    "class": [
        {
            "name": "ping",
            "flows": 1,
            "traffic": {"kind": "ping", "interval": "97.3ms"},
            "route": ["down"],
            "back": ["up"],
            "delay": "5ms",
        }
    ],
    "run": {"duration": "200s", "warmup": "1s"},
}


def test_idle_delay_is_that_of_the_request_grant_cycle() -> None:
    for changes in ({}, {"link.up.docsis": {"map_interval": "1ms", "min_delay": "3.3ms"}}):
        scenario = Scenario.from_dict(LINE).with_changes(changes)
        (answer,) = tcpcast.run(scenario, "packet")
        (idle,) = {group.idle_delay_s for group in scenario.populations}
        docsis = scenario.links["up"].docsis
        assert docsis is not None
        p50, p99 = (answer.tables["by_class"][f"delay_p{p}_s"][0] for p in (50, 99))
        # The distribution is nearly symmetrical; its width is that of four intervals.
        assert p50 == pytest.approx(idle, abs=0.2 * docsis.map_interval)
        assert p99 < idle + 2.5 * docsis.map_interval


def test_bursts_of_grants_cost_an_upload_no_throughput() -> None:
    upload = {
        "name": "upload",
        "flows": 1,
        "sends": "client",
        "traffic": {"kind": "bulk"},
        "route": ["down"],
        "back": ["up"],
        "delay": "5ms",
    }
    tables = LINE | {"class": [*LINE["class"], upload], "run": {"duration": "60s"}}
    line = Scenario.from_dict(tables)
    (cable,), (plain,) = (
        tcpcast.run(each, "packet") for each in (line, line.with_changes({"link.up.docsis": None}))
    )
    rates = [answer.metrics["utilisation"].value for answer in (cable, plain)]
    assert rates == pytest.approx([1.0, 1.0], abs=0.01)
