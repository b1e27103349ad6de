"""Fixed-point engines against exact simulation of the sources in section 7's local loop."""

import importlib
from typing import Any

import numpy as np
import pytest
import tcpcast
from tcpcast.answer import Answer
from tcpcast.cli.run import exit_code
from tcpcast.comparison.compare import compare_classes, compare_goodput_percentiles
from tcpcast.engines.fixed_point import ConvergenceResult, compute_offered_load
from tcpcast.scenario import Scenario
from tcpcast_papers.fixed_point.settings import NOISES, Length, LocalLoop
from test_many_sources import local_loop, simulate_local_loop, within

START = {"distribution": "uniform", "low": "0s", "high": "10s"}


def simulate(scenario: Scenario, engine: str = "fixed-point", threads: int = 1) -> Answer:
    (answer,) = tcpcast.run(scenario, [engine], threads=threads)
    return answer


def with_options(scenario: Scenario, **table: Any) -> Scenario:
    return Scenario.from_dict({**scenario.resolved(), "fixed_point": table})


def reference_metrics(answer: Answer) -> dict[str, float]:
    """Return the metrics of the reference flows, whether or not the answer was accepted."""
    table = answer.tables["reference_flows"]
    return dict(zip(table["metric"].tolist(), table["value"].tolist(), strict=True))


def has_untrusted_values(answer: Answer, reason: str) -> bool:
    """Return True if all values are from the reference flows, untrusted, without intervals."""
    metrics = answer.metrics
    assert reference_metrics(answer) == {name: metric.value for name, metric in metrics.items()}
    return bool(metrics) and all(
        not m.trusted and m.low is None and m.interval_warning == reason for m in metrics.values()
    )


def failed_tests(answer: Answer) -> set[str]:
    table = answer.tables["convergence"]
    return set(table["what"][~table["passed"]].tolist())


@pytest.fixture(scope="module")
def overload() -> tuple[Scenario, Answer]:
    return local_loop(7500), simulate_local_loop(7500)


def test_equal_rates_do_not_converge_in_overload(overload: tuple[Scenario, Answer]) -> None:
    scenario, exact = overload
    answer = simulate(with_options(scenario, scheme=0, steps=5))
    assert has_untrusted_values(answer, "above the threshold")
    assert answer.incomplete_reason is not None
    assert answer.incomplete_reason.startswith("no fixed point exists at this load (failed tests: ")
    assert "1.5 times the capacity of the link" in answer.incomplete_reason
    assert answer.incomplete_reason.endswith(
        "use the packet engine, or the mean-field engine for a large population"
    )
    assert exit_code([answer]) == 1
    # By the report, equal rates are insufficient symmetry, because queues and losses differ.
    assert failed_tests(answer) & {"own queue", "loss"}
    assert reference_metrics(answer)["rtt_mean_s"] > 1.1 * exact["rtt_mean_s"]


@pytest.mark.parametrize("table", [{"scheme": 0}, {"scheme": 1}, {"conditional": True}, {}])
def test_all_schemes_agree_at_low_load(table: dict[str, Any]) -> None:
    exact = simulate_local_loop(2500)
    answer = simulate(with_options(local_loop(2500), **table, references=250, steps=6))
    assert answer.incomplete_reason is None
    assert answer["connection_rate_bps"] == within(exact["connection_rate_bps"], 0.05)
    assert answer["rtt_mean_s"] == within(exact["rtt_mean_s"], 0.02)
    assert answer["loss_ratio"] == exact["loss_ratio"] == 0
    assert answer["utilisation"] == within(exact["utilisation"], 0.03)


