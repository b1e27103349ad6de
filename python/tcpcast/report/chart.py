"""Charts: descriptions of figures, and functions that draw them with matplotlib.

A :class:`Chart` consists of panels; a :class:`Panel` has two axes and a list of series. A series is
any object with a method ``draw(axes)``. This module defines the common series. ``style`` always
holds keyword arguments of matplotlib.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tcpcast.extras import import_matplotlib
from tcpcast.report.summary import describe
from tcpcast.units import digits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike, NDArray

    from tcpcast.answer import Metric
    from tcpcast.scenario import Scenario

    Floats = NDArray[np.float64]
    Style = dict[str, Any]

# Palette of Okabe and Ito, distinguishable with every common colour vision deficiency.
OBSERVED = ("#0072B2", "#009E73", "#56B4E9")
CALCULATED = ("#D55E00", "#CC79A7", "#E69F00")
COLOURS = (*OBSERVED, *CALCULATED)
REFERENCE = "#666666"
MARKERS = "os^Dv"
LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (6, 1.5, 1.5, 1.5)), (0, (3, 1, 1, 1, 1, 1)))
SIZE = (6.4, 4.2)
DECADES = "decades"
"""Ticks at powers of ten, with matplotlib's labels."""
_DPI = 150
_WIDE_WINDOWS = 15.0
_LEGEND: Style = {"frameon": False, "fontsize": 8}
_LEGEND_COLUMNS = 4
"""Entries per row of a legend below all panels."""


def figure_class() -> type[Figure]:
    """Return the figure class of matplotlib.

    A call before a simulation detects a missing matplotlib early.

    Raises
    ------
    MachineError
        matplotlib is not installed.
    """
    import_matplotlib()
    from matplotlib.figure import Figure  # noqa: PLC0415 - optional, and slow to import

    return Figure


