"""The order of classes only changes the order of the rows."""

import itertools
import math
from typing import Any

import pytest
import tcpcast
from tcpcast.scenario import Scenario

CLASSES = ({"name": "near", "flows": 2, "rtt": "20ms"}, {"name": "far", "flows": 3, "rtt": "80ms"})


def scenario(stack: str, classes: tuple[dict[str, Any], ...], **network: Any) -> Scenario:
    """Return endless flows whose round-trip times differ by 100 packet transmission times."""
    return Scenario.from_dict(
        {
            "network": {
                "rtt": "20ms",
                "bottleneck": {"rate": "20mbit", "buffer": "50pkt"},
                **network,
            },
            "traffic": {"kind": "bulk"},
            "tcp": {"stack": stack},
            "class": list(classes),
            "run": {"duration": "120s", "warmup": "20s", "replications": 4, "seed": 1},
        }
    )


@pytest.mark.parametrize("stack", ["rfc-newreno", "rfc-sack", "linux-reno", "linux-cubic"])
def test_shares_do_not_depend_on_class_order(stack: str) -> None:
    result: dict[str, list[tuple[float, float]]] = {"near": [], "far": []}
    for classes in itertools.permutations(CLASSES):
        answer = tcpcast.run(scenario(stack, classes), ["packet"])["packet"]
        table = answer.tables["by_class"]
        rates, highs = table["goodput_pps"], table["goodput_pps_high"]
        for index, group in enumerate(classes):
            result[str(group["name"])].append((rates[index], highs[index] - rates[index]))
    for (one, one_half), (other, other_half) in result.values():
        assert abs(one - other) <= one_half + other_half


def test_exact_hosts_have_a_warning_of_phase_effects() -> None:
    (warning,) = scenario("rfc-newreno", CLASSES).warnings()
    assert "hosts of near, far send without random delay" in warning
    assert 'use tcp.host_noise = "0.1ms"' in warning
    jitter = {"distribution": "exponential", "mean": "1ms"}
    assert scenario("rfc-newreno", CLASSES, jitter=jitter).warnings() == []
    assert scenario("linux-cubic", CLASSES).warnings() == []
    alike = tuple({**group, "rtt": "20ms"} for group in CLASSES)
    assert scenario("rfc-newreno", alike).warnings() == []


LOCKED = [
    ("linux-cubic", "3mbit", "2bdp", "droptail", 3),
    ("linux-reno-classic", "3mbit", "1bdp", "fq_codel", 2),
    ("parallel-newreno", "10mbit", "4bdp", "fq_codel", 2),
    ("rfc-reno", "10mbit", "2bdp", "codel", 3),
    ("rfc-reno", "20mbit", "2bdp", "droptail", 3),
    ("short-newreno", "3mbit", "4bdp", "droptail", 2),
    ("tahoe", "3mbit", "0.5bdp", "codel", 4),
]
"""Networks whose flows lock into a phase: stack, rate, buffer, queue, number of classes."""


@pytest.mark.parametrize("replications", [1, 8])
@pytest.mark.parametrize("locked", LOCKED, ids=lambda locked: "-".join(map(str, locked[::3])))
def test_intervals_of_identical_classes_contain_the_equal_share(
    locked: tuple[str, str, str, str, int], replications: int
) -> None:
    stack, rate, buffer, queue, count = locked
    flows = [1] * (count - 1) + [2]  # rates of flows are equal, not rates of classes
    tables: dict[str, Any] = {
        "network": {"rtt": "15ms", "bottleneck": {"rate": rate, "buffer": buffer, "queue": queue}},
        "traffic": {"kind": "bulk"},
        "tcp": {"stack": stack},
        "class": [{"name": f"f{index}", "flows": count} for index, count in enumerate(flows)],
        "run": {"duration": "300s", "warmup": "20s", "replications": replications},
    }
    for sources in ([1] * count, flows):
        for entry, number in zip(tables["class"], sources, strict=True):
            entry["flows"] = number
        (answer,) = tcpcast.run(Scenario.from_dict(tables), ["packet"], threads=1)
        table = answer.tables["by_class"]
        rates = table["goodput_bps"] / sources
        share = sum(table["goodput_bps"]) / sum(sources)
        lows, highs = (table[f"goodput_bps_{end}"] / sources for end in ("low", "high"))
        for rate_bps, low, high in zip(rates, lows, highs, strict=True):
            assert math.isnan(low) or low <= 1.000_001 * share
            assert math.isnan(high) or high >= 0.999_999 * share
            # Without an interval, the warning names the reason.
            assert not math.isnan(rate_bps)
        for low, warning in zip(lows, table.get("goodput_bps_interval_warning", ()), strict=False):
            assert not math.isnan(low) or warning


def test_run_that_locks_names_replications_as_the_remedy() -> None:
    tables = scenario("rfc-reno", tuple(group | {"rtt": "20ms"} for group in CLASSES)).resolved()
    tables["network"]["bottleneck"] = {"rate": "20mbit", "buffer": "2bdp"}
    tables["class"] = [{"name": name, "flows": 1} for name in "abc"]
    tables["network"]["rtt"], tables["run"]["replications"] = "15ms", 1
    (answer,) = tcpcast.run(Scenario.from_dict(tables), ["packet"], threads=1)
    warnings = set(answer.tables["by_class"]["goodput_bps_interval_warning"])
    assert all(text.startswith("locked into a phase: identical classes") for text in warnings)
    assert "run.replications = 8" in warnings.pop()