def test_answer_above_the_threshold_is_withheld_even_if_tests_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A short run can pass the tests by chance above the threshold, where schemes are invalid."""
    module = importlib.import_module("tcpcast.engines.fixed_point")
    monkeypatch.setattr(module, "run_convergence_tests", lambda *_: ConvergenceResult())
    short = {"run": {"duration": "70s", "warmup": "60s"}}
    small = simulate(with_options(local_loop(400, **short), steps=2))
    assert small.incomplete_reason is None
    assert small.metrics
    above = simulate(with_options(local_loop(5500, **short), steps=2, step="5s"))
    assert has_untrusted_values(above, "above the threshold")
    assert above.incomplete_reason is not None
    assert above.incomplete_reason.startswith("no fixed point exists at this load: ")
    assert "reference_flows" in above.tables


def test_failed_test_below_the_threshold_names_other_engines() -> None:
    answer = simulate(with_options(local_loop(4900), scheme=0, steps=4, step="10s"))
    assert has_untrusted_values(answer, "no fixed point")
    assert answer.incomplete_reason is not None
    assert answer.incomplete_reason.startswith("no fixed point was reached (failed tests: ")
    assert "use the packet engine" in answer.incomplete_reason


@pytest.mark.parametrize(
    ("changes", "load"),
    [
        ({}, 0.5),
        ({"network.bottleneck": {"rate": "unlimited"}}, 0.0),
        ({"traffic.off": {"distribution": "constant", "value": "60s"}}, 0.25),
    ],
)
def test_offered_load_assumes_instantaneous_files(changes: dict[str, Any], load: float) -> None:
    assert compute_offered_load(local_loop(2500).with_changes(changes)) == pytest.approx(load)


def test_each_class_has_its_own_fixed_point() -> None:
    tables = local_loop(2000).resolved()
    del tables["traffic"]["sources"]
    tables["class"] = [
        {"name": name, "sources": 1000, "ingress": {"rate": "10mbit", "delay": delay}}
        for name, delay in (("near", "10ms"), ("far", "100ms"))
    ]
    scenario = Scenario.from_dict(tables)
    exact = simulate(scenario, "packet").tables["by_class"]
    answer = simulate(with_options(scenario, references=100, steps=8))
    result = answer.tables["by_class"]
    assert result["name"].tolist() == ["near", "far"]
    assert set(answer.tables["convergence"]["class"].tolist()) == {"near", "far", "all"}
    for index in (0, 1):
        for metric, share in (("connection_rate_bps", 0.1), ("rtt_mean_s", 0.05)):
            assert result[metric][index] == within(exact[metric][index], share)
    assert result["rtt_mean_s"][1] > result["rtt_mean_s"][0] + 0.05


def two_classes(changes: dict[str, Any]) -> Scenario:
    """Near and far sources that offer 47 % of the link's capacity."""
    tables = {
        "tcp.stack": "max-plus-reno",
        "traffic.off.mean": "3.88s",
        "run.transfers": None,
        "run.duration": "2000s",
        "run.precision": None,
    }
    return tcpcast.load("two-classes", changes=tables | changes)


def test_two_classes_converge_below_the_threshold() -> None:
    scenario = two_classes({"run.seed": 2})
    assert compute_offered_load(scenario) == pytest.approx(0.47, abs=0.01)
    exact, answer = tcpcast.run(scenario, ["packet", "fixed-point"], threads=1)
    assert answer.incomplete_reason is None
    expected, result = exact.tables["by_class"], answer.tables["by_class"]
    for name in ("connection_rate_bps", "on_time_s", "rtt_mean_s"):
        np.testing.assert_allclose(result[name], expected[name], rtol=0.06)
        assert np.all(result[f"{name}_low"] < result[name])


@pytest.mark.parametrize("scheme", [0, 2])
def test_each_class_has_its_own_tcp(scheme: int) -> None:
    """Regression: all classes had the TCP of the first one."""
    windows: dict[str, Any] = {
        "class.near.tcp.receiver_window": 44,
        "class.far.tcp.receiver_window": 4,
    }
    scenario = two_classes(windows | {"run.duration": "500s", "fixed_point.scheme": scheme})
    exact, answer = tcpcast.run(scenario, ["packet", "fixed-point"], threads=1)
    expected, result = exact.tables["by_class"], answer.tables["by_class"]
    np.testing.assert_allclose(result["on_time_s"], expected["on_time_s"], rtol=0.1)
    table = answer.tables["convergence"]
    (rates,) = np.nonzero((table["what"] == "rate while on") & (table["class"] == "far"))
    assert abs(table["difference"][rates[0]]) < 0.1  # cross flows also have the window


def test_untrusted_classes_have_no_intervals() -> None:
    scenario = two_classes({"traffic.off.mean": "1s", "run.duration": "200s"})
    exact, answer = tcpcast.run(scenario, ["packet", "fixed-point"], threads=1)
    assert has_untrusted_values(answer, "above the threshold")
    rows = [*compare_classes([exact, answer])["far"].rows]
    rows += compare_goodput_percentiles([exact, answer]).rows
    for row in rows:
        metric = row.metrics[1]
        assert metric is None or (not metric.trusted and metric.low is None)
        assert metric is None or metric.interval_warning == "above the threshold"
        assert row.differences == (None, None)