def lay_out(axes: Axes) -> None:
    """Set the grid and remove the top and right spines."""
    axes.grid(visible=True, which="major", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


class Drawable(Protocol):
    """A part of a panel that can draw itself."""

    def draw(self, axes: Axes) -> None:
        """Draw the part."""


@dataclass(frozen=True, slots=True)
class Series:
    """Values ``y`` against ``x``: a line, or markers if the style has a marker.

    If ``x`` has one element more than ``y``, the elements are bin edges, and each value applies
    between two edges. ``low`` and ``high`` are interval bounds, drawn as a band with the label
    ``band``; NaN marks values without an interval.
    """

    x: ArrayLike
    y: ArrayLike
    label: str = ""
    style: Style = field(default_factory=dict)
    low: ArrayLike | None = None
    high: ArrayLike | None = None
    band: str = ""

    def draw(self, axes: Axes) -> None:
        """Draw the series over its band."""
        if self.low is not None and self.high is not None and np.isfinite(self.low).any():
            style = {"color": self.style["color"]}
            if "drawstyle" in self.style:
                style["step"] = "post"
            Band(self.x, self.low, self.high, self.band, style).draw(axes)
        if np.size(self.x) > np.size(self.y):
            axes.stairs(self.y, self.x, baseline=None, label=self.label, **self.style)
        else:
            axes.plot(self.x, self.y, label=self.label, **self.style)


@dataclass(frozen=True, slots=True)
class Band:
    """The area between two curves; ``x`` holds bin edges if it is one element longer."""

    x: ArrayLike
    low: ArrayLike
    high: ArrayLike
    label: str = ""
    style: Style = field(default_factory=dict)

    def draw(self, axes: Axes) -> None:
        """Fill the area."""
        style = {"alpha": 0.2, "linewidth": 0, "label": self.label, **self.style}
        if np.size(self.x) > np.size(self.low):
            axes.stairs(self.high, self.x, baseline=self.low, fill=True, **style)
        else:
            axes.fill_between(self.x, self.low, self.high, **style)


@dataclass(frozen=True, slots=True)
class Points:
    """Values with error bars; ``rows`` holds values, lower and upper bounds (NaN for no bound)."""

    x: ArrayLike
    rows: Sequence[ArrayLike] | Floats
    label: str = ""
    style: Style = field(default_factory=dict)

    def draw(self, axes: Axes) -> None:
        """Draw the points over all curves."""
        y, *ends = (np.asarray(row, dtype=float) for row in self.rows)
        style: Style = {"color": OBSERVED[0], "marker": "o", "markersize": 5.5, "capsize": 3}
        style |= {"linestyle": "none", "markeredgecolor": "white", "markeredgewidth": 0.6}
        style |= {"clip_on": False, "zorder": 30, "label": self.label, **self.style}
        axes.errorbar(self.x, y, yerr=[np.nan_to_num(abs(end - y)) for end in ends], **style)


def points_of(x: ArrayLike, metrics: Sequence[Metric], factor: float, engine: str) -> Points:
    """Return the metrics of an engine, divided by a factor, as points."""
    rows = [(metric.value, metric.low, metric.high) for metric in metrics]
    return Points(x, np.array(rows, dtype=float).T / factor, f"{engine}, with 95 % interval")


@dataclass(frozen=True, slots=True)
class Reference:
    """A line across the panel at a value of an axis, or a span from this value to ``end``."""

    value: float
    label: str = ""
    style: Style = field(default_factory=dict)
    axis: str = "y"
    end: float | None = None

    def draw(self, axes: Axes) -> None:
        """Draw the line or the span."""
        style: Style = {"color": REFERENCE, "label": self.label}
        if self.end is not None:
            style |= {"alpha": 0.15, "linewidth": 0, "zorder": 0, **self.style}
            axes.axvspan(self.value, self.end, **style)
        else:
            style |= {"linewidth": 1, "linestyle": ":", **self.style}
            (axes.axhline if self.axis == "y" else axes.axvline)(self.value, **style)


@dataclass(frozen=True, slots=True)
class Note:
    """A text in a panel, at a position in ``coordinates`` (``xycoords`` of matplotlib)."""

    text: str
    at: tuple[float, float]
    coordinates: Any = "axes fraction"
    style: Style = field(default_factory=dict)

    def draw(self, axes: Axes) -> None:
        """Write the text."""
        axes.annotate(self.text, self.at, xycoords=self.coordinates, **self.style)


@dataclass(frozen=True, slots=True)
class Uprights:
    """Vertical lines between two values, for example intervals."""

    x: Any
    low: Any
    high: Any
    style: Style

    def draw(self, axes: Axes) -> None:
        """Draw the lines."""
        axes.vlines(self.x, self.low, self.high, **self.style)


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis: its label, range and scale.

    ``ticks`` is a format string, a function that formats a tick value, a mapping from tick values
    to labels, or :data:`DECADES`. By default, a logarithmic axis has ticks at 1, 2 and 5 in each
    decade. ``turned`` rotates the labels of a mapping.
    """

    label: str = ""
    low: float | None = None
    high: float | None = None
    log: bool = False
    ticks: str | Callable[..., str] | Mapping[float, str] | None = None
    turned: bool = False

    def apply(self, axes: Axes, name: str) -> None:
        """Set up the axis ``name`` ("x" or "y") of a panel after all its series are drawn."""
        axes.set(**{f"{name}label": self.label})
        if (self.low, self.high) != (None, None):
            axes.set(**{f"{name}lim": (self.low, self.high)})
        axis = axes.xaxis if name == "x" else axes.yaxis
        if self.ticks == DECADES:
            return
        if self.log:
            axis.set_minor_formatter("")
        if self.ticks is None:
            if self.log:
                from matplotlib.ticker import LogLocator  # noqa: PLC0415 - slow to import

                axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
                axis.set_major_formatter(lambda value, _: digits(value))
        elif isinstance(self.ticks, str) or callable(self.ticks):
            axis.set_major_formatter(self.ticks)
        else:
            turn: Style = {"rotation": 30, "ha": "right"} if self.turned else {}
            axis.set_ticks(list(self.ticks), labels=list(self.ticks.values()), **turn)


def fitted_axis(label: str, values: Iterable[ArrayLike], ratio: float) -> Axis:
    """Return a logarithmic axis if max/min exceeds ``ratio``, otherwise a linear axis from 0."""
    flat = np.concatenate([np.ravel(np.asarray(each, dtype=float)) for each in values])
    shown = flat[np.isfinite(flat) & (flat > 0)]
    wide = shown.size and shown.max() > ratio * shown.min()
    return Axis(label, log=True) if wide else Axis(label, 0)


def fitted_window_axis(label: str, windows: ArrayLike, typical: float) -> Axis:
    """Return an axis up to the largest window, logarithmic if it is far above the typical one."""
    peak = float(np.max(windows, initial=1.0))
    if peak > _WIDE_WINDOWS * typical:
        return Axis(label, 0.8, 1.6 * peak, log=True, ticks="{x:,.0f}")
    return Axis(label, 0, 1.1 * peak)


@dataclass(frozen=True, slots=True)
class Panel:
    """The series of one pair of axes; ``legend`` overrides legend properties (None: no legend)."""

    series: Sequence[Drawable]
    x: Axis
    y: Axis
    title: str = ""
    legend: Style | None = field(default_factory=dict)

    def draw(self, axes: Axes) -> None:
        """Draw the series; call :meth:`finish` after the series of all panels are drawn."""
        lay_out(axes)
        axes.set(**{f"{n}scale": "log" for n, axis in (("x", self.x), ("y", self.y)) if axis.log})
        for each in self.series:
            each.draw(axes)

    def finish(self, axes: Axes, *, legend: bool) -> None:
        """Set up both axes, the title and the legend."""
        self.x.apply(axes, "x")
        self.y.apply(axes, "y")
        axes.set_title(self.title, fontsize=9)
        if legend and self.legend is not None and axes.get_legend_handles_labels()[1]:
            axes.legend(**(_LEGEND | self.legend))


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A figure of panels, row by row.

    ``subtitle`` is above the first panel. ``share`` names the axes that all panels share ("x", "y"
    or "xy"); a shared x axis is labelled once. ``legend`` places one legend for all panels: "above"
    or "below" them, or "beside" the last one, in the unused grid cell that also shows ``notes``.
    """

    panels: Sequence[Panel]
    title: str = ""
    subtitle: str = ""
    size: tuple[float, float] = SIZE
    columns: int = 1
    heights: Sequence[float] | None = None
    share: str = ""
    legend: str = ""
    legend_style: Style = field(default_factory=dict)
    notes: Sequence[Note] = ()

    def draw(self) -> Figure:
        """Draw the figure.

        Raises
        ------
        MachineError
            matplotlib is not installed.
        """
        figure = figure_class()(figsize=self.size, dpi=_DPI, layout="constrained")
        grid = figure.subplots(
            -(-len(self.panels) // self.columns),
            self.columns,
            squeeze=False,
            sharex="x" in self.share,
            sharey="y" in self.share,
            height_ratios=self.heights,
        )
        all_axes: list[Axes] = list(grid.flat)
        for panel, axes in zip(self.panels, all_axes, strict=False):
            panel.draw(axes)
        for index, (panel, axes) in enumerate(zip(self.panels, all_axes, strict=False)):
            panel.finish(axes, legend=not self.legend)
            if "x" in self.share:
                is_last = index + self.columns >= len(self.panels)
                axes.tick_params(labelbottom=is_last)
                axes.set_xlabel(axes.get_xlabel() if is_last else "")
        for axes in all_axes[len(self.panels) :]:
            axes.set_axis_off()
            for note in self.notes:
                note.draw(axes)
        if self.title:
            figure.suptitle(self.title, fontsize=12)
        if self.subtitle:
            style: Style = {"fontsize": 7.5, "color": REFERENCE}
            all_axes[0].set_title(wrapped(self.subtitle, round(15.6 * self.size[0])), **style)
        figure.align_ylabels()
        if self.legend:
            self._draw_legend(figure, all_axes)
        return figure

    def _draw_legend(self, figure: Figure, all_axes: Sequence[Axes]) -> None:
        """Draw one legend with the distinct labels of all panels."""
        entries = {
            label: handle
            for axes in all_axes
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        style = _LEGEND | {"handles": entries.values(), "labels": entries} | self.legend_style
        if self.legend == "below":
            figure.legend(**({"loc": "outside lower center", "ncols": _LEGEND_COLUMNS} | style))
        elif self.legend == "beside":
            all_axes[-1].legend(**({"loc": "lower left"} | style))
        else:
            style |= {"loc": "lower right", "bbox_to_anchor": (1, 1), "ncols": len(entries)}
            all_axes[0].legend(**style)


def wrapped(text: str, width: int) -> str:
    """Wrap a text without breaks inside a hyphenated name or before a per cent sign."""
    lines = textwrap.wrap(text.replace(" %", "\u00a0%"), width, break_on_hyphens=False)
    return "\n".join(lines)


def scenario_chart(
    scenario: Scenario, title: str, x: Axis, y: Axis, series: Sequence[Drawable], **more: Any
) -> Chart:
    """Return a one-panel chart with the scenario's name in the title."""
    panels = [Panel(series, x, y, legend=more.pop("panel_legend", {}))]
    name = f"{scenario.name}: {title}"
    return Chart(title=name, panels=panels, subtitle=describe(scenario), **more)


def styles(observed: Iterable[bool]) -> Iterator[Style]:
    """Yield a marker style per observed series and a line style per calculated series."""
    numbers = {True: count(), False: count()}
    for is_measured in observed:
        i = next(numbers[is_measured])
        if is_measured:
            style: Style = {"marker": MARKERS[i % 5], "linestyle": "none", "markersize": 3.2}
            yield {"color": OBSERVED[i % 3], **style}
        else:
            yield {"color": CALCULATED[i % 3], "linestyle": LINES[i % 4], "linewidth": 1.8}


def line_style(index: int, colours: Sequence[str] = COLOURS) -> Style:
    """Return the style of line ``index``; consecutive lines differ in colour and dash pattern."""
    return {"color": colours[index % len(colours)], "linestyle": LINES[index % len(LINES)]}


def end_of(column: ArrayLike) -> float:
    """Return the largest finite value, or 1 if no value is finite."""
    values = np.asarray(column, dtype=float)
    return float(np.nanmax(values)) if np.isfinite(values).any() else 1.0
