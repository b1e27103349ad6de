"""Packets of each 100 s against their loss, with the models: Figures 7 to 17 of PFTK."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.curves import PFTK, curves, mean_path
from tcpcast.captures.groups import host
from tcpcast.captures.models import INTERVAL_S, NO_LOSS, TD, measured_intervals
from tcpcast.report.chart import REFERENCE
from tcpcast.report.trace import worst_first
from tcpcast.report.trace_figures.direction import in_file, shown_name
from tcpcast.report.trace_figures.palette import (
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    VERMILION,
    Mark,
    digits,
    plain,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tcpcast.captures import Capture, Table

    Counts = np.ndarray[Any, np.dtype[np.int64]]

SHORTEST_S = 10.0
"""The rest after the last whole interval is drawn hollow if it lasts this long."""
FEWEST = 2

NAMED = (NO_LOSS, TD, "T0", "T1", "T2")
CLASSES = {
    (TD,): Mark("TD", BLUE, "o"),
    ("T0",): Mark("T0", VERMILION, "s"),
    ("T1",): Mark("T1", GREEN, "^"),
    ("T2",): Mark("T2", PURPLE, "D"),
    (): Mark("T3 and more", ORANGE, "v"),
}
"""Intervals without timeout, with single ones, with two in sequence, ... (section 3 of PFTK)."""


def model_figures(
    capture: Capture, blank: Callable[[float, float], Figure], most: int
) -> Iterator[tuple[str, Figure]]:
    """Yield a name and a figure of each pair of hosts with enough intervals, the worst first."""
    connections = capture.connections
    drawn = 0
    for ends, rows in _pairs_with_loss(capture).items():
        seen, path = cloud(capture, rows), mean_path(connections, rows)
        if path is None or np.count_nonzero(seen["loss_indication_ratio"] > 0) < FEWEST:
            continue
        figure = blank(7.2, 5.2)
        _draw(figure.add_subplot(), seen, path)
        figure.suptitle(f"{shown_name(capture)}: {' > '.join(ends)}", fontsize=11)
        yield "-".join(map(in_file, ends)), figure
        drawn += 1
        if drawn == most:
            return


def _pairs_with_loss(capture: Capture) -> dict[tuple[str, str], Counts]:
    """Return the rows of each pair of hosts with enough intervals with loss, the worst first."""
    connections, table = capture.connections, capture.intervals
    lossy = np.bincount(
        table["direction"], weights=table["td"] + table["to"] > 0, minlength=connections["src"].size
    )
    rows: dict[tuple[str, str], list[int]] = {}
    for at in worst_first(connections).tolist():
        ends = host(str(connections["src"][at])), host(str(connections["dst"][at]))
        rows.setdefault(ends, []).append(at)
    return {
        ends: np.sort(np.array(several))
        for ends, several in rows.items()
        if lossy[several].sum() >= FEWEST
    }


def cloud(capture: Capture, rows: Counts) -> Table:
    """Return the intervals of directions, those at their ends too if they are long enough.

    As :func:`tcpcast.captures.models.measured_intervals`, and ``pkts_in_100_s``, scaled where the
    interval is shorter.
    """
    measured = measured_intervals(capture, rows)
    kept = (measured["length_s"] >= SHORTEST_S) & (measured["sent_pkts"] > 0)
    found = {name: column[kept] for name, column in measured.items()}
    return found | {"pkts_in_100_s": found["sent_pkts"] * INTERVAL_S / found["length_s"]}


def _draw(axes: Axes, seen: Table, path: dict[str, float]) -> None:
    whole = seen["length_s"] >= INTERVAL_S
    for classes, look in CLASSES.items():
        of_class = np.isin(seen["class"], classes) if classes else ~np.isin(seen["class"], NAMED)
        for full in (True, False):
            at = of_class & (whole == full)
            if not at.any():
                continue
            hollow: dict[str, Any] = {"markerfacecolor": "none", "markeredgecolor": look.colour}
            more = {} if full else hollow | {"markeredgewidth": 1.2}
            label = f"{look.label}{'' if full else ', less than 100 s'} ({at.sum()})"
            x, y = seen["loss_indication_ratio"][at], seen["pkts_in_100_s"][at]
            look.mark(axes, x, y, label, **more)
    ratios = seen["loss_indication_ratio"][seen["loss_indication_ratio"] > 0]
    across = np.geomspace(ratios.min() / 3, min(0.7, 3 * ratios.max()), 200)
    modelled = curves(across, path)
    for (name, packets), line in zip(modelled.items(), ("-", "--", ":"), strict=True):
        axes.plot(across, packets, line, color="black", linewidth=1.1, label=name)
    axes.set_ylim(0, 1.3 * max(seen["pkts_in_100_s"].max(), float(modelled[PFTK].max())))
    _loss_axis(axes, float(across[0]), float(across[-1]))
    axes.set_ylabel("packets in 100 s")
    axes.set_title(_said(seen, path), fontsize=8, color=REFERENCE)
    axes.legend(fontsize=7.5, framealpha=0.9, edgecolor="none", loc="upper right")
    plain(axes)


def _said(seen: Table, path: dict[str, float]) -> str:
    said = [
        f"RTT {digits(path['rtt_s'] * 1e3)} ms",
        f"T0 {path['t0_s']:.3g} s",
        f"b {path['packets_per_ack']:.3g}",
    ]
    if math.isfinite(path["receiver_window_pkts"]):
        said.append(f"W_max {digits(path['receiver_window_pkts'])} packets")
    without = int(np.count_nonzero(seen["class"] == NO_LOSS))
    if without:
        said.append(f"without loss, not drawn: {without}")
    return ", ".join(said)


def _loss_axis(axes: Axes, low: float, high: float) -> None:
    """Give a panel a logarithmic axis of loss from ``low`` to ``high``, marked in per cent."""
    steps = (1, 3) if high > 30 * low else (1, 2, 5)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [step * 10.0**decade for decade in decades for step in steps]
    axes.set_xscale("log")
    axes.set_xticks(ticks, [f"{100 * tick:g} %" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlim(low, high)
    axes.set_xlabel("loss indications per packet, p")
