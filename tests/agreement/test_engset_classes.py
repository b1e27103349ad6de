"""The engset engine with several classes, compared with simulation and with one class."""

from typing import Any

import pytest
from tcpcast.engines import answer
from tcpcast.scenario import Scenario, load


def two(**changes: Any) -> Scenario:
    named = {key.replace("__", "."): value for key, value in changes.items()}
    return load("two-classes", changes=named)


def test_classes_agree_with_simulation() -> None:
    formula, simulated = answer(two(run__transfers=40_000), ["engset", "packet"])
    rows, expected = formula.tables["by_class"], simulated.tables["by_class"]
    assert rows["name"].tolist() == ["near", "far"]
    for name in ("connection_rate_bps", "on_time_s", "rtt_mean_s"):
        assert rows[name] == pytest.approx(expected[name], rel=0.08)
    for name in ("connection_rate_bps", "utilisation", "queue_mean_pkts"):
        assert formula[name] == pytest.approx(simulated[name], rel=0.05)


def test_sizes_that_differ_greatly_are_not_trusted() -> None:
    (near,) = answer(two(), ["engset"])
    assert near.metrics["connection_rate_bps"].trusted
    (apart,) = answer(two(class__far__traffic__size__mean="80pkt"), ["engset"])
    for name in ("connection_rate_bps", "on_time_s", "queue_mean_pkts", "rtt_mean_s"):
        assert not apart.metrics[name].trusted
    assert any("range from 12 to 80 packets" in text for text in apart.warnings)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"class__far__tcp__delayed_acks": True}, "delays ACKs"),
        ({"class__near__sources": 2000, "class__far__sources": 2000}, "at most 2,000,000"),
        ({"network__bottleneck__queue": "red"}, "uses RED"),
    ],
)
def test_refusal_states_the_reason(changes: dict[str, Any], reason: str) -> None:
    (result,) = answer(two(**changes), ["engset"])
    assert result.not_applicable is not None
    assert reason in result.not_applicable


def test_few_sources_never_fill_the_link() -> None:
    (result,) = answer(two(class__near__sources=2, class__far__sources=2), ["engset"])
    assert result["queue_mean_pkts"] == 0
    assert any("cannot fill the link" in text for text in result.warnings)
    assert result["loss_ratio"] == 0