def test_packet_engine_is_suggested_without_fixed_point() -> None:
    """Regression: the suggested stack max-plus-reno had no fixed point either."""
    bulk = tcpcast.load("bufferbloat", changes={"traffic.flows": 4, "run.replications": 1})
    for scenario in (tcpcast.load("two-classes"), bulk):
        (result,) = tcpcast.run(scenario, ["fixed-point"])
        assert not result.applies
        assert [suggestion.engine for suggestion in result.suggestions] == ["packet"]
    (result,) = tcpcast.run(bulk.with_changes({"tcp.stack": "max-plus-reno"}), ["fixed-point"])
    assert "differences from the reference flows persist" in (result.incomplete_reason or "")


def test_bulk_flows_with_per_flow_buffers_agree() -> None:
    """Section 6: 24 flows on 100 packets per second, two reference flows; per-flow buffers of 5."""
    scenario = Scenario.from_dict(
        {
            "network": {
                "packet": "1000B",
                "ingress": {"rate": "10mbit", "delay": "2ms"},
                "bottleneck": {
                    "rate": "800kbit",
                    "delay": "3ms",
                    "buffer": "5pkt",
                    "queue": {"kind": "fq", "buffers": "individual"},
                },
                "egress": {"rate": "10mbit", "delay": "1ms"},
            },
            "traffic": {"kind": "bulk", "flows": 24, "start": START},
            "tcp": {"stack": "max-plus-reno", "receiver_window": 1000},
            "run": {"duration": "1100s", "warmup": "100s"},
        }
    )
    exact = simulate(scenario, "packet")
    result = reference_metrics(simulate(with_options(scenario)))
    assert result["goodput_pps"] == within(exact["goodput_pps"], 0.01)
    assert result["loss_ratio"] == within(exact["loss_ratio"], 0.05)
    assert result["rtt_mean_s"] == within(exact["rtt_mean_s"], 0.03)


def behind_backbone(sources: int, case: int, seconds: float, warmup_s: float = 100.0) -> Scenario:
    """The loop behind the backbones of Table 4 (case 2) or 5 (case 3), one backbone per source."""
    return LocalLoop(sources, noise=NOISES[case]).scenario(Length(seconds, warmup_s, 1), {})


def check_behind_backbone(scenario: Scenario, exact: Answer, **table: Any) -> Answer:
    answer = simulate(with_options(scenario, **table))
    result = reference_metrics(answer)
    assert result["connection_rate_bps"] == within(exact["connection_rate_bps"], 0.05)
    assert result["rtt_mean_s"] == within(exact["rtt_mean_s"], 0.05)
    goodput, expected = (run.tables["file_goodput"]["goodput_bps"][0] for run in (answer, exact))
    assert goodput == within(expected, 0.1)
    return answer


@pytest.fixture(scope="module")
def backbone() -> tuple[Scenario, Answer]:
    # The noise is correlated in time: 250 flows need that long to sample it.
    scenario = behind_backbone(2500, 2, 1000.0)
    return scenario, simulate(scenario, "packet")


# The test below covers a fuller router in a shorter run.
@pytest.mark.long
@pytest.mark.parametrize("table", [{"scheme": 0}, {}])
def test_per_flow_hops_with_cross_traffic_agree(
    table: dict[str, Any], backbone: tuple[Scenario, Answer]
) -> None:
    check_behind_backbone(*backbone, **table, references=250, steps=6, step="15s")


def test_losses_at_per_flow_hops_agree() -> None:
    tables = LocalLoop(600, noise=NOISES[3]).scenario(Length(200.0, 100.0, 1), {}).resolved()
    tables["network"]["hop"][0]["buffer"] = "200pkt"
    tables["traffic"]["correlation"] = 0.5
    scenario = Scenario.from_dict(tables)
    exact = simulate(scenario, "packet")
    answer = simulate(with_options(scenario, step="15s"))
    assert "loss at per-source hops" in answer.tables["convergence"]["what"]
    result = reference_metrics(answer)
    assert result["other_loss_ratio"] == within(exact["other_loss_ratio"], 0.1)
    assert result["connection_rate_bps"] == within(exact["connection_rate_bps"], 0.05)
    assert result["rtt_mean_s"] == within(exact["rtt_mean_s"], 0.05)
    goodput, expected = (run.tables["file_goodput"]["goodput_bps"][0] for run in (answer, exact))
    assert goodput == within(expected, 0.1)


