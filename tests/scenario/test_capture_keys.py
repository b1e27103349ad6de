"""Traffic of kind ``capture``: a file and its selected connections, without other tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from tcpcast.errors import ScenarioError
from tcpcast.scenario import CapturedFlows, Scenario, load
from test_schema import SCHEMA

if TYPE_CHECKING:
    from pathlib import Path

VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "slow.pcap").write_bytes(b"read by the engine, not here")
    return tmp_path


def captured(folder: Path, **more: Any) -> Scenario:
    traffic = {"kind": "capture", "file": "slow.pcap", **more}
    return Scenario.from_dict({"traffic": traffic}, folder=folder)


def test_capture_scenario_needs_only_traffic(folder: Path) -> None:
    scenario = captured(folder)
    assert isinstance(scenario.traffic, CapturedFlows)
    assert scenario.captured is scenario.traffic
    assert scenario.captured.file == str(folder / "slow.pcap")
    assert scenario.captured.connection is None
    assert scenario.resolved() == {
        "name": "scenario",
        "traffic": {"kind": "capture", "file": str(folder / "slow.pcap")},
    }
    assert Scenario.from_dict(scenario.resolved()) == scenario
    assert not scenario.warnings()
    assert "slow.pcap" in repr(scenario)
    (folder / "again.toml").write_text(scenario.to_toml())
    assert load(folder / "again.toml").digest() == scenario.digest()


@pytest.mark.parametrize(
    ("typed", "meant"), [(3, 3), ("3", 3), ("all", "all"), (" 10.0.0.1:80 ", "10.0.0.1:80")]
)
def test_capture_connection_selection(typed: object, meant: object, folder: Path) -> None:
    scenario = captured(folder, connection=typed)
    assert scenario.captured is not None
    assert scenario.captured.connection == meant
    assert VALIDATOR.is_valid({"traffic": {"kind": "capture", "file": "a", "connection": typed}})


@pytest.mark.parametrize(
    ("traffic", "line"),
    [
        ({"file": "fast.pcap"}, "traffic.file: the file "),
        ({"file": 3}, "traffic.file: 3 is not a file name; write file = "),
        ({"file": ""}, 'traffic.file: "" is not a file name'),
        ({"connection": -1}, "traffic.connection: -1 is too small"),
        ({"connection": 1.5}, "traffic.connection: 1.5 is not a whole number"),
        ({"connection": ""}, "traffic.connection: "),
        ({"connection": ["10.0.0.1"]}, "traffic.connection: "),
        (
            {"flows": 2},
            'traffic.flows: the capture determines the number of flows; write connection = "all"',
        ),
        ({"conection": 2}, 'traffic.conection: unknown key; did you mean "connection"?'),
    ],
)
def test_each_error_gives_one_line(traffic: dict[str, Any], line: str, folder: Path) -> None:
    with pytest.raises(ScenarioError) as caught:
        captured(folder, **traffic)
    (only,) = str(caught.value).splitlines()
    assert only.startswith(line)


@pytest.mark.parametrize(
    "more",
    [{"network": {"rtt": "1s"}}, {"run": {"seed": 3}}, {"tcp": {}}, {"class": [{"name": "far"}]}],
)
def test_capture_scenario_rejects_measured_tables(more: dict[str, Any], folder: Path) -> None:
    tables = {"traffic": {"kind": "capture", "file": "slow.pcap"}, **more}
    with pytest.raises(ScenarioError, match=f"traffic.kind: .* leave out {next(iter(more))}"):
        Scenario.from_dict(tables, folder=folder)
    assert not VALIDATOR.is_valid(tables)


def test_schema_accepts_capture_without_other_tables() -> None:
    VALIDATOR.validate({"traffic": {"kind": "capture", "file": "slow.pcap"}})
    assert not VALIDATOR.is_valid({"traffic": {"kind": "capture"}})
    assert not VALIDATOR.is_valid({"traffic": {"kind": "bulk", "flows": 1}})


def test_class_rejects_capture(folder: Path) -> None:
    network = {"rtt": "50ms", "bottleneck": {"rate": "10mbit"}}
    entry = {"name": "far", "traffic": {"kind": "capture", "file": "slow.pcap"}}
    tables = {
        "network": network,
        "traffic": {"kind": "bulk"},
        "run": {"duration": "10s"},
        "class": [entry],
    }
    with pytest.raises(ScenarioError, match=r"class\.far\.traffic\.kind: .*at the top level"):
        Scenario.from_dict(tables, folder=folder)
