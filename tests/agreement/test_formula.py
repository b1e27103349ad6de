"""The engset engine: values of the model for a scenario, or the reason for a refusal."""

import math
from typing import Any

import numpy as np
import pytest
from tcpcast.engines import REGISTRY, answer
from tcpcast.engines.formula import FORMULAS
from tcpcast.engines.formula.engset import engset_inputs
from tcpcast.scenario import Scenario, load


def web(**changes: Any) -> Scenario:
    """134 web users share a 10 Mbit/s link: the setting of Tables 6 and 10."""
    return load("web-10mbit", changes={key.replace("__", "."): v for key, v in changes.items()})


SPECIAL = {
    "network": {
        "packet": "576B",
        "ingress": {"rate": "100mbit"},
        "bottleneck": {"rate": "1.5mbit", "delay": "150ms"},
        "egress": {"rate": "128kbit"},
    },
    "traffic": {
        "kind": "on-off",
        "sources": 20,
        "off": {"distribution": "exponential", "mean": "5s"},
        "size": {"distribution": "exponential", "mean": "347pkt", "minimum": "3pkt"},
    },
    "tcp": {"stack": "rfc-newreno", "receiver_window": 44},
    "run": {"transfers": 1000},
}


def test_tables_agree_with_metrics() -> None:
    (result,) = answer(web(), ["engset"])
    states, queue = result.tables["states"], result.tables["queue"]
    assert states["active"].tolist() == list(range(135))
    assert states["probability"].sum() == pytest.approx(1)
    assert math.isnan(states["shared_rate_bps"][0])
    assert states["shared_rate_bps"][[1, 100]] == pytest.approx([800e3, 100e3])
    carried = np.nansum(states["probability"] * states["active"] * states["shared_rate_bps"])
    assert carried == pytest.approx(result["utilisation"] * 10e6, rel=1e-4)
    at_buffer = queue["time_above"][queue["queue_pkts"] == 150]
    assert at_buffer == pytest.approx([result["loss_ratio"]])
    assert np.all(np.diff(queue["time_above"]) < 0)


def test_values_outside_the_authors_domain_are_untrusted() -> None:
    (high,) = answer(web(), ["engset"])
    untrusted = {name for name, m in high.metrics.items() if not m.trusted}
    assert untrusted == {"loss_ratio", "queue_mean_pkts", "rtt_mean_s"}
    assert any("above 1 %" in w and "overestimates the loss" in w for w in high.warnings)
    assert any("above the buffer" in w for w in high.warnings)
    (lossy,) = answer(web(traffic__sources=98, network__bottleneck__buffer="200pkt"), ["engset"])
    assert {n for n, m in lossy.metrics.items() if not m.trusted} == {"loss_ratio"}
    (low,) = answer(web(traffic__sources=82, network__bottleneck__buffer="200pkt"), ["engset"])
    assert all(m.trusted for m in low.metrics.values())
    assert low.notes == []


def test_unlimited_buffer_has_no_loss() -> None:
    (result,) = answer(web(network__bottleneck__buffer="unlimited"), ["engset"])
    assert "loss_ratio" not in result.metrics
    assert result.metrics["queue_mean_pkts"].trusted
    assert result.tables["queue"]["time_above"][-1] < 1e-8


def test_few_sources_have_a_warning() -> None:
    (result,) = answer(web(traffic__sources=10), ["engset"])
    assert result["queue_mean_pkts"] == 0
    assert any("isolated connection" in w for w in result.warnings)


@pytest.mark.parametrize(
    ("size", "has_warning"),
    [
        ({"distribution": "ep", "mean": "12pkt", "minimum": "3pkt"}, True),
        ({"distribution": "ee", "mean": "12pkt", "minimum": "3pkt", "c": 7}, True),
        ({"distribution": "pareto", "mean": "12pkt", "alpha": 1.5}, True),
        ({"distribution": "lognormal", "mean": "12pkt", "sd": "30pkt"}, True),
        ({"distribution": "lognormal", "mean": "12pkt", "sd": "3pkt"}, False),
        ({"distribution": "empirical", "values": [2, 2, 2, 2, 2, 62], "weights": [1] * 6}, True),
        ({"distribution": "empirical", "values": [6, 18], "weights": [1, 1]}, False),
        ({"distribution": "constant", "value": "12pkt"}, False),
        ({"distribution": "ep", "mean": "100pkt", "minimum": "3pkt"}, False),  # 2 WR - 2 = 86 < 100
    ],
)
def test_long_tails_have_a_warning(size: dict[str, Any], has_warning: bool) -> None:
    (result,) = answer(web(traffic__size=size), ["engset"])
    assert any("long tail" in w for w in result.warnings) == has_warning


def test_special_setting_warns_of_its_queue_and_timeouts() -> None:
    (result,) = answer(Scenario.from_dict(SPECIAL), ["engset"])
    assert result.provenance["intermediates"]["on0_s"] * 1000 == pytest.approx(13319.3, abs=0.05)
    assert any("files of 54 to 106 packets" in w for w in result.warnings)
    assert any("saturates the access link of its source" in w for w in result.warnings)
    tight = Scenario.from_dict(SPECIAL).with_changes({"tcp.receiver_window": 8})
    (result,) = answer(tight, ["engset"])
    assert result.notes == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"network.bottleneck.rate": "unlimited"}, "bottleneck with a rate"),
        ({"network.bottleneck.loss": "1%"}, "random loss"),
        ({"network.bottleneck.queue": "red"}, "uses RED"),
        ({"network.ingress.loss": "1%"}, "ingress"),
        ({"network.egress.buffer": "20pkt"}, "window of 44"),
        ({"tcp.delayed_acks": True}, "delays ACKs"),
        ({"tcp.initial_ssthresh": 10}, "slow start"),
        ({"traffic": {"kind": "bulk", "flows": 3}, "run": {"duration": "10s"}}, "bulk"),
    ],
)
def test_refusal_states_the_reason(changes: dict[str, Any], reason: str) -> None:
    (result,) = answer(web().with_changes(changes), ["engset"])
    assert result.not_applicable is not None
    assert reason in result.not_applicable
    assert result.metrics == {}