OTHER_HOP: dict[str, Any] = {
    "hop": [
        {"name": "first", "rate": "200mbit", "delay": "1ms"},
        {"name": "loop", "rate": "100mbit", "queue": {"kind": "fq"}},
    ]
}


def test_fixed_point_requires_one_shared_router() -> None:
    tables = local_loop(300).resolved()
    del tables["network"]["bottleneck"]
    tables["network"] |= OTHER_HOP
    answer = simulate(Scenario.from_dict(tables))
    assert answer.not_applicable is not None
    assert "network.hop.0.shared = false" in answer.not_applicable


def test_results_are_independent_of_threads_and_order() -> None:
    tables = local_loop(300).resolved()
    tables["run"] |= {"replications": 3, "duration": "140s"}
    scenario = with_options(Scenario.from_dict(tables), conditional=True, steps=4)
    one, three = simulate(scenario), simulate(scenario, threads=3)
    for name, table in one.tables.items():
        for column, values in table.items():
            assert np.array_equal(
                values, three.tables[name][column], equal_nan=values.dtype == float
            )


@pytest.mark.parametrize(
    ("changes", "advice"),
    [
        ({"tcp.stack": "rfc-newreno", "tcp.idle_restart": "never"}, "max-plus-reno"),
        (
            {"network.ingress.buffer": "10pkt"},
            "remove network.ingress.buffer and network.egress.buffer",
        ),
        (
            {"network.bottleneck.loss": {"model": "bernoulli", "rate": "1%"}},
            "lost only in the shared queue",
        ),
        ({"run.precision": "1%"}, "run.duration"),
    ],
)
def test_unsupported_scenarios_are_rejected(changes: dict[str, Any], advice: str) -> None:
    answer = simulate(local_loop(300).with_changes(changes))
    assert answer.not_applicable is not None
    assert advice in answer.not_applicable


def test_voice_and_video_in_the_shared_router_agree_with_exact_simulation() -> None:
    voice = {"name": "voice", "model": "pareto", "mean": "10mbit", "sources": 200}
    video = {"name": "video", "model": "fgn", "mean": "10mbit", "sd": "2mbit", "hurst": 0.8}
    periods = {"on": "1s", "off": "1.35s"}
    scenario = Scenario.from_dict(
        {**local_loop(2500).resolved(), "cross": [voice | periods, video]}
    )
    assert compute_offered_load(scenario) == pytest.approx(0.5 / 0.8)
    answer, exact = simulate(with_options(scenario, steps=8)), simulate(scenario, "packet")
    assert not failed_tests(answer)
    assert "time in the router" not in answer.tables["convergence"]["what"]
    assert answer.tables["cross"]["offered_bps"] == pytest.approx(10e6, rel=0.1)
    for name, tolerance in (("connection_rate_bps", 0.03), ("rtt_mean_s", 0.02)):
        assert answer[name] == pytest.approx(exact[name], rel=tolerance)


def test_streams_evict_packets_of_flows_in_overload() -> None:
    # The run checks the conservation of packets.
    stream = {"name": "video", "model": "poisson", "mean": "20%"}
    scenario = Scenario.from_dict({**local_loop(6000).resolved(), "cross": [stream]})
    answer = simulate(with_options(scenario, steps=4))
    assert has_untrusted_values(answer, "above the threshold")
    # Each flow has more packets in the queue than its share of the streams' flow.
    assert reference_metrics(answer)["loss_ratio"] > 0.02
    assert float(answer.tables["cross"]["loss_ratio"][0]) > 0.02


def test_streams_that_fill_the_shared_router_leave_no_capacity() -> None:
    stream = {"name": "video", "model": "poisson", "mean": "100%"}
    scenario = Scenario.from_dict({**local_loop(2500).resolved(), "cross": [stream]})
    assert compute_offered_load(scenario) == float("inf")
