"""DCTCP through two bottlenecks: the simulated rates of Figure 17."""

import json

import pytest
from tcpcast.cli import main


def test_rates_of_figure_17_are_within_ten_percent(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["reproduce", "dctcp", "--quick", "--json", "--cell", "Two bottlenecks, Figure 17"]
    assert main(command) == 0
    (section,) = json.loads(capsys.readouterr().out)["sections"]
    assert [row["published"] for row in section["rows"]] == [46, 475, 54]
    assert [row["verdict"] for row in section["rows"]] == ["agrees"] * 3
