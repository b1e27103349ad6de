"""Figures of a run over time and of the distribution of completion times."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from tcpcast.answer import Answer
from tcpcast.cli import main
from tcpcast.report import figures
from tcpcast.report.chart import wrap_text
from tcpcast.report.figures import iter_figures
from tcpcast.scenario import Scenario

from cli.made_up import simulated

pytest.importorskip("matplotlib")

BOUNDS = {"from_s": np.arange(4.0), "to_s": np.arange(1.0, 5.0)}


def with_bounds(name: str, values: Any, half: float = np.nan) -> dict[str, Any]:
    values = np.asarray(values, dtype=float)
    return {name: values, f"{name}_low": values - half, f"{name}_high": values + half}


def answer(half: float = np.nan) -> Answer:
    example = simulated()
    example.warmup_s, example.replications = 1.5, 4
    flows = {"class": np.full(4, "all"), **BOUNDS}
    flows |= with_bounds("goodput_bps", [1e6, 9e6, 9e6, 9e6], 1e5 * half)
    example.tables = {
        "queue_over_time": BOUNDS | with_bounds("queue_pkts", [0, 90, 100, 95], half),
        "flows_over_time": flows | with_bounds("rtt_s", [0.05, np.nan, 0.08, 0.08]),
        "windows_over_time": {
            "class": np.full(4, "all"),
            "flow": np.full(4, 0),
            **BOUNDS,
            "mean_pkts": np.array([2.0, 8, 6, 7]),
            "low_pkts": np.array([1.0, 4, 5, 5]),
            "high_pkts": np.array([4.0, 9, 9, 9]),
        },
    }
    return example


def draw_figure(example: Answer, scenario: Scenario, name: str) -> Figure:
    return dict(iter_figures([example], scenario))[name]


def legend(figure: Figure) -> list[str]:
    labels = [text.get_text() for box in figure.legends for text in box.get_texts()]
    return labels or [text.get_text() for text in figure.axes[0].get_legend().get_texts()]  # type: ignore[union-attr]


def test_over_time_figure_has_panel_per_quantity_and_warm_up(scenario: Scenario) -> None:
    figure = draw_figure(answer(2.0), scenario, "over-time")
    labels = [" ".join(axes.get_ylabel().split()) for axes in figure.axes]
    assert labels == [
        "window of a flow (packets)", "mean RTT (ms)", "mean queue (packets)", "goodput (Mbit/s)",
    ]  # fmt: skip
    assert figure.axes[-1].get_xlabel() == "time (s)"
    assert figure.axes[-1].get_xlim() == (0, 4)
    assert "warm-up, not counted" in legend(figure)
    named = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert {"user 1", "all users", "buffer", "link"} <= set(named)
    assert "95 % interval of 4 replications" in legend(figure)


def test_over_time_figure_has_quality_and_buffer_of_players(scenario: Scenario) -> None:
    example = answer(2.0)
    example.tables["flows_over_time"] |= with_bounds("video_rate_bps", [np.nan, 1e6, 2e6, 4e6])
    example.tables["flows_over_time"] |= with_bounds("buffered_s", [0, 4, 12, 20], 1.0)
    figure = draw_figure(example, scenario, "over-time")
    labels = [" ".join(axes.get_ylabel().split()) for axes in figure.axes]
    assert labels[1:3] == ["quality of video (Mbit/s)", "mean buffer of a player (s)"]
    assert figure.axes[1].get_ylim()[0] == 0
    assert 20 <= figure.axes[2].get_ylim()[1] <= 30


def test_windows_of_very_different_flows_have_logarithmic_axis(scenario: Scenario) -> None:
    example = answer()
    table = example.tables["windows_over_time"]
    assert draw_figure(example, scenario, "over-time").axes[0].get_yscale() == "linear"
    large = {name: 40 * table[name] for name in ("mean_pkts", "low_pkts", "high_pkts")}
    more = table | large | {"flow": np.full(4, 1)}
    example.tables["windows_over_time"] = {
        name: np.concatenate([column, more[name]]) for name, column in table.items()
    }
    assert draw_figure(example, scenario, "over-time").axes[0].get_yscale() == "log"


def test_over_time_figure_without_intervals_has_no_band(scenario: Scenario) -> None:
    assert not [
        text for text in legend(draw_figure(answer(), scenario, "over-time")) if "95 %" in text
    ]


def test_measured_values_are_dots_beside_simulated_lines(scenario: Scenario) -> None:
    measured = answer()
    measured.engine, measured.kind = "kernel", "measurement"
    del measured.tables["windows_over_time"]
    figure = dict(iter_figures([answer(), measured], scenario))["over-time"]
    of_rtt = figure.axes[1].get_lines()
    assert [(line.get_marker(), line.get_linestyle()) for line in of_rtt][-1] == (".", "None")


def test_distribution_starts_at_0_and_tail_at_1(scenario: Scenario) -> None:
    example = simulated()
    example.tables = {
        "by_size": {
            "size_pkts": np.array([4]),
            "transfers": np.array([50]),
            **{name: np.array([t]) for name, t in (("p50", 1.0), ("p95", 3.0), ("p99", 4.0))},
            "completion_time_s": np.array([1.2]),
            "low": np.array([1.1]),
            "high": np.array([1.3]),
        },
        "completion_distribution": {
            "size_pkts": np.full(3, 4),
            "transfers": np.full(3, 50),
            "time_s": np.array([1.0, 2.0, 4.0]),
            "share": np.array([0.5, 0.9, 1.0]),
            "low": np.array([0.4, 0.8, 0.93]),
            "high": np.array([0.6, 0.95, 1.0]),
        },
    }
    figure = draw_figure(example, scenario, "completion-distribution")
    (line,) = figure.axes[0].lines
    assert list(np.asarray(line.get_ydata())) == [0, 0.5, 0.9, 1]
    assert legend(figure) == ["4 packets (50 transfers)"]
    (line,) = draw_figure(example, scenario, "completion-tail").axes[0].lines
    np.testing.assert_allclose(np.asarray(line.get_ydata()), [1, 0.5, 0.1])


def test_over_time_is_in_html_report_but_not_in_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    short = ["run", "lossy-path", "--engine", "packet", "--set", "run.duration=21s"]
    page = tmp_path / "page.html"
    assert main([*short, "--out", str(page)]) in {0, 1}
    assert "warm-up, not counted" in page.read_text(encoding="utf-8")
    capsys.readouterr()
    assert main([*short, "--json"]) in {0, 1}
    assert "over_time" not in capsys.readouterr().out


def test_inline_svg_has_coordinates_with_two_decimals(scenario: Scenario) -> None:
    part = figures.svg_figure("over-time", draw_figure(answer(), scenario, "over-time"))
    paths = re.findall(r' d="([^"]*)"', part.svg)
    assert paths
    assert not any(re.search(r"\.[0-9]{3}", path) for path in paths)


def test_wrapping_keeps_hyphenated_names_and_percentages() -> None:
    assert wrap_text("a link of linux-cubic, 1 %", 18) == "a link of\nlinux-cubic, 1\u00a0%"
