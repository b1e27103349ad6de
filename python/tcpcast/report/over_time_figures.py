"""Figure of a simulated run over time: windows, RTT, queue and goodput, including the warm-up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.table import select_rows
from tcpcast.report.chart import (
    Axis,
    Band,
    Chart,
    Panel,
    ReferenceLine,
    Series,
    largest_finite,
    scenario_subtitle,
    window_axis,
)
from tcpcast.report.figure_titles import engine_label, flow_names, run_title
from tcpcast.report.palette import COLOURS, class_styles, line_style
from tcpcast.report.quantity import scale_for_unit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tcpcast.answer import Answer
    from tcpcast.report.chart import Drawable, Style
    from tcpcast.scenario import Scenario

    Table = dict[str, np.ndarray[Any, Any]]
    SeriesAndAxis = tuple[list[Drawable], Axis]

MAX_CLASSES = len(COLOURS)
_WIDTH_IN, _PANEL_HEIGHT_IN, _MARGINS_HEIGHT_IN = 5.8, 1.35, 0.9
_TOTAL_STYLE: Style = {"color": "#222222", "linestyle": "-"}
"""Line style of the total over all flows, distinct from the styles of single flows."""


def over_time_chart(answers: Sequence[Answer], scenario: Scenario) -> Chart:
    """Return one panel per quantity that the answer has over time, with a shaded warm-up."""
    answer = answers[0]
    tables = [
        (answer.tables[name], draw)
        for name, column, draw in _PANEL_BUILDERS
        if name in answer.tables and np.isfinite(answer.tables[name][column]).any()
    ]
    x = Axis("time (s)", 0, max(float(table["to_s"].max()) for table, _ in tables))
    shade: list[Drawable] = []
    if answer.warmup_s:
        style = {"color": "#999999", "alpha": 0.18}
        shade.append(
            ReferenceLine(0, "warm-up, not counted", style, axis="x", span_end=answer.warmup_s)
        )
    panels = []
    for _, draw in tables:
        series, y = draw(answer, scenario)
        panels.append(Panel(series + shade, x, y))
    subtitle = f"{scenario_subtitle(scenario)}; {engine_label(answer)}"
    if answer.replications > 1:
        subtitle += f"; windows from the first of {answer.replications} replications"
    return Chart(
        title=run_title(
            [answer], scenario, "Windows, round-trip times, queue and goodput over the run"
        ),
        panels=panels,
        subtitle=subtitle,
        size=(_WIDTH_IN, _MARGINS_HEIGHT_IN + _PANEL_HEIGHT_IN * len(panels)),
        shared_axes="x",
        legend_position="below",
    )


def _window_panel(answer: Answer, scenario: Scenario) -> SeriesAndAxis:
    """Return the panel with the mean, minimum and maximum window of each traced flow per slot."""
    table = answer.tables["windows_over_time"]
    names = _class_names(scenario)
    one = len(names) == 1
    series: list[Drawable] = []
    medians = []
    flows = np.unique(table["flow"]).tolist()
    by_class = class_styles(scenario.populations)
    for index, (flow, (group, flow_name)) in enumerate(
        zip(flows, flow_names(scenario, flows), strict=True)
    ):
        of_flow = select_rows(table, table["flow"] == flow)
        name = flow_name.partition(" of ")[0] if one else group.name
        style = line_style(index) if one else by_class[group.name]
        edges = _bin_edges(of_flow)
        line = {"linewidth": 1.1, **style}
        named = "" if name in {each.name for each in series if isinstance(each, Series)} else name
        series.append(Series(edges, of_flow["mean_pkts"], style=line, name=named))
        if index == 0 or not one:
            # In one class, only the first flow has a band: bands of similar flows overlap.
            label = "minimum to maximum window per time slot"
            band = {"color": style["color"], "alpha": 0.18}
            series.append(Band(edges, of_flow["low_pkts"], of_flow["high_pkts"], label, band))
        medians.append(float(np.median(of_flow["mean_pkts"])))
    label = "window of\na flow (packets)"
    return series, window_axis(label, table["high_pkts"], max(min(medians), 1.0))


def _rtt_panel(answer: Answer, scenario: Scenario) -> SeriesAndAxis:
    largest = largest_finite(answer.tables["flows_over_time"]["rtt_s"])
    scale = scale_for_unit("s", largest)
    y = Axis(f"mean RTT\n({scale.unit})", 0, 1.15 * largest / scale.factor)
    return _class_series(answer, scenario, "rtt_s", scale.factor), y


def _goodput_panel(answer: Answer, scenario: Scenario) -> SeriesAndAxis:
    rate = scenario.network.bottleneck.rate_bps
    largest = largest_finite(answer.tables["flows_over_time"]["goodput_bps"])
    scale = scale_for_unit("bit/s", largest)
    series = _class_series(answer, scenario, "goodput_bps", scale.factor)
    top = 1.15 * largest
    if rate <= 1.3 * largest:
        series.append(ReferenceLine(rate / scale.factor, name="link"))
        top = max(top, 1.1 * rate)
    return series, Axis(f"goodput\n({scale.unit})", 0, top / scale.factor)


def _queue_panel(answer: Answer, scenario: Scenario) -> SeriesAndAxis:
    table = answer.tables["queue_over_time"]
    series: list[Drawable] = [_line_series(answer, table, "queue_pkts", 1.0, "", _TOTAL_STYLE)]
    largest = largest_finite(table["queue_pkts"])
    buffer_pkts = scenario.buffer_pkts
    top = 1.15 * largest
    if buffer_pkts <= 2 * largest:
        series.append(ReferenceLine(buffer_pkts, name="buffer"))
        top = max(top, 1.1 * buffer_pkts)
    return series, Axis("mean queue\n(packets)", 0, top)


def _class_series(answer: Answer, scenario: Scenario, column: str, factor: float) -> list[Drawable]:
    """Return one line per class; for a single class, one line for the total of its flows."""
    table = answer.tables["flows_over_time"]
    names = _class_names(scenario)
    if len(names) == 1:
        return [_line_series(answer, table, column, factor, _total_label(scenario), _TOTAL_STYLE)]
    by_class = class_styles(scenario.populations)
    return [
        _line_series(
            answer,
            select_rows(table, table["class"] == name),
            column,
            factor,
            name,
            by_class[name],
        )
        for name in names[:MAX_CLASSES]
    ]


def _line_series(  # noqa: PLR0913, PLR0917 - a curve, its unit and its style
    answer: Answer, table: Table, column: str, factor: float, label: str, style: Style
) -> Series:
    value, low, high = (table[f"{column}{end}"] / factor for end in ("", "_low", "_high"))
    band = f"95 % interval of {answer.replications} replications"
    line = {"linewidth": 1.1, **style}
    return Series(_bin_edges(table), value, "", line, low, high, band, name=label)


def _total_label(scenario: Scenario) -> str:
    (group,) = scenario.populations
    if group.traffic.kind == "transfers":
        return "all transfers"
    what = "flow" if group.traffic.kind == "bulk" else "user"
    return f"the {what}" if group.count == 1 else f"all {what}s"


def _class_names(scenario: Scenario) -> list[str]:
    return [group.name for group in scenario.populations]


def _bin_edges(table: Table) -> Any:
    return np.append(table["from_s"][:1], table["to_s"])


_PANEL_BUILDERS: tuple[tuple[str, str, Callable[[Answer, Scenario], SeriesAndAxis]], ...] = (
    ("windows_over_time", "mean_pkts", _window_panel),
    ("flows_over_time", "rtt_s", _rtt_panel),
    ("queue_over_time", "queue_pkts", _queue_panel),
    ("flows_over_time", "goodput_bps", _goodput_panel),
)
"""The required table and column of each panel, and the function that returns series and y axis."""
