"""Configuration of the native module: names and types are the same in Python and Rust."""

import copy
import re
from collections.abc import Iterator
from typing import Any

import pytest
import tcpcast
from tcpcast import _native
from tcpcast.engines.fixed_point import native_configuration, road_configuration
from tcpcast.engines.packet.configuration import make_configuration
from tcpcast.scenario import Scenario
from tcpcast.scenario.modern_tcp import MODERN_PRESETS
from tcpcast.scenario.queue import QUEUE_NAMES

Place = tuple[str | int, ...]

HOPS = [
    {"name": "core", "rate": "40mbit", "delay": "5ms", "loss": "1%"},
    {"name": "edge", "rate": "10mbit", "buffer": "60pkt"},
]
LONGEST = {"kind": "fq", "drop": "longest"}
LENGTHS = [{"name": "far", "sources": 5}, {"name": "near", "sources": 5, "packet": "576B"}]
BURSTS = {"model": "gilbert-elliott", "to_bad": "1%", "to_good": "10%"}
BUCKET = {"bucket": "10mbit", "burst": "15KB"}
TODAYS = {"stack": "linux-cubic"}
CROSS = [
    {"model": "poisson", "mean": "10%"},
    {"model": "fgn", "mean": "10%", "sd": "5%", "hurst": 0.8},
    {"model": "pareto", "mean": "10%", "sources": 20, "on": "100ms", "off": "200ms"},
    {"model": "trace", "times": [0, 0.1, 0.25], "bytes": [30000, 60000, 9000]},
]
ARRIVING = {
    "kind": "transfers",
    "size": ["3KB", "20KB"],
    "arrivals": {"distribution": "poisson", "rate": "60/s"},
}
MOST: dict[str, tuple[str, dict[str, Any]]] = {
    "web": ("web-10mbit", {}),
    **{name: ("web-10mbit", {"network.bottleneck.queue": name}) for name in QUEUE_NAMES},
    "sources": ("web-10mbit", {"traffic.start": "equilibrium", "traffic.connection": "persistent"}),
    "idle": ("web-10mbit", {"traffic.connection": "persistent", "tcp.idle_restart": "2s"}),
    "bytes": ("web-10mbit", {"tcp": TODAYS, "traffic.size.mean": "20KB"}),
    "bucket": ("web-10mbit", {"network.bottleneck": {"rate": BUCKET, "queue": "fq"}}),
    "policer": ("web-10mbit", {"network.bottleneck": {"rate": BUCKET | {"policer": True}}}),
    "marks": ("web-10mbit", {"tcp": TODAYS | {"ecn": True}, "network.bottleneck.queue": "red"}),
    "longest": ("web-10mbit", {"network.bottleneck": {"rate": BUCKET, "queue": LONGEST}}),
    "own": ("web-10mbit", {"network.bottleneck.queue": "fq", "class": LENGTHS, "tcp": TODAYS}),
    "hops": ("web-10mbit", {"network": {"hop": HOPS}}),
    "access": ("web-10mbit", {"network.ingress": {"rate": "9mbit", "loss": BURSTS}}),
    "probes": (
        "web-10mbit",
        {"probes": {"flows": [0], "pcap": [{"link": "sender", "file": "a.pcap"}]}},
    ),
    "jitter": (
        "web-10mbit",
        {"network.jitter": {"distribution": "uniform", "low": "0ms", "high": "5ms"}},
    ),
    "return": ("web-10mbit", {"network.return": {"rate": "1mbit", "queue": "codel"}}),
    "cross": ("web-10mbit", {"cross": CROSS}),
    "round": ("lossy-path", {"network.bottleneck.loss": {"model": "rest-of-round", "rate": "1%"}}),
    "bursts": ("lossy-path", {"network.bottleneck.loss": BURSTS}),
    "behind": ("lossy-path", {"network.bottleneck.loss_at": "behind"}),
    "times": ("lossy-path", {"traffic.flows": 2, "traffic.start": ["0s", "1s"]}),
    "sizes": ("short-transfers", {}),
    "arrivals": ("short-transfers", {"tcp": TODAYS, "traffic": ARRIVING, "run.transfers": 99}),
    "loop": ("local-loop", {}),
}


def scenario(name: str) -> Scenario:
    file, changes = MOST[name]
    return tcpcast.load(file).with_changes(changes)


