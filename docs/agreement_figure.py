"""Draws the values of simulation against those of Linux: ``docs/figures/agreement.svg``.

Run by ``make docs-update``, from ``docs/background/agreement.csv``, which ``tcpcast reproduce
kernel`` writes.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from tcpcast.process.output import save_figure
from tcpcast.report.chart import Axis, Chart, Panel, Points, Series, percent_tick
from tcpcast.report.palette import REFERENCE, stack_colour

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DOCS = Path(__file__).parent
DATA, FIGURE = DOCS / "background" / "agreement.csv", DOCS / "figures" / "agreement.svg"
STACKS = {"Reno": "linux-reno", "CUBIC": "linux-cubic", "BBR": "linux-bbr"}
MIXTURE = "two of them"
COLUMNS = ("packet", "kernel", "packet_half_width", "kernel_half_width")
"""Values of a cell, and half the widths of their 95 % intervals."""
PANELS = (
    ("goodput_bps", "rate of long flows, Mbit/s", 1e-6, "{:g}".format),
    ("delivery_time_s", "time of short transfers, ms", 1e3, "{:g}".format),
    ("queue_delay_s", "mean queueing delay, ms", 1e3, "{:g}".format),
    ("loss_ratio", "packets lost in the queue", 1.0, percent_tick),
)
"""Quantity, label of its axes, factor of the unit, and format of the ticks of each panel."""


def stack_name(stacks: str) -> str:
    """Return the congestion control of a cell's flows, or :data:`MIXTURE`."""
    names = [name for name in STACKS if name.lower() in stacks]
    return names[0] if len(names) == 1 else MIXTURE


def draw(rows: Sequence[Mapping[str, str]]) -> Chart:
    """Return the chart of the lines of ``agreement.csv``; logarithmic axes omit values of 0."""
    panels = []
    for quantity, label, scale, ticks in PANELS:
        cells = [
            (stack_name(row["stacks"]), [float(row[name] or 0) * scale for name in COLUMNS])
            for row in rows
            if row["quantity"] == quantity and row["packet"]
        ]
        shown = [(name, cell) for name, cell in cells if min(cell[:2]) > 0]
        values = [value for _, cell in shown for value in cell[:2]]
        low, high = 0.7 * min(values), 1.4 * max(values)
        series: list[Points | Series] = [
            Series([low, high], [low, high], style={"color": REFERENCE, "linewidth": 0.8})
        ]
        for name in [*STACKS, MIXTURE]:
            own = np.array([cell for stack, cell in shown if stack == name]).reshape(-1, 4)
            simulated, measured, simulated_half, measured_half = own.T
            ends = np.clip([simulated - simulated_half, simulated + simulated_half], low, high)
            left, right = measured - low, high - measured
            style = {
                "color": REFERENCE if name == MIXTURE else stack_colour(STACKS[name]),
                "markersize": 5,
                "capsize": 0,
                "elinewidth": 1.2,
                "clip_on": True,
                "xerr": [np.minimum(measured_half, left), np.minimum(measured_half, right)],
            }
            series.append(Points(measured, [simulated, *ends], name, style))
        axis = Axis("", low, high, log=True, ticks=ticks)
        panels.append(Panel(series, axis, axis, f"{label} ({len(shown)})"))
    checked = [row for row in rows if row["verdict"] in {"agrees", "differs"}]
    agreeing = sum(row["verdict"] == "agrees" for row in checked)
    return Chart(
        panels=panels,
        title=f"{agreeing} of {len(checked)} measured values agree with the simulation",
        subtitle="Across: Linux 6.18 on a real kernel. Up: tcpcast, without fitted constants. "
        "Each point is one scenario, with both 95 % intervals.",
        size=(6.0, 5.6),
        columns=2,
        legend_position="below",
    )


def main(target: Path = FIGURE) -> None:
    """Draw the figure into a file."""
    with DATA.open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    save_figure(draw(rows).draw(), target, force=True)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
