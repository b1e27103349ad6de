"""The engine ``mean-field`` against exact simulation.

The exact values are in ``benches/mean_field_exact.csv``; a long test recomputes some of them.
``python -m benches.mean_field`` prints all errors.
"""

from typing import Any

import numpy as np
import pytest
import tcpcast
from tcpcast.engines.mean_field import max_excess_delay_s
from tcpcast.engines.packet.config_types import Config
from tcpcast.engines.packet.configuration import make_configuration
from tcpcast.engines.packet.network_scale import NetworkScale

from benches.mean_field import (
    LIMITS,
    ask,
    behind_backbones,
    crossed,
    exact_figures,
    figures,
    in_series,
    local_loop,
    rows,
)

SHORT = {"run": {"duration": "110s", "warmup": "60s"}}


def within(value: float, share: float) -> Any:
    return pytest.approx(value, rel=share)


def check(cases: list[tuple[int, float]], **tables: Any) -> None:
    for sources, load, metric, truth, value, error in rows(cases, **tables):
        if metric in LIMITS:
            message = f"{metric} of {sources} sources at {load}: {value:.6g} for {truth:.6g}"
            assert abs(error) <= LIMITS[metric], message


def test_unscaled_population_warns_that_it_validates_nothing() -> None:
    small = tcpcast.load("web-10mbit", changes={"run.transfers": 500, "run.warmup": "1s"})
    for flows, has_warning in ((134, True), (100, False)):
        (result,) = tcpcast.run(
            small.with_changes({"mean_field": {"flows": flows}}), ["mean-field"]
        )
        assert (
            any("the mean-field engine simulates each source" in w for w in result.warnings)
            == has_warning
        )


@pytest.mark.parametrize(("sources", "load"), [(10_000, 0.8), (100_000, 1.2), (100_000, 2.0)])
def test_results_agree_with_exact_simulation(sources: int, load: float) -> None:
    check([(sources, load)], **SHORT)


@pytest.mark.long
def test_exact_values_equal_the_packet_engine() -> None:
    for load in (0.5, 2.0):
        result = figures(ask(local_loop(10_000, load), "packet"))
        for metric, truth in exact_figures()[10_000, load].items():
            assert result[metric] == within(truth, 0.02), (metric, load)


def test_population_correction_is_needed_in_addition_to_scaling() -> None:
    """Just below saturation, 500 uncorrected sources have a much longer queue than 10,000."""
    exact = exact_figures()[10_000, 1.0]["rtt_mean_s"] - 0.1027
    few = {"run": {"duration": "400s", "warmup": "100s"}}
    scaled = ask(local_loop(10_000, 1.0, mean_field={"flows": 500}, **few), "mean-field")
    alone = ask(local_loop(500, 1.0, **few), "packet")
    wait, unscaled_wait = scaled["rtt_mean_s"] - 0.1027, alone["rtt_mean_s"] - 0.1027
    assert exact < wait < 2.5 * exact
    assert unscaled_wait > 2 * wait


def test_small_population_is_simulated_exactly() -> None:
    scenario = local_loop(1000, 1.2, run={"duration": "60s", "warmup": "20s"})
    population, exact = tcpcast.run(scenario, ["mean-field", "packet"])
    assert {name: m.value for name, m in population.metrics.items()} == {
        name: m.value for name, m in exact.metrics.items()
    }
    assert population.provenance["each"] == 1
    assert population.provenance["flows"] == 1000


def test_results_are_scaled_to_the_whole_population() -> None:
    answer = ask(local_loop(200_000, 1.2, **SHORT), "mean-field")
    assert answer.provenance["each"] == 40
    assert answer.provenance["flows"] == 5000
    # A full link of 200,000 / 5000 / 1.2 times 100 Mbit/s.
    capacity_pps = 100e6 / 12e3 * 200_000 / 5000 / 1.2
    assert answer["utilisation"] == within(1.0, 1e-3)
    assert answer["goodput_pps"] == within(capacity_pps, 0.01)
    # Little's law: round trips consist of the wait in the queue and the base RTT.
    waited_s = answer["queue_mean_pkts"] / answer["goodput_pps"]
    assert answer["rtt_mean_s"] == within(waited_s + 0.1026, 0.02)
    assert answer["transfers"] == within(capacity_pps * 50 / 50, 0.03)
    by_class = answer.tables["by_class"]
    assert by_class["sources"].tolist() == [200_000]
    assert by_class["goodput_pps"][0] == within(capacity_pps, 0.01)
    by_size = answer.tables["by_size"]
    assert by_size["transfers"].sum() == within(answer["transfers"], 1e-9)
    assert {"states", "rates"}.isdisjoint(answer.tables)


