"""Plans: exact inverses of the models, and answers of the search by simulation."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tcpcast.answer import Answer, Metric, Note, Status, texts_to_notes
from tcpcast.engines import answer
from tcpcast.engines.formula.engset import engset_inputs
from tcpcast.errors import DomainError, NotApplicable
from tcpcast.plan import capacity, curve_table, plan_buffer, plan_rate, plan_users, verification
from tcpcast.scenario import Scenario, load


def web(**changes: Any) -> Scenario:
    """134 web users share a 10 Mbit/s link: the setting of Tables 6 and 10."""
    return load("web-10mbit", changes={key.replace("__", "."): v for key, v in changes.items()})


def rate_with(sources: int) -> float:
    return replace(engset_inputs(web()), sources=sources).solve().rate_bps


# ---------------------------------------------------------------- inverses of the model


def test_planned_buffer_is_the_inverse_of_the_loss() -> None:
    """The rule's buffer has at most the requested loss; one packet less has more."""
    plan = plan_buffer(web(traffic__sources=98), loss=0.0491)
    assert plan.value == 200  # Table 6: a loss of 4.91 %
    for packets, meets_target in ((plan.value, True), (plan.value - 1, False)):
        changed = web(traffic__sources=98, network__bottleneck__buffer=f"{packets}pkt")
        (result,) = answer(changed, ["engset"])
        assert (result["loss_ratio"] <= 0.0491) == meets_target


def test_other_buffer_rules_agree_with_table_5() -> None:
    """600 ms and 300 ms of 2, 10 and 50 Mbit/s."""
    for rate, packets in (("2mbit", (100, 50)), ("10mbit", (500, 250)), ("50mbit", (2500, 1250))):
        scenario = web(network__bottleneck__rate=rate)
        rules = plan_buffer(scenario).tables["rules"]
        buffers = dict(zip(rules["rule"].tolist(), rules["buffer_pkts"].tolist(), strict=True))
        assert (buffers["bandwidth x 600 ms"], buffers["bandwidth x 300 ms"]) == packets
    assert rules["delay_s"][3:5] == pytest.approx([0.6, 0.3])


def test_grid_contains_the_values_of_the_paper() -> None:
    """202 packets for 10 Mbit/s, F = 500, 50 ms, N = 3.04 rounded up; eq. 13 gives 229.5."""
    grid = plan_buffer(web()).tables["grid"]
    assert len(grid["rtt_s"]) == 16
    row = int(np.flatnonzero((grid["mean_size_pkts"] == 500) & (grid["rtt_s"] == 0.05))[0])
    assert grid["sources_exact"][row] == pytest.approx(3.04, abs=0.005)
    assert [int(grid[f"sources_{mode}"][row]) for mode in ("floor", "round", "ceil")] == [3, 3, 4]
    assert grid["plain_ceil_pkts"][row] == pytest.approx(201.8, abs=0.05)
    assert grid["buffer_ceil_pkts"][row] == pytest.approx(229.5, abs=0.05)
    fast = plan_buffer(web(network__bottleneck__rate="50mbit")).tables["grid"]
    assert fast["plain_ceil_pkts"][row] == pytest.approx(308.8, abs=0.05)
    assert fast["buffer_ceil_pkts"][row] == pytest.approx(350.5, abs=0.05)


def test_grid_omits_rtts_below_the_transmission_time() -> None:
    """At 200 kbit/s a packet takes 60 ms, more than a round trip of 50 ms."""
    slow = web(network__bottleneck__rate="200kbit", network__rtt="400ms", traffic__sources=3)
    grid = plan_buffer(slow).tables["grid"]
    assert set(grid["rtt_s"].tolist()) == {0.3}
    assert np.isnan(grid["buffer_floor_pkts"][grid["sources_floor"] == 0]).all()


def test_buffer_for_few_sources_is_one_packet_with_a_warning() -> None:
    plan = plan_buffer(web(traffic__sources=5))
    assert plan.value == 1
    assert any("without queueing" in w for w in map(str, plan.warnings))


def test_buffer_rule_warns_above_its_load() -> None:
    assert any("164%" in w for w in map(str, plan_buffer(web()).warnings))
    assert plan_buffer(web(traffic__sources=82)).warnings == []


@pytest.mark.parametrize("rate_bps", [154.9e3, 300e3, 547.8e3, 799e3])
def test_planned_users_are_the_exact_maximum(rate_bps: float) -> None:
    plan = plan_users(web(), rate_bps=rate_bps)
    max_users = int(plan.value)
    assert rate_with(max_users) >= rate_bps > rate_with(max_users + 1)
    table = plan.tables["model"]
    assert table["sources"].tolist() == [max_users - 1, max_users, max_users + 1]
    assert table["connection_rate_bps"][1] == pytest.approx(rate_with(max_users))


