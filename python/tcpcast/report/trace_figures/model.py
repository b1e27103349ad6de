"""Figure of packets per 100 s against loss, like figures 7 to 17 of the PFTK paper."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.groups import host_address
from tcpcast.captures.model_curves import PFTK_LABEL, mean_model_inputs, model_curves
from tcpcast.captures.models import NO_LOSS_CLASS, TD_CLASS, measured_intervals
from tcpcast.captures.table import INTERVAL_S, select_rows
from tcpcast.report.chart import new_figure
from tcpcast.report.chart_text import LABEL_POINTS, EndLabel, label_line_ends, write_titles
from tcpcast.report.palette import BLUE, GREEN, ORANGE, PURPLE, VERMILION
from tcpcast.report.trace import worst_first_order
from tcpcast.report.trace_figures.direction_data import file_name, file_stem
from tcpcast.report.trace_figures.palette import (
    TRACE_DPI,
    Mark,
    simplify_axes,
    three_digits,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tcpcast.array_types import Table
    from tcpcast.captures import Capture

    Counts = np.ndarray[Any, np.dtype[np.int64]]

MIN_INTERVAL_S = 10.0
"""Minimum length in seconds of an incomplete last interval; its mark is hollow."""
MIN_INTERVALS = 2
FIGURE_SIZE_IN = (5.8, 4.2)

NAMED_CLASSES = (NO_LOSS_CLASS, TD_CLASS, "T0", "T1", "T2")
CLASS_MARKS = {
    (TD_CLASS,): Mark("no timeout", BLUE, "o"),
    ("T0",): Mark("single timeouts", VERMILION, "s"),
    ("T1",): Mark("two in sequence", GREEN, "^"),
    ("T2",): Mark("three in sequence", PURPLE, "D"),
    (): Mark("four or more", ORANGE, "v"),
}
"""Interval classes of PFTK (section 3), by the longest sequence of timeouts: none, one, two etc."""


def model_figures(capture: Capture, max_count: int) -> Iterator[tuple[str, Figure]]:
    """Yield a name and a figure for each pair of hosts with enough lossy intervals."""
    connections = capture.connections
    drawn = 0
    for ends, rows in _pairs_with_loss(capture).items():
        points, path = interval_points(capture, rows), mean_model_inputs(connections, rows)
        if path is None or np.count_nonzero(points["loss_indication_ratio"] > 0) < MIN_INTERVALS:
            continue
        figure = new_figure(FIGURE_SIZE_IN, TRACE_DPI)
        _draw_rate_against_loss(figure.add_subplot(), points, path)
        setup = f"{file_name(capture)}: {' > '.join(ends)}; {_subtitle(points, path)}"
        write_titles(figure, _model_error_title(points, path), setup)
        yield "-".join(map(file_stem, ends)), figure
        drawn += 1
        if drawn == max_count:
            return


def _pairs_with_loss(capture: Capture) -> dict[tuple[str, str], Counts]:
    """Return row indices for each pair of hosts with enough lossy intervals, worst pair first."""
    connections, table = capture.connections, capture.intervals
    lossy = np.bincount(
        table["direction"], weights=table["td"] + table["to"] > 0, minlength=connections["src"].size
    )
    rows: dict[tuple[str, str], list[int]] = {}
    for row in worst_first_order(connections).tolist():
        ends = (
            host_address(str(connections["src"][row])),
            host_address(str(connections["dst"][row])),
        )
        rows.setdefault(ends, []).append(row)
    return {
        ends: np.sort(np.array(several))
        for ends, several in rows.items()
        if lossy[several].sum() >= MIN_INTERVALS
    }


def interval_points(capture: Capture, rows: Counts) -> Table:
    """Return the intervals of directions, including sufficiently long incomplete last intervals.

    The result is the table of :func:`tcpcast.captures.models.measured_intervals` with an additional
    column ``pkts_in_100_s``, scaled up for shorter intervals.
    """
    measured = measured_intervals(capture, rows)
    kept = (measured["length_s"] >= MIN_INTERVAL_S) & (measured["sent_pkts"] > 0)
    points = select_rows(measured, kept)
    return points | {"pkts_in_100_s": points["sent_pkts"] * INTERVAL_S / points["length_s"]}


def _draw_rate_against_loss(axes: Axes, points: Table, path: dict[str, float]) -> None:
    complete = points["length_s"] >= INTERVAL_S
    for classes, look in CLASS_MARKS.items():
        of_class = (
            np.isin(points["class"], classes)
            if classes
            else ~np.isin(points["class"], NAMED_CLASSES)
        )
        counted = False
        for full in (True, False):
            chosen = of_class & (complete == full)
            if not chosen.any():
                continue
            hollow: dict[str, Any] = {"markerfacecolor": "none", "markeredgecolor": look.colour}
            more = {} if full else hollow | {"markeredgewidth": 1.2}
            label = f"{look.label} ({of_class.sum()})" if full or not counted else ""
            counted = True
            x, y = points["loss_indication_ratio"][chosen], points["pkts_in_100_s"][chosen]
            look.mark(axes, x, y, label, **more)
    ratios = points["loss_indication_ratio"][points["loss_indication_ratio"] > 0]
    across = np.geomspace(ratios.min() / 3, min(0.7, 3 * ratios.max()), 200)
    modelled = model_curves(across, path)
    ends: list[EndLabel] = []
    for (name, packets), line in zip(modelled.items(), ("-", "--", ":"), strict=True):
        axes.plot(across, packets, line, color="black", linewidth=1.1)
        ends.append(EndLabel(name, tuple(packets.tolist()), "black"))
    # Only measured points set the axis, because the model curves extend beyond them.
    axes.set_ylim(0, 1.5 * points["pkts_in_100_s"].max())
    _loss_axis(axes, float(across[0]), float(across[-1]))
    axes.set_ylabel("packets in 100 s")
    axes.legend(fontsize=LABEL_POINTS, framealpha=0.9, edgecolor="none", loc="upper right")
    simplify_axes(axes)
    label_line_ends(axes, ends)


def _model_error_title(points: Table, path: dict[str, float]) -> str:
    """Return the title with the median relative error of PFTK over complete lossy intervals."""
    lossy = points["loss_indication_ratio"] > 0
    full = lossy & (points["length_s"] >= INTERVAL_S)
    chosen = full if full.any() else lossy
    predicted = model_curves(points["loss_indication_ratio"][chosen], path)[PFTK_LABEL]
    error = float(np.median(np.abs(predicted / points["pkts_in_100_s"][chosen] - 1)))
    return f"Median error of PFTK over the intervals: {100 * error:.2g} % of the packets sent"


def _subtitle(points: Table, path: dict[str, float]) -> str:
    facts = [
        *(
            ["hollow points: intervals of less than 100 s"]
            if (points["length_s"] < INTERVAL_S).any()
            else []
        ),
        f"RTT {three_digits(path['rtt_s'] * 1e3)} ms",
        f"T0 {path['t0_s']:.3g} s",
        f"{path['packets_per_ack']:.3g} packets per ack",
    ]
    if math.isfinite(path["receiver_window_pkts"]):
        facts.append(f"largest window {three_digits(path['receiver_window_pkts'])} packets")
    lossless = int(np.count_nonzero(points["class"] == NO_LOSS_CLASS))
    if lossless:
        facts.append(f"{lossless} intervals without loss are not drawn")
    return ", ".join(facts)


def _loss_axis(axes: Axes, low: float, high: float) -> None:
    """Set up a logarithmic loss axis from ``low`` to ``high`` with ticks in per cent."""
    steps = (1, 3) if high > 30 * low else (1, 2, 5)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [step * 10.0**decade for decade in decades for step in steps]
    axes.set_xscale("log")
    axes.set_xticks(ticks, [f"{100 * tick:g} %" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlim(low, high)
    axes.set_xlabel("loss indications per packet")