def test_simulated_events_are_independent_of_the_population() -> None:
    """The number of sources, packets and steps is equal, so the simulations hardly differ."""
    brief = {"run": {"duration": "60s", "warmup": "20s"}}
    few, many = (ask(local_loop(n, 2.0, **brief), "mean-field") for n in (50_000, 5_000_000))
    for name in ("send_rate_pps", "transfers"):
        assert many[name] / many.provenance["each"] == within(
            few[name] / few.provenance["each"], 0.01
        )


@pytest.mark.long
@pytest.mark.parametrize("queue", ["fq", "droptail"])
@pytest.mark.parametrize("load", [0.8, 1.0, 1.2])
def test_newreno_agrees_with_exact_simulation(queue: str, load: float) -> None:
    tables = {
        "tcp": {"stack": "rfc-newreno", "receiver_window": 40},
        "run": {"duration": "700s", "warmup": "200s"},
    }
    scenario = local_loop(20_000, load, **tables).with_changes({"network.bottleneck.queue": queue})
    result, exact = (figures(ask(scenario, engine)) for engine in ("mean-field", "packet"))
    for metric, limit in LIMITS.items():
        assert result[metric] == within(exact[metric], limit), metric


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
                "off": {"distribution": "exponential", "mean": "20s"},
                "size": {"distribution": "exponential", "mean": "40pkt"},
            },
            "tcp": {"stack": "max-plus-reno", "receiver_window": 40},
            "run": {"duration": "90s", "warmup": "40s"},
        }
    )
    answer = ask(scenario, "mean-field")
    table = answer.tables["by_class"]
    assert table["sources"].tolist() == [60_000, 20_000]
    # All offered load is carried: one file per OFF time and transfer.
    expected = np.array([60_000, 20_000]) * 40 / (20 + table["on_time_s"])
    assert table["goodput_pps"].tolist() == within(expected.tolist(), 0.03)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"traffic": {"kind": "bulk", "flows": 10}}, "on/off sources; use the packet engine"),
        ({"probes": {"flows": [1]}}, "remove probes.flows"),
    ],
)
def test_unsupported_scenarios_are_rejected(changes: dict[str, Any], message: str) -> None:
    answer = ask(local_loop(10_000, 1.0, **changes), "mean-field")
    assert answer.not_applicable is not None
    assert message in answer.not_applicable


@pytest.mark.parametrize("element", ["bottleneck", "hop.first"])
def test_red_is_rejected_at_any_hop(element: str) -> None:
    scenario = local_loop(10_000, 1.0)
    if element != "bottleneck":
        scenario = in_series(10_000, 1.0, [{"name": "first", "times": 2}, {}])
    answer = ask(scenario.with_changes({f"network.{element}.queue": "red"}), "mean-field")
    assert answer.not_applicable is not None
    assert 'queue = "fq"' in answer.not_applicable


def test_scenario_outside_the_comparisons_has_a_warning() -> None:
    brief = {"run": {"duration": "20s", "warmup": "10s"}}
    few = ask(local_loop(10_000, 1.2, mean_field={"flows": 500}, **brief), "mean-field")
    assert any("mean_field.flows = 2500" in text for text in few.warnings)
    losing = local_loop(10_000, 1.2, **brief).with_changes({"network.bottleneck.loss": "1%"})
    assert any("random loss" in text for text in ask(losing, "mean-field").warnings)
    compared = [local_loop(10_000, 1.2, **brief), behind_backbones(10_000, 1.2, **brief)]
    compared.append(local_loop(10_000, 1.2, **brief).with_changes({"traffic.correlation": 0.5}))
    for scenario in compared:
        warnings = ask(scenario, "mean-field").warnings
        assert not any("mean-field" in text for text in warnings), warnings


@pytest.mark.parametrize(
    ("scenario", "enough"),
    [
        (behind_backbones(10_000, 1.2, mean_field={"flows": 2500}), "mean_field.flows = 5000"),
        (crossed("poisson", 20_000, 1.2, "fq"), "mean_field.flows = 10000"),
        (
            local_loop(20_000, 1.2).with_changes({"network.bottleneck.queue": "droptail"}),
            "mean_field.flows = 10000",
        ),
    ],
    ids=["hops", "cross traffic", "drop-tail"],
)
def test_too_few_sources_have_a_warning_with_the_number_needed(scenario: Any, enough: str) -> None:
    brief = {"run.duration": "12s", "run.warmup": "6s"}
    answer = ask(scenario.with_changes(brief), "mean-field")
    assert any(enough in text for text in answer.warnings)


def test_full_drop_tail_queue_with_cross_traffic_has_a_warning() -> None:
    brief = {"run.duration": "40s", "run.warmup": "30s"}
    for queue, has_warning in (("droptail", True), ("fq", False)):
        scenario = crossed("poisson", 20_000, 2.0, queue, mean_field={"flows": 10_000})
        answer = ask(scenario.with_changes(brief), "mean-field")
        assert answer.tables["cross"]["loss_ratio"][0] > 0.01
        assert any("full drop-tail queue (loop)" in text for text in answer.warnings) == has_warning