def test_planned_users_agree_with_table_6() -> None:
    """82 sources get 547.8 kbit/s and are the maximum for that rate, rounded down."""
    assert plan_users(web(), rate_bps=547.7e3).value == 82
    assert plan_users(web(), rate_bps=154.9e3).value == 134


def test_users_are_independent_of_the_start_of_the_search() -> None:
    values = {plan_users(web(traffic__sources=n), rate_bps=2e5).value for n in (1, 134, 100_000)}
    assert len(values) == 1


@pytest.mark.parametrize("rate_bps", [100e3, 154.905e3, 400e3, 700e3])
def test_planned_rate_is_the_minimum(rate_bps: float) -> None:
    plan = plan_rate(web(), rate_bps=rate_bps)

    def rate_at(link_bps: float) -> float:
        (result,) = answer(web(network__bottleneck__rate=f"{link_bps:.0f}bit"), ["engset"])
        return result["connection_rate_bps"]

    assert rate_at(plan.value) >= rate_bps * (1 - 1e-6)
    assert rate_at(plan.value * 0.9999) < rate_bps


def test_planned_rate_gives_the_target_in_the_engine() -> None:
    (result,) = answer(web(), ["engset"])
    plan = plan_rate(web(), rate_bps=result["connection_rate_bps"])
    assert plan.value == pytest.approx(10e6, rel=1e-6)


def test_planned_rate_shortens_the_rtt_if_delays_are_given() -> None:
    """With delays given, a faster link shortens the round trip; with rtt it does not."""
    network = {
        "ingress": {"rate": "100mbit"},
        "bottleneck": {"rate": "1mbit", "delay": "20ms", "buffer": "2bdp"},
        "egress": {"rate": "2mbit"},
    }
    traffic = web().resolved()["traffic"]
    scenario = Scenario.from_dict(
        {
            "network": network,
            "traffic": traffic,
            "tcp": {"stack": "rfc-newreno", "receiver_window": 44},
            "run": {"transfers": 100},
        }
    )
    plan = plan_rate(scenario, rate_bps=300e3)
    changed = scenario.with_changes({"network.bottleneck.rate": f"{plan.value}bit"})
    (result,) = answer(changed, ["engset"])
    assert result["connection_rate_bps"] == pytest.approx(300e3, rel=1e-6)
    middle = plan.tables["model"]["bottleneck_bps"] == plan.value
    assert plan.tables["model"]["loss_ratio"][middle] == pytest.approx([result["loss_ratio"]])


def test_planned_rate_is_independent_of_an_unlimited_bottleneck() -> None:
    open_ended = web(network__bottleneck__rate="unlimited")
    bounded = web(network__bottleneck__rate="1gbit")
    assert plan_rate(open_ended, rate_bps=3e5).value == plan_rate(bounded, rate_bps=3e5).value


def test_rate_is_limited_by_transmission_within_the_round_trip() -> None:
    """One source needs almost no rate; the transmission time of a packet sets the minimum."""
    plan = plan_rate(web(traffic__sources=1), rate_bps=1e3)
    assert any("exceeds the round-trip time of the scenario" in w for w in map(str, plan.warnings))
    slower = {"network.bottleneck.rate": f"{plan.value * 0.99:.0f}bit"}
    with pytest.raises(ValueError, match="transmission"):
        web(traffic__sources=1).with_changes(slower)


def test_rate_is_the_minimum_of_a_non_monotonic_curve() -> None:
    """3 sources get 727 kbit/s over 1.49 Mbit/s, and 634 over a faster link."""
    few = web(traffic__sources=3)
    for target in (650e3, 700e3):
        plan = plan_rate(few, rate_bps=target)
        assert plan.value < 1.495e6
        (warning,) = (text for text in map(str, plan.warnings) if "miss the target again" in text)
        assert re.search(r"up to 1\.[5-9]\d* Mbit/s", warning)
    plan = plan_rate(few, rate_bps=500e3)
    assert not any("miss the target again" in text for text in map(str, plan.warnings))


def test_impossible_targets_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DomainError, match="800 kbit/s"):
        plan_users(web(), rate_bps=900e3)
    with pytest.raises(DomainError, match="unlimited bottleneck"):
        plan_rate(web(), rate_bps=5e6)
    with pytest.raises(DomainError, match="above 0"):
        plan_users(web(), rate_bps=0)
    with pytest.raises(DomainError, match="loss: 150%"):
        plan_buffer(web(), loss=1.5)
    with pytest.raises(DomainError, match="which no buffer reduces"):
        plan_buffer(web(network__bottleneck__loss="1%"))
    monkeypatch.setattr(capacity, "MAX_SOURCES", 100_000)
    with pytest.raises(DomainError, match="100,000 sources"):
        plan_users(web(network__bottleneck__rate="1000gbit"), rate_bps=1)


