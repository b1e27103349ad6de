"""A simulated run over time: windows, round trips, the queue and goodput, from its beginning on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.report.axes import CALCULATED, MORE_LINES, OBSERVED, REFERENCE, lay_out, tell
from tcpcast.report.quantity import amount, scale_of_unit
from tcpcast.report.summary import describe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tcpcast.answer import Answer
    from tcpcast.scenario import Scenario

    Table = dict[str, np.ndarray[Any, Any]]

COLOURS = (*OBSERVED, *CALCULATED)
MOST_CLASSES = len(COLOURS)
_WIDTH, _PANEL, _AROUND = 6.8, 1.4, 1.3
_WIDEST = 110
_ACROSS = 4
"""Entries of a legend in a row."""
_WIDE = 15.0
"""From this ratio of the largest to the median window on, windows are drawn to a log scale."""
_ALL: dict[str, Any] = {"color": "#222222", "linestyle": "-"}
"""The line of a class that is alone, beside those of its flows."""


def over_time(figure: Figure, answers: Sequence[Answer], scenario: Scenario) -> None:
    """Draw a panel for each quantity that the answer has over time, the warm-up shaded."""
    answer = answers[0]
    drawn = [draw for table, draw in _PANELS if table in answer.tables]
    figure.set_size_inches(_WIDTH, _AROUND + _PANEL * len(drawn))
    panels = figure.subplots(len(drawn), sharex=True, squeeze=False)[:, 0]
    figure.suptitle(f"{scenario.name}: the run over time ({answer.engine})", fontsize=12)
    said = describe(scenario)
    if answer.replications > 1:
        said += f"; windows are of the first of {answer.replications} replications"
    tell(panels[0], said, _WIDEST)
    for axes, draw in zip(panels, drawn, strict=True):
        lay_out(axes)
        draw(axes, answer, scenario)
        if answer.warmup_s:
            look: dict[str, Any] = {"color": "#999999", "alpha": 0.18, "linewidth": 0}
            axes.axvspan(0, answer.warmup_s, label="warm-up, not counted", zorder=0, **look)
    end = max(
        float(answer.tables[table]["to_s"].max()) for table, _ in _PANELS if table in answer.tables
    )
    panels[-1].set_xlim(0, end)
    panels[-1].set_xlabel("time (s)")
    figure.align_ylabels()
    _legend_below(figure, panels)


def _legend_below(figure: Figure, panels: Iterable[Axes]) -> None:
    """Put the entries of all panels below the last; what several have stands there once."""
    entries = {
        label: handle
        for axes in panels
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    look: dict[str, Any] = {"frameon": False, "fontsize": 8, "ncols": _ACROSS}
    figure.legend(entries.values(), entries, loc="outside lower center", **look)


def _windows(axes: Axes, answer: Answer, scenario: Scenario) -> None:
    """Draw the mean window of each watched flow, and from where to where it goes in each slot."""
    table = answer.tables["windows_over_time"]
    one = len(scenario.populations) == 1
    peak, median = 0.0, []
    for at, flow in enumerate(np.unique(table["flow"])):
        of_flow = _where(table, table["flow"] == flow)
        name = str(of_flow["class"][0])
        look = _look(at) if one else _look(_names(scenario).index(name))
        label = f"flow {flow}" if one else name
        edges = _edges(of_flow)
        axes.stairs(of_flow["mean_pkts"], edges, baseline=None, linewidth=1.1, label=label, **look)
        if at == 0 or not one:  # bands of several flows alike would hide each other
            band: dict[str, Any] = {"color": look["color"], "alpha": 0.18, "linewidth": 0}
            band["label"] = f"lowest to highest of {label}" if one else None
            low = of_flow["low_pkts"]
            axes.stairs(of_flow["high_pkts"], edges, baseline=low, fill=True, **band)
        peak = max(peak, float(of_flow["high_pkts"].max()))
        median.append(float(np.median(of_flow["mean_pkts"])))
    axes.set_ylabel("window of\na flow (packets)" if not one else "window\n(packets)")
    if peak > _WIDE * max(min(median), 1.0):
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:,.0f}")
        axes.set_ylim(0.8, 1.6 * peak)
    else:
        axes.set_ylim(0, 1.08 * peak)


def _rtt(axes: Axes, answer: Answer, scenario: Scenario) -> None:
    table = answer.tables["flows_over_time"]
    scale = scale_of_unit("s", _largest(table["rtt_s"]))
    _of_classes(axes, answer, scenario, "rtt_s", scale.factor)
    axes.set_ylabel(f"mean RTT\n({scale.unit})")
    axes.set_ylim(0, 1.15 * _largest(table["rtt_s"]) / scale.factor)


def _goodput(axes: Axes, answer: Answer, scenario: Scenario) -> None:
    table = answer.tables["flows_over_time"]
    rate = scenario.network.bottleneck.rate_bps
    largest = _largest(table["goodput_bps"])
    scale = scale_of_unit("bit/s", largest)
    _of_classes(axes, answer, scenario, "goodput_bps", scale.factor)
    top = 1.15 * largest
    if rate <= 1.3 * largest:
        label = f"link, {amount(rate, 'bit/s')}"
        axes.axhline(rate / scale.factor, color=REFERENCE, linewidth=1, linestyle=":", label=label)
        top = max(top, 1.1 * rate)
    axes.set_ylabel(f"goodput\n({scale.unit})")
    axes.set_ylim(0, top / scale.factor)


def _queue(axes: Axes, answer: Answer, scenario: Scenario) -> None:
    table = answer.tables["queue_over_time"]
    _line(axes, answer, table, "queue_pkts", 1.0, _ALL)
    largest = _largest(table["queue_pkts"])
    buffer_pkts = scenario.buffer_pkts
    top = 1.15 * largest
    if buffer_pkts <= 2 * largest:
        axes.axhline(buffer_pkts, color=REFERENCE, linewidth=1, linestyle="--", label="buffer")
        top = max(top, 1.1 * buffer_pkts)
    axes.set_ylabel("mean queue\n(packets)")
    axes.set_ylim(0, top)


def _of_classes(axes: Axes, answer: Answer, scenario: Scenario, column: str, factor: float) -> None:
    """Draw a line for each class, and in a single one for all flows together."""
    table = answer.tables["flows_over_time"]
    names = _names(scenario)
    for at, name in enumerate(names[:MOST_CLASSES]):
        alone = len(names) == 1
        look = _ALL if alone else _look(at)
        label = _together(scenario) if alone else name
        _line(axes, answer, _where(table, table["class"] == name), column, factor, look, label)


def _line(  # noqa: PLR0913, PLR0917 - a curve, its place and its look
    axes: Axes,
    answer: Answer,
    table: Table,
    column: str,
    factor: float,
    look: dict[str, Any],
    label: str | None = None,
) -> None:
    edges = _edges(table)
    low, high = table[f"{column}_low"] / factor, table[f"{column}_high"] / factor
    if np.isfinite(low).any():
        of = f"95 % interval of {answer.replications} replications"
        band: dict[str, Any] = {"color": look["color"], "alpha": 0.2, "linewidth": 0, "label": of}
        axes.stairs(high, edges, baseline=low, fill=True, **band)
    axes.stairs(table[column] / factor, edges, baseline=None, linewidth=1.1, label=label, **look)


def _together(scenario: Scenario) -> str:
    (group,) = scenario.populations
    if group.traffic.kind == "transfers":
        return "all transfers"
    what = "flow" if group.traffic.kind == "bulk" else "source"
    return f"the {what}" if group.count == 1 else f"all {group.count:,} {what}s"


def _names(scenario: Scenario) -> list[str]:
    return [group.name for group in scenario.populations]


def _look(at: int) -> dict[str, Any]:
    return {"color": COLOURS[at % len(COLOURS)], "linestyle": MORE_LINES[at % len(MORE_LINES)]}


def _where(table: Table, chosen: Any) -> Table:
    return {name: column[chosen] for name, column in table.items()}


def _edges(table: Table) -> Any:
    return np.append(table["from_s"][:1], table["to_s"])


def _largest(column: Any) -> float:
    return float(np.nanmax(column)) if np.isfinite(column).any() else 1.0


_PANELS: tuple[tuple[str, Callable[[Axes, Answer, Scenario], None]], ...] = (
    ("windows_over_time", _windows),
    ("flows_over_time", _rtt),
    ("queue_over_time", _queue),
    ("flows_over_time", _goodput),
)
"""The table that a panel needs, and what draws it, from above."""
