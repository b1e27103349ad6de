"""Measurements of the kernel: parsing, agreement, networks, and output of a reproduction."""

import csv
import io
import json
import math
import re
from pathlib import Path

import pytest
from tcpcast.answer import Answer, Metric
from tcpcast.cli import main
from tcpcast.engines.kernel.config import raise_if_unsupported
from tcpcast.process.errors import ScenarioError
from tcpcast.scenario import Scenario
from tcpcast_papers.kernel import agreement, cells, comparison
from tcpcast_papers.kernel import sections as kernel_sections
from tcpcast_papers.kernel.cells import Cell, FlowGroup, Measured
from tcpcast_papers.kernel.networks import CELLS, NETWORKS
from tcpcast_papers.kernel.runs import QUICK, CellJob, CellResult, KernelRuns, SampleSizes
from tcpcast_papers.kernel.scenarios import scenario_tables

from benches.kernel_series import pooling, second_series
from benches.kernel_series.files import read_original_files
from benches.measured import write_cells

Capture = pytest.CaptureFixture[str]

SMALL = SampleSizes(loss_runs=2, queue_runs=2, transfers=100)


def lossy(*, loss: float = 0.01, **measured: Measured) -> Cell:
    group = FlowGroup("linux-reno", 60.0)
    return Cell("F6", "reno", cells.LOSS, (group,), 1e9, loss=loss, measured=measured)


def test_interval_over_runs_uses_t_distribution() -> None:
    result = cells.mean_over_runs([1.0, 2.0, 3.0])
    assert result.mean == 2
    assert result.half_width == pytest.approx(4.3027 / math.sqrt(3), rel=1e-4)
    assert math.isnan(cells.mean_over_runs([1.0]).half_width)


def test_interval_of_counts_uses_poisson() -> None:
    result = pooling.mean_count([95.0, 105.0, 100.0, 100.0])
    assert result.mean == 100
    assert result.half_width == pytest.approx(1.96 * 20 / 4)


def test_interval_of_percentile_uses_order_statistics() -> None:
    result = pooling.percentile_with_interval([float(index) for index in range(1, 601)], 0.99)
    assert result.mean == 594
    assert 3 <= result.half_width <= 6


def test_realised_loss_of_long_flows_is_after_the_queue() -> None:
    """Check the realised loss of the links; the configured loss differs in a few runs."""
    every = {cell.name: cell for cell in cells.packaged_cells()}
    cell = every["20mbit linux-bbr 60ms p0.1 n1"]
    link = scenario_tables(cell, SMALL)["network"]["bottleneck"]
    assert link["loss_at"] == "behind"
    assert link["loss"] == f"{100 * cell.measured[cells.REALISED_LOSS].mean:.12g}%"
    assert every["cubic 1000M 150ms p0.05"].realised_loss == pytest.approx(0.045, rel=0.01)
    assert lossy(loss=0.02).realised_loss == 0.02


def test_bbr_rate_agrees_with_kernel_at_10_percent_loss() -> None:
    cell = next(c for c in cells.packaged_cells() if c.name == "20mbit linux-bbr 60ms p0.1 n1")
    runs = KernelRuns(SMALL, cells=(cell,))
    runs.request_all()
    runs.simulate()
    (goodput,) = (
        quantity for quantity in comparison.compare_cells(runs) if quantity.name == "goodput_bps"
    )
    assert goodput.ratio == pytest.approx(1.0, abs=0.02)


def test_written_cells_read_back_unchanged() -> None:
    stream = io.StringIO()
    every = cells.packaged_cells()
    write_cells(every, stream)
    stream.seek(0)
    again = cells.read_cells(stream)
    assert again == every
    assert [cell.measured for cell in again][-1] == every[-1].measured
    assert {cell.kind for cell in every} == set(cells.KINDS)


def refusal(cell: Cell) -> str:
    try:
        Scenario.from_dict(scenario_tables(cell, QUICK))
    except ScenarioError as reason:
        return str(reason)
    return ""


def test_every_cell_is_a_scenario() -> None:
    assert [result for cell in cells.packaged_cells() if (result := refusal(cell))] == []


