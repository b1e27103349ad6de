"""Queue disciplines in scenarios, their parameters and effects."""

import math
from typing import Any

import numpy as np
import pytest
import tcpcast
from tcpcast.engines.packet.configuration import make_configuration
from tcpcast.process.errors import ScenarioError
from tcpcast.report.summary import describe_scenario
from tcpcast.scenario import FairQueue, Red, RedParameters, Scenario
from tcpcast.scenario.aqm import AQM_TABLES
from tcpcast.scenario.queue import QUEUE_NAMES


def scenario(bottleneck: dict[str, Any], **network: Any) -> Scenario:
    tables = {"rtt": "60ms", "bottleneck": {"rate": "10mbit", "buffer": "100pkt", **bottleneck}}
    return Scenario.from_dict(
        {
            "network": {**tables, **network},
            "traffic": {"kind": "bulk", "flows": 10},
            "run": {"duration": "60s", "warmup": "10s"},
        }
    )


def bottleneck_config(of: Scenario) -> Any:
    """Return the native configuration of the bottleneck."""
    config: Any = make_configuration(of, 0.0)
    return config["links"][config["headline"]]


def parameters(bottleneck: dict[str, Any], **network: Any) -> RedParameters:
    result = scenario(bottleneck, **network).network.red_parameters()
    assert result is not None
    return result


def test_red_is_configured_by_name_or_table() -> None:
    by_name = scenario({"queue": "red"})
    assert by_name == scenario({"queue": {"kind": "red"}})
    assert isinstance(by_name.network.bottleneck.queue, Red)
    assert by_name.resolved()["network"]["bottleneck"]["queue"] == {
        "kind": "red",
        "min_threshold": "automatic",
        "max_threshold": "automatic",
        "max_probability": "10%",
        "weight": "automatic",
        "gentle": True,
        "adaptive": False,
        "rules": "ns-2",
        "target_delay": "5ms",
    }
    assert scenario({}).network.red_parameters() is None


def test_red_automatic_parameters_follow_rate_and_rtt() -> None:
    # 10 Mbit/s are 833.3 packets per second: 5 ms are 4.2 packets, so the minimum thresholds apply,
    # and three link times are less than 100 ms, so R = 100 ms.
    slow = parameters({"queue": "red"})
    assert (slow.min_threshold_pkts, slow.max_threshold_pkts) == (5.0, 15.0)
    assert slow.weight == pytest.approx(1 - math.exp(-1 / (0.1 * 10 * 1e7 / 12000)), rel=1e-9)
    fast = parameters({"queue": "red", "rate": "120mbit"})
    assert (fast.min_threshold_pkts, fast.max_threshold_pkts) == (25.0, 75.0)
    # On a long path R is three times the propagation and transmission of the link.
    far = parameters({"queue": "red", "rate": "12mbit", "delay": "50ms"}, rtt=None)
    assert far.weight == pytest.approx(1 - math.exp(-1 / (10 * 3 * 0.051 * 1000)), rel=1e-9)
    # With a round-trip time, the link's propagation is half of it, minus transmission times.
    typed = parameters({"queue": "red", "rate": "12mbit"}, rtt="101.02666666666667ms")
    assert typed.weight == pytest.approx(far.weight, rel=1e-9)


def test_red_parameters_override_automatic_ones() -> None:
    result = parameters(
        {
            "queue": {
                "kind": "red",
                "min_threshold": "8pkt",
                "max_probability": "2%",
                "weight": 0.002,
                "gentle": False,
            }
        }
    )
    assert result == RedParameters(8.0, 24.0, 0.02, 0.002, False, False, "ns-2", 1e7 / 12000)
    of_tc = {"kind": "red", "adaptive": True, "rules": "linux", "gentle": False}
    linux = parameters({"queue": of_tc})
    assert (linux.adaptive, linux.rules) == (True, "linux")
    aimed = parameters({"queue": {"kind": "red", "target_delay": "24ms"}})
    assert (aimed.min_threshold_pkts, aimed.max_threshold_pkts) == pytest.approx((10.0, 30.0))


