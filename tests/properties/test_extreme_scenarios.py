"""For extreme scenarios engines answer, stop in time, or give a reason; none fails.

Quantities are spread over all valid magnitudes, so most scenarios are
not realistic networks.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
import tcpcast
from hypothesis import given
from hypothesis import strategies as st
from tcpcast.errors import ScenarioError
from tcpcast.scenario import Scenario
from test_packet_properties import OFF, QUEUE, RANDOM_LOSS, SIZE, UNHURRIED

WALL = "100ms"
"""Long enough for most runs, short enough for many of them."""


def spread(low: float, high: float, unit: str) -> st.SearchStrategy[str]:
    """Return a number with a unit: a limit of the range, or spread evenly over its magnitudes."""
    powers = st.floats(math.log(low), math.log(high))
    values = st.one_of(st.sampled_from([low, high]), powers.map(math.exp))
    return values.map(lambda value: f"{value:.4g}{unit}")


def packet_counts(maximum: float) -> st.SearchStrategy[str]:
    """Return whole packets, in the same way."""
    powers = st.floats(0, math.log(maximum)).map(math.exp)
    return st.one_of(st.just(1), st.just(maximum), powers).map(lambda value: f"{int(value)}pkt")


DELAY = st.one_of(st.just("0s"), spread(1e-9, 1e5, "s"))
TIME = spread(1e-9, 1e5, "s")
RATE = spread(1000, 1e12, "bit")
BUFFER = st.one_of(st.just("unlimited"), packet_counts(1e9))
SHARE = spread(1e-9, 1e4, "%")
AMOUNT = st.one_of(SHARE, spread(1000, 1e12, "bit"))


@st.composite
def links(draw: st.DrawFn, /, **keys: Any) -> dict[str, Any]:
    link = {"rate": draw(RATE), "buffer": draw(BUFFER), "loss": draw(RANDOM_LOSS)}
    kept = {key: value for key, value in link.items() if draw(st.booleans())}
    return kept | {key: draw(strategy) for key, strategy in keys.items()}


@st.composite
def recordings(draw: st.DrawFn) -> dict[str, Any]:
    seconds = st.one_of(st.just(0.0), st.floats(1e-300, 1e6))
    times = sorted(draw(st.lists(seconds, min_size=1, max_size=5)))
    sizes = draw(st.lists(st.floats(0, 1e12), min_size=len(times), max_size=len(times)))
    stream = {"model": "trace", "times": times, "bytes": sizes}
    if draw(st.booleans()):
        stream |= {"period": draw(TIME), "offset": draw(DELAY)}
    return stream


@st.composite
def streams(draw: st.DrawFn) -> dict[str, Any]:
    noise = {
        "mean": AMOUNT,
        "sd": AMOUNT,
        "hurst": st.floats(0.01, 0.99),
        "bin": spread(1e-6, 3600, "s"),
    }
    periods = {"on": TIME, "off": TIME, "alpha": st.floats(1.001, 50)}
    keys: dict[str, dict[str, Any]] = {
        "poisson": {"mean": AMOUNT},
        "fgn": noise,
        "pareto": {"mean": AMOUNT, "sources": st.sampled_from([1, 3, 100_000])} | periods,
    }
    distribution = draw(st.sampled_from([*keys, "trace"]))
    if distribution == "trace":
        return draw(recordings())
    return {"distribution": distribution} | {
        key: draw(strategy) for key, strategy in keys[distribution].items()
    }


@st.composite
def networks(draw: st.DrawFn) -> tuple[dict[str, Any], list[str]]:
    """Return a network and the names of its hops."""
    network: dict[str, Any] = {"ingress": draw(links()), "egress": draw(links())}
    network["packet"] = draw(st.sampled_from(["41B", "1500B", "65535B"]))
    if draw(st.booleans()):
        network["rtt"] = draw(TIME)
    names = [f"hop{index}" for index in range(draw(st.integers(0, 3)))]
    if not names:
        network["bottleneck"] = draw(links(queue=QUEUE, rate=RATE))
    for index, name in enumerate(names):
        own = index > 0 and draw(st.booleans())
        keys = {"shared": st.just(False)} if own else {"queue": QUEUE}
        hop = draw(links(rate=RATE, **keys)) | {"name": name}
        network["hop"] = draw(st.permutations([*network.get("hop", []), hop]))
    if "rtt" not in network:
        for link in (*network.get("hop", []), network["ingress"], network["egress"]):
            link["delay"] = draw(DELAY)
        network.get("bottleneck", {})["delay"] = draw(DELAY)
    return network, names


@st.composite
def traffics(draw: st.DrawFn) -> dict[str, Any]:
    count = draw(st.sampled_from([1, 3, 50, 2000]))
    if draw(st.booleans()):
        return {"kind": "bulk", "flows": count}
    distribution = {"distribution": "lognormal", "mean": draw(TIME), "sd": draw(TIME)}
    return {
        "kind": "on-off",
        "sources": count,
        "off": draw(st.one_of(OFF, st.just(distribution))),
        "size": draw(SIZE),
        "connection": draw(st.sampled_from(["new", "persistent"])),
        "start": draw(st.sampled_from(["silent", "equilibrium"])),
        "correlation": draw(st.sampled_from([0, 0, 0.5, -1])),
    }


@st.composite
def scenarios(draw: st.DrawFn) -> dict[str, Any]:
    network, names = draw(networks())
    cross = draw(st.lists(streams(), max_size=2))
    for stream in cross:
        if names:
            stream["hop"] = draw(st.sampled_from(names))
    probes = {
        "goodput_packets": draw(st.sampled_from([1, 10, 10**6])),
        "goodput_least": draw(st.sampled_from(["0pkt", "10pkt", "1e9pkt"])),
    }
    return {
        "network": network,
        "traffic": draw(traffics()),
        "tcp": {"stack": draw(st.sampled_from(["max-plus-reno", "rfc-newreno"]))},
        "cross": cross,
        "probes": {key: value for key, value in probes.items() if draw(st.booleans())},
        "run": {
            "duration": draw(spread(1e-3, 1e6, "s")),
            "warmup": "0s",
            "max_wall": WALL,
            "replications": draw(st.sampled_from([1, 2])),
        },
    }


@st.composite
def fixed_points(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "scheme": draw(st.sampled_from([0, 1, 2])),
        "conditional": draw(st.booleans()),
        "moments": draw(st.sampled_from([1, 2])),
        "references": draw(st.sampled_from([1, 7, 10**6])),
        "steps": draw(st.sampled_from([2, 5, 1000])),
        "step": draw(spread(1e-6, 1e5, "s")),
        "tolerance": draw(st.sampled_from([0, 0.05, 1])),
    }


def check(tables: dict[str, Any], engine: str) -> None:
    try:
        scenario = Scenario.from_dict(tables)
    except ScenarioError:
        return
    (answer,) = tcpcast.run(scenario, [engine], threads=1)
    for name, metric in answer.metrics.items():
        assert not math.isinf(metric.value), name
        if metric.low is not None and metric.high is not None:
            assert metric.low <= metric.value <= metric.high, name


@UNHURRIED
@given(scenarios())
def test_packets_are_conserved(tables: dict[str, Any]) -> None:
    check(tables, "packet")


def followed(tables: dict[str, Any]) -> dict[str, Any]:
    """Remove features that fixed points refuse: losses along the path, and a second shared hop."""
    network = tables["network"]
    hops: list[dict[str, Any]] = network.get("hop", [])
    for end in ("ingress", "egress"):
        network[end] = {key: network[end][key] for key in ("rate", "delay") if key in network[end]}
    network.get("bottleneck", {}).pop("loss", None)
    shared = next((hop["name"] for hop in hops if hop.get("shared", True)), None)
    for hop in hops:
        if hop["name"] == shared:
            hop.pop("loss", None)
        else:
            hop["shared"] = False
            hop.pop("queue", None)
    own = [hop["name"] for hop in hops if hop["name"] != shared]
    cross = [stream | {"hop": own[-1]} for stream in tables["cross"]] if own else []
    return tables | {"tcp": {"stack": "max-plus-reno"}, "cross": cross}


def scaled(tables: dict[str, Any]) -> dict[str, Any]:
    """Remove features that populations refuse: RED, and all traffic except on/off sources."""
    network = tables["network"]
    for link in [*network.get("hop", []), network.get("bottleneck", {})]:
        queue = link.get("queue")
        if queue == "red" or (isinstance(queue, dict) and queue["kind"] == "red"):
            link["queue"] = "fq"
    traffic = tables["traffic"]
    if traffic["kind"] == "bulk":
        distribution = {"distribution": "exponential", "mean": "1s"}
        size = {"distribution": "exponential", "mean": "12pkt", "minimum": "3pkt"}
        traffic = {"kind": "on-off", "sources": traffic["flows"], "off": distribution, "size": size}
    return tables | {"traffic": traffic}


@UNHURRIED
@given(scenarios().map(followed), fixed_points())
def test_fixed_point_runs_terminate(tables: dict[str, Any], table: dict[str, Any]) -> None:
    check(tables | {"fixed_point": table}, "fixed-point")


@UNHURRIED
@given(scenarios().map(scaled), st.sampled_from([100, 1999, 10**6]))
def test_mean_field_runs_terminate(tables: dict[str, Any], flows: int) -> None:
    check(tables | {"mean_field": {"flows": flows}}, "mean-field")


def test_files_with_zero_duration_have_no_rate() -> None:
    # 41 B on 1 Tbit/s take 0.3 ns, and time is counted in whole ns.
    link = {"rate": "1000gbit", "delay": "0s"}
    tables = {
        "network": {"packet": "41B", "ack": "1B", "ingress": link, "egress": link}
        | {"bottleneck": link},
        "traffic": {
            "kind": "on-off",
            "sources": 1,
            "off": {"distribution": "constant", "value": "1ms"},
            "size": {"distribution": "constant", "value": "1pkt"},
        },
        "tcp": {"stack": "rfc-newreno", "receiver_window": 1},
        "run": {"duration": "1s", "warmup": "0s"},
    }
    (answer,) = tcpcast.run(Scenario.from_dict(tables), ["packet"])
    assert answer["transfers"] == 1000
    assert math.isnan(answer.tables["by_size"]["connection_rate_bps"][0])


@pytest.mark.parametrize(
    ("flows", "scheme", "what"), [(1, 2, "service time"), (20, 0, "time between packets")]
)
def test_fixed_point_compares_measured_values_only(flows: int, scheme: int, what: str) -> None:
    # No ack arrives within the run.
    tables = {
        "network": {"rtt": "100s", "bottleneck": {"rate": "10mbit", "buffer": "50pkt"}},
        "traffic": {"kind": "bulk", "flows": flows},
        "tcp": {"stack": "max-plus-reno", "receiver_window": 40},
        "run": {"duration": "1s", "warmup": "0s"},
        "fixed_point": {"scheme": scheme, "steps": 2, "step": "1ms"},
    }
    (answer,) = tcpcast.run(Scenario.from_dict(tables), ["fixed-point"])
    assert not any(metric.value > 0 for metric in answer.metrics.values())
    assert f"{what} was not measured" in str(answer.incomplete_reason)
