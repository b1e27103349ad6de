"""Figures of completion times: the share of transfers up to a time, and the share above it."""

from __future__ import annotations

import math
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.table import select_rows
from tcpcast.compare import packets_text
from tcpcast.report.chart import (
    MAX_LEGEND_ENTRIES,
    Axis,
    Series,
    linear_or_log_axis,
    one_panel_chart,
    percent_tick,
)
from tcpcast.report.completion_figures import LOG_AXIS_RATIO
from tcpcast.report.figure_titles import value_range_text
from tcpcast.report.main_metrics import PERCENTILES
from tcpcast.report.palette import MARKERS, OBSERVED, line_style

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tcpcast.answer import Answer
    from tcpcast.report.chart import Chart, Style
    from tcpcast.scenario import Scenario

    Table = dict[str, np.ndarray[Any, Any]]

DISTRIBUTION_TABLE = "completion_distribution"
_SLOWEST_SHARE = 0.05
"""Share of the slowest transfers that the title names."""


def cumulative_time_chart(answers: Sequence[Answer], scenario: Scenario) -> Chart:
    """Return the cumulative distribution of completion times, with 95 % intervals as a band."""
    subject, label = _subject_and_axis_label(scenario)
    curves = list(_distribution_curves(answers))
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
    x = linear_or_log_axis(label, [curve["time_s"] for curve, *_ in curves], LOG_AXIS_RATIO)
    y = Axis("finished within this time (%)", 0, 101, ticks={n: f"{n}" for n in range(0, 101, 20)})
    title = _time_distribution_title(series, subject)
    return one_panel_chart(scenario, title, x, y, series, panel_legend={"loc": "lower right"})


def _time_distribution_title(series: Sequence[Series], subject: str) -> str:
    """Return a title with the median completion time, for each size if there are several sizes."""
    half = [
        float(np.asarray(each.x)[np.searchsorted(np.asarray(each.y), 50)])
        for each in series
        if np.max(np.asarray(each.y), initial=0.0) >= 50
    ]
    if not half:
        return f"Distribution of the times of {subject}"
    sizes = ", depending on the size" if len(half) > 1 else ""
    return f"Half of the {subject} finish within {value_range_text(half, 's')}{sizes}"


def time_tail_chart(answers: Sequence[Answer], scenario: Scenario) -> Chart:
    """Return the chart of the share of transfers above each completion time.

    An answer without a distribution contributes three percentiles for each of several sizes.
    """
    subject, label = _subject_and_axis_label(scenario)
    series = []
    for curve, name, style in _distribution_curves(
        [a for a in answers if DISTRIBUTION_TABLE in a.tables]
    ):
        longer = 1.0 - curve["share"]
        shown = longer > 0.5 / curve["transfers"]
        # A logarithmic axis shows no share of 0.
        low, high = (np.maximum(1.0 - curve[end][shown], 1e-9) for end in ("high", "low"))
        series.append(Series(curve["time_s"][shown], longer[shown], name, style, low, high))
    series += _percentile_series(
        [answer for answer in answers if DISTRIBUTION_TABLE not in answer.tables]
    )
    least = min((float(np.min(each.y)) for each in series), default=0.1)
    y = Axis(f"{subject} that take longer", 0.7 * least, 1, log=True, ticks=percent_tick)
    ends = [
        float(np.min(np.asarray(each.x)[np.asarray(each.y) <= _SLOWEST_SHARE], initial=math.inf))
        for each in series
    ]
    known = [end for end in ends if math.isfinite(end)]
    title = f"Share of the {subject} that take longer than a time"
    if known and len(known) == len(ends):
        sizes = ", depending on the size" if len(known) > 1 else ""
        title = (
            f"At most 5 % of the {subject} take longer than {value_range_text(known, 's')}{sizes}"
        )
    return one_panel_chart(scenario, title, Axis(label, log=True), y, series)


def _percentile_series(answers: Sequence[Answer]) -> Iterator[Series]:
    """Yield the median, p95 and p99 of the completion times of some sizes, for each answer."""
    for answer, colour in zip(answers, OBSERVED * 4, strict=False):
        sizes = answer.tables["by_size"]["size_pkts"]
        for row, mark in zip(_spaced_size_indices(len(sizes), answers), MARKERS, strict=False):
            times = [float(answer.tables["by_size"][name][row]) for name in PERCENTILES]
            style = {"color": colour, "marker": mark, "linewidth": 1.2}
            yield Series(times, (0.5, 0.05, 0.01), _curve_label(answer, int(sizes[row])), style)


def _spaced_size_indices(size_count: int, answers: Sequence[Answer]) -> list[int]:
    """Return evenly spaced indices of sizes, few enough for a short legend."""
    most = max(1, MAX_LEGEND_ENTRIES // len(answers))
    indices: list[int] = np.unique(
        np.linspace(0, size_count - 1, min(size_count, most)).round()
    ).tolist()
    return [int(index) for index in indices]


def _distribution_curves(answers: Sequence[Answer]) -> Iterator[tuple[Table, str, Style]]:
    """Yield the curve, label and style of some sizes in each answer."""
    numbers = count()
    for answer in answers:
        table = answer.tables[DISTRIBUTION_TABLE]
        sizes = table.get("size_pkts")
        distinct = [None] if sizes is None else np.unique(sizes).tolist()
        for size in (distinct[i] for i in _spaced_size_indices(len(distinct), answers)):
            chosen = slice(None) if sizes is None else sizes == size
            curve = _prepend_zero(select_rows(table, chosen))
            style = line_style(next(numbers)) | {"linewidth": 1.4, "drawstyle": "steps-post"}
            label = _curve_label(answer, size, int(curve["transfers"][0]))
            if len(answers) == 1 and size is not None:
                label = label.removeprefix(f"{answer.engine}, ")
            yield curve, label, style


def _prepend_zero(curve: Table) -> Table:
    """Return a curve with a point of share 0 added at its first time."""
    begins = select_rows(curve, slice(1))
    begins |= {"share": np.zeros(1), "low": np.full(1, np.nan), "high": np.full(1, np.nan)}
    return {name: np.concatenate([begins[name], column]) for name, column in curve.items()}


def _curve_label(answer: Answer, size: int | None, transfers: int | None = None) -> str:
    packets = "" if size is None else f", {packets_text(size)}"
    count = "" if transfers is None else f" ({transfers:,} transfers)"
    return f"{answer.engine}{packets}{count}"


def _subject_and_axis_label(scenario: Scenario) -> tuple[str, str]:
    """Return the noun for the transfers, and the label of the time axis."""
    if all(group.traffic.kind == "transfers" for group in scenario.populations):
        return "transfers", "completion time (s)"
    return "files", "time to load a file (s)"
