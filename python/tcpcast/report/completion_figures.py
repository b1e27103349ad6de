"""Figure of completion time against transfer size: percentiles and means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.compare import is_observed, mean_completion_time_metrics
from tcpcast.report.chart import (
    FIGURE_SIZE_IN,
    Axis,
    IntervalLines,
    Series,
    one_panel_chart,
    value_axis,
)
from tcpcast.report.figure_titles import engine_label, run_title
from tcpcast.report.main_metrics import PERCENTILES
from tcpcast.report.palette import BLACK, BLUE, CALCULATED, OBSERVED
from tcpcast.report.quantity import scale_for_unit
from tcpcast.report.times_by_losses import times_by_size_and_losses

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpcast.answer import Answer, Metric
    from tcpcast.report.chart import Chart, Drawable, Style
    from tcpcast.scenario import Scenario

    Floats = np.ndarray[Any, np.dtype[np.float64]]

MAX_LOSS_CURVES = 3
MIN_TRANSFERS = 10
"""Means over fewer transfers are omitted, because they would be mostly noise."""
_PERCENTILE_BARS = (
    ("p50", "p95", "#8fc1e0", "median to 95th percentile"),
    ("p95", "p99", "#d5e8f3", "95th to 99th percentile"),
)


def mean_times(answer: Answer) -> dict[str, dict[int, Metric]]:
    """Return the mean times by size: over all transfers, and by number of losses."""
    table, by_losses = answer.tables["by_size"], answer.tables.get("by_losses", {})
    metrics = mean_completion_time_metrics(table)
    times = {"mean": dict(zip(table["size_pkts"].tolist(), metrics, strict=True))}
    known = times_by_size_and_losses(answer)
    counts = by_losses.get("transfers", np.full(len(known), MIN_TRANSFERS)).tolist()
    for (size, losses), count in sorted(zip(known, counts, strict=True), key=lambda row: row[0][1]):
        if losses <= MAX_LOSS_CURVES and count >= MIN_TRANSFERS:
            times.setdefault(f"{losses} lost", {})[size] = known[size, losses]
    return times


def completion_chart(answers: Sequence[Answer], scenario: Scenario) -> Chart:
    """Return completion time against size: percentiles as bars, means as lines, with gaps."""
    sizes = {
        size
        for group in scenario.populations
        if group.traffic.kind == "transfers"
        for size in group.traffic.sizes or ()
    }.union(*(answer.tables["by_size"]["size_pkts"].tolist() for answer in answers))
    x = np.array(sorted(sizes))
    times = np.concatenate([answer.tables["by_size"]["completion_time_s"] for answer in answers])
    scale = scale_for_unit("s", float(np.nanmedian(times)))
    series: list[Drawable] = []
    shown: list[Floats] = []
    lines = iter(("-", "--", "-.") * len(answers))
    ordered = sorted(answers, key=is_observed, reverse=True)
    for answer in ordered:
        table = answer.tables["by_size"]
        mark: Style = {
            "marker": "o" if is_observed(answer) else ".",
            "markersize": 3.2,
            "linewidth": 1.2,
        }
        mark["linestyle"] = ":" if is_observed(answer) else next(lines)
        if is_observed(answer) and set(PERCENTILES) <= table.keys():
            for low, high, colour, label in _PERCENTILE_BARS:
                bar = {"color": colour, "linewidth": 5, "label": label}
                ends = table[low] / scale.factor, table[high] / scale.factor
                series.append(IntervalLines(table["size_pkts"], *ends, bar))
                shown += ends
            median = {"color": BLUE, "marker": "_", "markersize": 9, "linestyle": "none"}
            name = f"_{answer.engine}, median"
            series.append(Series(table["size_pkts"], table["p50"] / scale.factor, name, median))
        colours = iter((BLACK, *OBSERVED[1:], *CALCULATED))
        for name, metrics in mean_times(answer).items():
            rows = [
                (metric.value, metric.low, metric.high) if metric else (None,) * 3
                for metric in map(metrics.get, x.tolist())
            ]
            value, low, high = np.array(rows, dtype=float).T / scale.factor
            style: Style = {"color": next(colours)}
            series.append(IntervalLines(x, low, high, style | {"linewidth": 1}))
            interval = ", 95 % interval" if np.isfinite(low).any() else ""
            # Curves by number of losses are named at their ends, once if several engines have them.
            label = f"mean, {engine_label(answer)}{interval}" if name == "mean" else ""
            end = name if answer is ordered[0] and not label else ""
            series.append(Series(x, value, label, style | mark, name=end))
            shown.append(value)
    # The legend goes below, because bars and lines fill the axes.
    return one_panel_chart(
        scenario,
        run_title(answers, scenario, "Completion times of transfers by size"),
        Axis("size of a transfer (packets)", integer_ticks=True),
        value_axis(f"completion time ({scale.unit})", shown),
        series,
        size=(FIGURE_SIZE_IN[0], FIGURE_SIZE_IN[1] + 0.5),
        legend_position="below",
    )
