"""Modern TCP in random networks with all path features: every packet is accounted for.

The engine checks at the end of each run that packets are conserved and that Little's law holds at
the bottleneck and at the return link; a run that fails a check, or crashes, raises.
"""

from __future__ import annotations

import math
from typing import Any

import tcpcast
from hypothesis import given, reject
from hypothesis import strategies as st
from tcpcast.errors import ScenarioError
from tcpcast.scenario import Scenario
from tcpcast.scenario.modern_tcp import MODERN_PRESETS
from tcpcast.scenario.queue import QUEUE_NAMES
from test_packet_properties import RANDOM_LOSS, UNHURRIED, quantity

STACKS = st.sampled_from(sorted(MODERN_PRESETS))
BUFFER = st.sampled_from(["2pkt", "10pkt", "60pkt", "30KB", "1bdp", "1000pkt"])
QUEUE = st.one_of(
    st.sampled_from(QUEUE_NAMES),
    st.sampled_from(
        [
            {"kind": "fq", "scheduler": "drr", "quantum": "600B", "drop": "longest-head"},
            {"kind": "codel", "target": "1ms", "interval": "10ms", "rules": "linux"},
            {"kind": "fq_codel", "flows": 3, "quantum": "300B", "ce_threshold": "500us"},
            {"kind": "pie", "target": "2ms", "burst": "10ms", "rules": "linux"},
            {"kind": "red", "ecn": True, "weight": 0.1},
        ]
    ),
)
JITTER = st.sampled_from(
    [
        {"distribution": "exponential", "mean": "2ms"},
        {"distribution": "exponential", "mean": "5ms", "reorder": True},
        {"distribution": "pareto", "mean": "1ms", "alpha": 1.5, "reorder": True},
        {"distribution": "uniform", "low": "0s", "high": "200ms", "reorder": True},
    ]
)
SIZE = st.sampled_from(
    [
        {"distribution": "constant", "value": "1pkt"},
        {"distribution": "exponential", "mean": "30KB"},
        {"distribution": "pareto", "mean": "40pkt", "alpha": 1.3},
    ]
)


@st.composite
def networks(draw: st.DrawFn) -> dict[str, Any]:
    some = st.booleans()
    rate: Any = draw(quantity(0.3, 60, "mbit"))
    network: dict[str, Any] = {
        "rtt": draw(quantity(90, 400, "ms")),
        "bottleneck": {"rate": rate, "buffer": draw(BUFFER), "queue": draw(QUEUE)},
    }
    if draw(st.integers(0, 4)) == 0:
        burst = draw(st.sampled_from(["3000B", "20KB", "300KB"]))
        network["bottleneck"]["rate"] = {"bucket": rate, "burst": burst, "policer": draw(some)}
    if draw(some):
        network["bottleneck"]["loss"] = draw(RANDOM_LOSS)
    if draw(some):
        network["jitter"] = draw(JITTER)
    if draw(some):
        network["return"] = {
            "rate": draw(quantity(0.05, 5, "mbit")),
            "buffer": draw(st.sampled_from(["2pkt", "20pkt", "unlimited"])),
        }
    if draw(some):
        network["ack_loss"] = draw(RANDOM_LOSS)
    for end in ("ingress", "egress"):
        if draw(st.integers(0, 2)) == 0:
            network[end] = {"rate": draw(quantity(1, 500, "mbit")), "buffer": draw(BUFFER)}
    return network


@st.composite
def tcps(draw: st.DrawFn) -> dict[str, Any]:
    tcp: dict[str, Any] = {"stack": draw(STACKS), "ecn": draw(st.booleans())}
    choices: dict[str, list[Any]] = {
        "handshake": ["none", "tcp", "tls13"],
        "initial_window": [1, 4, 40],
        "receiver_window": [1, 3, 30, "64KB"],
        "delayed_acks": [False],
        "timestamps": [False],
    }
    for key, values in choices.items():
        if draw(st.booleans()):
            tcp[key] = draw(st.sampled_from(values))
    return tcp


@st.composite
def scenarios(draw: st.DrawFn) -> dict[str, Any]:
    traffic: dict[str, Any] = {"kind": "bulk", "flows": draw(st.sampled_from([1, 2, 9]))}
    if draw(st.booleans()):
        traffic = {
            "kind": "on-off",
            "sources": draw(st.sampled_from([1, 5, 40])),
            "off": {"distribution": "exponential", "mean": "200ms"},
            "size": draw(SIZE),
            "connection": draw(st.sampled_from(["new", "persistent"])),
        }
    cross = [{"model": "poisson", "mean": "30%"}] if draw(st.integers(0, 2)) == 0 else []
    return {
        "network": draw(networks()),
        "traffic": traffic,
        "tcp": draw(tcps()),
        "cross": cross,
        "run": {
            "duration": "6s",
            "warmup": draw(st.sampled_from(["0s", "1s"])),
            "replications": 2,
            "seed": draw(st.integers(1, 1000)),
        },
    }


@UNHURRIED
@given(scenarios())
def test_modern_tcp_accounts_for_every_packet(tables: dict[str, Any]) -> None:
    try:
        scenario = Scenario.from_dict(tables)
    except ScenarioError:
        reject()  # a token bucket with a fair queue, for example
    one, other = (tcpcast.run(scenario, ["packet"], threads=n)["packet"] for n in (1, 2))
    for name, metric in one.metrics.items():
        assert not math.isinf(metric.value), name
        same = other.metrics[name]
        assert (metric.value, metric.low, metric.high) == (same.value, same.low, same.high) or (
            math.isnan(metric.value) and math.isnan(same.value)
        ), name
        if name.endswith("_ratio") and not math.isnan(metric.value):
            assert 0 <= metric.value <= 1, name
