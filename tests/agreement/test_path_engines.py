"""Formulas of one path as engines: inputs, limits and domains."""

import json
import math
from typing import Any

import numpy as np
import pytest
import tcpcast
from tcpcast.answer import UNITS, Answer, Metric
from tcpcast.cli import main
from tcpcast.engines import REGISTRY, RunOptions, answer
from tcpcast.engines.formula import FORMULAS
from tcpcast.models.pftk import throughput
from tcpcast.process.errors import NotApplicable, TcpcastError
from tcpcast.report.json import encode
from tcpcast.scenario import Scenario, load

PATH = [
    name
    for name, row in FORMULAS.items()
    if row.accepts_measured and "bulk" in row.applies and name != "bbr-bound"
]


def lossy(**changes: Any) -> Scenario:
    """Ten flows, RTT 60 ms, 1 % of loss, 1 Gbit/s; ``__`` in a keyword means a dot in the key."""
    return load("lossy-path", changes={key.replace("__", "."): v for key, v in changes.items()})


def run_engine(engine: str, scenario: Scenario, measured: Answer | None = None) -> Answer:
    return REGISTRY[engine].run(scenario, RunOptions(), measured)


def measurement(**metrics: float) -> Answer:
    """Return a ``packet`` answer with the given metrics only."""
    return Answer("packet", metrics={name: Metric(value) for name, value in metrics.items()})


def steps(result: Answer) -> dict[str, float]:
    return {entry["symbol"]: entry["value"] for entry in result.steps}


def sources(result: Answer) -> dict[str, str]:
    return {entry["symbol"]: entry["source"] for entry in result.steps}


@pytest.mark.parametrize("name", PATH)
def test_answer_contains_rate_regime_and_all_steps(name: str) -> None:
    scenario = lossy()
    (result,) = answer(scenario, [name])
    assert result.engine == name
    assert result.not_applicable is None
    assert result.provenance["formula"] == FORMULAS[name].source
    assert result.provenance["scenario"] == scenario.digest()
    assert result.provenance["feed"] == "scenario"
    assert isinstance(result.regime, str)
    assert result.metrics.keys() <= UNITS.keys()
    assert result.metrics["send_rate_pps"].low is None
    engine_steps = result.steps
    assert all(set(entry) == {"symbol", "value", "unit", "source"} for entry in engine_steps)
    assert all(entry["source"] for entry in engine_steps)
    symbols = [entry["symbol"] for entry in engine_steps]
    assert len(set(symbols)) == len(symbols)
    assert symbols[0] in {"p", "p_e"}
    assert engine_steps[-1]["symbol"] == "send rate"
    assert engine_steps[-1]["value"] == result["send_rate_pps"]
    report = encode(tcpcast.Answers([result], scenario).to_json())
    assert json.loads(report)["answers"][0]["engine"] == name


def test_pftk_uses_the_inputs_of_the_scenario() -> None:
    (result,) = answer(lossy(), ["pftk"])
    one = throughput(rtt_s=0.06, t0_s=1.0, loss_indication_ratio=0.01, packets_per_ack=1)
    assert result["send_rate_pps"] == pytest.approx(10 * float(one.rate_pps), rel=1e-12)
    assert result["timeout_share"] == float(one.timeout_probability)
    assert result["w_at_loss_mean_pkts"] == float(one.window_pkts)
    symbols = [entry["symbol"] for entry in result.steps]
    assert symbols[:6] == ["p", "RTT", "T0", "b", "W_max", "n"]
    assert list(steps(result).values())[:6] == [0.01, 0.06, 1.0, 1.0, None, 10.0]
    assert result.regime == "triple duplicates"


@pytest.mark.parametrize(
    ("changes", "symbol", "value"),
    [
        ({"tcp__min_rto": "200ms"}, "T0", 0.2),
        ({"tcp__min_rto": "10ms"}, "T0", 0.06),
        ({"tcp__delayed_acks": True}, "b", 2),
        ({"tcp__receiver_window": 44}, "W_max", 44),
        ({"traffic__flows": 3}, "n", 3),
        ({"network__rtt": "120ms"}, "RTT", 0.12),
        ({"network__ingress__loss": "2%"}, "p", 1 - 0.99 * 0.98),
    ],
)
def test_each_input_follows_from_its_key(
    changes: dict[str, Any], symbol: str, value: float
) -> None:
    for name in PATH:
        (result,) = answer(lossy(**changes), [name])
        if symbol in steps(result):
            assert steps(result)[symbol] == pytest.approx(value, rel=1e-12)
    assert symbol in steps(answer(lossy(**changes), ["pftk"])[0])


