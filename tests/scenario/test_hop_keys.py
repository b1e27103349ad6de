"""``[[network.hop]]``: hops in series instead of one bottleneck."""

import math
import tomllib
from typing import Any

import pytest
from tcpcast.process.errors import ScenarioError
from tcpcast.scenario import Scenario

ACCESS: dict[str, Any] = {"name": "access", "rate": "100mbit", "shared": False, "delay": "1ms"}
BACKBONE: dict[str, Any] = {"name": "backbone", "rate": "80mbit", "buffer": "200pkt"}
LOOP: dict[str, Any] = {
    "name": "loop",
    "rate": "100mbit",
    "buffer": "10000pkt",
    "delay": "10ms",
    "queue": {"kind": "fq"},
}


def tables(*hops: dict[str, Any], **network: Any) -> dict[str, Any]:
    return {
        "network": {
            "ingress": {"rate": "10mbit", "delay": "10ms"},
            "egress": {"rate": "10mbit", "delay": "10ms"},
            "hop": list(hops),
            **network,
        },
        "traffic": {
            "kind": "on-off",
            "sources": 5,
            "off": {"distribution": "exponential", "mean": "1s"},
            "size": {"distribution": "exponential", "mean": "20pkt", "minimum": "1pkt"},
        },
        "run": {"duration": "10s", "warmup": "1s"},
    }


def scenario(*hops: dict[str, Any], **network: Any) -> Scenario:
    return Scenario.from_dict(tables(*hops, **network))


def error_of(*hops: dict[str, Any], **network: Any) -> str:
    with pytest.raises(ScenarioError) as caught:
        scenario(*hops, **network)
    return str(caught.value)


def test_slowest_shared_hop_is_measured_by_default() -> None:
    network = scenario(ACCESS, LOOP, BACKBONE).network
    assert network.bottleneck.rate_bps == 80e6
    assert [hop.name for hop in network.hops_before] == ["access", "loop"]
    assert network.hops_after == []
    network = scenario(ACCESS, LOOP | {"measured": True}, BACKBONE).network
    assert network.measured_index == 1
    assert [hop.name for hop in network.hops_after] == ["backbone"]
    twins = [LOOP | {"name": name} for name in ("one", "two")]
    assert scenario(*twins).network.measured_index == 0
    slow_of_its_own = ACCESS | {"rate": "1mbit"}
    assert scenario(slow_of_its_own, LOOP).network.measured_index == 1


def test_transmission_times_of_all_hops_are_subtracted() -> None:
    bits = 8 * 1540
    path = scenario(ACCESS, LOOP, BACKBONE).network
    transmissions = [bits / rate for rate in (10e6, 100e6, 100e6, 80e6, 10e6)]
    assert path.rtt_s == pytest.approx(2 * 0.031 + math.fsum(transmissions), rel=1e-12)
    # With rtt, the rest is propagation delay.
    hops = [{"name": "a", "rate": "100mbit"}, {"name": "b", "rate": "10mbit"}]
    (people,) = scenario(*hops, ingress={}, egress={}, rtt="50ms").populations
    sent = bits / 100e6 + bits / 10e6
    assert people.forward_delay_s == pytest.approx((0.050 - sent) / 2, rel=1e-12)


def test_hop_buffer_in_bdp_uses_the_hop_rate() -> None:
    hops = [BACKBONE | {"buffer": "1bdp"}, LOOP | {"buffer": "2bdp"}]
    network = scenario(*({**hop, "delay": "10ms"} for hop in hops)).network
    rtt = network.rtt_s
    backbone, loop = (network.buffer_pkts(hop) for hop in network.hops)
    assert backbone == math.ceil(80e6 * rtt / 12000)
    assert loop == math.ceil(2 * 100e6 * rtt / 12000)


