"""File goodput in reports and figures."""

from pathlib import Path

import numpy as np
import pytest
from goodput_counts import count_goodputs
from tcpcast.answer import Answer
from tcpcast.cli import main
from tcpcast.comparison.compare import compare_all, compare_goodput_percentiles
from tcpcast.engines.packet.file_goodputs import (
    GoodputCounts,
    estimate_goodput_quantiles,
    exceeded_goodput_table,
    goodput_tail_table,
)
from tcpcast.quantity.units import digits
from tcpcast.report import figures
from tcpcast.report.distribution_figures import goodput_density, shown_goodput_range
from tcpcast.report.run import run_parts
from tcpcast.report.text import plain_text as plain
from tcpcast.scenario import Scenario

from cli.made_up import calculated, simulated


def files(seed: int = 1, spread: float = 0.8) -> GoodputCounts:
    random = np.random.default_rng(seed)
    return count_goodputs([5e5 * np.exp(spread * random.standard_normal(500)) for _ in range(32)])


def with_files(answer: Answer, counts: GoodputCounts) -> Answer:
    answer.tables["file_goodput"] = exceeded_goodput_table(
        estimate_goodput_quantiles(counts, (0.95, 0.5))
    )
    answer.tables["file_goodput_tail"] = goodput_tail_table({"by_file": counts})
    return answer


def test_report_has_file_goodput_percentiles_of_all_engines() -> None:
    one = GoodputCounts(0, files(2).sum_over_units()[np.newaxis])
    answers = [with_files(calculated(), one), with_files(simulated(), files())]
    lines = plain(run_parts(compare_all(answers))).splitlines()
    (heading,) = [index for index, line in enumerate(lines) if line.startswith(" file goodput")]
    first, second = lines[heading + 2 : heading + 4]
    assert first.startswith(" 5th percentile   kbit/s")
    assert second.startswith(" 50th percentile  kbit/s")
    assert "–" in first or "±" in first
    assert lines[heading + 4] == ""


def test_report_has_the_goodput_percentiles_of_each_class() -> None:
    answer = with_files(simulated(), files())
    whole = answer.tables["file_goodput"]
    answer.tables["file_goodput_by_class"] = {
        "name": np.repeat(["near", "far"], len(whole["share"]))
    } | {key: np.append(column, column / 2) for key, column in whole.items()}
    answer.tables["file_goodput_by_class"]["share"] = np.tile(whole["share"], 2)
    comparison = compare_goodput_percentiles([answer], by_class=True)
    names = ["near, 5th percentile", "near, 50th percentile", "far, 5th percentile"]
    assert [row.subject for row in comparison.rows][:3] == names
    near, _, far, _ = (row.metrics[0] for row in comparison.rows)
    assert near is not None
    assert far is not None
    assert far.value == near.value / 2
    assert "file goodput by class" in plain(run_parts(compare_all([answer])))


def test_report_without_files_has_no_file_goodput() -> None:
    answers = [calculated(), simulated()]
    assert compare_goodput_percentiles(answers).rows == ()
    assert "file goodput" not in plain(run_parts(compare_all(answers)))


def test_engine_without_file_goodput_is_left_out_of_comparison() -> None:
    simulations = [with_files(simulated(), files()), with_files(simulated(), files(2))]
    comparison = compare_goodput_percentiles([calculated(), *simulations])
    assert comparison.engines == ("packet", "packet")
    assert [row.subject for row in comparison.rows] == ["5th percentile", "50th percentile"]
    assert all(row.differences[1] is not None for row in comparison.rows)
    one = GoodputCounts(0, files().sum_over_units()[np.newaxis])
    (single_run, _) = compare_goodput_percentiles([with_files(simulated(), one)]).rows
    metric = single_run.metrics[0]
    assert metric is not None
    assert metric.low is None, "one unit gives no interval"


@pytest.mark.parametrize("spread", [0.8, 0.01])
def test_file_goodput_figure_matches_recorded_counts(spread: float) -> None:
    answer = with_files(simulated(), files(spread=spread))
    low, high = shown_goodput_range(answer.tables["file_goodput_tail"])
    edges, density = goodput_density(answer, low, high)
    widths = np.diff(np.log(edges)) / np.log(1.01)
    assert 0.99 < float(density @ widths) <= 1.0 + 1e-9
    middle = edges[np.searchsorted(np.cumsum(density * widths), 0.5)]
    assert middle == pytest.approx(5e5, rel=0.15 if spread > 0.1 else 0.02)
    assert np.log(high / low) == pytest.approx(2 * 3.1 * spread, rel=0.2, abs=0.03)


def test_run_plots_file_goodput_and_tail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    written = set()

    def record_name(_: object, path: Path, **__: bool) -> Path:
        written.add(path.name)
        return path

    monkeypatch.setattr(figures, "save_figure", record_name)
    command = ["run", "web-10mbit", "--engine", "packet"]
    changes = ["run.transfers=3000", "probes.goodput_packets=4", "probes.goodput_shares=['99%']"]
    command += [part for change in changes for part in ("--set", change)]
    assert main([*command, "--plot", str(tmp_path)]) == 0
    assert {"file-goodput.png", "file-goodput-tail.png"} <= written
    assert " 1st percentile" in capsys.readouterr().out


def test_the_title_states_the_percentile_of_the_table(scenario: Scenario) -> None:
    """The title of an office's figure gave 8.06 Mbit/s, and the table 8.10."""
    text = pytest.importorskip("matplotlib.text")
    answer = simulated()
    answer.tables |= {
        "file_goodput_tail": goodput_tail_table({"by_file": files()}),
        "file_goodput": exceeded_goodput_table(estimate_goodput_quantiles(files(), [0.5])),
    }
    median = answer.tables["file_goodput"]["goodput_bps"][0]
    figure = dict(figures.iter_figures([answer], scenario))["file-goodput"]
    words = " ".join(each.get_text() for each in figure.findobj(text.Text)).split()
    assert f"{digits(median / 1e3, 3)} kbit/s" in " ".join(words)


def test_axis_below_one_decade_has_no_minor_tick_labels(scenario: Scenario) -> None:
    pytest.importorskip("matplotlib")
    answer = simulated()
    shares = np.linspace(1, 0, 100)
    answer.tables["file_goodput_tail"] = {
        "goodput_bps": np.geomspace(2e4, 9e4, 100),
        "by_file": shares,
    }
    figure = dict(figures.iter_figures([answer], scenario))["file-goodput"]
    (axes,) = figure.axes
    figure.draw_without_rendering()
    shown = [tick.label1 for tick in axes.xaxis.get_minor_ticks() if tick.label1.get_visible()]
    assert axes.get_xscale() == "log"
    assert not [label.get_text() for label in shown if label.get_text()]