def test_single_class_equals_the_scenario() -> None:
    alone = lossy().with_changes({"class": [{"name": "all", "flows": 10}]})
    for name in PATH:
        (one,), (other,) = answer(alone, [name]), answer(lossy(), [name])
        assert one.metrics == other.metrics


@pytest.mark.parametrize("name", ["mathis", "pftk-approx", "cubic-response", "pftk"])
def test_receiver_window_limits_the_rate(name: str) -> None:
    scenario = lossy(tcp__receiver_window=6, network__bottleneck__loss="0.01%")
    (result,) = answer(scenario, [name])
    assert result.regime == "window"
    assert result["send_rate_pps"] == pytest.approx(10 * 6 / 0.06, rel=0.02)


@pytest.mark.parametrize("name", ["td-only", "parallel", "parallel-cumulative"])
def test_model_without_receiver_window_warns_above_it(name: str) -> None:
    scenario = lossy(
        tcp__receiver_window=6, tcp__initial_window=2, network__bottleneck__loss="0.1%"
    )
    (result,) = answer(scenario, [name])
    assert any("ignores the receiver window" in text for text in result.warnings)
    # no warning if a link keeps the flows below the window
    (limited,) = answer(scenario.with_changes({"network.bottleneck.rate": "10mbit"}), [name])
    assert limited.notes == []


@pytest.mark.parametrize("name", PATH)
def test_links_limit_the_rate(name: str) -> None:
    (shared,) = answer(lossy(network__bottleneck__rate="2.4mbit"), [name])
    assert shared["send_rate_pps"] == 200
    assert shared.regime == "bottleneck"
    assert "timeout_share" not in shared.metrics  # at a loss that the flows do not reach
    (own,) = answer(lossy(network__egress__rate="240kbit", network__rtt="100ms"), [name])
    assert own["send_rate_pps"] == 10 * 20
    assert own.regime == "own link"
    (free,) = answer(lossy(network__bottleneck__rate="unlimited"), [name])
    assert free.regime not in {"bottleneck", "own link"}


def test_cubic_states_the_region_of_its_rate() -> None:
    (result,) = answer(lossy(), ["cubic-response"])
    assert "the model is for CUBIC, but the scenario's stack is rfc-newreno" in result.warnings
    assert result.regime == "Reno-friendly"
    assert result["send_rate_pps"] == pytest.approx(10 * math.sqrt(1.5 / 0.01) / 0.06)
    (rare,) = answer(
        lossy(network__bottleneck__loss="0.001%", traffic__flows=1), ["cubic-response"]
    )
    assert rare.regime == "cubic"
    # RFC 9438, section 5: (C (3 + beta)/(4 (1 - beta)))^(1/4) (RTT/p)^(3/4) packets in each RTT
    window = (0.4 * 3.7 / 1.2) ** 0.25 * (0.06 / 1e-5) ** 0.75
    assert rare["send_rate_pps"] == pytest.approx(window / 0.06)


def test_many_flows_in_timeout_have_a_warning() -> None:
    (rare,) = answer(lossy(network__bottleneck__loss="0.01%"), ["parallel"])
    assert rare.notes == []
    (frequent,) = answer(lossy(network__bottleneck__loss="3%"), ["parallel"])
    assert any("predicts that 100 % of the flows" in text for text in frequent.warnings)
    assert frequent.regime == "timeouts"


