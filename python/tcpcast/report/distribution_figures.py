"""Figures of distributions: active users, the queue, times of transfers, and goodput of files."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.table import select_rows
from tcpcast.comparison.compare import is_observed, main_metric, mean_time_metrics, packets_text
from tcpcast.quantity.readable_units import count_text
from tcpcast.report.chart import (
    FIGURE_SIZE_IN,
    MAX_LEGEND_ENTRIES,
    Axis,
    Band,
    IntervalLines,
    ReferenceLine,
    Series,
    one_panel_chart,
    percent_tick,
    value_axis,
)
from tcpcast.report.figure_titles import (
    answer_for_title,
    engine_label,
    finding_title,
    run_title,
    sender_noun,
)
from tcpcast.report.main_metrics import PERCENTILES, sizes_of_row_text
from tcpcast.report.palette import (
    BLACK,
    BLUE,
    CALCULATED,
    OBSERVED,
    REFERENCE,
    engine_style,
    line_style,
)
from tcpcast.report.quantity import scale_for_unit
from tcpcast.report.times_by_losses import times_by_size_and_losses

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tcpcast.answer import Answer, Metric
    from tcpcast.report.chart import Chart, Drawable, Style
    from tcpcast.scenario import Scenario

    Floats = np.ndarray[Any, np.dtype[np.float64]]
    Table = dict[str, np.ndarray[Any, Any]]


TIMES_TABLE = "completion_distribution"
GOODPUT_COLUMNS = {
    "by_file": "all files",
    "by_large_file": "large files",
    "by_packets": "blocks of packets",
}
"""Labels of the columns of ``file_goodput_tail``, in drawing order."""

_DENSITY_BINS = 40
"""Approximate number of bins in the shown part of a distribution."""
_MIN_SHARE = 1e-6
"""Shares below this value are not shown: the tail of a formula may extend to 1e-300."""
_MIN_GOODPUT_SHARE = 1e-3
"""Shares of files at both ends of the distribution of goodput that are not shown."""


def _answer_curves(answers: Sequence[Answer], table: str, x: str, y: str) -> list[Series]:
    """Return the positive values of each answer; formulas last, so that they cover the points."""
    return [
        Series(
            rows[x], rows[y], engine_label(a), engine_style(a.engine, is_observed=is_observed(a))
        )
        for a in sorted(answers, key=is_observed, reverse=True)
        for rows in [select_rows(a.tables[table], a.tables[table][y] > 0)]
    ]


def _log_share_axis(label: str, curves: Sequence[Series]) -> tuple[Axis, float]:
    """Return a logarithmic axis for the observed shares, and the largest x value above its end."""
    observed = [each for each in curves if "marker" in each.style] or curves
    low = max(0.7 * min(float(np.min(each.y, initial=1.0)) for each in observed), _MIN_SHARE)
    ends = [np.max(each.x, where=np.greater_equal(each.y, low), initial=1.0) for each in curves]
    return Axis(label, low, 1, log=True, ticks=percent_tick), 1.03 * float(max(ends))


def active_users_chart(answers: Sequence[Answer], scenario: Scenario) -> Chart:
    """Return the chart of the probability of each number of active users."""
    curves = _answer_curves(answers, "states", "active", "probability")
    y, right = _log_share_axis("share of time", curves)
    x = _active_axis(scenario, right)
    # The title has the range of active users between the 5th and 95th percentile.
    answer = answer_for_title(answers)
    table = answer.tables["states"]
    below = np.cumsum(table["probability"])
    ends = table["active"][np.searchsorted(below, np.array([0.05, 0.95]) * below[-1])].tolist()
    noun = sender_noun(scenario.populations)
    title = finding_title(answer, f"90 % of the time, the number of active {noun}s", ends, noun)
    return one_panel_chart(scenario, title, x, y, curves)


def _active_axis(scenario: Scenario, right: float) -> Axis:
    label = f"{sender_noun(scenario.populations)}s active at the same time"
    return Axis(label, 0, right, integer_ticks=True)


def shared_rate_chart(answers: Sequence[Answer], scenario: Scenario) -> Chart:
    """Return the chart of the rate of each active user, against the number of active users."""
    curves = _answer_curves(answers, "states", "active", "shared_rate_bps")
    peak = max(float(np.max(each.y)) for each in curves)
    scale, rate = scale_for_unit("bit/s", peak), scenario.bottleneck.rate_bps
    _, right = _log_share_axis("", _answer_curves(answers, "states", "active", "probability"))
    if np.isfinite(rate):
        j = np.arange(1, int(right) + 1)
        dotted = {"color": REFERENCE, "linewidth": 1, "linestyle": ":"}
        curves.append(Series(j, rate / j, "equal shares of the link", dotted))
    noun = sender_noun(scenario.populations)
    y = Axis(f"rate of each active {noun} ({scale.unit})", 0, 1.15 * peak / scale.factor)
    # The title has the rate for the most probable number of active users.
    answer = answer_for_title(answers)
    table = answer.tables["states"]
    row = int(np.argmax(np.where(table["shared_rate_bps"] > 0, table["probability"], -1.0)))
    subject = f"with {count_text(int(table['active'][row]), f'active {noun}')}, the rate of each"
    title = finding_title(answer, subject, [float(table["shared_rate_bps"][row])], "bit/s")
    drawn = [replace(each, y=np.divide(each.y, scale.factor)) for each in curves]
    return one_panel_chart(scenario, title, _active_axis(scenario, right), y, drawn)


def queue_chart(answers: Sequence[Answer], scenario: Scenario) -> Chart:
    """Return the chart of the share of time with a longer queue."""
    curves: list[Drawable] = []
    curves += (series := _answer_curves(answers, "queue", "queue_pkts", "time_above"))
    y, right = _log_share_axis("share of time with a longer queue", series)
    buffer_pkts = scenario.buffer_pkts
    if buffer_pkts <= right:
        curves.append(ReferenceLine(buffer_pkts, "buffer", axis="x"))
    x = Axis("packets in the queue, including the packet in transmission", 0, right)
    x = replace(x, high=min(right, 1.25 * buffer_pkts))
    # The title has the median queue length, or the 95th percentile if the median is 0.
    answer = answer_for_title(answers)
    table = answer.tables["queue"]
    half, most = (
        float(np.max(table["queue_pkts"][table["time_above"] >= share], initial=0.0))
        for share in (0.5, 0.05)
    )
    which = "median" if half else "95th percentile"
    title = finding_title(answer, f"the {which} of the queue", [half or most], "packet")
    return one_panel_chart(scenario, title, x, y, curves)


def cumulative_time_chart(answers: Sequence[Answer], scenario: Scenario) -> Chart:
    """Return the cumulative distribution of completion times, with 95 % intervals as a band."""
    subject, _ = _subject_and_quantity(scenario)
    series = list(_time_curves(answers))
    title = _finish_title(answers[0], series, 0.5, f"the median time of {subject}")
    y = Axis("finished within this time", 0, 1.01, ticks=percent_tick)
    return _time_chart(scenario, title or f"Distribution of the times of {subject}", y, series)


def time_tail_chart(answers: Sequence[Answer], scenario: Scenario) -> Chart:
    """Return the chart of the share of transfers above each completion time."""
    subject, _ = _subject_and_quantity(scenario)
    series = list(_time_curves(answers))
    claim = f"the 95th percentile of the time of {subject}"
    title = _finish_title(answers[0], series, 0.95, claim)
    tails = []
    for each in series:
        shown = np.less(each.y, 1 - 1e-9)
        low, high = (
            None if end is None else np.maximum(1.0 - np.asarray(end)[shown], 1e-9)
            for end in (each.high, each.low)
        )
        x, y = np.asarray(each.x)[shown], 1.0 - np.asarray(each.y)[shown]
        tails.append(replace(each, x=x, y=y, low=low, high=high))
    axis, _ = _log_share_axis(f"{subject} that take longer", tails)
    title = title or f"Share of the {subject} that take longer than a time"
    return _time_chart(scenario, title, axis, tails)


def _time_chart(scenario: Scenario, title: str, y: Axis, series: Sequence[Series]) -> Chart:
    """Return the chart of shares against times in seconds."""
    _, quantity = _subject_and_quantity(scenario)
    times = np.concatenate([np.asarray(each.x, dtype=float) for each in series])
    scale = scale_for_unit("s", float(np.median(times)) if times.size else 1.0)
    drawn = [replace(each, x=np.divide(each.x, scale.factor)) for each in series]
    x = value_axis(f"{quantity} ({scale.unit})", [each.x for each in drawn], log_ratio=4)
    where = "lower left" if y.log else "lower right"
    return one_panel_chart(scenario, title, x, y, drawn, panel_legend={"loc": where})


def _subject_and_quantity(scenario: Scenario) -> tuple[str, str]:
    """Return the noun for the transfers, and the name of their times."""
    if all(group.traffic.kind == "transfers" for group in scenario.populations):
        return "transfers", "completion time"
    return "files", "time to load a file"


def _finish_title(answer: Answer, series: Sequence[Series], share: float, subject: str) -> str:
    """Return the times within which a share finishes as a title; "" if a size has no time."""
    times = [
        float(np.asarray(each.x)[np.searchsorted(np.asarray(each.y), share)])
        for each in series
        if np.max(np.asarray(each.y), initial=0.0) >= share
    ]
    if not times or len(times) < len(series):
        return ""
    return finding_title(answer, subject, times, "s")


def _time_curves(answers: Sequence[Answer]) -> Iterator[Series]:
    """Yield the share of transfers up to each time, for a few sizes in each answer.

    An answer without a distribution has three percentiles of each size.
    """
    index = 0
    for answer in answers:
        table, by_size = answer.tables.get(TIMES_TABLE), answer.tables.get("by_size", {})
        if table is None:
            found = np.flatnonzero(np.isfinite(by_size["p50"])).tolist()
        else:
            found = np.unique(table.get("size_pkts", [0])).tolist()
        count = min(len(found), max(1, MAX_LEGEND_ENTRIES // len(answers)))
        for which in np.unique(np.linspace(0, len(found) - 1, count).round()).astype(int):
            size, style = found[which], line_style(index) | {"linewidth": 1.4}
            index += 1
            if table is None:
                label = f"{answer.engine}, {sizes_of_row_text(by_size, size, {})}"
                times = [float(by_size[name][size]) for name in PERCENTILES]
                yield Series(times, (0.5, 0.95, 0.99), label, style | {"marker": "o"})
                continue
            parts = [] if len(answers) == 1 and size else [answer.engine]
            label = ", ".join([*parts, *([packets_text(size)] if size else [])])
            rows = select_rows(table, table["size_pkts"] == size if size else slice(None))
            x, y, low, high = (
                np.append(column[:1] if first is None else first, column)
                for name, first in (
                    ("time_s", None),
                    ("share", 0),
                    ("low", np.nan),
                    ("high", np.nan),
                )
                for column in [rows[name]]
            )
            label += f" ({int(rows['transfers'][0]):,} transfers)"
            yield Series(x, y, label, style | {"drawstyle": "steps-post"}, low, high)


def goodput_density(answer: Answer, low: float, high: float) -> tuple[Floats, Floats]:
    """Return the edges of goodput bins, and the share of files per 1 % of goodput in each bin.

    The edges have shape ``[bins + 1]``, and the bins have about the same width on a logarithmic
    scale. Each edge is a row of the table ``file_goodput_tail``, so that no share is interpolated.
    """
    table = answer.tables["file_goodput_tail"]
    goodput = table["goodput_bps"]
    wanted = np.searchsorted(goodput, np.geomspace(low, high, _DENSITY_BINS + 1))
    edges = np.unique(np.clip(wanted, 0, len(goodput) - 1))
    widths = np.diff(np.log(goodput[edges])) / np.log(1.01)
    return goodput[edges], -np.diff(table["by_file"][edges]) / widths


def shown_goodput_range(table: Table) -> tuple[float, float]:
    """Return the goodput range without the smallest and largest goodput of one file in 1,000."""
    known = [table[name] for name in GOODPUT_COLUMNS if name in table]
    first = min(int(np.sum(column >= 1 - _MIN_GOODPUT_SHARE)) for column in known) - 1
    last = max(int(np.sum(column > _MIN_GOODPUT_SHARE)) for column in known)
    goodput = table["goodput_bps"]
    return float(goodput[max(first, 0)]), float(goodput[min(last, len(goodput) - 1)])


def goodput_distribution_chart(answers: Sequence[Answer], scenario: Scenario) -> Chart:
    """Return the chart of the distribution of the goodput of files."""
    series: list[Drawable] = []
    x, factor = _goodput_axis(answers)
    for answer in answers:
        edges, shares = goodput_density(
            answer, *shown_goodput_range(answer.tables["file_goodput_tail"])
        )
        colour = {"color": engine_style(answer.engine, is_observed=True)["color"]}
        series.append(Series(edges / factor, shares, engine_label(answer), colour))
        if len(answers) == 1:
            series.append(Band(edges / factor, np.zeros_like(shares), shares, style=colour))
    y = Axis("share of files per goodput interval of 1 %", 0, ticks=percent_tick)
    title = _exceeded_goodput_title(answers, 0.5, "median")
    return one_panel_chart(scenario, title, x, y, series)


def goodput_tail_chart(answers: Sequence[Answer], scenario: Scenario) -> Chart:
    """Return the chart of the share of files, large files and blocks above each goodput."""
    x, factor = _goodput_axis(answers)
    series: list[Drawable] = []
    for answer in answers:
        tail, shares = (
            answer.tables.get(name, {}) for name in ("file_goodput_tail", "file_goodput")
        )
        colour = {"color": engine_style(answer.engine, is_observed=True)["color"]}
        for (column, name), line in zip(GOODPUT_COLUMNS.items(), ("-", "--", ":"), strict=True):
            if column in tail:
                goodput, label = tail["goodput_bps"] / factor, f"{engine_label(answer)}, {name}"
                series.append(Series(goodput, tail[column], label, colour | {"linestyle": line}))
        if np.isfinite(shares.get("low", np.nan)).any():
            style = colour | {"linewidth": 4, "alpha": 0.5, "label": "95 % intervals"}
            ends = shares["low"] / factor, shares["high"] / factor
            series.append(IntervalLines(shares["share"], *ends, style, is_horizontal=True))
    y = Axis("files with a higher goodput", 0, 1, ticks=percent_tick)
    title = _exceeded_goodput_title(answers, 0.9, "10th percentile")
    return one_panel_chart(scenario, title, x, y, series)


def _goodput_axis(answers: Sequence[Answer]) -> tuple[Axis, float]:
    """Return the goodput axis of both figures, and its unit in bit/s."""
    ends = [shown_goodput_range(answer.tables["file_goodput_tail"]) for answer in answers]
    low, high = np.min(ends), np.max(ends)
    scale = scale_for_unit("bit/s", float(high))
    label = f"goodput of a file ({scale.unit})"
    return Axis(label, low / scale.factor, high / scale.factor, log=high > 4 * low), scale.factor


def _exceeded_goodput_title(answers: Sequence[Answer], share: float, name: str) -> str:
    """Return the title with the goodput that ``share`` of all files exceeds.

    If the scenario does not ask for this share, it is the next lower goodput of the grid.
    """
    answer = answer_for_title(answers)
    table = answer.tables["file_goodput_tail"]
    above = table["goodput_bps"][table["by_file"] >= share]
    if exact := answer.tables.get("file_goodput"):
        asked = exact["goodput_bps"][exact["share"] == share]
        above = asked[np.isfinite(asked)] if asked.size else above
    if not above.size:
        return "Distribution of the goodput of files"
    subject = f"the {name} of the goodput of files"
    return finding_title(answer, subject, [float(np.max(above))], "bit/s")


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
    metrics = mean_time_metrics(table)
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
    title = "Completion times of transfers by size"
    if main_metric(scenario.populations) == "completion_time_s":  # what the figure shows
        title = run_title(answers, scenario, title)
    # The legend goes below, because bars and lines fill the axes.
    return one_panel_chart(
        scenario,
        title,
        Axis("size of a transfer (packets)", integer_ticks=True),
        value_axis(f"completion time ({scale.unit})", shown),
        series,
        size=(FIGURE_SIZE_IN[0], FIGURE_SIZE_IN[1] + 0.5),
        legend_position="below",
    )
