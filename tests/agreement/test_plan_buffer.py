"""Buffers without a formula: bulk flows, several classes, a target of utilisation."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from tcpcast.answer import Answer, Metric
from tcpcast.cli import main
from tcpcast.errors import DomainError, NotApplicable
from tcpcast.plan import plan_buffer, verification
from tcpcast.report.plan import plan_parts
from tcpcast.report.text import plain_text as as_text
from tcpcast.scenario import Scenario, load

if TYPE_CHECKING:
    from collections.abc import Callable

    Capture = pytest.CaptureFixture[str]

BULK = {
    "network": {"rtt": "40ms", "bottleneck": {"rate": "20mbit", "buffer": "1bdp"}},
    "traffic": {"kind": "bulk", "flows": 4},
    "tcp": {"stack": "linux-cubic"},
    "run": {"duration": "40s", "warmup": "10s", "replications": 4},
}


def bulk() -> Scenario:
    return Scenario.from_dict(BULK)


def simulator(
    monkeypatch: pytest.MonkeyPatch, metric: str, distribution: Callable[[int], float]
) -> list[int]:
    """Replace the simulator by a function of the buffer."""
    buffers: list[int] = []

    def run(scenario: Scenario, engines: list[str], options: object) -> list[Answer]:
        del engines, options
        buffer = round(scenario.network.bottleneck.buffer.amount)
        buffers.append(buffer)
        value = distribution(buffer)
        error = 0.01 * (1 - value if metric == "utilisation" else value)
        return [Answer("packet", metrics={metric: Metric(value, value - error, value + error)})]

    monkeypatch.setattr(verification, "answer", run)
    return buffers


def test_planned_buffer_fills_the_link_with_bulk_flows() -> None:
    plan = plan_buffer(bulk(), utilisation=0.93)
    assert plan.simulated is not None
    # BDP/sqrt(n) of Appenzeller et al. is 33 packets; CUBIC reduces its window by less than half.
    assert 5 <= plan.simulated <= 12
    assert plan.is_simulation_reported_first
    assert plan.target == ("utilisation", 0.93)
    assert "grid" not in plan.tables
    assert plan.tables["rules"]["buffer_pkts"].tolist() == [1000, 500, 67, 34]
    text = as_text(plan_parts(plan, bulk()), 100)
    assert "The smallest buffer for a utilisation of 93% is" in text
    assert "by the model" not in text


def test_search_uses_the_distance_to_a_full_link(monkeypatch: pytest.MonkeyPatch) -> None:
    buffers = simulator(monkeypatch, "utilisation", lambda pkts: 1 - 0.5 / pkts)
    plan = plan_buffer(bulk(), utilisation=0.99)
    assert plan.simulated == pytest.approx(50, abs=1)
    assert plan.simulated_metric is not None
    assert plan.simulated_metric.value == pytest.approx(0.99, abs=2e-4)
    assert len(buffers) <= 14
    assert plan.to_json()["leading"]["by"] == "simulation"


def test_buffer_for_several_classes_is_planned_by_simulation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    simulator(monkeypatch, "loss_ratio", lambda pkts: 1 / pkts)
    plan = plan_buffer(load("two-classes"), loss=0.01)
    assert plan.simulated == pytest.approx(100, abs=1)
    assert math.isnan(plan.value)
    assert any(note.startswith("By simulation only: TCP-Engset") for note in plan.notes)


def test_bdp_of_several_classes_is_for_the_mean_rtt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: the BDP was for network.rtt or for the first class, so it changed with the
    order of the classes."""
    simulator(monkeypatch, "utilisation", lambda pkts: 1 - 0.5 / pkts)
    classes = [{"name": "near", "flows": 3}, {"name": "far", "flows": 1, "rtt": "120ms"}]
    for order in (classes, classes[::-1]):
        plan = plan_buffer(
            Scenario.from_dict(BULK | {"traffic": {"kind": "bulk"}, "class": order}),
            utilisation=0.9,
        )
        assert (
            "For the mean RTT of the senders, 60 ms, the BDP is 100 packets" in plan.recommendation
        )
        assert plan.tables["rules"]["rule"][2] == "bandwidth x mean RTT of the senders"
        assert plan.tables["rules"]["buffer_pkts"].tolist() == [1000, 500, 100, 50]


def test_buffer_for_arriving_transfers_has_no_rule_by_senders(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Regression: a division by the number of senders, 0, ended the program."""
    simulator(monkeypatch, "loss_ratio", lambda pkts: 1 / pkts)
    arrivals = {"distribution": "poisson", "rate": "10/s"}
    traffic = {"kind": "transfers", "arrivals": arrivals, "size": "10pkt"}
    plan = plan_buffer(Scenario.from_dict(BULK | {"traffic": traffic}), loss=0.01)
    assert plan.recommendation.endswith("The BDP is 66.67 packets.")
    assert plan.tables["rules"]["buffer_pkts"].tolist() == [1000, 500, 67]


def test_buffer_of_one_packet_can_suffice(monkeypatch: pytest.MonkeyPatch) -> None:
    simulator(monkeypatch, "loss_ratio", lambda pkts: 0.001 / pkts)
    plan = plan_buffer(bulk(), loss=0.01)
    assert (plan.simulated, plan.simulated_low, plan.simulated_high) == (1, 1, 1)


def test_utilisation_step_between_two_buffers_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: with 1 packet the run has no interval, and the answer was undecided."""

    def distribution(pkts: int) -> float:
        return 1 - 0.09 / (pkts - 3) if pkts > 4 else 0.2 * pkts

    simulator(monkeypatch, "utilisation", distribution)
    simulated = vars(verification)["answer"]

    def run(scenario: Scenario, engines: list[str], options: object) -> list[Answer]:
        (result,) = simulated(scenario, engines, options)
        if result["utilisation"] < 0.3:
            result.metrics["utilisation"] = Metric(result["utilisation"])
        return [result]

    monkeypatch.setattr(verification, "answer", run)
    plan = plan_buffer(bulk(), utilisation=0.9)
    assert (plan.simulated, plan.simulated_low, plan.simulated_high) == (5, 5, 5)


def test_unreachable_targets_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    simulator(monkeypatch, "utilisation", lambda _: 0.5)
    with pytest.raises(DomainError, match=r"no buffer up to .* reaches 95%; .* utilisation is 50%"):
        plan_buffer(bulk(), utilisation=0.95)
    with pytest.raises(DomainError, match="utilisation: 100% is not a target"):
        plan_buffer(bulk(), utilisation=1.0)
    lossy = bulk().with_changes({"network.bottleneck.loss": "1%"})
    with pytest.raises(DomainError, match=r"loss: 1% includes network\.bottleneck\.loss \(1%\)"):
        plan_buffer(lossy, loss=0.01)
    with pytest.raises(NotApplicable, match="needs a queue"):
        plan_buffer(load("policed-line"))
    with pytest.raises(NotApplicable, match="needs a link with a rate"):
        plan_buffer(load("one-path").with_changes({"network.bottleneck.rate": "unlimited"}))


def test_command_line_accepts_the_target(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    simulator(monkeypatch, "utilisation", lambda pkts: 1 - 0.5 / pkts)
    assert main(["plan", "buffer", "bufferbloat", "--utilisation", "99%"]) == 0
    assert "The smallest buffer for a utilisation of 99% is" in capsys.readouterr().out
    assert main(["plan", "buffer", "bufferbloat", "--utilisation", "99%", "--loss", "1%"]) == 2
    assert "omit one of them" in capsys.readouterr().err