@pytest.mark.parametrize("flows", [1, 10, 100])
@pytest.mark.parametrize("loss", [0.0001, 0.01, 0.05])
def test_loss_event_ratio_agrees_for_independent_losses(flows: int, loss: float) -> None:
    """Losses within a round trip of the first count once; counted on a stream of packets."""
    scenario = lossy(
        traffic__flows=flows, network__bottleneck__loss=loss, network__bottleneck__rate="unlimited"
    )
    (result,) = answer(scenario, ["parallel-cumulative"])
    window = result["send_rate_pps"] * 0.06
    assert steps(result)["p_e"] == pytest.approx(1 / (1 / loss + window), rel=1e-9)
    events, packets = 4000, 0
    random = np.random.default_rng(flows)
    for gap in random.geometric(loss, events):
        packets += int(gap) + math.floor(window) + (random.random() < window % 1)
    assert steps(result)["p_e"] == pytest.approx(events / packets, rel=0.05)


def test_bursty_loss_uses_its_mean_with_a_warning() -> None:
    bursty = {"model": "gilbert-elliott", "to_bad": "0.1%", "to_good": "20%"}
    (result,) = answer(lossy(network__bottleneck__loss=bursty), ["pftk"])
    assert steps(result)["p"] == pytest.approx(0.001 / 0.201)
    assert any("specified correlated loss" in text for text in result.warnings)


def test_rest_of_round_has_a_larger_loss_than_algorithm_2() -> None:
    correlated_loss = {"model": "rest-of-round", "rate": "1%"}
    (result,) = answer(lossy(network__bottleneck__loss=correlated_loss), ["parallel-cumulative"])
    assert any("p_r" in text and "--feed measured" in text for text in result.warnings)
    (alone,) = answer(lossy(), ["parallel-cumulative"])
    assert not any("p_r" in text for text in alone.warnings)


@pytest.mark.parametrize("name", PATH)
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"network.bottleneck.loss": "0%"}, "--feed measured"),
        ({"network.bottleneck.loss": 1e-16}, "loss of 1e-16 as 0"),
        ({"class": [{"name": "a", "flows": 5}, {"name": "b", "flows": 5}]}, "one class"),
    ],
)
def test_refusal_states_the_reason(name: str, changes: dict[str, Any], reason: str) -> None:
    if name in {"pftk", "cubic-response"} and "class" not in changes:
        pytest.skip("answers paths without loss")
    (result,) = answer(lossy().with_changes(changes), [name])
    assert result.not_applicable is not None
    assert reason in result.not_applicable


@pytest.mark.parametrize("loss", [1e-12, 1e-16])
def test_largest_window_of_tcp_limits_a_path_without_a_rate(loss: float) -> None:
    """65,535 B shifted by 14 bits (RFC 7323): 1 GiB per RTT."""
    scenario = Scenario.from_dict(
        {
            "network": {"rtt": "100ms", "bottleneck": {"loss": loss}},
            "traffic": {"kind": "bulk", "flows": 2},
            "run": {"duration": "1s"},
        }
    )
    (result,) = answer(scenario, ["cubic-response"])
    group = scenario.populations[0]
    window = (65_535 << 14) / group.payload_bytes
    assert result["send_rate_pps"] == pytest.approx(group.count * window / group.rtt_s)


def test_default_run_uses_all_applicable_engines() -> None:
    engines = [result.engine for result in answer(lossy(run__duration="25s"))]
    # engines of other stacks only by name
    assert engines == [*(name for name in PATH if name != "cubic-response"), "packet"]


DROPTAIL = {
    "network__bottleneck__rate": "20mbit",
    "network__bottleneck__buffer": "1bdp",
    "network__bottleneck__loss": "0%",
    "traffic__flows": 3,
    "run__duration": "60s",
    "run__replications": 1,
}


def test_engines_use_a_measurement_of_the_same_run() -> None:
    result = answer(lossy(**DROPTAIL), ["pftk", "mathis"], feed="measured")
    assert [answer.engine for answer in result] == ["pftk", "mathis", "packet"]
    pftk, distribution, packet = result
    for formula in (pftk, distribution):
        assert formula.provenance["feed"] == "measured"
        assert steps(formula)["p"] == packet["loss_indication_ratio"]
        assert steps(formula)["RTT"] == packet["rtt_mean_s"]
    assert distribution["send_rate_pps"] == pytest.approx(
        3 * math.sqrt(1.5 / packet["loss_indication_ratio"]) / packet["rtt_mean_s"]
    )
    # No limit by the link: p and RTT contain the effect of the bottleneck.
    assert distribution["send_rate_pps"] > 20e6 / 12000
    # The window varies between half and full, so the formula for periodic loss is close.
    assert distribution["send_rate_pps"] == pytest.approx(packet["send_rate_pps"], rel=0.1)


