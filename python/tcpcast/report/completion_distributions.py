"""Figures of completion times: the share of transfers up to a time, and the share above it."""

from __future__ import annotations

import math
from dataclasses import replace
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
from tcpcast.report.figure_titles import finding_title
from tcpcast.report.main_metrics import PERCENTILES, sizes_of_row_text
from tcpcast.report.palette import MARKERS, OBSERVED, line_style
from tcpcast.report.quantity import scale_for_unit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike

    from tcpcast.answer import Answer
    from tcpcast.report.chart import Chart, Style
    from tcpcast.report.quantity import Scale
    from tcpcast.scenario import Scenario

    Table = dict[str, np.ndarray[Any, Any]]

DISTRIBUTION_TABLE = "completion_distribution"
_SLOWEST_SHARE = 0.05
"""Share of the slowest transfers that the title names."""


def cumulative_time_chart(answers: Sequence[Answer], scenario: Scenario) -> Chart:
    """Return the cumulative distribution of completion times, with 95 % intervals as a band."""
    subject, quantity = _subject_and_quantity(scenario)
    curves = list(_distribution_curves(answers))
    scale = _time_scale([curve["time_s"] for curve, *_ in curves])
    series = [
        Series(
            curve["time_s"] / scale.factor,
            100 * curve["share"],
            name,
            style,
            100 * curve["low"],
            100 * curve["high"],
        )
        for curve, name, style in curves
    ]
    label = f"{quantity} ({scale.unit})"
    x = linear_or_log_axis(label, [each.x for each in series], LOG_AXIS_RATIO)
    y = Axis("finished within this time (%)", 0, 101, ticks={n: f"{n}" for n in range(0, 101, 20)})
    title = _time_distribution_title(answers[0], series, subject, scale)
    return one_panel_chart(scenario, title, x, y, series, panel_legend={"loc": "lower right"})


def _time_distribution_title(
    answer: Answer, series: Sequence[Series], subject: str, scale: Scale
) -> str:
    """Return a title with the median completion time, for each size if there are several sizes."""
    half = [
        float(np.asarray(each.x)[np.searchsorted(np.asarray(each.y), 50)]) * scale.factor
        for each in series
        if np.max(np.asarray(each.y), initial=0.0) >= 50
    ]
    if not half:
        return f"Distribution of the times of {subject}"
    return finding_title(answer, f"the median time of {subject}", half, "s")


def time_tail_chart(answers: Sequence[Answer], scenario: Scenario) -> Chart:
    """Return the chart of the share of transfers above each completion time.

    An answer without a distribution contributes three percentiles for each of several sizes.
    """
    subject, quantity = _subject_and_quantity(scenario)
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
    scale = _time_scale([each.x for each in series])
    least = min((float(np.min(each.y)) for each in series), default=0.1)
    y = Axis(f"{subject} that take longer", 0.7 * least, 1, log=True, ticks=percent_tick)
    ends = [
        float(np.min(np.asarray(each.x)[np.asarray(each.y) <= _SLOWEST_SHARE], initial=math.inf))
        for each in series
    ]
    known = [end for end in ends if math.isfinite(end)]
    title = f"Share of the {subject} that take longer than a time"
    if known and len(known) == len(ends):
        title = finding_title(
            answers[0], f"the 95th percentile of the time of {subject}", known, "s"
        )
    drawn = [replace(each, x=np.asarray(each.x) / scale.factor) for each in series]
    x = Axis(f"{quantity} ({scale.unit})", log=True)
    return one_panel_chart(scenario, title, x, y, drawn)


def _time_scale(times_s: Sequence[ArrayLike]) -> Scale:
    """Return a readable unit for the median of times in seconds."""
    flat = np.concatenate([np.ravel(np.asarray(times, dtype=float)) for times in times_s])
    known = flat[np.isfinite(flat)]
    return scale_for_unit("s", float(np.median(known)) if known.size else 1.0)


def _percentile_series(answers: Sequence[Answer]) -> Iterator[Series]:
    """Yield the median, p95 and p99 of the completion times of some sizes, for each answer."""
    for answer, colour in zip(answers, OBSERVED * 4, strict=False):
        table = answer.tables["by_size"]
        known = np.flatnonzero(np.isfinite(table["p50"])).tolist()
        rows = [known[index] for index in _spaced_size_indices(len(known), answers)]
        for row, mark in zip(rows, MARKERS, strict=False):
            times = [float(table[name][row]) for name in PERCENTILES]
            style = {"color": colour, "marker": mark, "linewidth": 1.2}
            label = f"{answer.engine}, {sizes_of_row_text(table, row, {})}"
            yield Series(times, (0.5, 0.05, 0.01), label, style)


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
            parts = [] if len(answers) == 1 and size is not None else [answer.engine]
            parts += [] if size is None else [packets_text(size)]
            label = f"{', '.join(parts)} ({int(curve['transfers'][0]):,} transfers)"
            yield curve, label, style


def _prepend_zero(curve: Table) -> Table:
    """Return a curve with a point of share 0 added at its first time."""
    begins = select_rows(curve, slice(1))
    begins |= {"share": np.zeros(1), "low": np.full(1, np.nan), "high": np.full(1, np.nan)}
    return {name: np.concatenate([begins[name], column]) for name, column in curve.items()}


def _subject_and_quantity(scenario: Scenario) -> tuple[str, str]:
    """Return the noun for the transfers, and the name of their times."""
    if all(group.traffic.kind == "transfers" for group in scenario.populations):
        return "transfers", "completion time"
    return "files", "time to load a file"
