"""The table of cross traffic on the terminal, which agrees with the JSON."""

import json
from pathlib import Path

import pytest
from tcpcast.cli import main

SCENARIO = """
[network]
rtt = "50ms"
[network.bottleneck]
rate = "10mbit"
buffer = "50pkt"
[traffic]
kind = "bulk"
flows = 2
[[cross]]
name = "voice"
model = "poisson"
mean = "60%"
[[cross]]
model = "poisson"
mean = "1mbit"
[run]
duration = "30s"
warmup = "10s"
"""


def test_terminal_shows_loss_and_delay_of_cross_traffic(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "cross.toml"
    file.write_text(SCENARIO)
    assert main(["run", str(file), "--engine", "packet", "--json"]) == 0
    (answer,) = json.loads(capsys.readouterr().out)["answers"]
    streams = answer["tables"]["cross"]["columns"]
    assert main(["run", str(file), "--engine", "packet"]) == 0
    lines = capsys.readouterr().out.splitlines()
    heading = next(i for i, line in enumerate(lines) if "cross traffic" in line and "hop" in line)
    assert "loss ratio  mean queue delay" in lines[heading - 1]
    for index, line in enumerate(lines[heading + 2 : heading + 4]):
        name, hop, engine, *values = line.split()
        assert (name, hop, engine) == (streams["name"][index], "bottleneck", "packet")
        expected = [
            streams["offered_bps"][index] / 1e6,
            streams["carried_bps"][index] / 1e6,
            100 * streams["loss_ratio"][index],
            1e3 * streams["queue_delay_mean_s"][index],
        ]
        assert [f"{value:.4g}" for value in expected] == values
    assert main(["run", str(file), "--engine", "packet", "--set", "cross=[]"]) == 0
    assert "cross traffic" not in capsys.readouterr().out
