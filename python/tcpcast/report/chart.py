"""Charts: figures as data, and the functions that draw them with matplotlib.

A :class:`Chart` has panels, a :class:`Panel` has two axes and a list of series. A series is any
object with a method ``draw(axes)``; the common ones are defined here. ``style`` always holds
properties of matplotlib.
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

# Okabe and Ito's palette, distinguishable with every common kind of colour vision.
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
_IN_A_ROW = 4
"""Entries in each row of a legend below all panels."""


def figure_class() -> type[Figure]:
    """Return matplotlib's figure; a call before a simulation avoids one made in vain.

    Raises
    ------
    MachineError
        matplotlib is not installed.
    """
    import_matplotlib()
    from matplotlib.figure import Figure  # noqa: PLC0415 - optional, and slow to import

    return Figure


def lay_out(axes: Axes) -> None:
    """Set the grid and the two spines that all figures have."""
    axes.grid(visible=True, which="major", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


class Drawable(Protocol):
    """A part of a panel that can draw itself."""

    def draw(self, axes: Axes) -> None:
        """Draw the part."""


@dataclass(frozen=True, slots=True)
class Series:
    """Values against a quantity: a line, or marks if the style has a marker.

    With one ``x`` more than ``y`` these are edges, and each value holds between two of them.
    ``low`` and ``high`` are the ends of intervals, drawn as a band named ``band``; NaN where there
    is none.
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
    """The area between two curves; ``x`` are edges if there is one more of them."""

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
    """Values with intervals as bars; ``rows`` has values, lower and upper ends, NaN for none."""

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
    """Return the points of an engine's metrics, divided by a factor."""
    rows = [(metric.value, metric.low, metric.high) for metric in metrics]
    return Points(x, np.array(rows, dtype=float).T / factor, f"{engine}, with 95 % interval")


@dataclass(frozen=True, slots=True)
class Reference:
    """A line across the panel at a value of an axis, or the stretch from there to ``end``."""

    value: float
    label: str = ""
    style: Style = field(default_factory=dict)
    axis: str = "y"
    end: float | None = None

    def draw(self, axes: Axes) -> None:
        """Draw the line or the stretch."""
        style: Style = {"color": REFERENCE, "label": self.label}
        if self.end is not None:
            style |= {"alpha": 0.15, "linewidth": 0, "zorder": 0, **self.style}
            axes.axvspan(self.value, self.end, **style)
        else:
            style |= {"linewidth": 1, "linestyle": ":", **self.style}
            (axes.axhline if self.axis == "y" else axes.axvline)(self.value, **style)


@dataclass(frozen=True, slots=True)
class Note:
    """A text in a panel, at a place in the coordinates that matplotlib's ``xycoords`` names."""

    text: str
    at: tuple[float, float]
    coordinates: Any = "axes fraction"
    style: Style = field(default_factory=dict)

    def draw(self, axes: Axes) -> None:
        """Write the text."""
        axes.annotate(self.text, self.at, xycoords=self.coordinates, **self.style)


