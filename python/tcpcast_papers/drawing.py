"""Figures of the reproduced papers in a common style, written as PNG files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tcpcast.process.output import save_figure
from tcpcast.report.chart import Axis, Points, Series, new_figure, percent_tick, style_axes
from tcpcast.report.palette import BLACK, BLUE, GREEN, ORANGE, PURPLE, REFERENCE, SKY, VERMILION

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike, NDArray
    from tcpcast.report.chart import Drawable, Style

    Floats = NDArray[np.float64]

COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
REFERENCE_COLOUR = REFERENCE
_DPI = 130


def create_panels(
    columns: int, rows: int = 1, *, width: float = 4.6, height: float = 3.6, share_y: bool = False
) -> tuple[Figure, list[Axes]]:
    """Return a figure and its panels, row by row.

    Raises
    ------
    MachineError
        matplotlib is not installed.
    """
    figure = new_figure((width * columns, height * rows), _DPI)
    axes = list(figure.subplots(rows, columns, squeeze=False, sharey=share_y).flat)
    for panel in axes:
        style_axes(panel)
    return figure, axes


def curve_with_intervals(
    x: ArrayLike, rows: Floats, label: str = "", style: Style | None = None
) -> Drawable:
    """Return a line, or points with error bars if ``rows`` has half-widths as its second row."""
    y, *half = rows
    if not half:
        return Series(x, y, label, style or {})
    points = {"markersize": 4.5, "markeredgewidth": 0, "capsize": 0, **(style or {})}
    return Points(x, (y, y - half[0], y + half[0]), label, points)


@dataclass(frozen=True, slots=True)
class Plot:
    """A figure and its file, which is written together with the page that shows it."""

    figure: Figure
    path: Path

    def write(self, *, force: bool = False) -> None:
        """Write the figure. Overwrite only an earlier figure, or any file with ``force``.

        Raises
        ------
        MachineError
            The file cannot be written.
        """
        save_figure(self.figure, self.path, force=force)


def agreement_plot(
    panels: Mapping[str, tuple[str, Sequence[tuple[float, float, float, float]]]], path: Path
) -> Plot:
    """Return a figure of simulated against measured values on logarithmic axes.

    Parameters
    ----------
    panels
        For each title, the unit and the points: measured value, its half-width, simulated value,
        its half-width. Points that a logarithmic axis cannot show are left out.
    path
        File of the figure.

    Raises
    ------
    MachineError
        matplotlib is not installed.
    """
    figure, axes = create_panels(len(panels))
    for panel, (title, (unit, points)) in zip(axes, panels.items(), strict=True):
        shown = np.array([each for each in points if each[0] > 0 and each[2] > 0], ndmin=2)
        panel.set(xscale="log", yscale="log", title=title)
        panel.set(xlabel=f"measured ({unit})", ylabel=f"simulated ({unit})")
        if shown.size:
            measured, measured_half, own, own_half = shown.T
            # A log axis has no place for an end of an interval at or below 0.
            own_low = np.minimum(own_half, 0.95 * own)
            measured_low = np.minimum(measured_half, 0.95 * measured)
            ends = min(measured.min(), own.min()) / 1.3, max(measured.max(), own.max()) * 1.3
            panel.plot(ends, ends, color=REFERENCE_COLOUR, linewidth=1)
            panel.errorbar(
                measured,
                own,
                xerr=(measured_low, measured_half),
                yerr=(own_low, own_half),
                fmt="o",
                markersize=3,
                markeredgewidth=0,
                elinewidth=0.7,
                color=COLOURS[0],
            )
    return Plot(figure, path)


def series_styles() -> Iterator[dict[str, Any]]:
    """Yield a colour and a marker for each series, cyclically."""
    while True:
        for colour, marker in zip(COLOURS, MARKERS, strict=True):
            yield {"color": colour, "marker": marker}


def set_tail_axes(axes: Axes, *, right: float) -> None:
    """Set the axes of a tail probability: logarithmic y from 1e-6 to above 1."""
    axes.set(yscale="log", ylim=(1e-6, 1.5), xlim=(0, right))


def positive_points(
    x: ArrayLike, y: ArrayLike
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the points that a logarithmic axis can show: finite and above 0."""
    across, up = np.asarray(x), np.asarray(y)
    shown = np.isfinite(up) & (up > 0)
    return across[shown], up[shown]


def thin_points(
    x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], points: int = 60
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return about ``points`` points of a dense series, including the first and the last."""
    if len(x) <= points:
        return x, y
    keep = np.unique(np.linspace(0, len(x) - 1, points).round().astype(int))
    return x[keep], y[keep]


def set_loss_axis(axes: Axes, low: float, high: float, label: str) -> None:
    """Set a logarithmic x axis of loss from ``low`` to ``high``, with ticks in percent."""
    axes.set_xscale("log")
    axes.tick_params(axis="x", labelsize=8)
    Axis(label, low, high, log=True, ticks=percent_tick).apply(axes, "x")
