"""Figures of a simulated run over time: windows, RTT, queue and goodput, including the warm-up."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.table import select_rows
from tcpcast.report.chart import (
    Axis,
    Chart,
    Panel,
    ReferenceLine,
    Series,
    one_panel_chart,
    scenario_subtitle,
    value_axis,
)
from tcpcast.report.figure_titles import engine_label, finding_title, flow_names, run_title
from tcpcast.report.palette import BLACK, BLUE, COLOURS, VERMILION, class_styles, line_style
from tcpcast.report.quantity import scale_for_unit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tcpcast.answer import Answer
    from tcpcast.report.chart import Drawable, Style
    from tcpcast.scenario import Population, Scenario

    Floats = np.ndarray[Any, np.dtype[np.float64]]
    Table = dict[str, np.ndarray[Any, Any]]

RATE_SPANS = 80
_MAX_FLOWS = 6
_QUANTITIES = (
    ("flows_over_time", "delay_s", "mean delay\n({})", "s"),
    ("flows_over_time", "video_rate_bps", "quality of\nvideo ({})", "bit/s"),
    ("flows_over_time", "buffered_s", "mean buffer of\na player ({})", "s"),
    ("flows_over_time", "rtt_s", "mean RTT\n({})", "s"),
    ("queue_over_time", "queue_pkts", "mean queue\n(packets)", "packet"),
    ("flows_over_time", "goodput_bps", "goodput\n({})", "bit/s"),
)
"""Table, column, label and unit of each panel below the windows."""


def over_time_chart(answers: Sequence[Answer], scenario: Scenario) -> Chart:
    """Return one panel per quantity that the answer has over time, with a shaded warm-up."""
    others = (answer for answer in answers[1:] if answer.kind == "measurement")
    answer, measured = (
        answers[0],
        next((answer for answer in others if "flows_over_time" in answer.tables), None),
    )
    shade: list[Drawable] = []
    if answer.warmup_s:
        style = {"color": "#999999", "alpha": 0.18}
        shade.append(
            ReferenceLine(0, "warm-up, not counted", style, axis="x", span_end=answer.warmup_s)
        )
    panels = list(_panels(answer, measured, scenario, shade))
    subtitle = f"{scenario_subtitle(scenario)}; {engine_label(answer)}"
    if measured is not None:
        subtitle += f" (lines); {engine_label(measured)} (dots)"
    if answer.replications > 1:
        subtitle += f"; windows from the first of {answer.replications} replications"
    plain = "Windows, round-trip times, queue and goodput over the run"
    return _stacked_chart(run_title([answer], scenario, plain), subtitle, panels)


def _stacked_chart(title: str, subtitle: str, panels: Sequence[Panel]) -> Chart:
    """Return panels above each other with a common time axis."""
    return Chart(
        title=title,
        panels=panels,
        subtitle=subtitle,
        size=(5.8, 0.9 + 1.37 * len(panels)),
        shared_axes="x",
        legend_position="below",
    )


def _panels(
    answer: Answer, measured: Answer | None, scenario: Scenario, shade: list[Drawable]
) -> Iterator[Panel]:
    ends = (t["to_s"] for name, t in answer.tables.items() if "over_time" in name)
    end = max(float(each.max(initial=0.0)) for each in ends)
    x = Axis("time (s)", 0, end)
    table = answer.tables.get("windows_over_time")
    if table is not None:
        of_flows = [table["high_pkts"][table["flow"] == flow] for flow in np.unique(table["flow"])]
        yield Panel(
            [*_window_series(table, scenario), *shade],
            x,
            value_axis("window of\na flow (packets)", of_flows),
        )
    names = [group.name for group in scenario.populations]
    styles = class_styles(scenario.populations)
    total = {"color": BLACK, "linestyle": "-"}
    references = {
        "queue_pkts": ("buffer", scenario.buffer_pkts),
        "goodput_bps": ("link", scenario.bottleneck.rate_bps),
    }
    for source, column, label, unit in _QUANTITIES:
        table = answer.tables.get(source, {})
        if not np.isfinite(table.get(column, np.nan)).any():
            continue
        largest = float(np.nanmax(table[column]))
        scale = scale_for_unit(unit, largest)
        series = list(shade)
        shown: list[Any] = [table[column] / scale.factor]
        curves: dict[str, tuple[Any, Style]] = {"": (slice(None), total)}
        if "class" in table:
            curves = {
                name: (table["class"] == name, styles[name]) for name in names[: len(COLOURS)]
            }
            if len(names) == 1:
                curves = {_total_label(scenario.populations[0]): (slice(None), total)}
        for name, (rows, style) in curves.items():
            of_name = select_rows(table, rows)
            value, low, high = (
                of_name[f"{column}{bound}"] / scale.factor for bound in ("", "_low", "_high")
            )
            band = f"95 % interval of {answer.replications} replications"
            line = {"linewidth": 1.1, **style}
            if not np.isfinite(value).any():
                continue
            series.append(Series(_edges(of_name), value, "", line, low, high, band, name=name))
            if measured is not None:
                series.append(_dots(measured.tables[source], column, name, style, scale.factor))
        reference, limit = references.get(column, ("", np.inf))
        if limit <= 1.5 * largest:
            series.append(ReferenceLine(limit / scale.factor, name=reference))
            shown.append([limit / scale.factor])
        yield Panel(series, x, value_axis(label.format(scale.unit), shown, log_ratio=np.inf))


def _dots(table: Table, column: str, name: str, style: Style, factor: float) -> Series:
    """Return the values of a measurement beside a simulated curve."""
    if "class" in table and name in table["class"]:
        table = select_rows(table, table["class"] == name)
    middle = (table["from_s"] + table["to_s"]) / 2
    dots = {**style, "linestyle": "none", "marker": ".", "markersize": 2.5, "alpha": 0.6}
    return Series(middle, table[column] / factor, "", dots)


def _window_series(table: Table, scenario: Scenario) -> Iterator[Series]:
    """Yield the mean window of each traced flow per slot, with the range of one flow per class."""
    flows = np.unique(table["flow"]).tolist()
    styles = class_styles(scenario.populations)
    named: set[str] = set()
    for index, (flow, (group, flow_name)) in enumerate(
        zip(flows, flow_names(scenario, flows), strict=True)
    ):
        of_flow = select_rows(table, table["flow"] == flow)
        one = len(styles) == 1
        style = {"linewidth": 1.1, **(line_style(index) if one else styles[group.name])}
        name = flow_name.partition(" of ")[0] if one else group.name
        series = Series(_edges(of_flow), of_flow["mean_pkts"], style=style)
        if name not in named:
            series = replace(series, name=name)
        if not index or not (one or name in named):
            # Draw the range of one flow only, because the ranges of similar flows overlap.
            label = "minimum to maximum window per time slot"
            ends = {"low": of_flow["low_pkts"], "high": of_flow["high_pkts"]}
            series = replace(series, **ends, band_label=label)
        yield series
        named.add(name)


def _edges(table: Table) -> Any:
    return np.append(table["from_s"][:1], table["to_s"])


def _total_label(group: Population) -> str:
    if group.traffic.kind == "transfers":
        return "all transfers"
    what = "flow" if group.traffic.kind == "bulk" else "user"
    return f"the {what}" if group.count == 1 else f"all {what}s"


def windows_chart(answers: Sequence[Answer], scenario: Scenario) -> Chart:
    """Return one panel with cwnd and ssthresh for each of the first traced flows."""
    answer = answers[0]
    table = answer.tables["windows"]
    traced = np.unique(table["flow"])
    flows = traced[:_MAX_FLOWS].tolist()
    tables = [select_rows(table, table["flow"] == flow) for flow in flows]
    start, end = float(np.min(table["time_s"])), float(np.max(table["time_s"]))
    x = Axis("time (s)", start, max(end, start + 1e-9))
    line = {"drawstyle": "steps-post", "linewidth": 1}
    panels, medians = [], []
    for (_, name), of_flow in zip(flow_names(scenario, flows), tables, strict=True):
        time, window, threshold = (
            of_flow[column].astype(float) for column in ("time_s", "cwnd_pkts", "ssthresh_pkts")
        )
        threshold[~np.isfinite(threshold)] = np.nan
        # The initial threshold may be infinite, so the windows of all flows determine the axis.
        y = value_axis(f"window of\n{name}\n(packets)", [each["cwnd_pkts"] for each in tables])
        curves = (
            Series(time, threshold, "slow-start threshold", line | {"color": VERMILION}),
            Series(time, window, "window", line | {"color": BLUE}),
        )
        panels.append(Panel(curves, x, y))
        medians.append(median_window(time, window, end))
    title = finding_title(answer, "the median window of a flow", medians, "packet")
    some = f"; {len(flows)} of {len(traced)} traced flows" if len(traced) > len(flows) else ""
    subtitle = f"{scenario_subtitle(scenario)}; {engine_label(answer)}{some}"
    return _stacked_chart(title, subtitle, panels)


def median_window(time_s: Floats, window_pkts: Floats, end_s: float) -> float:
    """Return the largest window that applies at least half of the time until ``end_s``."""
    lasted = np.diff(np.append(time_s, max(end_s, float(time_s[-1]))))
    order = np.argsort(window_pkts)[::-1]
    reached = np.searchsorted(np.cumsum(lasted[order]), lasted.sum() / 2)
    return float(window_pkts[order][min(int(reached), len(order) - 1)])


def send_rates(time_s: Any, sequence: Any, edges_s: Floats) -> Floats:
    """Return the packets sent per second between each two edges.

    Parameters
    ----------
    time_s, sequence
        Send time and sequence number of new packets of a flow, in order of time. Some packets may
        be missing: numbers are consecutive, so that they give the count. A smaller number indicates
        a new connection.
    edges_s
        Ends of the time spans in ascending order.
    """
    steps = np.diff(np.asarray(sequence, dtype=np.float64))
    sent = np.cumsum([0.0, 1.0, *np.where(steps > 0, steps, 1.0)])
    until = sent[np.searchsorted(time_s, edges_s, side="right")]
    until[0] = 0.0
    return np.diff(until) / np.diff(edges_s)


def rates_chart(answers: Sequence[Answer], scenario: Scenario) -> Chart:
    """Return the rates of new data of traced flows over the run."""
    answer = answers[0]
    table = answer.tables["sequences"]
    start, end = float(np.min(table["time_s"])), float(np.max(table["time_s"]))
    edges = np.linspace(start, max(end, start + 1e-9), RATE_SPANS + 1)
    new = select_rows(table, table["event"] == "sent")
    flows = np.unique(new["flow"])[:_MAX_FLOWS].tolist()
    names = flow_names(scenario, flows)
    rates = []
    for flow, (group, _) in zip(flows, names, strict=True):
        rows = select_rows(new, new["flow"] == flow)
        rates.append(8 * group.payload_bytes * send_rates(rows["time_s"], rows["sequence"], edges))
    scale = scale_for_unit("bit/s", float(np.max(rates)))
    styles = class_styles(scenario.populations)
    series = []
    for index, ((group, name), rate) in enumerate(zip(names, rates, strict=True)):
        style = line_style(index) | {"linewidth": 1.2}
        style |= {"color": styles[group.name]["color"]} if len(styles) > 1 else {}
        series.append(Series(edges, rate / scale.factor, style=style, name=name))
    title = run_title([answer], scenario, "New data sent by each flow")
    y = Axis(f"new data sent ({scale.unit})", 0)
    return one_panel_chart(scenario, title, Axis("time (s)"), y, series)
