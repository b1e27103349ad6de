"""Figure of completion time against transfer size: percentiles and means."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.compare import is_observed, mean_completion_time_metrics
from tcpcast.report.chart import (
    FIGURE_SIZE_IN,
    Axis,
    Band,
    Chart,
    IntervalLines,
    Series,
    linear_or_log_axis,
    one_panel_chart,
)
from tcpcast.report.figure_titles import engine_label, run_title
from tcpcast.report.main_metrics import PERCENTILES
from tcpcast.report.palette import BLACK, CALCULATED, DASH_PATTERNS, OBSERVED
from tcpcast.report.quantity import scale_for_unit
from tcpcast.report.times_by_losses import times_by_size_and_losses

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from tcpcast.answer import Answer, Metric
    from tcpcast.report.chart import Drawable, Style
    from tcpcast.scenario import Scenario

    Floats = NDArray[np.float64]

MAX_LOSS_CURVES = 3
MIN_TRANSFERS = 10
"""Means over fewer transfers are omitted, because they would be mostly noise."""

LOG_AXIS_RATIO = 50.0
"""Ratio of the longest to the shortest time above which the time axis is logarithmic."""

_LEGEND_HEIGHT_IN = 0.5
"""Height of the legend below the axes in inches."""


def requested_and_answered_sizes(
    answers: Sequence[Answer], requested: Iterable[int]
) -> NDArray[np.int64]:
    """Return all sizes in packets that are requested or in an answer, in ascending order."""
    reported = {int(s) for answer in answers for s in answer.tables["by_size"]["size_pkts"]}
    return np.array(sorted(reported | set(requested)), dtype=np.int64)


def mean_times(answer: Answer, at_sizes: NDArray[np.int64]) -> Floats:
    """Return the mean time of each size and its 95 % interval, as :func:`mean_times_by_losses`."""
    table = answer.tables["by_size"]
    times = zip(table["size_pkts"].tolist(), mean_completion_time_metrics(table), strict=True)
    return _metrics_by_size(dict(times), at_sizes)


def percentile_times(answer: Answer, at_sizes: NDArray[np.int64]) -> list[Floats]:
    """Return p50, p95 and p99 at each size; empty if the answer contains only means."""
    table = answer.tables["by_size"]
    if not set(PERCENTILES) <= table.keys():
        return []
    known = table["size_pkts"].tolist()
    return [
        _values_by_size(dict(zip(known, table[name].tolist(), strict=True)), at_sizes)
        for name in PERCENTILES
    ]


def mean_times_by_losses(answer: Answer, at_sizes: NDArray[np.int64]) -> dict[int, Floats]:
    """Return the mean times by number of losses, up to :data:`MAX_LOSS_CURVES`.

    Each array has three rows: the means, and the lower and upper bounds of their 95 % intervals. A
    missing value is NaN.
    """
    table = answer.tables.get("by_losses", {})
    enough = table["transfers"] >= MIN_TRANSFERS if "transfers" in table else None
    times: dict[int, dict[int, Metric]] = {}
    for row, ((size, losses), time) in enumerate(times_by_size_and_losses(answer).items()):
        if losses <= MAX_LOSS_CURVES and (enough is None or enough[row]):
            times.setdefault(losses, {})[size] = time
    return {losses: _metrics_by_size(times[losses], at_sizes) for losses in sorted(times)}


def _metrics_by_size(metrics: Mapping[int, Metric], at_sizes: NDArray[np.int64]) -> Floats:
    """Return values, lower and upper bounds, shape ``[3, sizes]``, NaN if unknown."""
    rows = [(metric.value, metric.low, metric.high) for metric in metrics.values()]
    columns = np.array(rows, dtype=float).reshape(-1, 3).T
    known = [dict(zip(metrics, column.tolist(), strict=True)) for column in columns]
    return np.array([_values_by_size(column, at_sizes) for column in known])


def isolated_points_mask(values: Floats) -> NDArray[np.bool_]:
    """Return a mask of single values between two gaps, which a line or a band would not show."""
    finite = np.pad(np.isfinite(values), 1)
    mask: NDArray[np.bool_] = finite[1:-1] & ~finite[:-2] & ~finite[2:]
    return mask


def _values_by_size(values: Mapping[Any, float], at_sizes: NDArray[np.int64]) -> Floats:
    return np.array([values.get(size, math.nan) for size in at_sizes.tolist()])


def completion_chart(answers: Sequence[Answer], scenario: Scenario) -> Chart:
    """Return completion time against size: percentiles as bands, means as lines, with gaps."""
    requested = {
        size
        for group in scenario.populations
        if group.traffic.kind == "transfers"
        for size in group.traffic.sizes or ()
    }
    at_sizes = requested_and_answered_sizes(answers, requested)
    ordered = sorted(answers, key=is_observed, reverse=True)
    scale = scale_for_unit("s", _median_time(ordered))
    series: list[Drawable] = []
    values: list[Floats] = []
    calculated = [answer for answer in ordered if not is_observed(answer)]
    for answer in ordered:
        line = DASH_PATTERNS[calculated.index(answer) % 3] if answer in calculated else ":"
        quantiles = percentile_times(answer, at_sizes) if is_observed(answer) else []
        quantiles = [times / scale.factor for times in quantiles]
        series += _interval_bands(answer, at_sizes, *quantiles) if quantiles else []
        curves = {
            name: times / scale.factor for name, times in _mean_curves(answer, at_sizes).items()
        }
        series += _mean_series(answer, at_sizes, curves, line, show_names=answer is ordered[0])
        values += [*quantiles, *(times for times, *_ in curves.values())]
    # The legend goes below, because bands and lines fill the axes.
    return one_panel_chart(
        scenario,
        run_title(answers, scenario, "Completion times of transfers by size"),
        Axis("size of a transfer (packets)", integer_ticks=True),
        linear_or_log_axis(f"completion time ({scale.unit})", values, LOG_AXIS_RATIO),
        series,
        size=(FIGURE_SIZE_IN[0], FIGURE_SIZE_IN[1] + _LEGEND_HEIGHT_IN),
        legend_position="below",
    )


def _median_time(answers: Sequence[Answer]) -> float:
    """Return the median of all mean completion times in seconds."""
    times = np.concatenate([answer.tables["by_size"]["completion_time_s"] for answer in answers])
    return float(np.median(times[np.isfinite(times)]))


def _interval_bands(
    answer: Answer, at_sizes: NDArray[np.int64], p50: Floats, p95: Floats, p99: Floats
) -> list[Drawable]:
    """Return the median, and bands from the median to p95 and from p95 to p99."""
    colour = {"color": OBSERVED[0]}
    lone = isolated_points_mask(p50)
    series: list[Drawable] = []
    names = "median to 95th percentile", "95th to 99th percentile"
    for low, high, alpha, label in ((p50, p95, 0.3, names[0]), (p95, p99, 0.13, names[1])):
        style: Style = colour | {"alpha": alpha}
        series.append(Band(at_sizes, low, high, label, style))
        series.append(
            IntervalLines(at_sizes[lone], low[lone], high[lone], style | {"linewidth": 5})
        )
    style = colour | {"linewidth": 1.4, "marker": "_", "markersize": 7}
    return [*series, Series(at_sizes, p50, f"_{answer.engine}, median", style)]


def _mean_curves(answer: Answer, at_sizes: NDArray[np.int64]) -> dict[str, Floats]:
    """Return mean times with their bounds over all transfers and by number of losses."""
    losses = mean_times_by_losses(answer, at_sizes).items()
    overall = mean_times(answer, at_sizes)
    return {"mean": overall} | {f"{n} lost": times for n, times in losses}


def _mean_series(
    answer: Answer,
    at_sizes: NDArray[np.int64],
    curves: dict[str, Floats],
    line: Any,
    *,
    show_names: bool,
) -> list[Drawable]:
    style = {"linestyle": line, "linewidth": 1.2}
    style |= {"marker": "o", "markersize": 3.2} if is_observed(answer) else {}
    colours = iter((BLACK, *OBSERVED[1:], *CALCULATED))
    label = f"mean, {engine_label(answer)}"
    label += ", 95 % interval" if np.isfinite(curves["mean"][1]).any() else ""
    series: list[Drawable] = []
    for name, (times, low, high) in curves.items():
        colour = {"color": next(colours)}
        known = np.isfinite(low)
        if known.any():
            bars = colour | {"linewidth": 1}
            series.append(IntervalLines(at_sizes[known], low[known], high[known], bars))
        # Curves by number of losses are named at their ends, once if several engines have them.
        labels = {"label": label} if name == "mean" else {"name": name if show_names else ""}
        is_visible = "marker" in style or not isolated_points_mask(times).any()
        mark = {} if is_visible else {"marker": "o", "markersize": 3.2}
        series.append(Series(at_sizes, times, style=colour | style | mark, **labels))
    return series
