"""Means over finished transfers if many transfers are unfinished at the end of the run."""

import math

import tcpcast
from tcpcast import Scenario


def incast(duration: str) -> Scenario:
    return Scenario.from_dict(
        {
            "name": "incast",
            "network": {"rtt": "100us", "bottleneck": {"rate": "10gbit", "buffer": "64pkt"}},
            "traffic": {
                "kind": "on-off",
                "sources": 64,
                "size": {"distribution": "constant", "value": "64pkt"},
                "off": {"distribution": "constant", "value": "1ms"},
            },
            "tcp": {"stack": "linux-cubic", "host_noise": "0s"},
            "run": {"duration": duration, "warmup": "0s"},
        }
    )


def test_mean_over_survivors_is_replaced_by_a_lower_bound() -> None:
    (answer,) = tcpcast.run(incast("20ms"), engines=["packet"])
    finished, unfinished = answer["transfers"], answer["unfinished_transfers"]
    assert 0.05 * finished < unfinished <= 64
    on_time = answer.metrics["on_time_s"]
    assert math.isnan(on_time.value)
    assert on_time.low is None
    assert on_time.interval_warning is not None
    assert (
        f"{unfinished:.0f} of {finished + unfinished:.0f} transfers had not finished"
        in on_time.interval_warning
    )
    # The finished transfers took 3.5 ms; the unfinished ones are older.
    assert on_time.at_least is not None
    assert 3.6e-3 < on_time.at_least < 20e-3
    assert math.isnan(answer.metrics["connection_rate_bps"].value)
    assert answer.to_json()["metrics"]["on_time_s"]["at_least"] == on_time.at_least
    text = str(tcpcast.run(incast("20ms"), engines=["packet"]))
    assert f"≥ {1e3 * on_time.at_least:.3f}" in text


def test_long_run_has_a_mean() -> None:
    (answer,) = tcpcast.run(incast("5s"), engines=["packet"])
    assert answer["unfinished_transfers"] > 0
    assert answer.metrics["on_time_s"].at_least is None
    assert answer["on_time_s"] > 0