@pytest.mark.parametrize(("own", "verdict"), [(106.9, "agrees"), (107.1, "differs")])
def test_tolerance_includes_half_widths_of_both_sides(own: float, verdict: str) -> None:
    cell = lossy(goodput_bps=Measured(100.0, 1.0, 3))
    answer = Answer("packet", metrics={"goodput_bps": Metric(own, own - 1, own + 1)})
    (line,) = comparison.compare_cell(cell, CellResult(answer))
    assert line.verdict == verdict
    assert not line.is_within_tolerance


def test_single_run_has_no_verdict() -> None:
    cell = lossy(goodput_bps=Measured(100.0, math.nan, 1))
    answer = Answer("packet", metrics={"goodput_bps": Metric(100.0)})
    (line,) = comparison.compare_cell(cell, CellResult(answer))
    assert line.verdict == comparison.ONE_RUN


def test_startup_tolerance_allows_a_time_shift() -> None:
    measured = {
        "delivered_by_0.1s": Measured(1e3, 0.0, 3),
        "delivered_by_0.2s": Measured(1e6, 0.0, 3),
        "delivered_by_0.3s": Measured(1.1e6, 0.0, 3),
    }
    cell = Cell("F3", "x", cells.STARTUP, (FlowGroup("linux-cubic", 60.0),), 1e9, measured=measured)
    result = {name: agreement.allowed_difference(cell, name) for name in measured}
    steep, flat = 0.0015 * (1e6 - 1e3) / 0.1, 0.05 * 1.1e6
    for time, allowed in (("0.1s", steep), ("0.3s", flat)):
        tolerance = result[f"delivered_by_{time}"]
        assert tolerance is not None
        assert tolerance.absolute == pytest.approx(allowed)


def test_refused_cells_report_the_reason() -> None:
    cell = next(cell for cell in cells.packaged_cells() if cell.unsupported)
    cell_result = CellJob(cell.series, cell.name, SMALL, cell).run(lambda _: None)
    lines = list(comparison.compare_cell(cell, cell_result))
    assert {line.verdict for line in lines} == {comparison.NOT_SIMULATED}
    assert {line.refusal for line in lines} == {cell.unsupported}


@pytest.mark.parametrize(
    ("clocks", "left"), [("sss", 3), ("sssrrr", 3), ("ssrr", 4), ("ssbb", 2), ("rrl", 2), ("l", 0)]
)
def test_usable_pools_runs_like_the_measurements(clocks: str, left: int) -> None:
    # s: the link's clock stops; r: it continues; b: with a risk of bursts; l: late.
    runs = [
        {
            "late": "1" if clock == "l" else "0",
            "link_clock": "stops" if clock == "s" else "runs on",
            "burst_risk": "1" if clock == "b" else "0",
        }
        for clock in clocks
    ]
    assert len(second_series.select_usable_runs(runs)) == left


@pytest.fixture
def measurements(tmp_path: Path) -> Path:
    """Return a folder with original lines of small transfers, and their table."""
    folder = tmp_path / "measured"
    folder.mkdir()
    head = "cell,random_loss_prob,size_segs_count,xfer_from_accept_s,total_from_connect_s"
    name = "F5|cubic|20M|60ms|p0|20segs"
    lines = [f"{name},0.0,20,{0.0970 + index * 1e-6:.6f},0.1875" for index in range(50)]
    (folder / "F5_short_transfers.csv").write_text("\n".join([head, *lines]) + "\n")
    with (folder / cells.TABLE_NAME).open("w") as table:
        write_cells(read_original_files([folder]), table)
    return folder


def test_command_simulates_measurements_of_a_folder(
    measurements: Path, tmp_path: Path, capsys: Capture
) -> None:
    page = tmp_path / "page"
    command = ["reproduce", "kernel", "--quick", "--json", "--out", str(page)]
    assert main([*command, "--measurements", str(measurements)]) == 0
    output = json.loads(capsys.readouterr().out)
    rows = [row for section in output["sections"] for row in section["rows"]]
    (mean,) = (row for row in rows if row["label"][2] == "mean delivery time")
    assert mean["verdict"] == "agrees"
    assert mean["value"] == pytest.approx(97.0, abs=0.5)
    with (page / "agreement.csv").open() as stream:
        data = {line["quantity"]: line for line in csv.DictReader(stream)}
    assert data["delivery_time_s"]["verdict"] == "agrees"
    assert float(data["delivery_time_s"]["ratio"]) == pytest.approx(1.0, abs=0.005)
    assert "| kernel |" in (page / "index.md").read_text()


