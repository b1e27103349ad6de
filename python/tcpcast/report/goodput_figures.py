"""Figures of the goodput of files: how it is distributed, and how often it is more.

They are Figures 8 and 11 of INRIA report 4154.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.compare import is_observed
from tcpcast.report.chart import Axis, Band, Series, scenario_chart, styles
from tcpcast.report.quantity import scale_of_unit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tcpcast.answer import Answer
    from tcpcast.report.chart import Chart, Drawable
    from tcpcast.scenario import Scenario

    Table = dict[str, np.ndarray[Any, Any]]

COLUMNS = {
    "by_file": "over files",
    "by_large_file": "over large files",
    "by_packets": "over blocks of packets",
}
"""The columns of the table, in the order in which they are drawn."""

BARS = 40
"""A distribution has about so many steps over what is shown."""

_RARE = 1e-3
"""What is rarer than this at either end is not shown."""

_WIDE = 4.0
"""From this ratio of its ends on, an axis of goodputs is logarithmic."""


def distribution(answer: Answer) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the ends of steps of goodput, ``[steps + 1]``, and the share of files in 1 % of each.

    Steps are of much the same ratio; each ends at a row of the table ``file_goodput_tail``, so
    that shares are those counted, and is so wide that its share is divided by it.
    """
    table = answer.tables["file_goodput_tail"]
    goodput, beyond = table["goodput_bps"], table["by_file"]
    low, high = ends(table, ("by_file",))
    wanted = np.searchsorted(goodput, np.geomspace(low, high, BARS + 1))
    places = np.unique(np.clip(wanted, 0, len(goodput) - 1))
    widths = np.diff(np.log(goodput[places])) / np.log(1.01)
    return goodput[places], -np.diff(beyond[places]) / widths


def ends(table: Table, columns: Iterable[str]) -> tuple[float, float]:
    """Return from where to where something happens in some columns that is not too rare."""
    goodput = table["goodput_bps"]
    known = [table[name] for name in columns if name in table]
    first = min(int(np.sum(column >= 1 - _RARE)) for column in known) - 1
    last = max(int(np.sum(column > _RARE)) for column in known)
    return float(goodput[max(first, 0)]), float(goodput[min(last, len(goodput) - 1)])


def distribution_chart(answers: Sequence[Answer], scenario: Scenario) -> Chart:
    """Return the chart of the distribution of the goodput of files."""
    x, factor = goodput_axis(answers, ("by_file",), "of a file")
    series: list[Drawable] = []
    for answer, style in zip(answers, styles(map(is_observed, answers)), strict=False):
        edges, shares = distribution(answer)
        if len(answers) == 1:
            series.append(Band(edges / factor, np.zeros_like(shares), shares, "", _colour(style)))
        line = _colour(style) | {"linewidth": 1.4}
        series.append(Series(edges / factor, shares, answer.engine, line))
    y = Axis("share of files per 1 % of goodput", 0)
    return scenario_chart(scenario, "goodput of files", x, y, series)


def tail_chart(answers: Sequence[Answer], scenario: Scenario) -> Chart:
    """Return the chart of the share with more than a goodput, by each definition."""
    x, factor = goodput_axis(answers, COLUMNS, "x")
    series = [
        Series(
            answer.tables["file_goodput_tail"]["goodput_bps"] / factor,
            answer.tables["file_goodput_tail"][column],
            f"{answer.engine}, {name}",
            _colour(style) | {"linestyle": line, "linewidth": 1.4},
        )
        for answer, style in zip(answers, styles(map(is_observed, answers)), strict=False)
        for (column, name), line in zip(COLUMNS.items(), ("-", "--", ":"), strict=True)
        if column in answer.tables["file_goodput_tail"]
    ]
    title = "distribution of goodput above x"
    return scenario_chart(scenario, title, x, Axis("share with more", 0, 1.02), series)


def _colour(style: dict[str, Any]) -> dict[str, Any]:
    return {"color": style["color"]}


def goodput_axis(answers: Sequence[Answer], columns: Iterable[str], of: str) -> tuple[Axis, float]:
    """Return an axis of goodputs, and its unit in bit/s."""
    both = [ends(answer.tables["file_goodput_tail"], columns) for answer in answers]
    low, high = min(low for low, _ in both), max(high for _, high in both)
    scale = scale_of_unit("bit/s", high)
    label = f"goodput {of} ({scale.unit})"
    wide = high > _WIDE * low
    return Axis(label, low / scale.factor, high / scale.factor, log=wide), scale.factor