def tables(value: Any, path: Place = ()) -> Iterator[Place]:
    """Yield the locations of all dicts."""
    if isinstance(value, dict):
        yield path
        for key, item in value.items():
            yield from tables(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from tables(item, (*path, index))


def value_at(value: Any, path: Place) -> Any:
    for key in path:
        value = value[key]
    return value


def refused(config: Any) -> str:
    with pytest.raises(ValueError, match=":") as caught:
        _native.run_bytes(config, 1)
    return str(caught.value)


def expected(message: str) -> set[str]:
    return set(re.findall(r"`([\w-]+)`", message.partition("expected")[2]))


@pytest.mark.parametrize("name", MOST)
def test_native_module_accepts_exactly_the_written_keys(name: str) -> None:
    """An unknown key is rejected with the expected keys, which are those that Python writes."""
    config = make_configuration(scenario(name), 1.0)
    assert _native.run_bytes(config, 1) > 0
    for path in tables(config):
        more: Any = copy.deepcopy(config)
        value_at(more, path)["unheard_of"] = 1
        message = refused(more)
        if "unheard_of" not in message:  # a choice, which is a dict of one key
            assert len(value_at(config, path)) == 1
            continue
        if len(value_at(config, path)) > 1:
            tags = {"distribution", "model"}
            assert expected(message) - tags == value_at(config, path).keys() - tags, message


@pytest.mark.parametrize("name", MOST)
def test_missing_key_is_reported(name: str) -> None:
    config = make_configuration(scenario(name), 1.0)
    for key in ("seed", "headline", "classes"):
        less: Any = {other: value for other, value in config.items() if other != key}
        assert f"missing field `{key}`" in refused(less)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"warmup_ns": 0.5}, "warmup_ns: invalid type: floating point"),
        ({"headline": -1}, "headline: invalid value"),
        ({"classes": [{}]}, "missing field `flows`"),
    ],
)
def test_native_error_contains_path(change: dict[str, Any], message: str) -> None:
    wrong: Any = make_configuration(scenario("web"), 1.0) | change
    assert message in refused(wrong)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"queue": "fifo"}, "queue: unknown variant `fifo`, expected one of `drop-tail`"),
        (
            {"loss": {"model": {"bernouilli": 0.1}, "at": "before"}},
            "unknown variant `bernouilli`",
        ),
        (
            {"loss": {"model": {"bernoulli": 0.1}, "at": "after"}},
            "loss.at: unknown variant `after`",
        ),
    ],
)
def test_native_error_of_a_link_contains_path(change: dict[str, Any], message: str) -> None:
    wrong: Any = make_configuration(scenario("web"), 1.0)
    wrong["links"][-1] |= change
    assert message in refused(wrong)


def test_native_module_accepts_modern_stacks() -> None:
    wrong: Any = make_configuration(scenario("bytes"), 1.0)
    wrong["classes"][0]["tcp"]["modern"]["stack"] = "linux"
    assert expected(refused(wrong)) == MODERN_PRESETS.keys()


def test_native_module_rejects_empty_distributions() -> None:
    wrong: Any = make_configuration(scenario("times"), 1.0)
    wrong["classes"][0]["traffic"]["files"]["bulk"]["start"] = {"times": []}
    assert "times: invalid length 0, expected at least one" in refused(wrong)
    wrong = make_configuration(scenario("sizes"), 1.0)
    wrong["classes"][0]["traffic"]["files"]["transfers"]["sizes"] = []
    assert "expected at least one" in refused(wrong)


def test_native_module_validates_packet_opportunities() -> None:
    wrong: Any = make_configuration(scenario("bucket"), 1.0)
    wrong["links"][0]["rate"] = {"opportunities": [(5, 1), (3, 1)]}
    assert "line 2 of the trace is earlier than the line before" in refused(wrong)


@pytest.mark.parametrize("value", [object(), b"1", {1, 2}, 2**64, -(2**63) - 1])
def test_native_module_rejects_other_types(value: object) -> None:
    wrong: Any = make_configuration(scenario("web"), 10.0)
    wrong["classes"][0]["flows"] = value
    assert refused(wrong).startswith("classes[0].flows: ")


def test_native_module_rejects_several_choices() -> None:
    wrong: Any = make_configuration(scenario("red"), 10.0)
    (red,) = (link for link in wrong["links"] if link["queue"] != "drop-tail")
    red["queue"] |= {"drr": {}}
    assert "queue: a choice must have one key, not 2" in refused(wrong)


def test_fixed_point_configuration_keys() -> None:
    loop = scenario("loop").with_changes({"fixed_point": {"scheme": 2}})
    assert loop.fixed_point is not None
    config = native_configuration(loop, loop.fixed_point)
    assert _native.Simulation.fixed_point(road_configuration(loop), config, 1)
    for key in config:
        less = {other: value for other, value in config.items() if other != key}
        with pytest.raises(ValueError, match=f"missing field `{key}`"):
            _native.Simulation.fixed_point(road_configuration(loop), less, 1)
    wrong = config | {"scheme": "3"}
    with pytest.raises(ValueError, match="scheme: unknown variant `3`"):
        _native.Simulation.fixed_point(road_configuration(loop), wrong, 1)
