"""Ranges, lists, zip and latin: cells of a sweep, and rejected input."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import tcpcast
from hypothesis import given
from hypothesis import strategies as st
from tcpcast.process.errors import ScenarioError, TcpcastError
from tcpcast.scenario import Scenario, Sweep
from tcpcast.scenario.changes import apply_changes
from tcpcast.sweeps.axes import common_quantity_kind
from tcpcast.sweeps.prepared import make_grid, prepare_sweep
from tcpcast.sweeps.table import get_column_kind

from sweeps.conftest import TABLES


def values(typed: Any) -> tuple[Any, ...]:
    (axis,) = make_grid(Sweep.model_validate({"a.b": typed}), 1).axes
    return axis.values


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("1ms..100ms log 3", ("1ms", "10ms", "100ms")),
        ("1ms..100ms 3", ("1ms", "10ms", "100ms")),
        ("500us..2ms lin 4", ("500us", "1ms", "1.5ms", "2ms")),
        ("0..10 lin 3", (0, 5, 10)),
        ("1..64 log 7", (1, 2, 4, 8, 16, 32, 64)),
        ("1..4", (1, 2, 3, 4)),
        ("0.5..2 lin 4", (0.5, 1.0, 1.5, 2.0)),
        ("0.1%..10% log 3", ("0.1%", "1%", "10%")),
        ("1mbit..1gbit 4", ("1mbit", "10mbit", "100mbit", "1gbit")),
        ("1bdp..4bdp log 3", ("1bdp", "2bdp", "4bdp")),
        ("10pkt..100pkt 3", ("10pkt", "32pkt", "100pkt")),
        (["b", "a"], ("b", "a")),
        ([True, False], (True, False)),
    ],
)
def test_ranges_and_lists_give_values(typed: Any, expected: tuple[Any, ...]) -> None:
    assert values(typed) == expected


def test_range_of_ten_thousand_values_has_no_duplicates() -> None:
    range_values = values("10ms..200ms log 10000")
    assert len(set(range_values)) == 10_000


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"a.b": "5ms"}, 'one value; use a range such as "10ms..200ms log 8", or a list'),
        (
            {"a.b": "5ms, 9ms"},
            'one text; use a range such as "10ms..200ms log 8", or a list: ["5ms", "9ms"]',
        ),
        ({"a.b": "10ms..5ms"}, "is in descending order; use 5ms..10ms"),
        ({"a.b": "0..5"}, "use 1..5, or lin for equal steps"),
        ({"a.b": "0..1"}, "use lin for equal steps"),
        ({"a.b": "0%..5% log 3"}, "use 0.05%..5%, or lin for equal steps"),
        ({"a.b": "0ms..20ms log 3"}, "use 200us..20ms, or lin for equal steps"),
        ({"a.b": "1ms..5mbit"}, "ends of different kinds"),
        (
            {"a.b": "1ms..5ms latin 8"},
            '"latin" is not a spacing; use log or lin, as in "1ms..5ms',
        ),
        ({"a.b": "1ms..2ms log 1"}, "of values from 2 to"),
        ({"a.b": "1.."}, "has no end"),
        ({"a.b": []}, "the list contains 0 values"),
        ({"a.b": [1, 1]}, "1 is listed twice"),
        ({"engine": ["pftk"]}, 'did you mean "engines"?'),
        ({"a.b": [1, 2], "zip": ["a.b", "c.d"]}, '"c.d" does not vary'),
        ({"a.b": [1, 2], "c.d": [1], "zip": ["a.b", "c.d"]}, "a.b has 2, c.d has 1"),
        ({"a.b": [1, 2], "zip": ["a.b"]}, "a group contains only one key"),
        ({"a.b": [1, 2], "latin": 5}, "no key is a range"),
        ({"a.b": "1..9 log 3", "latin": 5}, "remove the 3"),
        ({f"a.{i}": list(range(1000)) for i in range(3)}, "1,000,000,000 combinations"),
    ],
)
def test_invalid_grids_are_rejected(table: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        make_grid(Sweep.model_validate(table), 1)
    assert message in str(caught.value)


def test_cells_are_all_combinations_with_the_last_key_fastest() -> None:
    grid = make_grid(Sweep.model_validate({"a.b": [1, 2], "c.d": ["x", "y", "z"]}), 1)
    assert len(grid) == 6
    assert [tuple(grid.cell(i).values()) for i in range(4)] == [
        (1, "x"), (1, "y"), (1, "z"), (2, "x"),
    ]  # fmt: skip


def test_zipped_keys_vary_together() -> None:
    table = {"a.b": [1, 2], "c.d": [3, 4], "e.f": [5, 6], "zip": ["a.b", "c.d"]}
    grid = make_grid(Sweep.model_validate(table), 1)
    cells = [tuple(grid.cell(i).values()) for i in range(len(grid))]
    assert cells == [(1, 3, 5), (1, 3, 6), (2, 4, 5), (2, 4, 6)]


@given(st.integers(2, 50), st.integers(0, 2**40))
def test_latin_draws_once_from_each_part_of_each_range(count: int, seed: int) -> None:
    table = {"a.b": "0..1.0 lin", "c.d": "1.0..100.0 log", "e.f": ["x", "y"], "latin": count}
    grid = make_grid(Sweep.model_validate(table), seed)
    assert len(grid) == 2 * count
    first, second, _ = grid.axes
    # Values are rounded, perhaps up to the end of their part.
    parts = enumerate(sorted(count * value for value in first.values))
    assert all(part - 1e-3 <= value <= part + 1 + 1e-3 for part, value in parts)
    assert all(1.0 <= value <= 100.0 for value in second.values)
    assert grid == make_grid(Sweep.model_validate(table), seed)


def test_latin_repeats_whole_numbers_of_a_short_range() -> None:
    grid = make_grid(Sweep.model_validate({"a.b": "1..4", "latin": 10}), 1)
    assert len(grid) == 10


def read_day(folder: Path, text: str) -> Scenario:
    (folder / "day.csv").write_text(text, encoding="utf-8")
    return Scenario.from_dict(TABLES | {"sweep": {"file": "day.csv"}}, folder=folder)


def test_rows_of_a_file_are_cells(tmp_path: Path) -> None:
    day = "# people\nname, traffic.flows, network.rtt\n00:00, 2, 20ms\n06:00, 1, 20ms\n"
    sweep = prepare_sweep(read_day(tmp_path, day))
    cells = [sweep.grid.cell(number) for number in range(len(sweep.grid))]
    assert cells == [
        {"name": "00:00", "traffic.flows": 2, "network.rtt": "20ms"},
        {"name": "06:00", "traffic.flows": 1, "network.rtt": "20ms"},
    ]
    assert list(sweep.figure_keys) == ["name"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hour,traffic.flows\n1,2\n", "line 1: use a CSV file whose columns are dotted keys"),
        ("network.rtt,network.rtt\n1ms,2ms\n", "line 1: use a CSV file whose columns are dotted"),
        ("name,traffic.flows\n1\n", "line 2: each of the 2 columns requires a value"),
        ("name,traffic.flows\n1,2\n1,2\n", "1, 2 is listed twice"),
        ("name,traffic.flows\n", "day.csv contains no rows; use"),
        ("", "day.csv contains no rows; use"),
    ],
)
def test_wrong_files_are_rejected(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=message):
        prepare_sweep(read_day(tmp_path, text))


def test_columns_are_numeric_for_quantities_of_one_kind() -> None:
    def kind(*typed: Any) -> str:
        return get_column_kind(make_grid(Sweep.model_validate({"a.b": list(typed)}), 1).axes[0])

    assert kind("10ms", "1s") == "time"
    assert kind(1, 2) == "integer"
    assert kind(1, 2.5) == "number"
    assert kind(True, False) == "truth"
    assert kind("1bdp", "2bdp") == "bdp"
    assert kind("1bdp", "20pkt") == "text"
    assert kind("linux-reno", "linux-cubic") == "text"
    assert kind("unlimited", "1mbit") == "text"
    assert common_quantity_kind(["0.1%", 0.01]) == "ratio"


@pytest.mark.parametrize(
    ("vary", "message"),
    [
        ({"network.rt": "1ms..2ms"}, 'sweep.network.rt: unknown key; did you mean "rtt"?'),
        ({"rtt": ["1ms", "2ms"]}, 'use "network.rtt"'),
        ({"network.rtt": [5, 6]}, 'sweep.network.rtt: 5 has no unit; use "5ms"'),
        ({"tcp.stack": ["linux-renoo"]}, 'did you mean "linux-reno"?'),
        ({"network.rtt": 5}, "5 is not a range or list"),
        ({"sweep.latin": [2, 3]}, "cannot vary the table [sweep]"),
        (["network.rtt"], "is not a table"),
        ({}, "no key varies"),
    ],
)
def test_unknown_keys_and_values_are_rejected_before_running(
    path: Scenario, vary: Any, message: str
) -> None:
    with pytest.raises(ScenarioError) as caught:
        tcpcast.sweep(path, vary, engines="pftk")
    assert message in str(caught.value)


def test_sweep_table_is_not_part_of_resolved_scenario() -> None:
    table = {"network": {"rtt": ["10ms", "20ms"]}, "engines": "pftk, mathis"}
    scenario = Scenario.from_dict({**TABLES, "sweep": table})
    assert scenario.sweep is not None
    assert scenario.sweep.vary == {"network.rtt": ["10ms", "20ms"]}
    assert scenario.digest() == Scenario.from_dict(TABLES).digest()
    assert "sweep" not in scenario.to_toml()
    assert len(tcpcast.sweep(scenario)) == 4
    assert len(tcpcast.sweep(scenario, {"network.rtt": ["30ms"]})) == 2


def test_only_one_kind_of_worker_is_accepted(path: Scenario) -> None:
    vary = {"network.rtt": ["10ms", "20ms"]}
    with pytest.raises(TcpcastError, match="mutually exclusive; use one"):
        tcpcast.sweep(path, vary, processes=1, dask="tcp://127.0.0.1:1")
    with pytest.raises(TcpcastError, match="not a number of processes"):
        tcpcast.sweep(path, vary, processes=0)


CHANGES: list[dict[str, Any]] = [
    {"network.rtt": "80ms"},
    {"network.packet": "576B"},
    {"tcp.stack": "linux-cubic"},
    {"tcp.receiver_window": "64KiB"},
    {"traffic.flows": 3, "run.seed": 5},
    {"traffic": {"kind": "transfers", "size": "10pkt"}, "run": {}},
    {"network.bottleneck.queue": "codel", "tcp.stack": "linux-reno", "tcp.ecn": True},
    {"run.precision": "5%"},
    {"class": [{"name": "far", "rtt": "200ms", "flows": 2}]},
    {"network.egress.rate": "1mbit"},
    {"probes.flows": [0], "network.bottleneck.loss": {"model": "bernoulli", "rate": "1%"}},
    {"network.hop": [{"name": "one", "rate": "1mbit"}], "network.bottleneck": None},
]


@pytest.mark.parametrize("changes", CHANGES)
def test_changed_scenario_equals_new_scenario(path: Scenario, changes: dict[str, Any]) -> None:
    changed = path.with_changes(changes)
    back = changed.with_changes({"network.bottleneck.loss": "2%"})
    for scenario in (changed, back):
        anew = Scenario.from_dict(scenario.source_tables()[0])
        assert scenario == anew
        assert scenario.digest() == anew.digest() == whole_digest(anew)
        assert scenario.populations == anew.populations
        assert scenario.warnings() == anew.warnings()
    assert path == Scenario.from_dict(TABLES)


def whole_digest(scenario: Scenario) -> str:
    text = json.dumps(scenario.resolved(), sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


@pytest.mark.parametrize(
    "changes",
    [
        {"network.rtt": "0ms"},
        {"network.bottlneck.rate": "1mbit"},
        {"network.bottleneck.buffer": "10ms", "run.seed": "x"},
        {"tcp.stack": "linux-reno", "tcp.min_rto": "-1s"},
        {"traffic.kind": "on-off"},
        {"probes.flows": [9]},
        {"run.duration": "1s", "run.warmup": "2s"},
    ],
)
def test_errors_of_changes_equal_errors_of_new_scenario(
    path: Scenario, changes: dict[str, Any]
) -> None:
    tables = apply_changes(path.source_tables()[0], changes)
    with pytest.raises(ScenarioError) as anew:
        Scenario.from_dict(tables)
    with pytest.raises(ScenarioError) as changed:
        path.with_changes(changes)
    assert str(changed.value) == str(anew.value)