def test_path_that_cannot_be_shortened_has_a_warning() -> None:
    delays = {"return_delay": "0s", "ingress": {"delay": "0s"}, "egress": {"delay": "0s"}}
    link = {"rate": "20mbit", "delay": "0s", "buffer": "2000pkt"}
    network = {**delays, "bottleneck": link}
    scenario = local_loop(50_000, 1.0, network=network, run={"duration": "6s", "warmup": "2s"})
    # Nine times the transmission time of a packet on the link, less that of its ack, which is a
    # delay.
    excess_s = (9 * 1500 - 40) * 8 / 20e6
    assert max_excess_delay_s(scenario, NetworkScale(10.0)) == within(excess_s, 1e-9)
    assert any("base RTT is" in text for text in ask(scenario, "mean-field").warnings)
    assert max_excess_delay_s(local_loop(50_000, 1.0), NetworkScale(10.0)) == 0


AGREEMENT = {"run": {"duration": "90s", "warmup": "50s"}, "mean_field": {"flows": 2500}}


def check_against_exact(scenario: tcpcast.Scenario) -> tuple[Any, Any]:
    result, exact = (ask(scenario, engine) for engine in ("mean-field", "packet"))
    message, truth = figures(result), figures(exact)
    for metric, limit in LIMITS.items():
        assert message[metric] == within(truth[metric], limit), metric
    return result, exact


@pytest.mark.parametrize("load", [pytest.param(0.8, marks=pytest.mark.long), 1.2])
def test_hops_per_source_agree_with_exact_simulation(load: float) -> None:
    result, exact = check_against_exact(behind_backbones(10_000, load, **AGREEMENT))
    links, truth = (answer.tables["by_link"] for answer in (result, exact))
    assert links["link"].tolist() == truth["link"].tolist()
    assert {"backbone", "loop"} <= set(links["link"].tolist())
    for column in ("packets", "utilisation"):
        assert links[column].tolist() == within(truth[column].tolist(), 0.05), column
    # Each source waits behind cross traffic with the values of a single hop.
    backbone = links["link"].tolist().index("backbone")
    queues = [table["queue_mean_pkts"][backbone] for table in (links, truth)]
    assert queues[0] == within(queues[1], 0.3)
    cross, cross_truth = (answer.tables["cross"] for answer in (result, exact))
    assert cross["carried_bps"].tolist() == cross_truth["carried_bps"].tolist()


def test_two_shared_hops_agree_with_exact_simulation() -> None:
    scenario = in_series(10_000, 2.0, [{"name": "first", "times": 1.05}, {}], **AGREEMENT)
    result, exact = check_against_exact(scenario)
    links, truth = (answer.tables["by_link"] for answer in (result, exact))
    for column in ("packets", "utilisation"):
        assert links[column].tolist() == within(truth[column].tolist(), 0.03), column
    loop = links["link"].tolist().index("loop")
    for column in ("loss_ratio", "queue_mean_pkts"):
        assert links[column][loop] == within(truth[column][loop], 0.1), column


# `test_cross_traffic_is_thinned_to_every_kth_packet` checks the scaling of each distribution.
@pytest.mark.parametrize(
    "distribution",
    [
        "fgn",
        *(
            pytest.param(distribution, marks=pytest.mark.long)
            for distribution in ("poisson", "pareto", "trace")
        ),
    ],
)
def test_cross_traffic_agrees_with_exact_simulation(distribution: str) -> None:
    # Bursts as long as with the Pareto distribution need a longer run to agree.
    run = {"duration": "140s", "warmup": "60s"} if distribution == "pareto" else AGREEMENT["run"]
    result, exact = check_against_exact(
        crossed(distribution, 10_000, 0.9, "droptail", **AGREEMENT | {"run": run})
    )
    cross, truth = (answer.tables["cross"] for answer in (result, exact))
    for column in ("offered_bps", "carried_bps"):
        assert cross[column][0] == within(truth[column][0], 0.02), column
    if distribution == "fgn":
        assert cross["rate_sd_bps"][0] == within(truth["rate_sd_bps"][0], 1e-9)


def test_stream_in_a_fair_queue_gets_the_remaining_rate() -> None:
    result, exact = check_against_exact(crossed("poisson", 10_000, 0.8, "fq", **AGREEMENT))
    cross, truth = (answer.tables["cross"]["carried_bps"][0] for answer in (result, exact))
    assert cross == within(truth, 0.08)
    assert 0.1 < exact.tables["cross"]["loss_ratio"][0] < 0.6


