"""Engine ``trace``: metrics of a capture, and formulas that use them as inputs."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import tcpcast
from tcpcast.cli import main
from tcpcast.compare import compare_metrics
from tcpcast.models.parallel import cumulative_throughput, parallel_throughput
from tcpcast.models.pftk import throughput
from tcpcast.scenario import CapturedFlows, Scenario, load

if TYPE_CHECKING:
    from pathlib import Path

    from tcpcast.report.answers import Answers

    Output = pytest.CaptureFixture[str]

PATH: dict[str, Any] = {
    "network": {"rtt": "60ms", "bottleneck": {"rate": "4mbit", "buffer": "20pkt", "loss": "3%"}},
    "traffic": {"kind": "bulk", "flows": 3},
    "tcp": {"stack": "rfc-newreno"},
    "run": {"duration": "650s", "warmup": "0s"},
}
ALIKE = (
    "td_indications", "to_indications", "timeouts", "loss_indication_ratio", "timeout_share",
    "retransmit_ratio",
)  # fmt: skip
"""Metrics for which capture and simulator agree exactly."""
NEAR = {"send_rate_pps": 1e-3, "goodput_pps": 2e-3, "t0_s": 0.02, "rtt_mean_s": 0.05}
"""Metrics that depend on the end of a run, the timed packets, or the packets in flight."""


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> tuple[tcpcast.Answer, Path]:
    folder = tmp_path_factory.mktemp("engine")
    tap = {"link": "sender", "file": str(folder / "flows.pcap"), "packets": 1_000_000}
    (answer,) = tcpcast.run(Scenario.from_dict(PATH | {"probes": {"pcap": [tap]}}), ["packet"])
    text = '[traffic]\nkind = "capture"\nfile = "flows.pcap"\nconnection = "all"\n'
    (folder / "captured.toml").write_text(text)
    return answer, folder


@pytest.fixture(scope="module")
def answers(simulated: tuple[tcpcast.Answer, Path]) -> Answers:
    return tcpcast.run(load(simulated[1] / "captured.toml"))


def test_capture_metrics_equal_simulator_counters(
    simulated: tuple[tcpcast.Answer, Path], answers: Answers
) -> None:
    original, measured = simulated[0], answers["trace"]
    for metric in ALIKE:
        assert measured[metric] == pytest.approx(original[metric], rel=1e-9), metric
    for metric, tolerance in NEAR.items():
        assert measured[metric] == pytest.approx(original[metric], rel=tolerance), metric
    payload = 1460 * 8
    assert measured["goodput_bps"] == pytest.approx(measured["goodput_pps"] * payload, rel=1e-9)
    event_ratio = measured["loss_event_ratio_cumulative"]
    assert event_ratio == pytest.approx(original["loss_event_ratio_cumulative"], rel=0.05)
    assert measured["jain_index"] == pytest.approx(original["jain_index"], abs=2e-3)
    assert "completion_time_s" not in measured.metrics


def test_metrics_have_intervals_from_100_s_batches(answers: Answers) -> None:
    metrics = answers["trace"].metrics
    for name in ("send_rate_pps", "goodput_bps", "loss_indication_ratio", "rtt_mean_s"):
        estimate = metrics[name]
        assert estimate.low is not None, name
        assert estimate.high is not None, name
        assert estimate.low < estimate.value < estimate.high, name
        assert estimate.high - estimate.low < 0.3 * estimate.value, name
    assert metrics["timeouts"].low is None


def test_few_batches_give_no_interval(tmp_path: Path) -> None:
    tap = {"link": "sender", "file": str(tmp_path / "short.pcap")}
    short = PATH | {"probes": {"pcap": [tap]}, "run": {"duration": "250s", "warmup": "0s"}}
    tcpcast.run(Scenario.from_dict(short), ["packet"])
    traffic = {"kind": "capture", "file": str(tmp_path / "short.pcap")}
    answer = tcpcast.run(Scenario.from_dict({"traffic": traffic}), ["trace"])["trace"]
    assert all(estimate.low is None for estimate in answer.metrics.values())
    # It is still the reference of the comparison.
    assert (
        compare_metrics(tcpcast.run(Scenario.from_dict({"traffic": traffic}))).reference is not None
    )


def captured_inputs(answer: tcpcast.Answer) -> dict[str, Any]:
    assert answer.captured is not None
    return answer.captured.fed


def test_formulas_use_measured_inputs(answers: Answers) -> None:
    measured = answers["trace"]
    inputs = captured_inputs(measured)
    assert inputs["flows"] == 3
    path = {
        "rtt_s": measured["rtt_mean_s"],
        "t0_s": measured["t0_s"],
        "packets_per_ack": inputs["packets_per_ack"],
    }
    p = measured["loss_indication_ratio"]
    # The receiver advertises the maximum window of TCP.
    assert inputs["w_max_pkts"] > 1e5
    one = throughput(
        rtt_s=path["rtt_s"],
        t0_s=path["t0_s"],
        loss_indication_ratio=p,
        packets_per_ack=path["packets_per_ack"],
    )
    assert answers["pftk"]["send_rate_pps"] == pytest.approx(3 * float(one.rate_pps))
    parallel = parallel_throughput(
        flows=3,
        loss_event_ratio=p,
        rtt_s=path["rtt_s"],
        t0_s=path["t0_s"],
        packets_per_ack=path["packets_per_ack"],
    )
    assert answers["parallel"]["send_rate_pps"] == pytest.approx(float(parallel.rate_pps))
    cumulative = cumulative_throughput(
        flows=3,
        loss_event_ratio_cumulative=measured["loss_event_ratio_cumulative"],
        loss_ratio=inputs["loss_ratio"],
        rtt_s=path["rtt_s"],
        t0_s=path["t0_s"],
        packets_per_ack=path["packets_per_ack"],
    )
    rate = answers["parallel-cumulative"]["send_rate_pps"]
    assert rate == pytest.approx(float(cumulative.rate_pps))
    steps = answers["pftk"].steps
    sources = [step["source"] for step in steps if step["symbol"] in {"p", "RTT", "T0", "b", "n"}]
    assert all(source.startswith("capture: ") for source in sources)
    assert answers["pftk"].provenance["feed"] == "measured"


def test_loss_ratio_is_estimated_from_one_tap(
    simulated: tuple[tcpcast.Answer, Path], answers: Answers
) -> None:
    """The estimate of a single tap is within 10 % here."""
    lost = captured_inputs(answers["trace"])["loss_ratio"]
    assert lost == pytest.approx(simulated[0]["loss_ratio"], rel=0.1)


def test_default_engines_are_trace_and_formulas(answers: Answers) -> None:
    names = [answer.engine for answer in answers]
    assert {"trace", "pftk", "mathis", "parallel"} <= set(names)
    assert not {"packet", "engset", "short", "cardwell", "cubic-response", "bbr-bound"} & set(names)


@pytest.mark.parametrize(
    ("stack", "expected", "left_out"),
    [
        ("linux-cubic", {"pftk", "cubic-response"}, {"bbr-bound"}),
        ("linux-reno", {"pftk"}, {"cubic-response", "bbr-bound"}),
        ("linux-bbr", {"bbr-bound"}, {"pftk", "mathis", "cubic-response", "parallel"}),
    ],
)
def test_default_models_fit_the_identified_congestion_control(
    stack: str, expected: set[str], left_out: set[str], tmp_path: Path
) -> None:
    file = str(tmp_path / "flow.pcap")
    network = {"rtt": "60ms", "bottleneck": {"rate": "20mbit", "buffer": "100pkt", "loss": "0.1%"}}
    tap = {"link": "sender", "file": file, "packets": 1_000_000}
    tables = {"network": network, "traffic": {"kind": "bulk", "flows": 1}, "tcp": {"stack": stack}}
    run = {"duration": "60s", "warmup": "0s"}
    tcpcast.run(Scenario.from_dict(tables | {"run": run, "probes": {"pcap": [tap]}}), ["packet"])
    scenario = Scenario.from_dict({"traffic": {"kind": "capture", "file": file}})
    answers = tcpcast.run(scenario)
    names = {answer.engine for answer in answers}
    assert expected <= names
    assert not left_out & names
    has_bbr_warning = "looks like BBR".lower() in " ".join(answers["trace"].warnings).lower()
    assert has_bbr_warning is (stack == "linux-bbr")
    # An engine that is requested by name still answers.
    assert tcpcast.run(scenario, ["pftk"])["pftk"].not_applicable is None


def test_provenance_identifies_the_capture(
    simulated: tuple[tcpcast.Answer, Path], answers: Answers
) -> None:
    provenance = answers["trace"].provenance
    content = (simulated[1] / "flows.pcap").read_bytes()
    assert provenance["sha256"] == hashlib.sha256(content).hexdigest()
    assert provenance["capture"] == str(simulated[1] / "flows.pcap")
    json.dumps([answer.to_json() for answer in answers], allow_nan=False)
    tables = answers["trace"].tables
    assert tables["by_flow"]["td"].sum() == answers["trace"]["td_indications"]
    assert tables["model_intervals"]["sent_pkts"].sum() == tables["by_flow"]["data_packets"].sum()
    assert np.isfinite(tables["models"]["interval_error"]).all()


def test_connection_key_selects_one_flow(simulated: tuple[tcpcast.Answer, Path]) -> None:
    scenario = load(simulated[1] / "captured.toml")
    table = tcpcast.trace(simulated[1] / "flows.pcap").connections
    (second,) = table["connection"][table["src"] == "10.0.0.2:1025"].tolist()
    for which in (second, "10.0.0.2", "10.0.0.2 > 10.128.0.2:80"):
        one = tcpcast.run(scenario.with_changes({"traffic.connection": which}), ["trace"])["trace"]
        assert one.tables["by_flow"]["name"].tolist() == ["10.0.0.2:1025 > 10.128.0.2:80"]
        assert "jain_index" not in one.metrics
    with pytest.raises(tcpcast.CaptureError, match="no connection 9"):
        tcpcast.run(scenario.with_changes({"traffic.connection": 9}), ["trace"])


@pytest.mark.parametrize(
    ("engine", "why"),
    [
        ("packet", "--scenario"),
        ("engset", "on/off"),
        ("short", "a capture of exactly one short transfer"),
        ("cardwell", "a capture of exactly one short transfer"),
    ],
)
def test_inapplicable_engines_state_the_reason(
    engine: str, why: str, simulated: tuple[tcpcast.Answer, Path]
) -> None:
    answer = tcpcast.run(load(simulated[1] / "captured.toml"), [engine])[engine]
    assert answer.not_applicable is not None
    assert why in answer.not_applicable


def test_trace_engine_requires_a_capture() -> None:
    (answer,) = tcpcast.run(Scenario.from_dict(PATH), ["trace"])
    assert answer.not_applicable is not None
    assert 'kind = "capture"' in answer.not_applicable


def test_command_line_compares_trace_with_formulas(
    simulated: tuple[tcpcast.Answer, Path], capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    file = str(simulated[1] / "captured.toml")
    assert main(["run", file, "--engine", "trace,pftk"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "all connections" in out
    assert main(["run", file, "--engine", "packet"]) == 2
    capsys.readouterr()
    assert main(["run", file, "--print-scenario"]) == 0
    assert "[network]" not in capsys.readouterr().out.partition("kind")[2]


def test_capture_file_is_relative_to_scenario(simulated: tuple[tcpcast.Answer, Path]) -> None:
    scenario = load(simulated[1] / "captured.toml")
    assert isinstance(scenario.captured, CapturedFlows)
    assert scenario.captured.file == str(simulated[1] / "flows.pcap")
    assert Scenario.from_dict(scenario.resolved()) == scenario
    assert set(scenario.resolved()) == {"name", "traffic"}
