"""Messages of figures: their numbers are drawn, and no difference is named without evidence."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import tcpcast
from hypothesis import given, settings
from hypothesis import strategies as st
from tcpcast.engines import REGISTRY
from tcpcast.report.chart import MAX_LEGEND_ENTRIES
from tcpcast.report.figure_titles import class_goodput_title, flow_names
from tcpcast.report.figures import iter_figures
from tcpcast.report.palette import class_styles, stack_colour
from tcpcast.report.quantity import UNTRUSTED_MARK, scale_for_metric
from tcpcast.report.sweep_cells import MetricGrid, make_swept_key
from tcpcast.report.sweep_titles import sweep_figure_title

from cli.made_up import calculated, simulated

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from tcpcast.answer import Answer
    from tcpcast.scenario import Scenario

pytest.importorskip("matplotlib")

KEY = "network.bottleneck.loss"
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
METRIC = "goodput_bps"


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


def classes(values: list[float], half: float) -> Answer:
    answer = simulated()
    of_class = np.array(values)
    answer.tables["by_class"] = {
        "name": np.array(["cubic", "bbr"]),
        "sources": np.array([2, 2]),
        METRIC: of_class,
        f"{METRIC}_low": of_class - half,
        f"{METRIC}_high": of_class + half,
    }
    return answer


def test_a_class_takes_a_share_only_if_the_intervals_are_disjoint() -> None:
    scenario = tcpcast.load("cubic-and-bbr")
    text = class_goodput_title(classes([4e6, 36e6], 1e6), scenario)
    assert text == "The 2 flows of bbr take 90 % of the goodput"
    text = class_goodput_title(classes([19e6, 21e6], 2e6), scenario)
    assert text.startswith("No significant difference in goodput: 21 Mbit/s (bbr)")
    withheld = classes([4e6, 36e6], math.nan)
    withheld.tables["by_class"][f"{METRIC}_interval_warning"] = np.array(["", "too few files"])
    text = class_goodput_title(withheld, scenario)
    assert text == "Goodput by class, without reliable intervals: 36 Mbit/s (bbr), 4 Mbit/s (cubic)"


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


Values = st.lists(st.floats(1e5, 1e9), min_size=2, max_size=6)


def curve(values: list[float], half: float, marks: list[str] | None = None) -> MetricGrid:
    value = np.array(values)
    low, high = value * (1 - half), value * (1 + half)
    empty = np.full(value.shape, "", dtype=np.object_)
    given_marks = empty if marks is None else np.array(marks, dtype=np.object_)
    return MetricGrid("packet", True, value, low, high, given_marks, empty)


def message(cells: MetricGrid, levels: list[float] | None = None) -> tuple[str, float]:
    x = make_swept_key(KEY, [0.001 * (row + 1) for row in range(cells.value.size)], "ratio")
    scale = scale_for_metric(METRIC, float(cells.value.max()))
    return sweep_figure_title(METRIC, [cells], [x], scale, levels or []), scale.factor


@settings(max_examples=200, deadline=None)
@given(Values, st.floats(0, 0.6))
def test_a_sweep_names_a_difference_only_if_the_intervals_are_disjoint(
    values: list[float], half: float
) -> None:
    cells = curve(values, half)
    text, factor = message(cells)
    most, least = int(np.argmax(cells.value)), int(np.argmin(cells.value))
    is_disjoint = cells.low[most] > cells.high[least]
    claims = any(word in text for word in ("falls", "rises", "lies between"))
    assert claims == is_disjoint
    assert ("does not differ" in text) != claims
    stated = [each for each in numbers(text) if each not in {1, 2, 3, 4, 5, 6}]
    known = np.concatenate([cells.value / factor, 0.1 * np.arange(1, len(values) + 1)])
    assert all(is_drawn(each, known) for each in stated), text


@settings(max_examples=200, deadline=None)
@given(Values, st.floats(0, 0.6), st.floats(1e5, 1e9))
def test_a_level_is_crossed_only_beyond_the_intervals(
    values: list[float], half: float, level: float
) -> None:
    cells = curve(values, half)
    text, _ = message(cells, [level])
    if "\u2265" in text:
        first = round(numbers(text.partition("\u2265")[2])[0] / 0.1) - 1
        rest = slice(first, None)
        is_below = "below" in text
        clear = cells.high[rest] < level if is_below else cells.low[rest] > level
        assert clear.all()
        before = cells.high[first - 1] < level if is_below else cells.low[first - 1] > level
        assert not before


def test_a_map_names_a_range_only_if_its_ends_differ() -> None:
    keys = [make_swept_key(key, [0.01, 0.02], "ratio") for key in (KEY, "network.ack_loss")]
    for half, word in ((0.01, "ranges from"), (0.5, "does not differ")):
        flat = curve([2e6, 3e6, 4e6, 4.5e6], half)
        parts = {name: getattr(flat, name).reshape(2, 2) for name in ("value", "low", "high")}
        marks = np.full((2, 2), "", dtype=np.object_)
        cells = replace(flat, **parts, marks=marks, interval_warnings=marks)
        text = sweep_figure_title(METRIC, [cells], keys, scale_for_metric(METRIC, 4e6), [])
        assert text.startswith(f"The goodput {word}")
        assert numbers(text) == [2, 4.5]


def test_a_map_without_intervals_names_no_difference() -> None:
    keys = [make_swept_key(key, [0.01, 0.02], "ratio") for key in (KEY, "network.ack_loss")]
    values, empty = np.array([[2e6, 3e6], [4e6, 4.5e6]]), np.full((2, 2), "", dtype=np.object_)
    none = np.full((2, 2), np.nan)
    cells = MetricGrid("packet", True, values, none, none, empty, empty)
    text = sweep_figure_title(METRIC, [cells], keys, scale_for_metric(METRIC, 4e6), [])
    assert text == "The goodput is 2 to 4.5 Mbit/s, without reliable intervals"


def test_untrusted_values_are_not_named() -> None:
    text, _ = message(curve([9e8, 3e6, 2e6], 0.01, [UNTRUSTED_MARK, "", ""]))
    assert text == "The goodput falls from 3 Mbit/s (loss 0.2 %) to 2 Mbit/s (loss 0.3 %)"


def test_values_without_intervals_are_not_compared() -> None:
    cells = curve([3e6, 2e6], 0.01)
    cells.low[:] = cells.high[:] = np.nan
    text, _ = message(cells)
    assert text == "The goodput is 2 to 3 Mbit/s, without reliable intervals"
