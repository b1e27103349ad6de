"""Plans for users with modern TCP: the simulation leads, the model is shown for comparison."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import tcpcast
from tcpcast.plan import plan_buffer, plan_rate, plan_users
from tcpcast.scenario import Scenario

TABLES: dict[str, Any] = {
    "network": {
        "rtt": "50ms",
        "bottleneck": {"rate": "5mbit", "buffer": "100pkt"},
        "egress": {"rate": "2mbit"},
    },
    "traffic": {
        "kind": "on-off",
        "sources": 45,
        "off": {"distribution": "exponential", "mean": "1s"},
        "size": {"distribution": "exponential", "mean": "12pkt", "minimum": "3pkt"},
    },
    "run": {"transfers": 4000, "warmup": "10s"},
}


def make_scenario(**changes: Any) -> Scenario:
    return Scenario.from_dict(TABLES).with_changes(changes)


def is_led_by_simulation(plan: tcpcast.plan.Plan) -> float:
    assert plan.is_simulation_reported_first
    assert "the formula does not cover linux-cubic" in plan.untrusted
    assert plan.simulated is not None
    return plan.simulated


@cache
def modern_users() -> tcpcast.plan.Plan:
    return plan_users(make_scenario(), rate_bps=400e3)


def test_modern_users_are_planned_by_simulation() -> None:
    plan = modern_users()
    result = is_led_by_simulation(plan)
    # The model starts from the same window and loses more, so that its number is lower.
    assert 0.6 * result < plan.value < result


def test_rate_for_modern_users_is_planned_by_simulation() -> None:
    plan = plan_rate(make_scenario(), rate_bps=400e3)
    result = is_led_by_simulation(plan)
    assert result < plan.value < 1.5 * result


def test_buffer_for_modern_users_is_planned_by_simulation() -> None:
    plan = plan_buffer(make_scenario(), loss=0.01)
    result = is_led_by_simulation(plan)
    assert plan.recommendation.startswith(f"{result:,.0f} packets are ")


def test_queue_without_a_model_is_planned_by_simulation() -> None:
    pie = {"kind": "pie", "ecn": True}
    lossy = {"network.bottleneck.queue": pie, "network.bottleneck.loss": "0.1%"}
    plan = plan_users(make_scenario(**lossy), rate_bps=400e3)
    assert is_led_by_simulation(plan) == pytest.approx(
        is_led_by_simulation(modern_users()), rel=0.25
    )
    assert "with drop-tail instead of" in plan.untrusted
    assert "without random loss" in plan.untrusted


def test_class_with_its_own_stack_is_planned_by_simulation() -> None:
    traffic = {key: value for key, value in TABLES["traffic"].items() if key != "sources"}
    classes = {"traffic": traffic, "class": [{"name": "all", "sources": 45}]}
    plan = plan_users(Scenario.from_dict({**TABLES, **classes}), rate_bps=400e3)
    answer, other = is_led_by_simulation(plan), modern_users()
    assert other.simulated_low is not None
    assert other.simulated_high is not None
    assert other.simulated_low <= answer <= other.simulated_high  # seeds depend on the key


def test_mean_rate_of_the_model_has_the_stated_error() -> None:
    for sources in (25, 45, 60):
        scenario = make_scenario(**{"traffic.sources": sources})
        (packet,) = tcpcast.run(scenario, ["packet"])
        near = {"stack": "engset-newreno", "initial_window": 10}
        (model,) = tcpcast.run(scenario.with_changes({"tcp": near}), ["engset"])
        error = model["connection_rate_bps"] / packet["connection_rate_bps"] - 1
        assert -0.4 < error < 0.02, (sources, error)


def test_classic_stack_is_planned_by_the_model_only() -> None:
    plan = plan_users(make_scenario(tcp={"stack": "engset-newreno"}), rate_bps=400e3)
    assert plan.simulated is None
    assert "the formula does not cover" not in plan.untrusted


@pytest.mark.parametrize("above", ["100kbit"])
def test_quality_for_many_modern_users_uses_the_packet_engine(above: str) -> None:
    from tcpcast.plan.population_search import make_file_goodput_target  # noqa: PLC0415

    large = make_scenario(**{"network.bottleneck.rate": "10gbit", "network.egress.rate": "100mbit"})
    assert make_file_goodput_target(large, 0.95, 1e5, None).engine == "packet"
    classic = large.with_changes({"tcp": {"stack": "rfc-newreno"}})
    assert make_file_goodput_target(classic, 0.95, 1e5, None).engine == "mean-field"
    assert above