def test_requested_order_is_kept_and_other_engines_get_no_measurement() -> None:
    scenario = load("web-10mbit", changes={"run.transfers": 500})
    result = answer(scenario, ["packet", "engset"], feed="measured")
    assert [answer.engine for answer in result] == ["packet", "engset"]
    (alone,) = answer(scenario, ["engset"])
    assert result[1].metrics == alone.metrics


def test_missing_measurements_are_reported() -> None:
    measured = measurement(loss_indication_ratio=0.02, rtt_mean_s=0.08, t0_s=math.nan)
    result = run_engine("pftk", lossy(tcp__min_rto="10ms"), measured)
    assert (steps(result)["p"], steps(result)["RTT"], steps(result)["T0"]) == (0.02, 0.08, 0.08)
    assert "no timeout" in sources(result)["T0"]
    with pytest.raises(NotApplicable, match="no loss indication"):
        run_engine("pftk", lossy(), measurement(loss_indication_ratio=0.0, rtt_mean_s=0.08))
    with pytest.raises(NotApplicable, match="loss_event_ratio_cumulative"):
        run_engine("parallel-cumulative", lossy(), measured)
    with pytest.raises(NotApplicable, match="bottleneck"):
        run_engine("parallel-cumulative", lossy(network__egress__loss="1%"), measured)


def test_measurement_source_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(TcpcastError, match="'measured'"):
        tcpcast.run(lossy(), ["pftk"], feed="guessed")
    assert main(["run", "lossy-path", "--feed", "guessed"]) == 2
    assert "'guessed' is not one of 'scenario', 'measured'" in capsys.readouterr().err


def test_command_line_uses_measured_inputs(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["run", "lossy-path", "--engine", "pftk", "--feed", "measured", "--json"]
    assert main([*arguments, "--set", "run.duration=40s", "--set", "run.replications=1"]) == 0
    pftk, packet = json.loads(capsys.readouterr().out)["answers"]
    p = next(entry for entry in pftk["provenance"]["steps"] if entry["symbol"] == "p")
    assert p["value"] == packet["metrics"]["loss_indication_ratio"]["value"]


def test_bbr_uses_the_link_and_its_delivery_rate() -> None:
    scenario = lossy(network__bottleneck__rate="24mbit")
    (result,) = answer(scenario, ["bbr-bound"])
    assert result["send_rate_pps"] == pytest.approx(2000)
    assert result["goodput_pps"] == pytest.approx(1980)
    assert result["goodput_bps"] == pytest.approx(1980 * 8 * 1460)
    assert result.regime == "bottleneck"
    assert "the model is for BBR, but the scenario's stack is rfc-newreno" in result.warnings
    assert not result.metrics["goodput_bps"].trusted
    assert run_engine("bbr-bound", scenario, measurement(loss_ratio=0.5)).metrics == result.metrics


@pytest.mark.parametrize(
    ("changes", "goodput", "regime"),
    [
        ({"network__bottleneck__loss": "0%"}, 2000, "bottleneck"),
        ({"network__bottleneck__loss": "30%"}, 0, "collapse"),
        ({"network__bottleneck__buffer": "20pkt"}, 1980, "shallow buffer"),
        ({"network__ingress__rate": "1.2mbit"}, 990, "own link"),
        ({"tcp__receiver_window": 6}, 990, "window"),
    ],
)
def test_bbr_rate_is_limited_by_loss_buffer_link_or_window(
    changes: dict[str, Any], goodput: float, regime: str
) -> None:
    (result,) = answer(lossy(network__bottleneck__rate="24mbit", **changes), ["bbr-bound"])
    assert result["goodput_pps"] == pytest.approx(goodput)
    assert result.regime == regime


def test_bbr_requires_a_link() -> None:
    (result,) = answer(lossy(network__bottleneck__rate="unlimited"), ["bbr-bound"])
    assert "link with a rate" in (result.not_applicable or "")
