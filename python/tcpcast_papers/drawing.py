"""Figures of the reproduced papers: one look for all of them, written as PNG files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from tcpcast.output import save_figure
from tcpcast.report.axes import figure_class, lay_out

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

# Okabe and Ito's palette, told apart by every common kind of colour vision.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
MUTED = "#666666"
_DPI = 130


def panels(
    columns: int, rows: int = 1, *, width: float = 4.6, height: float = 3.6, share_y: bool = False
) -> tuple[Figure, list[Axes]]:
    """Return a figure and its panels, row by row.

    Raises
    ------
    EnvironmentFault
        matplotlib is not installed.
    """
    figure = figure_class()(
        figsize=(width * columns, height * rows), dpi=_DPI, layout="constrained"
    )
    axes = list(figure.subplots(rows, columns, squeeze=False, sharey=share_y).flat)
    for panel in axes:
        lay_out(panel)
    return figure, axes


@dataclass(frozen=True, slots=True)
class Series:
    """Points with or without intervals, or a line; ``look`` has matplotlib's properties of it.

    ``curve`` has the shape (1, points), or (2, points) with half of each interval.
    """

    x: ArrayLike
    curve: Floats
    label: str = ""
    look: dict[str, Any] = field(default_factory=dict)

    def draw(self, axes: Axes) -> None:
        """Draw the series."""
        y, *half = self.curve
        if half:
            axes.errorbar(self.x, y, yerr=half[0], markersize=3.5, label=self.label, **self.look)
        else:
            axes.plot(self.x, y, label=self.label, **self.look)


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel of a chart; ``legend`` has matplotlib's properties of it, None: there is none."""

    title: str
    series: Sequence[Series]
    x_label: str = ""
    y_label: str = ""
    legend: dict[str, Any] | None = None

    def draw(self, axes: Axes) -> None:
        """Draw the panel."""
        for series in self.series:
            series.draw(axes)
        axes.set_title(self.title, fontsize=10)
        axes.set_xlabel(self.x_label)
        axes.set_ylabel(self.y_label)
        if self.legend is not None:
            axes.legend(fontsize=8, frameon=False, **self.legend)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A figure, and the path that it is to have; written with the page that shows it."""

    figure: Figure
    path: Path

    def write(self, *, force: bool = False) -> None:
        """Write the figure over an earlier one of ours, with ``force`` over any file.

        Raises
        ------
        EnvironmentFault
            The file cannot be written.
        """
        save_figure(self.figure, self.path, force=force)


@dataclass(frozen=True, slots=True)
class Chart:
    """A figure of panels row by row, with x from 0 to ``right`` and y from ``bottom``."""

    panels: Sequence[Panel]
    right: float
    columns: int = 2
    width: float = 4.6
    height: float = 3.6
    share_y: bool = False
    bottom: float | None = 0.0

    def draw(self, path: Path) -> Drawn:
        """Return the figure."""
        rows = -(-len(self.panels) // self.columns)
        figure, found = panels(
            self.columns, rows, width=self.width, height=self.height, share_y=self.share_y
        )
        for panel, axes in zip(self.panels, found, strict=True):
            panel.draw(axes)
        for axes in found:  # Panels that share an axis must all be drawn before.
            axes.set_xlim(0, self.right)
            axes.set_ylim(bottom=self.bottom)
        return Drawn(figure, path)


def looks() -> Iterator[dict[str, Any]]:
    """Yield a colour and a marker for each series in turn."""
    while True:
        for colour, marker in zip(COLOURS, MARKERS, strict=True):
            yield {"color": colour, "marker": marker}


def tail(axes: Axes, *, floor: float, right: float) -> None:
    """Give a panel the axes of a tail probability: logarithmic, from ``floor`` to 1."""
    axes.set_yscale("log")
    axes.set_ylim(floor, 1.5)
    axes.set_xlim(0, right)


def positive(x: ArrayLike, y: ArrayLike) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the points that a logarithmic axis can show."""
    across, up = np.asarray(x), np.asarray(y)
    shown = np.isfinite(up) & (up > 0)
    return across[shown], up[shown]


def thinned(
    x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], points: int = 60
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return about ``points`` of a dense series, the first and the last among them."""
    if len(x) <= points:
        return x, y
    keep = np.unique(np.linspace(0, len(x) - 1, points).round().astype(int))
    return x[keep], y[keep]
