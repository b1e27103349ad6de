"""Messages of figures: their numbers are drawn, and no difference is named without evidence."""

import re
from typing import Any

import numpy as np
import pytest
import tcpcast
from matplotlib.figure import Figure
from tcpcast.answer import Answer
from tcpcast.comparison.compare import compare_all
from tcpcast.comparison.verdict import main_findings
from tcpcast.engines import REGISTRY
from tcpcast.report.chart import MAX_LEGEND_ENTRIES
from tcpcast.report.figure_titles import flow_names
from tcpcast.report.figures import iter_figures
from tcpcast.report.palette import class_styles, stack_colour
from tcpcast.report.sweep_figures import iter_sweep_figures
from tcpcast.report.verdict import verdict_text
from tcpcast.scenario import Scenario

from cli.made_up import calculated, simulated

pytest.importorskip("matplotlib")

NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def numbers(text: str) -> list[float]:
    return [float(found.replace(",", "")) for found in NUMBER.findall(text)]


def coordinates(figure: Figure) -> np.ndarray[Any, Any]:
    """Return all coordinates of the drawn lines, and of these in per cent."""
    lines = [line for axes in figure.axes for line in axes.lines]
    ends = [np.asarray(xy, dtype=float) for line in lines for xy in line.get_data()]
    drawn_values = np.concatenate([end.ravel() for end in ends])
    return np.concatenate([drawn_values, 100 * drawn_values])


def is_drawn(number: float, values: np.ndarray[Any, Any]) -> bool:
    """Return True if a value is equal to the number when rounded to three digits."""
    return bool(np.isclose(values, number, rtol=5.1e-3, atol=1e-9).any())


@pytest.mark.parametrize("answers", [[simulated()], [calculated()], [calculated(), simulated()]])
def test_numbers_of_messages_are_drawn(scenario: Scenario, answers: list[Answer]) -> None:
    shown = dict(iter_figures(answers, scenario))
    assert set(shown) == {"states", "sharing", "queue"}
    for name, figure in shown.items():
        text = " ".join(figure.get_suptitle().split())
        # Shares of time, the users and the buffer are facts of the question, not drawn values.
        given_facts = {90.0, 5.0, 134.0, float(scenario.buffer_pkts)}
        stated = [each for each in numbers(text) if each not in given_facts]
        assert stated, text
        values = coordinates(figure)
        assert all(is_drawn(each, values) for each in stated), (name, text)


def test_the_message_about_the_queue_is_its_median(scenario: Scenario) -> None:
    figure = dict(iter_figures([simulated()], scenario))["queue"]
    (line, *_) = figure.axes[0].lines
    x, above = (np.asarray(each, dtype=float) for each in line.get_data())
    stated = numbers(figure.get_suptitle())[0]
    assert above[x == stated] >= 0.5 > above[x == stated + 1]


def test_every_figure_of_a_run_has_few_legend_entries_and_its_set_up() -> None:
    from matplotlib.text import Text  # noqa: PLC0415 - optional

    changes = {"traffic.count": 200}
    short = tcpcast.load("short-transfers", changes=changes)
    shown = tcpcast.run(short, ["short", "packet"]).plot()
    assert "completion" in shown.names
    for figure in shown:
        legends = [*figure.legends, *filter(None, (axes.get_legend() for axes in figure.axes))]
        assert all(len(legend.get_texts()) <= MAX_LEGEND_ENTRIES for legend in legends)
        assert any(
            isinstance(artist, Text) and artist.get_text().startswith("short-transfers: ")
            for artist in figure.findobj(Text)
        )


def test_each_engine_has_a_colour_and_each_class_that_of_its_control() -> None:
    looks = [(entry.family, entry.plot_style) for entry in REGISTRY.values()]
    assert len(set(looks)) == len(looks)
    assert all(entry.plot_style for entry in REGISTRY.values())
    styles = class_styles(tcpcast.load("cubic-and-bbr").populations)
    assert styles["cubic"]["color"] == stack_colour("linux-cubic")
    assert styles["bbr"]["color"] == stack_colour("linux-bbr") != styles["cubic"]["color"]
    assert stack_colour("bbr3") != stack_colour("linux-bbr")


def test_flows_are_named_by_their_class() -> None:
    names = [name for _, name in flow_names(tcpcast.load("cubic-and-bbr"), [0, 1, 2, 3])]
    assert names == ["cubic 1", "cubic 2", "bbr 1", "bbr 2"]


def test_the_title_of_a_run_is_its_verdict_without_intervals() -> None:
    changes = {"run.duration": "5s", "run.warmup": "1s", "run.replications": 1}
    shown = tcpcast.run(tcpcast.load("cubic-and-bbr", changes=changes), ["packet"])
    title = " ".join(shown.plot()["rates"].get_suptitle().split())
    findings = main_findings(compare_all(shown), shown.scenario)
    assert f"{title}." == verdict_text(findings, intervals=False)


def test_the_title_of_a_sweep_is_its_verdict_without_intervals() -> None:
    columns: dict[str, Any] = {
        "network.bottleneck.loss": [0.001, 0.01],
        "engine": ["packet"] * 2,
        "goodput_bps": [3e6, 2e6],
        "goodput_bps_low": [2.9e6, 1.9e6],
        "goodput_bps_high": [3.1e6, 2.1e6],
    }
    table = pytest.importorskip("pyarrow").table(columns)
    keys = {"network.bottleneck.loss": "ratio"}
    ((metric, figure),) = iter_sweep_figures(table, keys, "", {})
    assert metric == "goodput_bps"
    title = " ".join(figure.get_suptitle().split())
    assert title == (
        "The goodput is largest with loss 0.1 %: 3.0 Mbit/s, and smallest with loss 1 %: 2.0 Mbit/s"
    )
