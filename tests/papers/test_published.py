"""Published measurements: cells of every set, intervals over seeds, and the errors of a set."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tcpcast.cli import main
from tcpcast.process.errors import ScenarioError
from tcpcast.scenario import Scenario
from tcpcast.scenario.modern_stacks import rules_of
from tcpcast_papers.l4s import description as l4s
from tcpcast_papers.l4s.sets import SETS as SETS_OF_L4S
from tcpcast_papers.published import description as published
from tcpcast_papers.published.cells import Cell, CellSet, Value, spread
from tcpcast_papers.published.runs import (
    QUICK,
    SETS,
    Comparison,
    PublishedRuns,
    SampleSizes,
    metric_over_seeds,
)
from tcpcast_papers.published.sections import summary_text
from tcpcast_papers.runner import known_differences

Capture = pytest.CaptureFixture[str]

SERIES = {"aqm_series_cwnd_main.csv.xz", "bbr3_nest_ss_series.csv.xz"}
"""Tables that are not distributed."""


@pytest.mark.parametrize("cell_set", SETS, ids=lambda each: each.name)
def test_every_packaged_cell_is_a_scenario(cell_set: CellSet) -> None:
    cells = cell_set.read(())
    assert bool(cells) == (cell_set.table not in SERIES)
    for cell in cells:
        assert len(cell.label) == len(cell_set.columns)
        assert Scenario.from_dict(cell.tables).measured
        assert cell.packets > 0


def test_series_are_read_from_a_folder(tmp_path: Path) -> None:
    import lzma  # noqa: PLC0415

    name = "cubic_cubic_reno_2.0_100_20_FIFO_none_1_10_10_{}"
    pie = "cubic_cubic_reno_2.0_50_20_pie_drop_10_1_5_1_1"
    rows = [
        [name.format(1), name.format(2), pie],
        *([f"{20 + i}", f"{22 + i}", "5"] for i in range(3)),
    ]
    text = "\n".join(",".join(row) for row in rows)
    (tmp_path / "aqm_series_cwnd_main.csv.xz").write_bytes(lzma.compress(text.encode()))
    cells = next(each for each in SETS if each.table.startswith("aqm")).read([tmp_path])
    assert [cell.label for cell in cells] == [
        ("FIFO", "100", "20", "1 + 10 + 10"),
        ("pie", "50", "20", "1 + 5 + 1"),
    ]
    measured = cells[0].values[0]
    assert (measured.measured, math.isnan(measured.half_width)) == (22, False)
    assert cells[1].tables["link"]["bottleneck"]["queue"]["target"] == "10ms"
    assert cells[1].tables["link"]["bottleneck"]["buffer"] == "249188B"


def test_spread_takes_cells_evenly_and_leaves_out_large_ones() -> None:
    cells = [Cell((str(number),), "", {}, (), packets=10.0) for number in range(100)]
    large = Cell(("large",), "", {}, (), packets=1e9)
    chosen = spread([*cells, large], 200)
    assert [int(cell.label[0]) for cell in chosen] == list(range(0, 100, 5))
    assert spread(cells, 1e6) == tuple(cells)


def test_errors_of_a_set_have_intervals_and_the_worst_cells() -> None:
    single = SETS[0]
    few = [cell for cell in single.read(()) if cell.label[2:] == ("100", "10", "25")]
    runs = PublishedRuns(SampleSizes(seeds=3, packets=1e9))
    runs._cells[single.name] = tuple(few)
    for cell in few:
        runs.request(runs._job(single, cell))
    runs.simulate()
    lines = runs.compare(single)
    assert all(line.is_inside for line in lines)
    assert all(line.own.low is not None and line.own.low <= line.own.value for line in lines)
    text = summary_text(lines)
    assert text.startswith(f"{len(few)} of {len(few)} inside, ")
    assert "worst: 5.15.0-75 " in text
    wrong = replace(lines[0].value, measured=2 * lines[0].value.measured)
    assert not replace(lines[0], value=wrong).is_inside


@pytest.mark.parametrize(
    ("version", "rules"),
    [("4.15.0-191", "4.14"), ("5.13.12", "5.4"), ("5.15.0-75", "5.15"), ("6.4", "6.1")],
)
def test_rules_are_the_newest_that_are_not_newer_than_the_measured_kernel(
    version: str, rules: str
) -> None:
    assert rules_of(version) == rules
    cells = SETS[0].read(())
    kernels = {cell.label[0]: cell.tables["class"][0]["tcp"]["kernel"] for cell in cells}
    assert kernels.get(version, rules) == rules


def test_one_measured_run_is_inside_with_the_probability_of_the_interval() -> None:
    """Values without tolerance of one distribution: 95 % of runs, and fewer without ``runs``."""
    draws = np.random.default_rng(1).normal(10, 1, (2000, 5))

    def share_inside(runs: int) -> float:
        inside = 0
        for measured, *simulated in draws.tolist():
            value = Value("x", "", measured, None, lambda _: 0.0, runs=runs)
            cell = Cell((), "", {}, (value,))
            line = Comparison(cell, value, metric_over_seeds(simulated), len(simulated))
            inside += line.is_inside
        return inside / len(draws)

    assert share_inside(1) == pytest.approx(0.95, abs=0.02)
    assert share_inside(0) < 0.8


def test_one_cell_of_a_set(tmp_path: Path, capsys: Capture) -> None:
    cell = "Single flows, 5.15.0-75, cubic, 100, 10, 25"
    command = ["reproduce", "published", "--quick", "--json", "--cell", cell]
    assert main(command) == 0
    (section,) = json.loads(capsys.readouterr().out)["sections"]
    (row,) = section["rows"]
    assert row["verdict"] == "agrees"
    assert main(["reproduce", "published", "--measurements", str(tmp_path)]) == 2
    assert "no measurement files; use a folder" in capsys.readouterr().err


def test_table_without_a_column_is_reported(tmp_path: Path) -> None:
    (tmp_path / "lossy_paths_atc2025.csv").write_text("control,loss_percent\nCUBIC,1\n")
    runs = PublishedRuns(QUICK, folders=(tmp_path,))
    with pytest.raises(ScenarioError, match=r"lossy_paths_atc2025.csv has no column 'one_way_ms'"):
        runs.request_all()


def test_known_differences_are_those_of_the_cells_and_of_the_sign_tests(tmp_path: Path) -> None:
    """The table of l4s has cells of folders, which are not gone if no folder is given."""
    sizes = SampleSizes(seeds=2, packets=1e5)
    paper = replace(l4s.PAPER, whole=sizes)
    report = published.reproduce(tmp_path / "page", paper=paper, sets=SETS_OF_L4S)
    assert report.known_differences == ()
    assert len(known_differences(l4s.PAPER.package, "whole")) > 3