def test_plan_is_serialised_as_json() -> None:
    plan = plan_buffer(web(network__bottleneck__buffer="unlimited"), loss=0.01)
    body = json.loads(json.dumps(plan.to_json(), allow_nan=False))
    assert body["value"] == plan.value
    assert body["tables"]["rules"]["columns"]["buffer_pkts"][3] == 500
    users = plan_users(web(network__bottleneck__buffer="unlimited"), rate_bps=3e5).to_json()
    assert users["tables"]["model"]["columns"]["loss_ratio"] == [None] * 3


# ---------------------------------------------------------------- search by simulation


MetricFunction = Callable[[Scenario], tuple[str, float]]


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> Callable[[MetricFunction], list[Scenario]]:
    """Replace the simulator by a function and record the simulated scenarios."""

    def install(figure: MetricFunction) -> list[Scenario]:
        scenarios: list[Scenario] = []

        def run(scenario: Scenario, engines: list[str], options: object) -> list[Answer]:
            del options
            assert engines == ["packet"]
            scenarios.append(scenario)
            name, value = figure(scenario)
            metric = Metric(value, value * 0.98, value * 1.02)
            about = [
                Note(f"{metric} is short", (metric,), kind="check")
                for metric in (name, "jain_index")
            ]
            warnings = [*texts_to_notes(["simulated"]), *about]
            return [Answer(engine="packet", metrics={name: metric}, notes=warnings)]

        monkeypatch.setattr(verification, "answer", run)
        return scenarios

    return install


def test_buffer_is_verified_by_simulation(
    simulated: Callable[[MetricFunction], list[Scenario]],
) -> None:
    """A loss of exp(-B/50): 1 % needs 231 packets."""
    scenarios = simulated(lambda s: ("loss_ratio", math.exp(-s.buffer_pkts / 50)))
    plan = plan_buffer(web(), loss=0.01, verify=True, transfers=30_000)
    assert plan.simulated is not None
    assert 231 <= plan.simulated <= 232
    table = plan.tables["simulated"]
    buffers = table["buffer_pkts"].tolist()
    assert buffers == sorted(buffers)
    assert {plan.value, plan.simulated} <= set(buffers)
    assert table["loss_ratio"] == pytest.approx(np.exp(-table["buffer_pkts"] / 50))
    assert table["low"] == pytest.approx(table["loss_ratio"] * 0.98)
    assert len(plan.verified) == len(buffers) == len(scenarios) <= 14
    assert {s.run.transfers for s in scenarios} == {30_000}
    assert list(map(str, plan.warnings[1:])) == ["simulated", "loss_ratio is short"]


def test_users_are_verified_by_simulation(
    simulated: Callable[[MetricFunction], list[Scenario]],
) -> None:
    """N users get 30 Mbit/s over N each: 100 sources get 300 kbit/s."""
    scenarios = simulated(lambda s: ("connection_rate_bps", 30e6 / s.senders))
    plan = plan_users(web(), rate_bps=300e3, verify=True)
    assert plan.value == 102
    assert plan.simulated == 100
    assert (plan.simulated_low, plan.simulated_high) == (98, 102)
    assert scenarios[0].senders == 102
    assert len(scenarios) <= 9
    assert plan.tables["simulated"]["sources"].tolist() == sorted(s.senders for s in scenarios)
    assert plan.simulated_metric is not None
    assert plan.simulated_metric.value == pytest.approx(300e3)


