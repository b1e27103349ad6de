"""`tcpcast trace --models` and `--scenario`: comparison with models, derived scenario."""

import json
from pathlib import Path

import numpy as np
import pytest
import tcpcast
from tcpcast.captures.models import MODEL_LABELS, model_results
from tcpcast.cli import main
from tcpcast.report.text import plain_text
from tcpcast.report.trace_models import model_parts

Output = pytest.CaptureFixture[str]

ROOT = Path(__file__).parents[2]
TRANSFER = ROOT / "crates" / "trace" / "tests" / "data" / "transfer.pcap.gz"


def trace(*arguments: object) -> int:
    return main(["trace", *map(str, arguments)])


def test_models_option_prints_line_per_model(
    capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert trace(TRANSFER, "--models") == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    rates = tcpcast.trace(TRANSFER).models()
    for name, called in MODEL_LABELS.items():
        lines = [line for line in out.splitlines() if line.startswith(f" {called}")]
        assert len(lines) == int(np.isfinite(rates[f"{name}_pps"][0])), name
    (line,) = [line for line in out.splitlines() if MODEL_LABELS["pftk"] in line]
    assert "22.2     -39 %      39 %" in line
    assert "intervals of 100 s: 1 TD" in out


def test_directions_without_loss_are_summarized() -> None:
    capture = tcpcast.trace(TRANSFER)
    capture.connections["loss_indication_ratio"] = np.array([0.0])
    line = plain_text(
        model_parts(capture.connections, model_results(capture, np.array([0])), 1)
    ).strip()
    assert line == "1 direction has no loss indication, so models of loss do not apply"


def test_json_has_models_and_connections(capsys: Output) -> None:
    assert trace(TRANSFER, "--models", "--json") == 0
    (document,) = json.loads(capsys.readouterr().out)["captures"]
    assert list(document) == [
        "file", "verdict", "findings", "subject", "warnings", "rest", "limits", "services",
        "failed", "interruptions", "connections", "models", "model_intervals", "model_errors",
    ]  # fmt: skip
    capture = tcpcast.trace(TRANSFER)
    assert document["models"][0]["pftk_pps"] == capture.models()["pftk_pps"][0]
    assert document["models"][0]["bbr_bound_pps"] is None
    assert document["model_intervals"][0]["class"] == "TD"
    assert document["model_errors"][0]["pftk"] == capture.model_errors()["pftk"][0]


def test_written_scenario_can_be_run(tmp_path: Path, capsys: Output) -> None:
    target = tmp_path / "again.toml"
    assert trace(TRANSFER, "--scenario", target) == 0
    out, err = capsys.readouterr()
    assert "TCP segments" in out
    assert f"wrote {target}; try: tcpcast run {target}" in err
    scenario = tcpcast.load(target)
    assert scenario.name == "again"
    assert scenario.payload_bytes == 1448
    assert scenario.tcp.initial_window == 10
    changes = ["--set", "network.bottleneck.loss=3.3%", "--set", "traffic.flows=4"]
    arguments = [*changes, "--set", "run.duration=60s", "--set", "run.replications=1"]
    assert main(["run", str(target), "--engine", "packet,pftk", *arguments]) == 0
    assert "4 bulk flows" in capsys.readouterr().out


def test_scenario_file_is_not_overwritten(tmp_path: Path, capsys: Output) -> None:
    target = tmp_path / "mine.toml"
    target.write_text("mine")
    assert trace(TRANSFER, "--scenario", target) == 2
    out, err = capsys.readouterr()
    assert not out  # rejected before reading
    assert "is not overwritten" in err
    assert target.read_text() == "mine"
    assert trace(TRANSFER, "--scenario", tmp_path / "none" / "a.toml") == 3
    assert "does not exist; create it" in capsys.readouterr().err