def test_red_parameters_are_in_a_table_of_the_answer() -> None:
    (answer,) = tcpcast.run(scenario({"queue": "red"}), ["packet"])
    table = dict(zip(*(answer.tables["red"][name] for name in ("quantity", "value")), strict=True))
    assert (table["min_threshold"], table["max_threshold"]) == (5, 15)
    assert table["forced_drops"] == 0
    dropped = answer["queue_loss_ratio"] * answer["send_rate_pps"] * 50
    assert table["early_drops"] == pytest.approx(dropped, rel=0.01)
    # The average follows the queue, and most arrivals occur while the queue is long.
    assert 0.7 * answer["queue_mean_pkts"] < table["average_mean"] < 15
    (tail,) = tcpcast.run(scenario({}), ["packet"])
    assert "red" not in tail.tables
    assert answer["queue_mean_pkts"] < tail["queue_mean_pkts"] / 2


def test_red_without_early_drops_has_a_warning() -> None:
    lengths = {"kind": "red", "min_threshold": "20pkt"}
    (warning,) = scenario({"queue": lengths, "buffer": "21pkt"}).warnings()
    assert "at most 20 packets can queue" in warning
    assert scenario({"queue": lengths, "buffer": "22pkt"}).warnings() == []
    assert scenario({"buffer": "2pkt"}).warnings() == []
    # As the warning states, the average cannot reach the threshold.
    (answer,) = tcpcast.run(scenario({"queue": lengths, "buffer": "21pkt"}), ["packet"])
    table = dict(zip(*(answer.tables["red"][name] for name in ("quantity", "value")), strict=True))
    assert table["early_drops"] == 0
    assert table["forced_drops"] > 0


def test_red_needs_no_buffer() -> None:
    unlimited = scenario({"queue": "red", "buffer": "unlimited"})
    assert unlimited.warnings() == []
    (answer,) = tcpcast.run(unlimited, ["packet"])
    (large,) = tcpcast.run(scenario({"queue": "red", "buffer": "100000pkt"}), ["packet"])
    assert answer.metrics == large.metrics
    low = answer.metrics["queue_loss_ratio"].low
    assert low is not None
    assert low > 0.01


def test_red_small_buffer_forces_drops() -> None:
    (answer,) = tcpcast.run(scenario({"queue": "red", "buffer": "8pkt"}), ["packet"])
    table = dict(zip(*(answer.tables["red"][name] for name in ("quantity", "value")), strict=True))
    assert answer["queue_max_pkts"] == 8
    assert table["forced_drops"] > table["early_drops"]


@pytest.mark.parametrize("queue", ["droptail", "red"])
def test_buffer_in_bytes_holds_integer_packets(queue: str) -> None:
    # 20 packets of 1500 B, and one byte less.
    answers = [
        tcpcast.run(scenario({"queue": queue, "buffer": buffer}), ["packet"])["packet"]
        for buffer in ("20pkt", "30000B", "31499B", "29999B", "19pkt")
    ]
    max_queues = [answer["queue_max_pkts"] for answer in answers]
    assert max_queues == [20, 20, 20, 19, 19]
    for one, other in ((0, 1), (0, 2), (3, 4)):
        assert answers[one].metrics == answers[other].metrics
        assert np.array_equal(
            answers[one].tables["queue"]["time_above"], answers[other].tables["queue"]["time_above"]
        )


def test_buffer_in_bytes_follows_the_packet_size() -> None:
    assert scenario({"buffer": "30000B"}, packet="576B").buffer_pkts == 52


def test_fair_queueing_is_configured_by_name_or_table() -> None:
    by_name = scenario({"queue": "fq"})
    assert by_name == scenario({"queue": {"kind": "fq"}})
    assert isinstance(by_name.network.bottleneck.queue, FairQueue)
    assert by_name.resolved()["network"]["bottleneck"]["queue"] == {
        "kind": "fq",
        "scheduler": "round-robin",
        "buffers": "shared",
        "drop": "longest",
    }
    assert Scenario.from_dict(by_name.resolved()) == by_name
    assert by_name.network.red_parameters() is None


@pytest.mark.parametrize(
    ("stack", "queue", "ties"),
    [
        ("rfc-newreno", {}, "latest"),
        ("rfc-newreno", {"ties": "random"}, "random"),
        ("max-plus-reno", {}, "random"),
        ("max-plus-reno", {"ties": "latest"}, "latest"),
        ("max-plus-reno", {"drop": "arriving"}, "latest"),
        ("max-plus-reno", {"buffers": "individual"}, "latest"),
    ],
)
def test_tie_rule_follows_from_stack(stack: str, queue: dict[str, Any], ties: str) -> None:
    fq_scenario = scenario({"queue": {"kind": "fq", **queue}}).with_changes({"tcp.stack": stack})
    assert bottleneck_config(fq_scenario)["queue"]["drr"]["ties"] == ties


