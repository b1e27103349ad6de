"""Real engines from the command line to the printed output, with short runs."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import tcpcast
from tcpcast.cli import main

from cli.test_json import DOCUMENT

Capture = pytest.CaptureFixture[str]

SHORT = ["run", "web-10mbit", "--set", "run.transfers=3000", "--engine", "engset,packet"]


def document(arguments: list[str], capsys: Capture) -> dict[str, Any]:
    assert main([*arguments, "--json"]) == 0
    read: dict[str, Any] = json.loads(capsys.readouterr().out)
    return read


def test_run_document_matches_schema(capsys: Capture) -> None:
    result = document(SHORT, capsys)
    jsonschema.validate(result, DOCUMENT)
    engset, packet = result["answers"]
    assert engset["metrics"]["connection_rate_bps"]["value"] == pytest.approx(154.9e3, rel=1e-3)
    assert engset["metrics"]["connection_rate_bps"]["low"] is None
    rate = packet["metrics"]["connection_rate_bps"]
    assert rate["low"] < rate["value"] < rate["high"]
    assert packet["metrics"]["queue_max_pkts"]["low"] is None


def test_table_marks_values_outside_domain(capsys: Capture) -> None:
    assert main(SHORT) == 0
    lines = capsys.readouterr().out.splitlines()
    (loss,) = [line for line in lines if line.split()[:2] == ["loss", "ratio"]]
    assert "†" in loss
    assert "pp" not in loss
    rate, *_ = [line for line in lines if line.split()[:2] == ["connection", "rate"]]
    assert "†" not in rate
    assert rate.rstrip().endswith("%")
    assert any(line.strip().startswith("! engset:") for line in lines)


def test_table_has_percentiles_of_distributions(capsys: Capture) -> None:
    assert main(SHORT) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["percentiles", "unit", "by", "p50", "p95", "p99"] in lines
    (times,) = [line for line in lines if line[:2] == ["ON", "time"] and "packet" in line]
    values = [float(cell) for cell in times[-3:]]
    assert values == sorted(values)
    assert main(["run", "short-transfers", "--engine", "packet", "--set", "traffic.count=500"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["completion", "time,", "30", "packets", "s", "packet"] in [line[:6] for line in lines]


def test_table_shows_main_metrics_and_rest_with_all(capsys: Capture) -> None:
    assert main(SHORT) == 0
    short = capsys.readouterr().out
    names = [line.split("  ")[0].strip() for line in short.splitlines()]
    start = names.index("connection rate")
    assert names[start : start + 4] == ["connection rate", "ON time", "utilisation", "loss ratio"]
    assert "timeout ratio" not in short
    assert " more values with --all" in short
    assert main([*SHORT, "--all"]) == 0
    every = capsys.readouterr().out
    assert "timeout ratio" in every
    assert "--all" not in every


def test_simulator_warnings_list_affected_metrics() -> None:
    scenario = tcpcast.load("web-10mbit", changes={"run.transfers": 300, "run.warmup": "1s"})
    (answer,) = tcpcast.run(scenario, ["packet"])
    named = {name for note in answer.notes for name in note.metrics}
    assert named
    assert named <= answer.metrics.keys() | {"file_goodput"}
    assert any("of files reach" in n.why and n.metrics == ("file_goodput",) for n in answer.notes)


PHASES = """
name = "phases"
network = { rtt = "50ms", bottleneck = { rate = "5mbit", buffer = "20pkt" } }
traffic = { kind = "bulk" }
tcp = { stack = "rfc-newreno" }
run = { duration = "10s", warmup = "2s" }
class = [{ name = "near", flows = 2 }, { name = "far", flows = 2, rtt = "90ms" }]
"""


@pytest.mark.parametrize("engines", ["packet", "packet,mean-field"])
@pytest.mark.parametrize("form", ["--json", "--all"])
def test_scenario_warning_is_shown_once(
    engines: str, form: str, tmp_path: Path, capsys: Capture
) -> None:
    file = tmp_path / "phases.toml"
    file.write_text(PHASES)
    assert main(["run", str(file), "--engine", engines, form]) == 0
    out, err = capsys.readouterr()
    shown = err if form == "--json" else out
    assert shown.count("send without random delay") == 1
    assert "packet: " not in shown.partition("send without random delay")[0].splitlines()[-1]