@dataclass(frozen=True, slots=True)
class Uprights:
    """Upright lines between two values, such as intervals."""

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

    ``ticks`` is a format, a function that formats a place, a label for each place, or
    :data:`DECADES`; by default a logarithmic axis has ticks at 1, 2 and 5. Long labels are
    ``turned``.
    """

    label: str = ""
    low: float | None = None
    high: float | None = None
    log: bool = False
    ticks: str | Callable[..., str] | Mapping[float, str] | None = None
    turned: bool = False

    def apply(self, axes: Axes, name: str) -> None:
        """Set up the axis ``name`` ("x" or "y") of a panel in which all series are drawn."""
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
    """Return a logarithmic axis if values differ by more than ``ratio``, otherwise one from 0."""
    together = np.concatenate([np.ravel(np.asarray(each, dtype=float)) for each in values])
    shown = together[np.isfinite(together) & (together > 0)]
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
    """The series of one pair of axes; ``legend`` has changes of its legend, None: it has none."""

    series: Sequence[Drawable]
    x: Axis
    y: Axis
    title: str = ""
    legend: Style | None = field(default_factory=dict)

    def draw(self, axes: Axes) -> None:
        """Draw the series; :meth:`finish` follows once all panels have theirs."""
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

    ``subtitle`` is above the first panel. ``share`` has the axes that panels have in common ("x",
    "y", "xy"); a common x axis is labelled once. ``legend`` is the place of a legend of all panels:
    "above" or "below" them, or "beside" the last one, in the same place as ``notes``.
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
        places: list[Axes] = list(grid.flat)
        for panel, axes in zip(self.panels, places, strict=False):
            panel.draw(axes)
        for at, (panel, axes) in enumerate(zip(self.panels, places, strict=False)):
            panel.finish(axes, legend=not self.legend)
            if "x" in self.share:
                is_last = at + self.columns >= len(self.panels)
                axes.tick_params(labelbottom=is_last)
                axes.set_xlabel(axes.get_xlabel() if is_last else "")
        for axes in places[len(self.panels) :]:
            axes.set_axis_off()
            for note in self.notes:
                note.draw(axes)
        if self.title:
            figure.suptitle(self.title, fontsize=12)
        if self.subtitle:
            style: Style = {"fontsize": 7.5, "color": REFERENCE}
            places[0].set_title(wrapped(self.subtitle, round(15.6 * self.size[0])), **style)
        figure.align_ylabels()
        if self.legend:
            self._draw_legend(figure, places)
        return figure

    def _draw_legend(self, figure: Figure, places: Sequence[Axes]) -> None:
        """Draw one legend with the entries of all panels, each label once."""
        entries = {
            label: handle
            for axes in places
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        style = _LEGEND | {"handles": entries.values(), "labels": entries} | self.legend_style
        if self.legend == "below":
            figure.legend(**({"loc": "outside lower center", "ncols": _IN_A_ROW} | style))
        elif self.legend == "beside":
            places[-1].legend(**({"loc": "lower left"} | style))
        else:
            style |= {"loc": "lower right", "bbox_to_anchor": (1, 1), "ncols": len(entries)}
            places[0].legend(**style)


def wrapped(text: str, width: int) -> str:
    """Wrap a text; a number stays with its per cent sign, and no line ends within a name."""
    lines = textwrap.wrap(text.replace(" %", "\u00a0%"), width, break_on_hyphens=False)
    return "\n".join(lines)


def scenario_chart(
    scenario: Scenario, title: str, x: Axis, y: Axis, series: Sequence[Drawable], **more: Any
) -> Chart:
    """Return a chart of one panel that names the scenario."""
    panels = [Panel(series, x, y, legend=more.pop("panel_legend", {}))]
    name = f"{scenario.name}: {title}"
    return Chart(title=name, panels=panels, subtitle=describe(scenario), **more)


def styles(observed: Iterable[bool]) -> Iterator[Style]:
    """Yield marks for each observed series, and a line for each calculated one."""
    numbers = {True: count(), False: count()}
    for each in observed:
        at = next(numbers[each])
        if each:
            style: Style = {"marker": MARKERS[at % 5], "linestyle": "none", "markersize": 3.2}
            yield {"color": OBSERVED[at % 3], **style}
        else:
            yield {"color": CALCULATED[at % 3], "linestyle": LINES[at % 4], "linewidth": 1.8}


def line_style(at: int, colours: Sequence[str] = COLOURS) -> Style:
    """Return the style of a line by its number; each differs in more than its colour."""
    return {"color": colours[at % len(colours)], "linestyle": LINES[at % len(LINES)]}


def end_of(column: ArrayLike) -> float:
    """Return the largest of the known values, 1 if there are none."""
    values = np.asarray(column, dtype=float)
    return float(np.nanmax(values)) if np.isfinite(values).any() else 1.0