def test_first_packets_in_service_occupy_no_buffer() -> None:
    longest = []
    for head_of_line in ("in buffer", "in service"):
        queue = {"kind": "fq", "head_of_line": head_of_line}
        table = {
            "network": {
                "rtt": "20ms",
                "bottleneck": {"rate": "10mbit", "buffer": "30pkt", "queue": queue},
            },
            "traffic": {"kind": "bulk", "flows": 10},
            "tcp": {"stack": "max-plus-reno"},
            "run": {"duration": "20s", "warmup": "10s"},
        }
        (answer,) = tcpcast.run(Scenario.from_dict(table), "packet")
        longest.append(answer["queue_max_pkts"])
    assert longest == [30, 40]


@pytest.mark.parametrize("kind", AQM_TABLES)
def test_aqm_is_configured_by_name_or_table(kind: str) -> None:
    by_name = scenario({"queue": kind})
    assert by_name == scenario({"queue": {"kind": kind}})
    assert type(by_name.network.bottleneck.queue) is AQM_TABLES[kind]
    assert Scenario.from_dict(by_name.resolved()) == by_name
    assert AQM_TABLES[kind].label in describe_scenario(by_name)


@pytest.mark.parametrize("kind", AQM_TABLES)
def test_each_aqm_has_its_own_discipline_in_the_simulator(kind: str) -> None:
    discipline = bottleneck_config(scenario({"queue": kind}))["queue"]
    variant = discipline if isinstance(discipline, str) else next(iter(discipline))
    assert variant == kind.replace("_", "-")


def test_native_configuration_contains_aqm() -> None:
    def queue_config(**queue: object) -> Any:
        return bottleneck_config(scenario({"queue": queue}))["queue"]

    codel = {
        "target_ns": 8_000_000,
        "interval_ns": 100_000_000,
        "mtu_bytes": 1500,
        "ecn": True,
        "ce_threshold_ns": None,
        "ce_threshold_ect1": False,
        "rules": "rfc8289",
    }
    assert queue_config(kind="codel", target="8ms") == {"codel": codel}
    flows = queue_config(kind="fq_codel", flows=64)["fq-codel"]
    assert (flows["queues"], flows["quantum_bytes"]) == (64, 1514)
    assert flows["codel"]["target_ns"] == 5_000_000
    pie = queue_config(kind="pie", ecn=False)["pie"]
    assert (pie["ecn_below"], pie["alpha"], pie["burst_ns"]) == (None, 0.125, 150_000_000)


def test_red_marks_if_a_stack_uses_ecn() -> None:
    def queue_config(queue: object, ecn: bool) -> Any:
        plain = scenario({"queue": queue})
        tcp = {"stack": "linux-cubic", "ecn": ecn}
        return bottleneck_config(plain.with_changes({"tcp": tcp}))["queue"]

    assert queue_config("red", False)["red"]["ecn"] is False
    assert queue_config({"kind": "red", "ecn": False}, True)["red"]["ecn"] is False
    assert queue_config("red", True)["red"]["ecn"] is True


@pytest.mark.parametrize("queue", [name for name in QUEUE_NAMES if name in AQM_TABLES])
def test_aqm_rejects_incompatible_keys(queue: str) -> None:
    tables = scenario({"queue": queue}).resolved()
    tables["traffic"] = {
        "kind": "on-off",
        "sources": 200,
        "off": {"distribution": "exponential", "mean": "1s"},
        "size": {"distribution": "exponential", "mean": "20pkt"},
    }
    classic = Scenario.from_dict(tables | {"tcp": {"stack": "rfc-newreno"}})
    (answer,) = tcpcast.run(classic, ["mean-field"])
    assert answer.not_applicable is not None
    assert queue in answer.not_applicable
    tables["tcp"] = {"stack": "max-plus-reno"}
    with pytest.raises(ScenarioError, match=f"network.bottleneck.queue: {queue} controls senders"):
        Scenario.from_dict(tables)