@pytest.mark.parametrize("correlation", [pytest.param(-0.5, marks=pytest.mark.long), 0.8])
def test_correlated_files_and_off_times_agree_with_exact_simulation(correlation: float) -> None:
    scenario = local_loop(10_000, 2.0, **AGREEMENT)
    check_against_exact(scenario.with_changes({"traffic.correlation": correlation}))


def test_hops_cross_traffic_and_correlation_ignore_thread_count() -> None:
    brief = {"duration": "12s", "warmup": "4s", "replications": 2}
    scenario = crossed("pareto", 20_000, 1.2, "droptail", run=brief)
    scenario = scenario.with_changes({"traffic.correlation": 0.5})
    one, two = (tcpcast.run(scenario, ["mean-field"], threads=n)[0] for n in (1, 2))
    assert one.metrics == two.metrics
    assert one.tables["cross"]["carried_bps"] == two.tables["cross"]["carried_bps"]


def test_hops_per_source_stay_and_shared_hops_shrink() -> None:
    hops = [
        {"name": "own", "rate": "5mbit", "buffer": "50pkt", "delay": "1ms", "shared": False},
        {"name": "first", "times": 3},
        {},
        {"name": "turns", "times": 2, "queue": {"kind": "fq", "buffers": "individual"}},
    ]
    scenario = in_series(1_000_000, 1.0, hops)
    whole: Any = make_configuration(scenario, 0.0)
    small: Any = make_configuration(scenario, 0.0, NetworkScale(200.0))
    names = list(scenario.topology.links)
    small_links, whole_links = (
        dict(zip(names, config["links"], strict=True)) for config in (small, whole)
    )
    assert small_links["own"] == whole_links["own"]
    for name in ("first", "turns"):
        small_value, whole_value = small_links[name], whole_links[name]
        small_rate, whole_rate = (each["rate"]["constant"] for each in (small_value, whole_value))
        assert small_rate * 200 == within(whole_rate, 1e-6)
        assert small_value["delay_ns"] == whole_value["delay_ns"]
    limits = [links["first"]["limit_pkts"] for links in (small_links, whole_links)]
    assert limits[0] * 200 == within(limits[1], 1e-3)
    assert small_links["turns"]["limit_pkts"] == whole_links["turns"]["limit_pkts"]
    # The total length of the three shared links does not increase.
    rates = [20e9, 60e9, 40e9]
    longer = sum(199 * 1500 * 8e9 / rate for rate in rates)
    (small_value,), (whole_value,) = (
        [group["delay_ns"] + group["back_delay_ns"] for group in config["classes"]]
        for config in (small, whole)
    )
    assert whole_value - small_value == within(longer, 1e-5)


def test_missing_delay_in_one_direction_shortens_the_other() -> None:
    network = local_loop(1_000_000, 1.0).resolved()["network"]
    network["bottleneck"]["delay"] = "10us"
    scenario = local_loop(1_000_000, 1.0, network={**network, "return_delay": "50ms"})
    (group,) = make_configuration(scenario, 0.0, NetworkScale(200.0))["classes"]
    (whole,) = make_configuration(scenario, 0.0)["classes"]
    assert group["delay_ns"] == 0
    longer = 199 * 1500 * 8e9 / 20e9
    delays_ns = whole["delay_ns"] + whole["back_delay_ns"]
    assert delays_ns - group["back_delay_ns"] == within(longer, 1e-5)


def test_cross_traffic_is_thinned_to_every_kth_packet() -> None:
    def cross_process(config: Config) -> Any:
        (stream,) = config["cross"]
        return stream["process"]

    changes: dict[str, dict[str, Any]] = {
        "poisson": {"model": "gamma", "shape": 4.0},
        "fgn": {},
        "pareto": {"together": True},
        "trace": {},
    }
    for distribution, changed in changes.items():
        scenario = crossed(distribution, 20_000, 1.2, "droptail")
        whole = cross_process(make_configuration(scenario, 0.0))
        small = cross_process(make_configuration(scenario, 0.0, NetworkScale(4.0)))
        for key in ("rate", "mean", "sd", "peak"):
            if key in whole:
                assert small[key] * 4 == within(whole[key], 1e-12), (distribution, key)
        if distribution == "trace":
            assert 4 * np.array(small["packets"]) == within(whole["packets"], 1e-12)
            assert small["times_ns"] == whole["times_ns"]
        assert changed.items() <= small.items()


def test_cross_traffic_at_hops_per_source_is_unchanged() -> None:
    scenario = behind_backbones(1_000_000, 1.0)
    small = make_configuration(scenario, 0.0, NetworkScale(200.0))
    assert small["cross"] == make_configuration(scenario, 0.0)["cross"]


def test_mean_field_is_not_a_default_engine() -> None:
    scenario = local_loop(10_000, 1.2, run={"duration": "3s", "warmup": "1s"})
    assert "mean-field" not in [answer.engine for answer in tcpcast.run(scenario)]
