"""Figures of the distribution of file goodput, like figures 8 and 11 of INRIA report 4154."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.compare import is_observed
from tcpcast.report.chart import Axis, Band, IntervalLines, Series, one_panel_chart, percent_tick
from tcpcast.report.figure_titles import answer_for_title, engine_label, finding_title
from tcpcast.report.palette import engine_style
from tcpcast.report.quantity import scale_for_unit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tcpcast.answer import Answer
    from tcpcast.report.chart import Chart, Drawable, Style
    from tcpcast.scenario import Scenario

    Table = dict[str, np.ndarray[Any, Any]]

COLUMN_LABELS = {
    "by_file": "all files",
    "by_large_file": "large files",
    "by_packets": "blocks of packets",
}
"""Columns of the table in drawing order."""

DENSITY_BINS = 40
"""Approximate number of bins in the shown part of a distribution."""

_MIN_TAIL_PROBABILITY = 1e-3
"""Probability at both ends of the distribution that is not shown."""

_LOG_AXIS_RATIO = 4.0
"""Ratio of largest to smallest goodput above which the axis is logarithmic."""


def goodput_density(answer: Answer) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the edges of goodput bins, and the density of files in each bin.

    The density is the share of files per 1 % of goodput. The edges have shape ``[bins + 1]``, and
    the bins have about the same width on a logarithmic scale. Each edge is a row of the table
    ``file_goodput_tail``, so that no share is interpolated.
    """
    table = answer.tables["file_goodput_tail"]
    goodput, beyond = table["goodput_bps"], table["by_file"]
    low, high = shown_goodput_range(table, ("by_file",))
    wanted = np.searchsorted(goodput, np.geomspace(low, high, DENSITY_BINS + 1))
    edges = np.unique(np.clip(wanted, 0, len(goodput) - 1))
    widths = np.diff(np.log(goodput[edges])) / np.log(1.01)
    return goodput[edges], -np.diff(beyond[edges]) / widths


def shown_goodput_range(table: Table, columns: Iterable[str]) -> tuple[float, float]:
    """Return the goodput range without tails of less than :data:`_MIN_TAIL_PROBABILITY`."""
    goodput = table["goodput_bps"]
    known = [table[name] for name in columns if name in table]
    first = min(int(np.sum(column >= 1 - _MIN_TAIL_PROBABILITY)) for column in known) - 1
    last = max(int(np.sum(column > _MIN_TAIL_PROBABILITY)) for column in known)
    return float(goodput[max(first, 0)]), float(goodput[min(last, len(goodput) - 1)])


def goodput_distribution_chart(answers: Sequence[Answer], scenario: Scenario) -> Chart:
    """Return the chart of the distribution of the goodput of files."""
    x, factor = goodput_axis(answers)
    series: list[Drawable] = []
    for answer in answers:
        style = engine_style(answer.engine, is_observed=is_observed(answer))
        edges, shares = goodput_density(answer)
        if len(answers) == 1:
            series.append(
                Band(
                    edges / factor, np.zeros_like(shares), shares, "", _style_with_color_only(style)
                )
            )
        line = _style_with_color_only(style) | {"linewidth": 1.4}
        series.append(Series(edges / factor, shares, engine_label(answer), line))
    y = Axis("share of files per goodput interval of 1 %", 0, ticks=percent_tick)
    return one_panel_chart(scenario, _exceeded_goodput_title(answers, 0.5, "median"), x, y, series)


def goodput_tail_chart(answers: Sequence[Answer], scenario: Scenario) -> Chart:
    """Return the chart of the share of files, large files and blocks above each goodput."""
    x, factor = goodput_axis(answers)
    series: list[Drawable] = [
        Series(
            answer.tables["file_goodput_tail"]["goodput_bps"] / factor,
            answer.tables["file_goodput_tail"][column],
            f"{engine_label(answer)}, {name}",
            _style_with_color_only(engine_style(answer.engine, is_observed=True))
            | {"linestyle": line, "linewidth": 1.4},
        )
        for answer in answers
        for (column, name), line in zip(COLUMN_LABELS.items(), ("-", "--", ":"), strict=True)
        if column in answer.tables["file_goodput_tail"]
    ]
    for answer in answers:
        colour = _style_with_color_only(engine_style(answer.engine, is_observed=True))
        series += _interval_lines(answer.tables.get("file_goodput", {}), factor, colour)
    y = Axis("files with a higher goodput", 0, 1, ticks=percent_tick)
    return one_panel_chart(
        scenario, _exceeded_goodput_title(answers, 0.9, "10th percentile"), x, y, series
    )


def _interval_lines(table: Table, factor: float, colour: Style) -> list[Drawable]:
    """Return the 95 % intervals of percentiles as horizontal lines."""
    if not {"share", "low", "high"} <= table.keys() or not np.isfinite(table["low"]).any():
        return []
    known = np.isfinite(table["low"])
    low, high, share = (table[name][known] for name in ("low", "high", "share"))
    style = colour | {"linewidth": 4, "alpha": 0.5, "label": "95 % intervals"}
    return [IntervalLines(share, low / factor, high / factor, style, is_horizontal=True)]


def _exceeded_goodput_title(answers: Sequence[Answer], share: float, name: str) -> str:
    """Return the title with the highest tabulated goodput that ``share`` of all files exceeds."""
    answer = answer_for_title(answers)
    table = answer.tables["file_goodput_tail"]
    above = table["goodput_bps"][table["by_file"] >= share]
    if not above.size:
        return "Distribution of the goodput of files"
    return finding_title(answer, f"the {name} of the goodput of files", [np.max(above)], "bit/s")


def _style_with_color_only(style: dict[str, Any]) -> dict[str, Any]:
    return {"color": style["color"]}


def goodput_axis(answers: Sequence[Answer]) -> tuple[Axis, float]:
    """Return the goodput axis for all figures of the answers, and its unit in bit/s."""
    both = [
        shown_goodput_range(answer.tables["file_goodput_tail"], COLUMN_LABELS) for answer in answers
    ]
    low, high = min(low for low, _ in both), max(high for _, high in both)
    scale = scale_for_unit("bit/s", high)
    label = f"goodput of a file ({scale.unit})"
    wide = high > _LOG_AXIS_RATIO * low
    return Axis(label, low / scale.factor, high / scale.factor, log=wide), scale.factor
