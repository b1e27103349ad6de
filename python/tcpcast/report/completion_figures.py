"""Figure of completion time against transfer size: percentiles and means, with gaps."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.compare import completion_times, is_observed
from tcpcast.report.chart import (
    CALCULATED,
    LINES,
    OBSERVED,
    REFERENCE,
    SIZE,
    Axis,
    Band,
    Chart,
    Series,
    Uprights,
    fitted_axis,
    scenario_chart,
)
from tcpcast.report.losses import by_size_and_losses

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from tcpcast.answer import Answer
    from tcpcast.report.chart import Drawable, Style
    from tcpcast.scenario import Scenario

    Floats = NDArray[np.float64]

PERCENTILES = ("p50", "p95", "p99")
MAX_LOSSES = 3
MIN_TRANSFERS = 10
"""Means over fewer transfers are omitted, because they would be mostly noise."""

WIDE = 50.0
"""Ratio of the longest to the shortest time above which the time axis is logarithmic."""

_LEGEND_COLUMNS, _LEGEND_ROW_HEIGHT = 3, 0.15
"""Entries per row of the legend below the axes, and the height of a row in inches."""


def sizes(answers: Sequence[Answer], requested: Iterable[int]) -> NDArray[np.int64]:
    """Return all requested or reported sizes in ascending order; a curve has gaps elsewhere."""
    reported = {int(s) for answer in answers for s in answer.tables["by_size"]["size_pkts"]}
    return np.array(sorted(reported | set(requested)), dtype=np.int64)


def means(answer: Answer, at_sizes: NDArray[np.int64]) -> Floats:
    """Return the mean time over all transfers of each size, NaN for sizes without transfers."""
    table = answer.tables["by_size"]
    values = [time.value for time in completion_times(table)]
    return _values_at(dict(zip(table["size_pkts"].tolist(), values, strict=True)), at_sizes)


def intervals(answer: Answer, at_sizes: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return the bounds of the 95 % intervals of :func:`means`, NaN for sizes without one."""
    table = answer.tables["by_size"]
    known, times = table["size_pkts"].tolist(), completion_times(table)
    low, high = (
        {size: end for size, end in zip(known, ends, strict=True) if end is not None}
        for ends in ([time.low for time in times], [time.high for time in times])
    )
    return _values_at(low, at_sizes), _values_at(high, at_sizes)


def percentiles(answer: Answer, at_sizes: NDArray[np.int64]) -> list[Floats]:
    """Return p50, p95 and p99 at each size; empty if the answer contains only means."""
    table = answer.tables["by_size"]
    if not set(PERCENTILES) <= table.keys():
        return []
    known = table["size_pkts"].tolist()
    return [
        _values_at(dict(zip(known, table[name].tolist(), strict=True)), at_sizes)
        for name in PERCENTILES
    ]


def by_losses(answer: Answer, at_sizes: NDArray[np.int64]) -> dict[int, Floats]:
    """Return the mean times by number of losses, up to :data:`MAX_LOSSES`."""
    table = answer.tables.get("by_losses", {})
    enough = table["transfers"] >= MIN_TRANSFERS if "transfers" in table else None
    times: dict[int, dict[int, float]] = {}
    for row, ((size, losses), time) in enumerate(by_size_and_losses(answer).items()):
        if losses <= MAX_LOSSES and (enough is None or enough[row]):
            times.setdefault(losses, {})[size] = time.value
    return {losses: _values_at(times[losses], at_sizes) for losses in sorted(times)}


def isolated(values: Floats) -> NDArray[np.bool_]:
    """Return a mask of values with a gap on both sides, which a band would not show."""
    finite = np.pad(np.isfinite(values), 1)
    mask: NDArray[np.bool_] = finite[1:-1] & ~finite[:-2] & ~finite[2:]
    return mask


def _values_at(values: Mapping[Any, float], at_sizes: NDArray[np.int64]) -> Floats:
    return np.array([values.get(size, math.nan) for size in at_sizes.tolist()])


def completion_chart(answers: Sequence[Answer], scenario: Scenario) -> Chart:
    """Return completion time against size: percentiles as bands, means as lines, with gaps."""
    requested = {
        size
        for group in scenario.populations
        if group.traffic.kind == "transfers"
        for size in group.traffic.sizes or ()
    }
    at_sizes = sizes(answers, requested)
    series: list[Drawable] = []
    values: list[Floats] = []
    ordered = sorted(answers, key=is_observed, reverse=True)
    calculated = [answer for answer in ordered if not is_observed(answer)]
    for answer in ordered:
        line = LINES[calculated.index(answer) % 3] if answer in calculated else ":"
        quantiles = percentiles(answer, at_sizes) if is_observed(answer) else []
        series += _bands(answer, at_sizes, *quantiles) if quantiles else []
        curves = _mean_curves(answer, at_sizes)
        series += _mean_series(answer, at_sizes, curves, line)
        values += [*quantiles, *curves.values()]
    # The legend goes below, because bands and lines fill the axes.
    labels = [each.label for each in series if isinstance(each, Series | Band) and each.label]
    legend_rows = math.ceil(len(dict.fromkeys(labels)) / _LEGEND_COLUMNS)
    height = SIZE[1] + _LEGEND_ROW_HEIGHT * legend_rows
    return scenario_chart(
        scenario,
        "completion times of transfers",
        Axis("size (packets)"),
        fitted_axis("completion time (s)", values, WIDE),
        series,
        size=(SIZE[0], height),
        legend="below",
        legend_style={"fontsize": 7, "ncols": _LEGEND_COLUMNS},
    )


def _bands(
    answer: Answer, at_sizes: NDArray[np.int64], p50: Floats, p95: Floats, p99: Floats
) -> list[Drawable]:
    """Return the median, and bands from the median to p95 and from p95 to p99."""
    colour = {"color": OBSERVED[0]}
    lone = isolated(p50)
    series: list[Drawable] = []
    for low, high, alpha, label in ((p50, p95, 0.3, "p50 to p95"), (p95, p99, 0.13, "p95 to p99")):
        style: Style = colour | {"alpha": alpha}
        series.append(Band(at_sizes, low, high, label, style))
        series.append(Uprights(at_sizes[lone], low[lone], high[lone], style | {"linewidth": 5}))
    style = colour | {"linewidth": 1.4, "marker": "_", "markersize": 7}
    return [*series, Series(at_sizes, p50, f"{answer.engine}, median", style)]


def _mean_curves(answer: Answer, at_sizes: NDArray[np.int64]) -> dict[str, Floats]:
    """Return mean times over all transfers and by number of losses."""
    losses = by_losses(answer, at_sizes).items()
    return {"mean": means(answer, at_sizes)} | {f"{n} lost": times for n, times in losses}


def _mean_series(
    answer: Answer, at_sizes: NDArray[np.int64], curves: dict[str, Floats], line: Any
) -> list[Drawable]:
    style = {"linestyle": line, "linewidth": 1.2}
    style |= {"marker": "o", "markersize": 3.2} if is_observed(answer) else {}
    colours = iter((REFERENCE, *OBSERVED[1:], *CALCULATED))
    series: list[Drawable] = [
        Series(at_sizes, times, f"{answer.engine}, {name}", {"color": next(colours)} | style)
        for name, times in curves.items()
    ]
    low, high = intervals(answer, at_sizes)
    if np.isfinite(low).any():
        label = f"{answer.engine}, mean, 95 % interval"
        series.append(Band(at_sizes, low, high, label, {"color": REFERENCE, "alpha": 0.3}))
    return series
