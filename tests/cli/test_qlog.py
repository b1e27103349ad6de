"""Windows and packets of a run as qlog."""

import json
from pathlib import Path

import pytest
from tcpcast.cli import main

PAYLOAD = 1448


def test_qlog_has_the_windows_and_packets_of_each_flow(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "run.qlog"
    command = ["run", "cubic-and-bbr", "--engine", "packet", "--out", str(log)]
    command += ["--set", "run.duration=5s", "--set", "run.warmup=0s", "--set", "run.replications=1"]
    assert main([*command, "--set", "probes.flows=[0,2]"]) in {0, 1}
    assert f"wrote {log}" in capsys.readouterr().err
    document = json.loads(log.read_text())
    assert document["qlog_version"] == "0.3"
    assert [trace["title"] for trace in document["traces"]] == [
        "cubic-and-bbr, flow 0",
        "cubic-and-bbr, flow 2",
    ]
    for trace in document["traces"]:
        events = trace["events"]
        times = [event["time"] for event in events]
        assert times == sorted(times)
        assert 4_000 < times[-1] <= 5_000  # ms
        sent = [event for event in events if event["name"] == "transport:packet_sent"]
        assert sent[0]["data"]["raw"]["length"] == PAYLOAD
        metrics = [e["data"] for e in events if e["name"] == "recovery:metrics_updated"]
        windows = [data for data in metrics if "congestion_window" in data]
        assert windows[0]["congestion_window"] == 10 * PAYLOAD
        assert max(each["bytes_in_flight"] for each in windows) > 10 * PAYLOAD
    phases = [
        [e["data"] for e in trace["events"] if e["name"] == "recovery:congestion_state_updated"]
        for trace in document["traces"]
    ]
    assert phases[0] == []  # CUBIC
    assert phases[1][:3] == [
        {"new": "startup"},
        {"old": "startup", "new": "drain"},
        {"old": "drain", "new": "probe_bw"},
    ]
    assert any("pacing_rate" in e["data"] for e in document["traces"][1]["events"])


def test_each_flow_has_the_protocol_of_its_class(tmp_path: Path) -> None:
    file, log = tmp_path / "mixed.toml", tmp_path / "run.qlog"
    file.write_text(
        """
        [network]
        rtt = "70ms"
        bottleneck = { rate = "12mbit", buffer = "20ms" }
        [[class]]
        name = "tcp"
        flows = 1
        traffic = { kind = "bulk" }
        [[class]]
        name = "quic"
        flows = 1
        traffic = { kind = "bulk" }
        tcp = { stack = "quic" }
        [probes]
        flows = [0, 1]
        [run]
        duration = "5s"
        warmup = "0s"
        replications = 1
        """
    )
    assert main(["run", str(file), "--engine", "packet", "--out", str(log)]) in {0, 1}
    first, second = json.loads(log.read_text())["traces"]
    protocols = [trace["common_fields"]["protocol_type"] for trace in (first, second)]
    assert protocols == [["TCP"], ["QUIC"]]
    windows = [e["data"] for e in second["events"] if "congestion_window" in e["data"]]
    # More is in flight than the window only until a reduction (to 70 %) is drained.
    beyond = [w for w in windows if w["bytes_in_flight"] > w["congestion_window"]]
    assert 0 < len(beyond) < 0.1 * len(windows)
    assert max(w["bytes_in_flight"] / w["congestion_window"] for w in beyond) < 1.5


def test_qlog_requires_recorded_flows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "one-path", "--out", str(tmp_path / "run.qlog")]) == 2
    assert "requires recorded flows; use --set probes.flows=[0]" in capsys.readouterr().err
