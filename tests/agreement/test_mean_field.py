"""The engine ``mean-field`` beside exact simulation.

The exact figures are those of ``benches/mean_field_exact.csv``; a long test makes some of them
again. ``python -m benches.mean_field`` prints all errors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tcpcast
from tcpcast.engines.mean_field import scaled_configuration
from tcpcast.engines.packet.configuration import configuration

from benches.mean_field import (
    LIMITS,
    LOADS,
    SOURCES,
    ask,
    exact_figures,
    figures,
    local_loop,
    rows,
)

SHORT = {"run": {"duration": "160s", "warmup": "60s"}}


def within(value: float, share: float) -> Any:
    return pytest.approx(value, rel=share)


def check(cases: list[tuple[int, float]], **tables: Any) -> None:
    for sources, load, metric, truth, value, error in rows(cases, **tables):
        if metric in LIMITS:
            told = f"{metric} of {sources} sources at {load}: {value:.6g} for {truth:.6g}"
            assert abs(error) <= LIMITS[metric], told


@pytest.mark.parametrize(("sources", "load"), [(10_000, 0.8), (100_000, 1.2), (100_000, 2.0)])
def test_it_agrees_with_exact_simulation(sources: int, load: float) -> None:
    check([(sources, load)], **SHORT)


@pytest.mark.long
@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("sources", SOURCES)
def test_it_agrees_at_all_loads(sources: int, load: float) -> None:
    check([(sources, load)])


@pytest.mark.long
def test_the_exact_figures_are_those_of_the_packet_engine() -> None:
    for load in (0.5, 2.0):
        found = figures(ask(local_loop(10_000, load), "packet"))
        for metric, truth in exact_figures()[10_000, load].items():
            assert found[metric] == within(truth, 0.02), (metric, load)


def test_scaling_alone_is_not_enough_and_the_population_s_fluctuations_are() -> None:
    """Just below saturation 500 sources stand for 10,000; on their own they queue far more."""
    exact = exact_figures()[10_000, 1.0]["rtt_mean_s"] - 0.1027
    few = {"run": {"duration": "700s", "warmup": "100s"}}
    stand = ask(local_loop(10_000, 1.0, mean_field={"flows": 500}, **few), "mean-field")
    alone = ask(local_loop(500, 1.0, **few), "packet")
    wait, wait_alone = stand["rtt_mean_s"] - 0.1027, alone["rtt_mean_s"] - 0.1027
    assert exact < wait < 2.5 * exact
    assert wait_alone > 2 * wait


def test_a_population_that_is_small_enough_is_simulated_exactly() -> None:
    scenario = local_loop(1000, 1.2, run={"duration": "60s", "warmup": "20s"})
    population, exact = tcpcast.run(scenario, ["mean-field", "packet"])
    assert {name: m.value for name, m in population.metrics.items()} == {
        name: m.value for name, m in exact.metrics.items()
    }
    assert population.provenance["each"] == 1
    assert population.provenance["flows"] == 1000


def test_figures_are_of_the_whole_population() -> None:
    answer = ask(local_loop(200_000, 1.2, **SHORT), "mean-field")
    assert answer.provenance["each"] == 40
    assert answer.provenance["flows"] == 5000
    # A full link of 200,000 / 5000 / 1.2 times 100 Mbit/s.
    capacity_pps = 100e6 / 12e3 * 200_000 / 5000 / 1.2
    assert answer["utilisation"] == within(1.0, 1e-3)
    assert answer["goodput_pps"] == within(capacity_pps, 0.01)
    # Little's law: what is in the queue has waited for it, and for the empty path.
    waited_s = answer["queue_mean_pkts"] / answer["goodput_pps"]
    assert answer["rtt_mean_s"] == within(waited_s + 0.1026, 0.02)
    assert answer["transfers"] == within(capacity_pps * 100 / 50, 0.03)
    by_class = answer.tables["by_class"]
    assert by_class["sources"].tolist() == [200_000]
    assert by_class["goodput_pps"][0] == within(capacity_pps, 0.01)
    by_size = answer.tables["by_size"]
    assert by_size["transfers"].sum() == within(answer["transfers"], 1e-9)
    assert {"states", "rates"}.isdisjoint(answer.tables)


def test_it_costs_the_same_whatever_the_population() -> None:
    """The same number of sources, packets and steps: what is simulated hardly differs."""
    brief = {"run": {"duration": "60s", "warmup": "20s"}}
    few, many = (ask(local_loop(n, 2.0, **brief), "mean-field") for n in (50_000, 5_000_000))
    for name in ("send_rate_pps", "transfers"):
        assert many[name] / many.provenance["each"] == within(
            few[name] / few.provenance["each"], 0.01
        )


def test_the_same_seed_gives_the_same_figures_on_any_number_of_threads() -> None:
    scenario = local_loop(20_000, 1.2, run={"duration": "12s", "warmup": "4s", "replications": 2})
    one, two = (tcpcast.run(scenario, ["mean-field"], threads=n)[0] for n in (1, 2))
    assert one.metrics == two.metrics
    other = ask(scenario.with_changes({"run.seed": 2}), "mean-field")
    assert other["transfers"] != one["transfers"]


def test_the_empty_path_is_not_longer() -> None:
    scenario = local_loop(1_000_000, 0.5)
    whole = configuration(scenario, 0.0)
    small = scaled_configuration(scenario, 0.0, each=200.0)
    time_of = 8e9 / whole["bottleneck_bps"]
    for key, size in (("forward_ns", 1500), ("back_ns", 40)):
        (of_whole,), (of_small,) = ([c[key] for c in d["classes"]] for d in (whole, small))
        assert of_small + 200 * size * time_of == within(of_whole + size * time_of, 1e-6)
    assert small["bottleneck_bps"] * 200 == within(whole["bottleneck_bps"], 1e-6)
    assert small["buffer_pkts"] * 200 == within(whole["buffer_pkts"], 1e-3)


@pytest.mark.long
@pytest.mark.parametrize("queue", ["fq", "droptail"])
@pytest.mark.parametrize("load", [0.8, 1.0, 1.2])
def test_real_newreno_agrees_too(queue: str, load: float) -> None:
    tables = {
        "tcp": {"stack": "rfc-newreno", "receiver_window": 40},
        "run": {"duration": "700s", "warmup": "200s"},
    }
    scenario = local_loop(20_000, load, **tables).with_changes({"network.bottleneck.queue": queue})
    found, exact = (figures(ask(scenario, engine)) for engine in ("mean-field", "packet"))
    for metric, limit in LIMITS.items():
        assert found[metric] == within(exact[metric], limit), metric


def test_classes_keep_their_shares() -> None:
    scenario = tcpcast.Scenario.from_dict(
        {
            "network": {
                "rtt": "50ms",
                "bottleneck": {"rate": "2gbit", "queue": "fq", "buffer": "200000pkt"},
            },
            "class": [
                {"name": "near", "sources": 60_000},
                {"name": "far", "sources": 20_000, "rtt": "200ms"},
            ],
            "traffic": {
                "kind": "on-off",
                "off": {"law": "exponential", "mean": "20s"},
                "size": {"law": "exponential", "mean": "40pkt"},
            },
            "tcp": {"stack": "max-plus-reno", "receiver_window": 40},
            "run": {"duration": "90s", "warmup": "40s"},
        }
    )
    answer = ask(scenario, "mean-field")
    table = answer.tables["by_class"]
    assert table["sources"].tolist() == [60_000, 20_000]
    # All that is offered is carried: a file for each silence and transfer.
    expected = np.array([60_000, 20_000]) * 40 / (20 + table["on_time_s"])
    assert table["goodput_pps"].tolist() == within(expected.tolist(), 0.03)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"traffic": {"kind": "bulk", "flows": 10}}, 'traffic.kind = "on-off"'),
        ({"probes": {"flows": [1]}}, "leave probes.flows"),
        ({"cross": [{"law": "poisson", "mean": "1mbit"}]}, "leave [[cross]] out"),
    ],
)
def test_what_it_does_not_answer(changes: dict[str, Any], said: str) -> None:
    answer = ask(local_loop(10_000, 1.0, **changes), "mean-field")
    assert answer.not_applicable is not None
    assert said in answer.not_applicable


def test_correlated_sizes_and_silences_are_refused() -> None:
    scenario = local_loop(10_000, 1.0).with_changes({"traffic.correlation": 0.5})
    answer = ask(scenario, "mean-field")
    assert answer.not_applicable is not None
    assert "traffic.correlation" in answer.not_applicable


def test_red_is_refused() -> None:
    scenario = local_loop(10_000, 1.0)
    red = scenario.resolved()
    red["network"]["bottleneck"]["queue"] = "red"
    answer = ask(tcpcast.Scenario.from_dict(red), "mean-field")
    assert answer.not_applicable is not None
    assert 'queue = "fq"' in answer.not_applicable


def test_it_says_when_it_was_not_compared() -> None:
    brief = {"run": {"duration": "20s", "warmup": "10s"}}
    few = ask(local_loop(10_000, 1.2, mean_field={"flows": 500}, **brief), "mean-field")
    assert any("mean_field.flows = 2500" in text for text in few.warnings)
    losing = local_loop(10_000, 1.2, **brief).with_changes({"network.bottleneck.loss": "1%"})
    assert any("random loss" in text for text in ask(losing, "mean-field").warnings)
    compared = ask(local_loop(10_000, 1.2, **brief), "mean-field")
    assert not any("mean-field" in text for text in compared.warnings)


def test_no_engine_of_those_that_are_asked_by_default() -> None:
    scenario = local_loop(10_000, 1.2, run={"duration": "3s", "warmup": "1s"})
    assert "mean-field" not in [answer.engine for answer in tcpcast.run(scenario)]
