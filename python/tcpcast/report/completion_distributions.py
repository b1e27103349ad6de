"""Figures of the distribution of completion times: cumulative share, and share above a time."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.report.chart import (
    MARKERS,
    OBSERVED,
    Axis,
    Series,
    fitted_axis,
    line_style,
    scenario_chart,
)
from tcpcast.report.completion_figures import WIDE
from tcpcast.report.leading import PERCENTILES
from tcpcast.report.losses import spread

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tcpcast.answer import Answer
    from tcpcast.report.chart import Chart, Style
    from tcpcast.scenario import Scenario

    Table = dict[str, np.ndarray[Any, Any]]

TABLE = "completion_distribution"


def distribution(answers: Sequence[Answer], scenario: Scenario) -> Chart:
    """Return the cumulative distribution of completion times, with 95 % intervals as a band."""
    title, label = _title_and_axis_label(scenario)
    curves = list(_curves(answers))
    series = [
        Series(
            curve["time_s"],
            100 * curve["share"],
            name,
            style,
            100 * curve["low"],
            100 * curve["high"],
        )
        for curve, name, style in curves
    ]
    x = fitted_axis(label, [curve["time_s"] for curve, *_ in curves], WIDE)
    y = Axis("share within this time (%)", 0, 101)
    return scenario_chart(scenario, title, x, y, series, panel_legend={"loc": "lower right"})


def tail(answers: Sequence[Answer], scenario: Scenario) -> Chart:
    """Return the share of transfers that take longer than a time.

    An answer without a distribution contributes three percentiles for each of several sizes.
    """
    title, label = _title_and_axis_label(scenario)
    series = []
    for curve, name, style in _curves([a for a in answers if TABLE in a.tables]):
        longer = 1.0 - curve["share"]
        shown = longer > 0.5 / curve["transfers"]
        series.append(Series(curve["time_s"][shown], longer[shown], name, style))
    series += _percentiles([answer for answer in answers if TABLE not in answer.tables])
    percent = "share of transfers that take longer"
    y = Axis(percent, log=True, ticks=lambda share, _: f"{100 * share:g} %")
    return scenario_chart(scenario, title, Axis(label, log=True), y, series)


def _percentiles(answers: Sequence[Answer]) -> Iterator[Series]:
    """Yield the median, p95 and p99 of up to five sizes per answer."""
    for answer, colour in zip(answers, OBSERVED * 4, strict=False):
        sizes = answer.tables["by_size"]["size_pkts"]
        for row, mark in zip(spread(len(sizes))[:: -(-len(sizes) // 5)], MARKERS, strict=False):
            times = [float(answer.tables["by_size"][name][row]) for name in PERCENTILES]
            style = {"color": colour, "marker": mark, "linewidth": 1.2}
            yield Series(times, (0.5, 0.05, 0.01), _curve_label(answer, int(sizes[row])), style)


def _curves(answers: Sequence[Answer]) -> Iterator[tuple[Table, str, Style]]:
    """Yield the curve, label and style of each size in each answer."""
    numbers = count()
    for answer in answers:
        table = answer.tables[TABLE]
        sizes = table.get("size_pkts")
        for size in [None] if sizes is None else np.unique(sizes).tolist():
            chosen = slice(None) if sizes is None else sizes == size
            curve = _from_zero({name: column[chosen] for name, column in table.items()})
            style = line_style(next(numbers)) | {"linewidth": 1.4, "drawstyle": "steps-post"}
            yield curve, _curve_label(answer, size, int(curve["transfers"][0])), style


def _from_zero(curve: Table) -> Table:
    """Return a curve with a point of share 0 added at its first time."""
    begins = {name: column[:1] for name, column in curve.items()}
    begins |= {"share": np.zeros(1), "low": np.full(1, np.nan), "high": np.full(1, np.nan)}
    return {name: np.concatenate([begins[name], column]) for name, column in curve.items()}


def _curve_label(answer: Answer, size: int | None, transfers: int | None = None) -> str:
    packets = "" if size is None else f", {size:,} packet{'' if size == 1 else 's'}"
    count = "" if transfers is None else f" ({transfers:,} transfers)"
    return f"{answer.engine}{packets}{count}"


def _title_and_axis_label(scenario: Scenario) -> tuple[str, str]:
    """Return the title of a chart and the label of its time axis."""
    if all(group.traffic.kind == "transfers" for group in scenario.populations):
        return "distribution of completion times", "completion time (s)"
    return "distribution of ON times", "ON time of a file (s)"
