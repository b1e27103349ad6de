"""Classes with their own packet size in the packet engine."""

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tcpcast.answer import Answer
from tcpcast.engines import RunOptions, answer
from tcpcast.engines.packet.configuration import make_configuration
from tcpcast.scenario import Scenario
from tcpcast.scenario.queue import QUEUE_NAMES

LARGE, SMALL = 1500, 500
RATE = 10e6
TIMES = {"rtt_mean_s", "queue_delay_mean_s", "loss_ratio", "send_rate_pps", "goodput_pps"}


def make_scenario(classes: list[dict[str, Any]], **changes: Any) -> Scenario:
    tables = {
        "network": {"rtt": "40ms", "bottleneck": {"rate": "10mbit", "buffer": "50pkt"}},
        "traffic": {"kind": "bulk", "flows": 2},
        "tcp": {"stack": "rfc-newreno"},
        "run": {"duration": "60s", "warmup": "10s"},
        "class": classes,
    }
    return Scenario.from_dict(tables).with_changes(changes)


def mixed(**changes: Any) -> Scenario:
    classes = [{"name": "large"}, {"name": "small", "packet": f"{SMALL}B"}]
    return make_scenario(classes, **changes)


def simulate(scenario: Scenario, **options: Any) -> Answer:
    (result,) = answer(scenario, ["packet"], RunOptions(**options))
    assert result.not_applicable is None, result.not_applicable
    return result


def value(result: Answer, metric: str) -> float:
    return result.metrics[metric].value


def by_class(result: Answer, metric: str) -> list[float]:
    return [float(value) for value in result.tables["by_class"][metric]]


PATHS = {
    "bottleneck": {},
    "own links": {"network.ingress.rate": 20, "network.egress.rate": 8},
    "hops": {
        "network.bottleneck": None,
        "network.hop": [
            {"name": "access", "rate": 30, "delay": "2ms", "shared": False, "buffer": "20pkt"},
            {"name": "first", "rate": 12, "delay": "2ms", "buffer": "30pkt"},
            {"name": "main", "rate": 10, "delay": "3ms", "buffer": "20pkt", "measured": True},
            {"name": "last", "rate": 11, "delay": "1ms", "buffer": "5pkt"},
        ],
        "network.rtt": None,
    },
    "return link": {"network.return": {"rate": 0.5, "buffer": "20pkt"}},
}


def at_rates(value: Any, mbit: float, key: str = "") -> Any:
    """Return changes with all rates as text in units of ``mbit``."""
    if isinstance(value, dict):
        return {name: at_rates(item, mbit, name) for name, item in value.items()}
    if isinstance(value, list):
        return [at_rates(item, mbit) for item in value]
    return f"{value * mbit}mbit" if key.endswith("rate") else value


@pytest.mark.parametrize("path", PATHS)
def test_half_the_packet_size_at_half_the_rate_gives_the_same_times(path: str) -> None:
    both: list[dict[str, Any]] = [{"name": "near"}, {"name": "far", "rtt": "90ms"}]
    if path == "hops":
        both = [{"name": "few"}, {"name": "many", "flows": 3}]
    whole = make_scenario(both, **{"network.ack": "80B"})
    whole = whole.with_changes(at_rates(PATHS[path], 1))
    halves = make_scenario(
        [{**group, "packet": "750B"} for group in both],
        **{"network.bottleneck.rate": "5mbit", "network.ack": "40B"},
    ).with_changes(at_rates(PATHS[path], 0.5))
    first, second = simulate(whole), simulate(halves)
    for metric in TIMES & first.tables["by_class"].keys():
        assert by_class(first, metric) == by_class(second, metric), metric
    for metric in ("utilisation", "queue_mean_pkts", "jain_index"):
        assert value(first, metric) == pytest.approx(value(second, metric), rel=1e-9), metric
    ratio = np.divide(by_class(second, "goodput_bps"), by_class(first, "goodput_bps"))
    assert ratio == pytest.approx((750 - 40) / (1500 - 40))


def test_network_packet_size_has_no_effect() -> None:
    plain, with_packet = (
        [{"name": "a"}, {"name": "b", **own}] for own in ({}, {"packet": "1500B"})
    )
    for stack in ("rfc-newreno", "linux-cubic"):
        first, second = (
            simulate(make_scenario(c, **{"tcp.stack": stack})) for c in (plain, with_packet)
        )
        assert {n: m.value for n, m in first.metrics.items()} == {
            n: m.value for n, m in second.metrics.items()
        }


QUEUES: dict[str, dict[str, Any]] = {
    **{name: {"network.bottleneck.queue": name} for name in QUEUE_NAMES},
    "bytes": {"network.bottleneck.buffer": "75KB"},
    "bucket": {"network.bottleneck.rate": {"bucket": "10mbit", "burst": "3KB"}},
    "opportunities": {"network.bottleneck.rate": {"opportunities": "1 2 3 4 5 7 8 9 10 12"}},
}