def test_users_are_searched_further_if_the_model_is_far_off(
    simulated: Callable[[MetricFunction], list[Scenario]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curve_table, "CURVE_POINTS", 2)  # tables that take long for many sources
    for share, own in ((40e6, 133), (20e6, 66), (1e9, 3333)):
        simulated(lambda s, share=share: ("connection_rate_bps", share / s.senders))  # type: ignore[misc]
        plan = plan_users(web(), rate_bps=300e3, verify=True)
        assert plan.simulated == pytest.approx(own, rel=0.01)
    simulated(lambda _: ("connection_rate_bps", 1e9))
    plan = plan_users(web(), rate_bps=300e3, verify=True)
    assert plan.simulated is None
    assert any("outside" in w for w in map(str, plan.warnings))
    assert len(plan.verified) == 10


def test_users_of_a_class_are_verified_by_simulation(
    simulated: Callable[[MetricFunction], list[Scenario]],
) -> None:
    scenarios = simulated(lambda s: ("connection_rate_bps", 30e6 / s.senders))
    one = web().with_changes({"class": [{"name": "all", "sources": 134}]})
    assert plan_users(one, rate_bps=300e3, verify=True).simulated == 100
    assert {s.populations[0].name for s in scenarios} == {"all"}


def test_rate_is_verified_by_simulation(
    simulated: Callable[[MetricFunction], list[Scenario]],
) -> None:
    """Each user gets a fortieth of the link: 300 kbit/s need 12 Mbit/s."""
    scenarios = simulated(lambda s: ("connection_rate_bps", s.network.bottleneck.rate_bps / 40))
    plan = plan_rate(web(), rate_bps=300e3, verify=True)
    assert plan.simulated == pytest.approx(12e6, rel=1e-3)
    assert plan.value in [s.network.bottleneck.rate_bps for s in scenarios]


def test_interrupted_check_keeps_finished_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = iter(range(10))

    def run(scenario: Scenario, engines: list[str], options: object) -> list[Answer]:
        del engines, options
        metrics = {"loss_ratio": Metric(math.exp(-scenario.buffer_pkts / 50))}
        return [
            Answer(
                engine="packet",
                metrics=metrics,
                status=Status.INTERRUPTED if next(runs) == 2 else Status.DONE,
            )
        ]

    monkeypatch.setattr(verification, "answer", run)
    plan = plan_buffer(web(), verify=True)
    assert plan.interrupted
    assert plan.simulated is None
    assert len(plan.verified) == 3
    # The third run did not finish, so its value is not an end of the bracket.
    buffers = plan.tables["simulated"]["buffer_pkts"]
    losses = [metrics["loss_ratio"] for metrics in plan.verified]
    assert plan.target is not None
    ends = plan.to_json()["bracket"]
    known = {int(b): p for b, p in zip(buffers, losses, strict=True)}
    assert len({*ends.values()} - {None}) >= 1
    for end, is_above in (("low", True), ("high", False)):
        if ends[end] is not None:
            assert (known[int(ends[end])] > plan.target[1]) == is_above


def test_check_outside_the_domain_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(scenario: Scenario, engines: list[str], options: object) -> list[Answer]:
        del scenario, engines, options
        return [Answer(engine="packet", status=Status.NOT_APPLICABLE, reason="no such network")]

    monkeypatch.setattr(verification, "answer", run)
    with pytest.raises(NotApplicable, match="no such network"):
        plan_buffer(web(), verify=True)


# ---------------------------------------------------------------- comparison with the packet engine


def test_simulation_agrees_on_the_users() -> None:
    """At this load the error of the model is about 1 %, and that of the number of sources also."""
    plan = plan_users(web(), rate_bps=200e3, verify=True, transfers=15_000)
    assert plan.simulated == pytest.approx(plan.value, rel=0.03)
    table = plan.tables["simulated"]
    assert np.all(table["low"] <= table["connection_rate_bps"])
    assert np.all(table["connection_rate_bps"] <= table["high"])
    assert np.all(np.diff(table["connection_rate_bps"]) < 0)


def test_simulation_agrees_on_the_link_rate() -> None:
    plan = plan_rate(web(), rate_bps=200e3, verify=True, transfers=15_000)
    assert plan.simulated == pytest.approx(plan.value, rel=0.02)


def test_check_ends_at_max_wall() -> None:
    limited = web(run__max_wall="1ms")
    for plan in (
        plan_buffer(limited, verify=True),
        plan_users(limited, rate_bps=200e3, verify=True),
        plan_rate(limited, rate_bps=200e3, verify=True),
    ):
        assert plan.incomplete
        assert not plan.interrupted
        assert plan.simulated is None
        # The truncated run is shown as far as it got, and no other run was started.
        assert len(plan.verified) <= 1
        assert "run.max_wall was reached before the check finished" in map(str, plan.warnings)


@pytest.mark.long
def test_simulation_agrees_on_the_buffer_of_table_10() -> None:
    """Table 10: 200 packets lose 2.55 %, 300 lose 0.18 %; at this load the rule requires 959."""
    plan = plan_buffer(web(), loss=0.01, verify=True, transfers=200_000)
    assert plan.simulated is not None
    assert 200 < plan.simulated < 300
    assert plan.value == 959
    at_rule = plan.tables["simulated"]["buffer_pkts"] == plan.value
    assert plan.tables["simulated"]["loss_ratio"][at_rule] < 0.001


@pytest.mark.parametrize("loss", [0.0, 1.0])
def test_invalid_target_loss_is_reported_as_typed(loss: float) -> None:
    with pytest.raises(
        DomainError, match=r"^loss: (0|100)% is not a target; write a ratio above 0%"
    ):
        plan_buffer(load("web-10mbit"), loss=loss)