def test_folder_without_measurements_is_rejected(tmp_path: Path, capsys: Capture) -> None:
    command = ["reproduce", "kernel", "--measurements", str(tmp_path)]
    assert main(command) == 2
    assert "no measured.csv; use a folder with a table" in capsys.readouterr().err


def test_other_papers_reject_measurements(tmp_path: Path, capsys: Capture) -> None:
    assert main(["reproduce", "pftk", "--measurements", str(tmp_path)]) == 2
    assert "use it with one of kernel, published" in capsys.readouterr().err


def test_missing_column_names_the_file(measurements: Path) -> None:
    path = measurements / "F5_short_transfers.csv"
    path.write_text(path.read_text().replace("xfer_from_accept_s", "other"))
    with pytest.raises(ScenarioError, match=r"F5_short_transfers.csv has no column or value"):
        read_original_files([measurements])
    table = measurements / cells.TABLE_NAME
    whole = table.read_text()
    for text, message in (
        (whole.replace("half_width", "other"), "measured.csv: no column half_width"),
        (whole.replace("0.097", "many", 1), "measured.csv: could not convert"),
    ):
        table.write_text(text)
        with pytest.raises(ScenarioError, match=message):
            cells.read_cells_in_folders([measurements])


def test_page_summary_agrees_with_the_data_file() -> None:
    docs = Path(__file__).parents[2] / "docs" / "background"
    with (docs / "agreement.csv").open() as stream:
        lines = list(csv.DictReader(stream))
    page_counts: dict[tuple[str, str], list[str]] = {}
    for row in re.findall(r"^\| (.*) \|$", (docs / "agreement.md").read_text(), re.MULTILINE):
        kind, title, *counted = row.split(" | ")
        if kind in cells.KINDS and len(counted) == 5:
            page_counts[kind, title] = counted
    result: dict[tuple[str, str], list[str]] = {}
    for line in lines:
        known = agreement.quantity_format(line["quantity"])
        assert known is not None
        title = known.title.partition(" by ")[0].removesuffix(" a run")
        result.setdefault((line["kind"], title), []).append(line["verdict"])
    for key, verdicts in result.items():
        checked = verdicts.count(comparison.AGREES) + verdicts.count(comparison.DIFFERS)
        counted = page_counts.pop(key)
        assert [counted[0], counted[1], counted[4]] == [
            str(checked),
            str(verdicts.count(comparison.AGREES)),
            str(verdicts.count(comparison.NOT_SIMULATED)),
        ]
    assert not page_counts


def test_headline_has_median_errors_and_the_measured_range() -> None:
    def line(ratio: float, rate_bps: float) -> comparison.Comparison:
        kernel = Measured(1e6, 1e4, 3)
        group = FlowGroup("linux-reno", rate_bps / 1e6)
        cell = Cell("F6", f"{ratio}", cells.LOSS, (group,), rate_bps, loss=0.02)
        return comparison.Comparison(cell, "goodput_bps", kernel, Metric(ratio * 1e6), 0.0, None)

    lines = [line(1.01, 1e7), line(0.98, 2e7), line(1.1, 5e7)]
    assert kernel_sections.headline(lines) == (
        "Median error (90 % of the values are below): goodput 2.0 % (10 %), for 10 to 50 Mbit/s, "
        "RTTs of 10 to 50 ms, random loss up to 2 % and up to 1 flows."
    )
    assert kernel_sections.headline([]) == ""


@pytest.mark.parametrize("name", CELLS)
def test_cell_can_be_simulated_and_measured(name: str) -> None:
    scenario = Scenario.from_dict(CELLS[name].tables)
    raise_if_unsupported(scenario)
    assert scenario.run.duration_s


def test_every_quantity_of_a_measured_cell_has_a_value() -> None:
    cells = {cell.label[0]: cell for cell in NETWORKS.read(())}
    assert cells.keys() <= CELLS.keys()
    for name, cell in cells.items():
        assert [v.quantity for v in cell.values] == [q.name for q in CELLS[name].quantities]
        assert all(value.measured > 0 for value in cell.values)
