"""Figures of captures: segments, limits and models.

``direction_data`` collects the data of one direction. ``sequence`` draws segments, ``over_time``
data in flight, RTT and limits, and ``model`` packets per 100 s against loss.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.groups import host_address
from tcpcast.captures.model_rates import PFTK_LABEL, mean_model_inputs, model_curves
from tcpcast.captures.models import NO_LOSS_CLASS, TD_CLASS, measured_intervals
from tcpcast.captures.table import INTERVAL_S, select_rows
from tcpcast.quantity.units import digits
from tcpcast.report.chart import Axis, Chart, Panel, Series, percent_tick
from tcpcast.report.palette import BLACK, BLUE, GREEN, ORANGE, PURPLE, VERMILION
from tcpcast.report.quantity import three_digit_text
from tcpcast.report.trace import worst_first_order
from tcpcast.report.trace_figures.direction_data import (
    direction_of_row,
    file_name,
    file_name_prefixes,
    file_stem,
    worst_directions,
)
from tcpcast.report.trace_figures.over_time import draw_over_time
from tcpcast.report.trace_figures.sequence import draw_sequence
from tcpcast.report.trace_verdict import all_directions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.figure import Figure

    from tcpcast.array_types import Table
    from tcpcast.captures import Capture
    from tcpcast.report.chart import Drawable
    from tcpcast.report.trace_figures.direction_data import Direction

    Counts = np.ndarray[Any, np.dtype[np.int64]]


MIN_INTERVAL_S = 10.0
"""Minimum length in seconds of an incomplete last interval; its mark is hollow."""
MIN_INTERVALS = 2

NAMED_CLASSES = (NO_LOSS_CLASS, TD_CLASS, "T0", "T1", "T2")
CLASS_MARKS = {
    (TD_CLASS,): ("no timeout", BLUE, "o"),
    ("T0",): ("single timeouts", VERMILION, "s"),
    ("T1",): ("two in sequence", GREEN, "^"),
    ("T2",): ("three in sequence", PURPLE, "D"),
    (): ("four or more", ORANGE, "v"),
}
"""Label, colour and marker of each class of intervals (section 3 of PFTK): its longest sequence of
timeouts is none, one, two etc."""


def model_figures(capture: Capture, max_count: int) -> Iterator[tuple[str, Figure]]:
    """Yield a name and a figure for each pair of hosts with enough lossy intervals."""
    connections = capture.connections
    drawn = 0
    for ends, rows in _pairs_with_loss(capture).items():
        points, path = interval_points(capture, rows), mean_model_inputs(connections, rows)
        if path is None or np.count_nonzero(points["loss_indication_ratio"] > 0) < MIN_INTERVALS:
            continue
        # The error over complete lossy intervals.
        lossy = points["loss_indication_ratio"] > 0
        full = lossy & (points["length_s"] >= INTERVAL_S)
        chosen = full if full.any() else lossy
        predicted = model_curves(points["loss_indication_ratio"][chosen], path)[PFTK_LABEL]
        error = float(np.median(np.abs(predicted / points["pkts_in_100_s"][chosen] - 1)))
        chart = Chart(
            title="Median error of PFTK over the intervals: "
            f"{100 * error:.2g} % of the packets sent",
            panels=[_rate_against_loss_panel(points, path)],
            subtitle=f"{file_name(capture)}: {' > '.join(ends)}; {_subtitle(points, path)}",
            size=(5.8, 4.2),
        )
        yield "-".join(map(file_stem, ends)), chart.draw()
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


def _rate_against_loss_panel(points: Table, path: dict[str, float]) -> Panel:
    complete = points["length_s"] >= INTERVAL_S
    series: list[Drawable] = []
    for classes, (name, colour, marker) in CLASS_MARKS.items():
        of_class = np.isin(points["class"], classes or NAMED_CLASSES) == bool(classes)
        label = f"{name} ({of_class.sum()})"
        for rows, face in ((of_class & complete, colour), (of_class & ~complete, "none")):
            if rows.any():
                style = {"color": colour, "marker": marker, "linestyle": "none", "markersize": 5}
                style["markerfacecolor"] = face
                x, y = points["loss_indication_ratio"][rows], points["pkts_in_100_s"][rows]
                series.append(Series(x, y, label, style))
                label = ""
    ratios = points["loss_indication_ratio"][points["loss_indication_ratio"] > 0]
    across = np.geomspace(ratios.min() / 3, min(0.7, 3 * ratios.max()), 200)
    for (name, packets), line in zip(
        model_curves(across, path).items(), ("-", "--", ":"), strict=True
    ):
        style = {"color": BLACK, "linestyle": line, "linewidth": 1.1}
        series.append(Series(across, packets, style=style, name=name))
    x_axis = Axis(
        "loss indications per packet", across[0], across[-1], log=True, ticks=percent_tick
    )
    # Only measured points set the axis, because the model curves extend beyond them.
    y_axis = Axis("packets in 100 s", 0, 1.5 * points["pkts_in_100_s"].max())
    return Panel(series, x_axis, y_axis, legend={"loc": "upper right"})


def _subtitle(points: Table, path: dict[str, float]) -> str:
    facts = [
        f"RTT {three_digit_text(path['rtt_s'], 's')}",
        f"T0 {three_digit_text(path['t0_s'], 's')}",
        f"{path['packets_per_ack']:.3g} packets per ack",
    ]
    if (points["length_s"] < INTERVAL_S).any():
        facts.insert(0, "hollow points: intervals of less than 100 s")
    if math.isfinite(path["receiver_window_pkts"]):
        facts.append(f"largest window {digits(path['receiver_window_pkts'], 3)} packets")
    lossless = int(np.count_nonzero(points["class"] == NO_LOSS_CLASS))
    if lossless:
        facts.append(f"{lossless} intervals without loss are not drawn")
    return ", ".join(facts)


MAX_DIRECTIONS = 8


def iter_capture_figures(captures: Sequence[Capture]) -> Iterator[tuple[str, Figure]]:
    """Yield names and figures of the worst directions of each capture, one at a time.

    - ``...-sequence`` per direction: segments sent, retransmitted and acknowledged, and the
      receiver window; requires a capture that was read with ``trail_points``
    - ``...-over-time`` per direction: bytes in flight, RTT, and the limits of the rate
    - ``...-model`` per pair of hosts with loss in at least two intervals of 100 s: packets
      against loss, with the models, like figures 7 to 17 of the PFTK paper
    """
    for capture, stem in zip(captures, file_name_prefixes(captures), strict=True):
        for direction in worst_directions(capture, MAX_DIRECTIONS):
            for name, figure in _direction_figures(direction):
                yield f"{stem}-{name}", figure
        for name, figure in model_figures(capture, MAX_DIRECTIONS):
            yield f"{stem}-{name}-model", figure


def _direction_figures(direction: Direction) -> Iterator[tuple[str, Figure]]:
    for name, draw in (("sequence", draw_sequence), ("over-time", draw_over_time)):
        figure = draw(direction)
        if figure is not None:
            yield f"{direction.name}-{name}", figure


def worst_figures(captures: Sequence[Capture], max_count: int) -> Iterator[tuple[str, Figure]]:
    """Yield the figures of the ``max_count`` worst directions of all captures, the worst first."""
    names = file_name_prefixes(captures)
    table = all_directions(captures)
    starts = np.cumsum([0, *(capture.connections["src"].size for capture in captures)])
    for row in worst_first_order(table)[:max_count].tolist():
        index = int(np.searchsorted(starts, row, side="right")) - 1
        direction = direction_of_row(captures[index], row - int(starts[index]))
        for name, figure in _direction_figures(direction):
            yield f"{names[index]}-{name}", figure