@pytest.mark.parametrize("stack", ["rfc-newreno", "linux-cubic"])
@pytest.mark.parametrize("queue", QUEUES)
def test_link_carries_the_bytes_of_each_class(queue: str, stack: str) -> None:
    result = simulate(mixed(**QUEUES[queue], **{"tcp.stack": stack}))
    sent, lost = (np.array(by_class(result, m)) for m in ("send_rate_pps", "loss_ratio"))
    carried = 8 * sent * (1 - lost) * [LARGE, SMALL]
    # The queue at either end of the run contains at most 50 packets, or 0.1 %.
    assert carried.sum() == pytest.approx(value(result, "utilisation") * RATE, rel=0.002)
    payload = [LARGE - 40, SMALL - 40] if stack == "rfc-newreno" else [LARGE - 52, SMALL - 52]
    goodput = np.array(by_class(result, "goodput_pps")) * 8 * payload
    assert by_class(result, "goodput_bps") == pytest.approx(goodput, rel=1e-9)
    assert value(result, "goodput_bps") == pytest.approx(goodput.sum(), rel=1e-6)


def test_fair_queueing_shares_bytes_but_packet_buffers_share_packets() -> None:
    fair = simulate(mixed(**QUEUES["fq"], **{"network.bottleneck.buffer": "300pkt"}))
    packets = simulate(mixed())
    sent = np.array(by_class(fair, "goodput_pps")) * [LARGE, SMALL]
    assert sent[0] == pytest.approx(sent[1], rel=0.02)
    large, small = by_class(packets, "goodput_pps")
    assert small < 1.5 * large


def test_byte_buffer_has_the_queueing_delay_of_its_bytes() -> None:
    result = simulate(mixed(**QUEUES["bytes"], **{"tcp.stack": "linux-cubic"}))
    longest_s = 8 * 75_000 / RATE
    assert 0.9 * longest_s < value(result, "queue_delay_p99_s") < 1.01 * longest_s
    assert 100 < value(result, "queue_max_pkts") <= 75_000 // SMALL


def test_access_buffer_in_bytes_holds_packets_of_its_class() -> None:
    config = make_configuration(
        mixed(**{"network.ingress": {"rate": "9mbit", "buffer": "3000B"}}), 0.0
    )
    ingresses = [config["links"][group["routes"][0][0]] for group in config["classes"]]
    assert [link["limit_bytes"] for link in ingresses] == [3000, 3000]
    assert [group["packet_bytes"] for group in config["classes"]] == [1500, SMALL]


def lengths(file: Path) -> dict[bytes, set[int]]:
    """Return the IP lengths in a capture, by the sender's address."""
    data, offset = file.read_bytes(), 24
    result: dict[bytes, set[int]] = {}
    while offset < len(data):
        captured_bytes, length = struct.unpack_from("<II", data, offset + 8)
        result.setdefault(data[offset + 28 : offset + 32], set()).add(length)
        offset += 16 + captured_bytes
    return result


@pytest.mark.parametrize("stack", ["rfc-newreno", "linux-cubic"])
def test_captures_have_the_packet_length_of_each_class(tmp_path: Path, stack: str) -> None:
    file = tmp_path / "sent.pcap"
    scenario = mixed(
        **{
            "probes.pcap": [{"link": "bottleneck-in", "file": str(file), "packets": 4000}],
            "tcp.stack": stack,
            "run.duration": "20s",
        }
    )
    simulate(scenario)
    result = [max(sizes) for sender, sizes in sorted(lengths(file).items()) if sender[1] < 128]
    assert result == [LARGE, LARGE, SMALL, SMALL]


def test_loss_feedback_needs_packets_of_one_size() -> None:
    (result,) = answer(mixed(**{"tcp.stack": "max-plus-reno"}), ["packet"])
    reason = "class.small.packet: max-plus-reno supports only packets of one size; "
    assert str(result.not_applicable).startswith(reason)


OWN_HOPS: dict[str, Any] = {
    "network.bottleneck": None,
    "network.hop": [
        {"name": "own", "rate": "2mbit", "buffer": "30KB", "shared": False},
        {"name": "main", "rate": "10mbit", "buffer": "50pkt"},
    ],
}


@pytest.mark.parametrize("stack", ["rfc-newreno", "linux-cubic"])
def test_hops_of_single_sources_transmit_each_size(stack: str) -> None:
    result = simulate(mixed(**OWN_HOPS, **{"tcp.stack": stack}))
    large, small = by_class(result, "goodput_bps")
    payload = {"rfc-newreno": 40, "linux-cubic": 52}[stack]
    for rate, size in ((large, LARGE), (small, SMALL)):
        assert rate == pytest.approx(2 * 2e6 * (1 - payload / size), rel=0.05)


def test_fluid_at_hops_of_single_sources_delays_each_size_by_its_length() -> None:
    stream = {"model": "poisson", "mean": "50%", "hop": "own", "bin": "10ms"}
    result = simulate(mixed(**OWN_HOPS, cross=[stream]))
    large, small = by_class(result, "goodput_bps")
    for rate, size in ((large, LARGE), (small, SMALL)):
        assert 0.7e6 < rate / (2 * (1 - 40 / size)) < 1.1e6


def test_policer_counts_the_bytes_of_each_packet() -> None:
    bucket = {"bucket": "10mbit", "burst": "30KB", "policer": True}
    result = simulate(mixed(**{"network.bottleneck": {"rate": bucket}}))
    large, small = by_class(result, "goodput_bps")
    assert 0.5e7 < large / (1 - 40 / LARGE) + small / (1 - 40 / SMALL) < 1e7