def test_resolved_hops_read_back_with_measured_hop() -> None:
    original = scenario(ACCESS, LOOP, BACKBONE)
    resolved = original.resolved()
    assert "bottleneck" not in resolved["network"]
    assert [hop["measured"] for hop in resolved["network"]["hop"]] == [False, False, True]
    assert Scenario.from_dict(resolved) == original
    text = original.to_toml()
    assert text.count("[[network.hop]]") == 3
    assert Scenario.from_dict(tomllib.loads(text)) == original
    explicit = scenario(ACCESS, LOOP, BACKBONE | {"measured": True})
    assert explicit.digest() == original.digest()
    assert scenario(ACCESS, BACKBONE, LOOP).digest() != original.digest()
    alone = Scenario.from_dict(
        tables() | {"network": {"rtt": "50ms", "bottleneck": {"rate": "10mbit"}}}
    )
    assert "hop" not in alone.resolved()["network"]


def test_changes_select_hop_by_name_index_or_bottleneck() -> None:
    original = scenario(ACCESS, LOOP, BACKBONE)
    for key in ("network.hop.loop.rate", "network.hop.1.rate"):
        changed = original.with_changes({key: "60mbit"}).network
        assert changed.bottleneck.rate_bps == 60e6
        assert changed.measured_index == 1
    changed = original.with_changes({"network.bottleneck.rate": "1gbit"}).network
    assert (changed.measured_index, changed.bottleneck.rate_bps) == (2, 1e9)
    with pytest.raises(ScenarioError, match=r'no entry "lop" \(did you mean "loop"\?\)'):
        original.with_changes({"network.hop.lop.rate": "1mbit"})
    bare = Scenario.from_dict(
        tables() | {"network": {"rtt": "50ms", "bottleneck": {"rate": "10mbit"}}}
    )
    with pytest.raises(ScenarioError, match=r"has no hops; add \[\[network\.hop\]\] tables"):
        bare.with_changes({"network.hop.loop.rate": "1mbit"})


@pytest.mark.parametrize(
    ("hops", "line"),
    [
        ([LOOP, LOOP], 'network.hop.0.name: "loop" is the name of another hop; use another name'),
        (
            [LOOP, BACKBONE | {"loss": {"model": "rest-of-round", "rate": "1%"}, "rate": "1gbit"}],
            "network.hop.backbone.loss: correlated loss within a round is possible only at",
        ),
        (
            [LOOP, BACKBONE | {"loss": {"model": "rest-of-round", "rate": "1%"}}],
            "network.hop.backbone.loss: correlated loss within a round is possible only at "
            "the measured hop, and only if no shared hop precedes it",
        ),
        (
            [LOOP, BACKBONE | {"queue": {"kind": "fq", "scheduler": "drr", "quantum": "100B"}}],
            'network.hop.backbone.queue.quantum: "100B" is less than one packet',
        ),
        ([LOOP] * 33, "network.hop: contains 33 entries; use at most 32"),
    ],
)
def test_each_error_gives_one_line(hops: list[dict[str, Any]], line: str) -> None:
    (first, *more) = error_of(*hops).split("\n")
    assert first.startswith(line), first
    assert not more or "is the name of another hop" in first


def test_rtt_below_transmission_times_is_rejected() -> None:
    line = error_of(LOOP | {"rate": "100kbit"}, rtt="50ms")
    assert line.startswith("network.rtt: 50ms is less than the transmission times of one packet")
    assert "over all links" in line
    assert "contradicts the links' delays" in error_of(LOOP, BACKBONE, rtt="50ms")


def test_unlimited_flows_over_hops_are_rejected() -> None:
    endless = tables({"name": "a"}, {"name": "b"}, ingress={}, egress={}, rtt="10ms")
    endless["traffic"] = {"kind": "bulk", "flows": 1}
    with pytest.raises(ScenarioError, match=r"^network\.hop\.a\.rate: nothing limits the flows"):
        Scenario.from_dict(endless)
    endless["network"]["hop"][1]["rate"] = "10mbit"
    assert Scenario.from_dict(endless).network.bottleneck.rate_bps == 10e6