def test_single_class_equals_the_scenario() -> None:
    alone = web().with_changes({"class": [{"name": "all", "sources": 134}]})
    assert engset_inputs(alone) == engset_inputs(web())


def test_every_formula_is_a_registered_engine() -> None:
    for name, row in FORMULAS.items():
        assert REGISTRY[name] is row
        assert row.load().__module__ == row.module


ARRIVALS = {
    "traffic": {
        "kind": "transfers",
        "size": {"distribution": "exponential", "mean": "12pkt", "minimum": "3pkt"},
        "arrivals": {"distribution": "poisson", "rate": "40/s"},
    },
    "network": {"rtt": "50ms", "packet": "1500B", "bottleneck": {"rate": "10mbit"}},
    "tcp": {"stack": "engset-newreno", "receiver_window": 44},
    "run": {"transfers": 1000},
}


@pytest.mark.parametrize("name", FORMULAS)
def test_every_formula_has_steps(name: str) -> None:
    packaged = ("web-10mbit", "lossy-path", "short-transfers")
    scenarios = [Scenario.from_dict(ARRIVALS), *(load(each) for each in packaged)]
    found = [one for each in scenarios for one in answer(each, [name]) if one.applies]
    assert found
    for one in found:
        assert len(one.steps) >= 5
        symbols = [step["symbol"] for step in one.steps]
        assert len(symbols) == len(set(symbols))
        assert all(step["source"] for step in one.steps)


def values_of_steps(scenario: Scenario, engine: str) -> tuple[dict[str, Any], Any]:
    (result,) = answer(scenario, [engine])
    return {step["symbol"]: step["value"] for step in result.steps}, result


@pytest.mark.parametrize(("sources", "overloads"), [(134, True), (10, False)])
def test_steps_of_engset_follow_their_equations(sources: int, overloads: bool) -> None:
    found, result = values_of_steps(web(traffic__sources=sources), "engset")
    bits = 8 * found["F"] * found["P"]
    equations = {
        "ON0": found["m"] * found["RTT0"] + found["n"] * found["Delta*"],
        "h0": bits / found["ON0"],
        "s": found["C"] / found["h0"],
        "a0": found["N"] * bits / ((found["OFF"] + found["ON0"]) * found["C"]),
        "h1": found["T"] / found["J"],
        "ON1": bits / found["h1"],
        "U1": found["T"] / found["C"],
    }
    if overloads:
        equations |= {
            "h2": found["C"] / found["Jo"],
            "ON2": bits / found["h2"],
            "U2": found["N"] * bits / ((found["OFF"] + found["ON2"]) * found["C"]),
            "h": (found["h1"] + found["h2"]) / 2,
            "U": (found["U1"] + found["U2"]) / 2,
            "Q": (found["ON"] - found["ON0"]) / (found["m'"] * found["Delta"]),
            "L": found["U2"] * math.exp(-found["B"] * found["U2"] / found["Q"]),
        }
    else:
        assert {"Jo", "h2", "ON2", "U2"}.isdisjoint(found)
        equations |= {"h": found["h1"], "ON": found["ON1"], "U": found["U1"], "Q": 0, "L": 0}
    assert {symbol: found[symbol] for symbol in equations} == pytest.approx(equations)
    assert found["h"] == result["connection_rate_bps"]
    assert found["Q"] == result["queue_mean_pkts"]


def test_steps_of_classes_and_sizes_end_with_the_metrics() -> None:
    classes, result = values_of_steps(load("two-classes"), "engset")
    rates = [classes[f"h {name}"] for name in result.tables["by_class"]["name"]]
    assert rates == result.tables["by_class"]["connection_rate_bps"].tolist()
    assert classes["Q"] == result["queue_mean_pkts"]
    sizes, result = values_of_steps(web(), "engset-sizes")
    assert (sizes["h"], sizes["Q"]) == (result["connection_rate_bps"], result["queue_mean_pkts"])
    arrivals, result = values_of_steps(Scenario.from_dict(ARRIVALS), "erlang")
    assert arrivals["ON0"] * arrivals["slowdown"] == pytest.approx(result["completion_time_s"])
    assert arrivals["rho"] == pytest.approx(40 * 12 * 1500 * 8 / 10e6, rel=0.02)


def test_tables_for_many_sources_have_limited_size() -> None:
    big = web(traffic__sources=200_000, network__bottleneck__rate="15gbit")
    big = big.with_changes({"network.bottleneck.buffer": "1000000pkt"})
    (result,) = answer(big, ["engset"])
    assert result["connection_rate_bps"] == pytest.approx(154.9e3, rel=0.05)
    assert len(result.tables["states"]["active"]) < 20_000
    assert result.tables["states"]["probability"].sum() == pytest.approx(1)
    assert len(result.tables["queue"]["queue_pkts"]) <= 2_002
