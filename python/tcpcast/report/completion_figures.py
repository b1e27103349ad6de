"""What a figure of completion times against sizes shows: percentiles and means, gaps left open."""

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
MOST_LOSSES = 3
FEWEST = 10
"""A mean over fewer transfers would be all chance: it is left out."""

WIDE = 50.0
"""From this ratio of the longest to the shortest time on, the axis of times is logarithmic."""

_IN_A_ROW, _ROW = 3, 0.15
"""Entries in a row of the legend below the axes, and the height of a row in inches."""


def sizes(answers: Sequence[Answer], asked: Iterable[int]) -> NDArray[np.int64]:
    """Return all sizes asked or told of in rising order: where a curve has none, it has a gap."""
    told = {int(s) for answer in answers for s in answer.tables["by_size"]["size_pkts"]}
    return np.array(sorted(told | set(asked)), dtype=np.int64)


def means(answer: Answer, places: NDArray[np.int64]) -> Floats:
    """Return the mean times over all transfers at each size, NaN where there is none."""
    table = answer.tables["by_size"]
    values = [time.value for time in completion_times(table)]
    return _placed(dict(zip(table["size_pkts"].tolist(), values, strict=True)), places)


def intervals(answer: Answer, places: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return both ends of the 95 % intervals of :func:`means`, NaN where there is none."""
    table = answer.tables["by_size"]
    known, times = table["size_pkts"].tolist(), completion_times(table)
    low, high = (
        {size: end for size, end in zip(known, ends, strict=True) if end is not None}
        for ends in ([time.low for time in times], [time.high for time in times])
    )
    return _placed(low, places), _placed(high, places)


def percentiles(answer: Answer, places: NDArray[np.int64]) -> list[Floats]:
    """Return p50, p95 and p99 at each size; empty for an answer that knows means alone."""
    table = answer.tables["by_size"]
    if not set(PERCENTILES) <= table.keys():
        return []
    known = table["size_pkts"].tolist()
    return [
        _placed(dict(zip(known, table[name].tolist(), strict=True)), places) for name in PERCENTILES
    ]


def by_losses(answer: Answer, places: NDArray[np.int64]) -> dict[int, Floats]:
    """Return the mean times by the number of losses, up to :data:`MOST_LOSSES`."""
    table = answer.tables.get("by_losses", {})
    enough = table["transfers"] >= FEWEST if "transfers" in table else None
    found: dict[int, dict[int, float]] = {}
    for at, ((size, losses), time) in enumerate(by_size_and_losses(answer).items()):
        if losses <= MOST_LOSSES and (enough is None or enough[at]):
            found.setdefault(losses, {})[size] = time.value
    return {losses: _placed(found[losses], places) for losses in sorted(found)}


def alone(values: Floats) -> NDArray[np.bool_]:
    """Return which values have a gap on either side: no band shows them."""
    there = np.pad(np.isfinite(values), 1)
    lone: NDArray[np.bool_] = there[1:-1] & ~there[:-2] & ~there[2:]
    return lone


def _placed(values: Mapping[Any, float], places: NDArray[np.int64]) -> Floats:
    return np.array([values.get(size, math.nan) for size in places.tolist()])


def completion_chart(answers: Sequence[Answer], scenario: Scenario) -> Chart:
    """Return times against sizes: percentiles as bands, means as lines; gaps stay gaps."""
    asked = {
        size
        for group in scenario.populations
        if group.traffic.kind == "transfers"
        for size in group.traffic.sizes or ()
    }
    places = sizes(answers, asked)
    series: list[Drawable] = []
    values: list[Floats] = []
    ordered = sorted(answers, key=is_observed, reverse=True)
    calculated = [answer for answer in ordered if not is_observed(answer)]
    for answer in ordered:
        line = LINES[calculated.index(answer) % 3] if answer in calculated else ":"
        found = percentiles(answer, places) if is_observed(answer) else []
        series += _bands(answer, places, *found) if found else []
        curves = _mean_curves(answer, places)
        series += _mean_series(answer, places, curves, line)
        values += [*found, *curves.values()]
    # Bands and lines fill the axes: the legend is below.
    labels = [each.label for each in series if isinstance(each, Series | Band) and each.label]
    height = SIZE[1] + _ROW * math.ceil(len(dict.fromkeys(labels)) / _IN_A_ROW)
    return scenario_chart(
        scenario,
        "completion times of transfers",
        Axis("size (packets)"),
        fitted_axis("completion time (s)", values, WIDE),
        series,
        size=(SIZE[0], height),
        legend="below",
        legend_style={"fontsize": 7, "ncols": _IN_A_ROW},
    )


def _bands(
    answer: Answer, places: NDArray[np.int64], p50: Floats, p95: Floats, p99: Floats
) -> list[Drawable]:
    """Return the median, and bands from there up to 95 and 99 % of the transfers."""
    colour = {"color": OBSERVED[0]}
    lone = alone(p50)
    series: list[Drawable] = []
    for low, high, alpha, label in ((p50, p95, 0.3, "p50 to p95"), (p95, p99, 0.13, "p95 to p99")):
        style: Style = colour | {"alpha": alpha}
        series.append(Band(places, low, high, label, style))
        series.append(Uprights(places[lone], low[lone], high[lone], style | {"linewidth": 5}))
    style = colour | {"linewidth": 1.4, "marker": "_", "markersize": 7}
    return [*series, Series(places, p50, f"{answer.engine}, median", style)]


def _mean_curves(answer: Answer, places: NDArray[np.int64]) -> dict[str, Floats]:
    """Return mean times over all transfers, and by the number of losses."""
    losses = by_losses(answer, places).items()
    return {"mean": means(answer, places)} | {f"{n} lost": times for n, times in losses}


def _mean_series(
    answer: Answer, places: NDArray[np.int64], curves: dict[str, Floats], line: Any
) -> list[Drawable]:
    style = {"linestyle": line, "linewidth": 1.2}
    style |= {"marker": "o", "markersize": 3.2} if is_observed(answer) else {}
    colours = iter((REFERENCE, *OBSERVED[1:], *CALCULATED))
    series: list[Drawable] = [
        Series(places, times, f"{answer.engine}, {name}", {"color": next(colours)} | style)
        for name, times in curves.items()
    ]
    low, high = intervals(answer, places)
    if np.isfinite(low).any():
        label = f"{answer.engine}, mean, 95 % interval"
        series.append(Band(places, low, high, label, {"color": REFERENCE, "alpha": 0.3}))
    return series
