"""Charts: descriptions of figures, and functions that draw them with matplotlib.

A :class:`Chart` consists of panels; a :class:`Panel` has two axes and a list of series. A series is
any object with a method ``draw(axes)``. This module defines the common series, and places the texts
around the panels. ``style`` always holds keyword arguments of matplotlib.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tcpcast.process.extras import import_matplotlib
from tcpcast.quantity.units import digits
from tcpcast.report.palette import OBSERVED, REFERENCE
from tcpcast.report.quantity import amount_text
from tcpcast.report.summary import describe_scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Annotation
    from numpy.typing import ArrayLike, NDArray

    from tcpcast.scenario import Scenario

    Floats = NDArray[np.float64]
    Style = dict[str, Any]


TITLE_POINTS, SUBTITLE_POINTS, LABEL_POINTS = 11.5, 9.0, 9.0
"""Font sizes in points: the title, the subtitle, and the texts of legends and line ends."""
_LINE_SPACING = 1.25
_SPACE_BEFORE_UNIT = re.compile(r"(?<=\d) (?=%|[kMG]?bit/s|[m\u00b5]?s\b)|(?<=[A-Za-z]) (?=%)")
"""Spaces before units, where a text must not wrap."""


@dataclass(frozen=True, slots=True)
class EndLabel:
    """A text to the right of a panel, at the last of the ``values`` of a line in its y axis."""

    text: str
    values: tuple[float, ...]
    colour: str


def label_line_ends(axes: Axes, ends: Sequence[EndLabel]) -> list[Annotation]:
    """Write the texts to the right of a panel, each at its value, the lowest first."""
    limits = np.array(axes.get_ylim(), dtype=float)
    to_axis = axes.transScale.transform
    low, high = (to_axis((1.0, limit))[1] for limit in limits)
    labels = []
    for end in ends:
        visible = [value for value in end.values if limits.min() <= value <= limits.max()]
        if visible:
            at = (to_axis((1.0, visible[-1]))[1] - low) / (high - low)
            style: Style = {"xycoords": "axes fraction", "textcoords": "offset points"}
            style |= {"va": "center", "fontsize": LABEL_POINTS, "color": end.colour}
            labels.append(axes.annotate(end.text, (1.0, at), xytext=(4, 0), **style))
    return sorted(labels, key=lambda label: label.xy[1])


def spread_labels(axes: Axes, labels: Sequence[Annotation]) -> None:
    """Move the texts of :func:`label_line_ends` apart, after the layout of the figure."""
    height = axes.get_window_extent().height * 72 / axes.figure.dpi
    line = _LINE_SPACING * LABEL_POINTS / max(height, 1.0)
    heights = [line * (1 + label.get_text().count("\n")) for label in labels]
    at = [label.xy[1] for label in labels]
    lowest = 0.4 * line  # above the tick labels of the x axis
    for index, own in enumerate(heights):
        at[index] = max(at[index], lowest)
        lowest = at[index] + own
    highest = 1.0
    for label, position, below in reversed(list(zip(labels, at, [0.0, *heights], strict=False))):
        label.xy = (1.0, min(position, highest))
        highest = label.xy[1] - below


def write_titles(figure: Figure, title: str, subtitle: str) -> None:
    """Write the title and the subtitle of a figure, aligned to its left edge.

    The height of the figure grows by the height of both texts, so that the panels keep their
    height.
    """
    width, height = figure.get_size_inches()
    message, setup = (
        wrap_text(text, int(72 * width / (max(share, bold * _digits_share(text)) * size)))
        for text, size, share, bold in (
            (title, TITLE_POINTS, 0.585, 1.13),
            (subtitle, SUBTITLE_POINTS, 0.53, 1.0),
        )
    )
    rows = [text.count("\n") + 1 if text else 0 for text in (message, setup)]
    heights = [
        _LINE_SPACING * n * size
        for n, size in zip(rows, (TITLE_POINTS, SUBTITLE_POINTS), strict=True)
    ]
    total = height + sum(heights) / 72
    figure.set_size_inches(width, total)
    if not message:
        return
    style: Style = {"x": 0.01, "ha": "left", "fontsize": TITLE_POINTS, "fontweight": "bold"}
    title_text = figure.suptitle(message, **style)
    if setup:
        figure.set_layout_engine("constrained", rect=(0, 0, 1, 1 - heights[1] / 72 / total))
        below: Style = {"xycoords": title_text, "textcoords": "offset points", "va": "top"}
        below |= {"fontsize": SUBTITLE_POINTS, "color": REFERENCE, "annotation_clip": False}
        note = figure_annotation(setup, (0, 0), xytext=(0, -3), **below)
        note.set_in_layout(False)
        figure.add_artist(note)


def _digits_share(text: str) -> float:
    """Return the mean width of a text's characters in font sizes, if it has many digits.

    Addresses and counts are wider than words: a digit takes 0.64, other characters about 0.51.
    """
    digits = sum(character.isdigit() for character in text)
    return 0.51 + 0.13 * digits / max(len(text), 1)


def figure_annotation(text: str, at: tuple[float, float], **style: Any) -> Any:
    """Return an annotation that belongs to a figure instead of a panel."""
    from matplotlib.text import Annotation  # noqa: PLC0415 - optional, and slow to import

    return Annotation(text, at, **style)


def wrap_text(text: str, width: int) -> str:
    """Wrap a text without breaks inside a hyphenated name or between a number and its unit."""
    lines = textwrap.wrap(_SPACE_BEFORE_UNIT.sub("\u00a0", text), width, break_on_hyphens=False)
    return "\n".join(lines)


FIGURE_SIZE_IN = (5.6, 3.9)
"""Default width and height in inches; small, so that the texts are readable on a telephone."""
MAX_LEGEND_ENTRIES = 5
"""Maximum number of entries of a legend."""
MAX_NARROW_WIDTH_IN = 6.0
"""Maximum width in inches of a figure whose texts are readable at the width of a telephone."""
DPI = 150
MAX_LOG_TICKS = 8
"""Maximum number of labelled ticks of a logarithmic axis."""
_DIGIT_WIDTH_POINTS = 6.4
"""Width of a digit of a tick label."""
MAX_LINEAR_RATIO = 12.0
"""Ratio of the largest to the median value above which an axis is logarithmic."""
_LEGEND_STYLE: Style = {"frameon": False, "fontsize": LABEL_POINTS}
_MAX_LEGEND_ROW_CHARS = 82
"""Maximum length in characters of a row of a legend."""
_HANDLE_CHARS = 6
"""Width in characters of the symbol of a legend entry."""


def new_figure(size: tuple[float, float], dpi: int = DPI) -> Figure:
    """Return an empty figure; ``size`` is its width and height in inches.

    Raises
    ------
    MachineError
        matplotlib is not installed.
    """
    import_matplotlib()
    from matplotlib.figure import Figure  # noqa: PLC0415 - optional, and slow to import

    return Figure(figsize=size, dpi=dpi, layout="constrained")


def style_axes(axes: Axes) -> None:
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
    ``band_label``; NaN marks values without an interval. ``name`` is written at the last visible
    value, instead of a legend entry.
    """

    x: ArrayLike
    y: ArrayLike
    label: str = ""
    style: Style = field(default_factory=dict)
    low: ArrayLike | None = None
    high: ArrayLike | None = None
    band_label: str = ""
    name: str = ""

    @property
    def end(self) -> EndLabel | None:
        """Text next to the last visible value; None if there is no name."""
        if not self.name:
            return None
        values = np.asarray(self.y, dtype=float).tolist()
        return EndLabel(self.name, tuple(values), self.style["color"])

    def draw(self, axes: Axes) -> None:
        """Draw the series over its band."""
        if self.low is not None and self.high is not None and np.isfinite(self.low).any():
            style = {"color": self.style["color"]}
            if "drawstyle" in self.style:
                style["step"] = "post"
            Band(self.x, self.low, self.high, self.band_label, style).draw(axes)
        # Legends omit labels that begin with an underscore.
        label = self.label or f"_{self.name}".replace("\n", " ")
        if np.size(self.x) > np.size(self.y):
            axes.stairs(self.y, self.x, baseline=None, label=label, **self.style)
        else:
            axes.plot(self.x, self.y, label=label, **self.style)


@dataclass(frozen=True, slots=True)
class Band:
    """The area between ``low`` and ``high``; ``x`` holds bin edges if it is one element longer."""

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
    """Values with error bars; ``rows`` holds values, lower and upper bounds (NaN if unknown)."""

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


@dataclass(frozen=True, slots=True)
class ReferenceLine:
    """A line across the panel at one axis value, or a shaded span from this value to ``span_end``.

    ``name`` is written at the right end of a horizontal line, instead of a legend entry.
    """

    value: float
    label: str = ""
    style: Style = field(default_factory=dict)
    axis: str = "y"
    span_end: float | None = None
    name: str = ""

    @property
    def end(self) -> EndLabel | None:
        """Text at the right end of the line; None if there is no name."""
        return EndLabel(self.name, (self.value,), REFERENCE) if self.name else None

    def draw(self, axes: Axes) -> None:
        """Draw the line or the span."""
        style: Style = {"color": REFERENCE, "label": self.label}
        if self.span_end is not None:
            style |= {"alpha": 0.15, "linewidth": 0, "zorder": 0, **self.style}
            axes.axvspan(self.value, self.span_end, **style)
        else:
            style |= {"linewidth": 1, "linestyle": ":", **self.style}
            (axes.axhline if self.axis == "y" else axes.axvline)(self.value, **style)


@dataclass(frozen=True, slots=True)
class TextNote:
    """A text in a panel, at a position in ``coordinates`` (``xycoords`` of matplotlib)."""

    text: str
    position: tuple[float, float]
    coordinates: Any = "axes fraction"
    style: Style = field(default_factory=dict)

    def draw(self, axes: Axes) -> None:
        """Write the text."""
        axes.annotate(self.text, self.position, xycoords=self.coordinates, **self.style)


@dataclass(frozen=True, slots=True)
class IntervalLines:
    """Lines from ``low`` to ``high`` at each ``position``: vertical, or horizontal if requested."""

    position: Any
    low: Any
    high: Any
    style: Style
    is_horizontal: bool = False

    def draw(self, axes: Axes) -> None:
        """Draw the lines; ``axes.vlines`` would need seconds for thousands of lines."""
        from matplotlib.collections import LineCollection  # noqa: PLC0415 - slow to import

        position = np.asarray(self.position, dtype=float)
        ends = [np.column_stack([position, end]) for end in (self.low, self.high)]
        if self.is_horizontal:
            ends = [end[:, ::-1] for end in ends]
        lines: Any = np.stack(ends, axis=1)
        axes.add_collection(LineCollection(lines, **self.style), autolim=False)
        axes.update_datalim(lines.reshape(-1, 2))
        axes.autoscale_view()


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis: its label, range and scale.

    ``ticks`` is a format string, a function that formats a tick value, or a mapping from tick
    values to labels. Without a mapping, a logarithmic axis has the ticks of :func:`log_ticks`.
    ``rotate_labels`` rotates the labels of a mapping; ``integer_ticks`` permits only integers as
    ticks.
    """

    label: str = ""
    low: float | None = None
    high: float | None = None
    log: bool = False
    ticks: str | Callable[..., str] | Mapping[float, str] | None = None
    rotate_labels: bool = False
    integer_ticks: bool = False

    def apply(self, axes: Axes, name: str) -> None:
        """Set up the axis ``name`` ("x" or "y") of a panel after all its series are drawn."""
        axes.set(**{f"{name}label": self.label})
        low, high = self.low, self.high
        if low is not None and low == high:
            # All values are equal, for example a queue that is always empty.
            low, high = (low / 2, 2 * low) if self.log else (low, low + 1)
        if (low, high) != (None, None):
            axes.set(**{f"{name}lim": (low, high)})
        axis = axes.xaxis if name == "x" else axes.yaxis
        if self.integer_ticks and not self.log:
            from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 - slow to import

            axis.set_major_locator(MaxNLocator(integer=True))
        if isinstance(self.ticks, Mapping):
            turn: Style = {"rotation": 30, "ha": "right"} if self.rotate_labels else {}
            axis.set_ticks(list(self.ticks), labels=list(self.ticks.values()), **turn)
        elif self.log:
            from matplotlib.ticker import FixedLocator  # noqa: PLC0415 - slow to import

            axis.set_major_locator(FixedLocator(log_ticks(*sorted(axis.get_view_interval()))))
            axis.set_major_formatter(self.ticks or (lambda value, _: digits(value)))
        elif self.ticks is not None:
            axis.set_major_formatter(self.ticks)
        else:
            axis.get_major_formatter().set_useOffset(False)  # type: ignore[attr-defined]
        if self.log:
            axis.set_minor_formatter("")
        if name == "x" and not isinstance(self.ticks, Mapping):
            _fit_tick_labels(axes)


def _fit_tick_labels(axes: Axes) -> None:
    """Remove ticks of the x axis until their labels fit side by side.

    matplotlib assumes labels of about three characters, and :func:`log_ticks` does not know the
    labels.
    """
    from matplotlib.ticker import FixedLocator  # noqa: PLC0415 - slow to import

    low, high = axes.get_xlim()
    points = axes.get_window_extent().width * 72 / axes.figure.dpi
    ticks = [tick for tick in axes.xaxis.get_majorticklocs() if low <= tick <= high]
    while len(ticks) > 2:
        labels = axes.xaxis.get_major_formatter().format_ticks(ticks)
        if sum(len(label) + 1.5 for label in labels) * _DIGIT_WIDTH_POINTS < points:
            return
        ticks = ticks[::2]
        axes.xaxis.set_major_locator(FixedLocator(ticks))


def log_ticks(low: float, high: float) -> list[float]:
    """Return at most :data:`MAX_LOG_TICKS` round values from ``low`` to ``high``, both above 0.

    They are at 1, 2 and 5 in each decade, or at 1 and 3, or at powers of ten; on a short axis, at
    further values. A range with less than two of them has equidistant ticks.
    """
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps, most in (
        ((1, 1.5, 2, 3, 4, 5, 7), MAX_LOG_TICKS // 2 + 1),
        *((steps, MAX_LOG_TICKS) for steps in ((1, 2, 5), (1, 3), (1,))),
    ):
        ticks = [step * 10.0**decade for decade in decades for step in steps]
        inside = [tick for tick in ticks if low <= tick * (1 + 1e-9) and tick <= high * (1 + 1e-9)]
        if len(inside) <= most:
            break
    else:
        inside = inside[:: -(-len(inside) // MAX_LOG_TICKS)]
    if len(inside) >= 2:
        return inside
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 - slow to import

    return [tick for tick in MaxNLocator(4).tick_values(low, high) if low <= tick <= high]


def percent_tick(share: float, _: object = None) -> str:
    """Return a share as a tick label in per cent."""
    return f"{100 * share:.9f}".rstrip("0").rstrip(".") + " %"


def value_axis(
    label: str, columns: Iterable[ArrayLike], log_ratio: float = MAX_LINEAR_RATIO
) -> Axis:
    """Return an axis from 0, or a logarithmic one if the largest value far exceeds the median.

    ``columns`` are the values of each curve; the smallest of their medians counts.
    """
    known = [v[np.isfinite(v) & (v > 0)] for v in (np.asarray(c, dtype=float) for c in columns)]
    known = [each for each in known if each.size] or [np.ones(1)]
    largest = max(float(np.max(each)) for each in known)
    smallest = min(float(np.min(each)) for each in known)
    if largest > log_ratio * min(float(np.median(each)) for each in known):
        return Axis(label, 0.8 * smallest, 1.6 * largest, log=True)
    return Axis(label, 0, 1.1 * largest)


@dataclass(frozen=True, slots=True)
class Panel:
    """The series of one pair of axes; ``legend`` overrides legend properties (None: no legend)."""

    series: Sequence[Drawable]
    x: Axis
    y: Axis
    title: str = ""
    legend: Style | None = field(default_factory=dict)

    def draw(self, axes: Axes) -> None:
        """Draw the series; then, after all panels, call :meth:`finish_axes_and_legend`."""
        style_axes(axes)
        axes.set(**{f"{n}scale": "log" for n, axis in (("x", self.x), ("y", self.y)) if axis.log})
        for each in self.series:
            each.draw(axes)

    def finish_axes_and_legend(self, axes: Axes, *, legend: bool) -> list[Annotation]:
        """Set up both axes, the title and the legend; return the texts at the ends of lines."""
        self.x.apply(axes, "x")
        self.y.apply(axes, "y")
        axes.set_title(self.title, fontsize=10)
        ends = [getattr(each, "end", None) for each in self.series]
        if legend and self.legend is not None and axes.get_legend_handles_labels()[1]:
            axes.legend(**(_LEGEND_STYLE | self.legend))
        return label_line_ends(axes, [end for end in ends if isinstance(end, EndLabel)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A figure with a grid of panels, listed row by row.

    ``title`` states the main result, ``subtitle`` the scenario; both are above all panels.
    ``shared_axes`` names the axes that all panels share ("x", "y" or "xy"); a shared x axis is
    labelled once. With ``legend_position`` "below", all panels share one legend below them; with
    "above", the legend of each panel is above it.
    """

    panels: Sequence[Panel]
    title: str = ""
    subtitle: str = ""
    size: tuple[float, float] = FIGURE_SIZE_IN
    columns: int = 1
    height_ratios: Sequence[float] | None = None
    shared_axes: str = ""
    legend_position: str = ""

    def draw(self) -> Figure:
        """Draw the figure.

        Raises
        ------
        MachineError
            matplotlib is not installed.
        """
        figure = new_figure(self.size)
        grid = figure.subplots(
            -(-len(self.panels) // self.columns),
            self.columns,
            squeeze=False,
            sharex="x" in self.shared_axes,
            sharey="y" in self.shared_axes,
            height_ratios=self.height_ratios,
        )
        all_axes: list[Axes] = list(grid.flat)
        for panel, axes in zip(self.panels, all_axes, strict=False):
            panel.draw(axes)
        line_ends = []
        for index, (panel, axes) in enumerate(zip(self.panels, all_axes, strict=False)):
            line_ends.append(panel.finish_axes_and_legend(axes, legend=not self.legend_position))
            if "x" in self.shared_axes:
                is_last = index + self.columns >= len(self.panels)
                axes.tick_params(labelbottom=is_last)
                axes.set_xlabel(axes.get_xlabel() if is_last else "")
        for axes in all_axes[len(self.panels) :]:
            axes.set_axis_off()
        write_titles(figure, self.title, self.subtitle)
        figure.align_ylabels()
        entries: dict[Any, Any] = {}
        for axes in all_axes:
            handles, labels = axes.get_legend_handles_labels()
            entries |= dict(zip(labels, handles, strict=True))
            if labels and self.legend_position == "above":
                style: Style = {"loc": "lower right", "bbox_to_anchor": (1, 1.01)}
                style |= {"borderaxespad": 0, "ncols": _legend_columns(labels, 3)}
                axes.legend(**_LEGEND_STYLE, **style)
        if entries and self.legend_position == "below":
            style = {"loc": "outside lower center", "ncols": _legend_columns(list(entries), 2)}
            figure.legend(entries.values(), entries, **_LEGEND_STYLE, **style)
        layout = figure.get_layout_engine()
        if layout is not None and max(map(len, line_ends)) > 1:
            layout.execute(figure)  # the heights of the panels determine the distances
            for axes, labels in zip(all_axes, line_ends, strict=False):
                spread_labels(axes, labels)
        return figure


def _legend_columns(labels: Sequence[str], most: int) -> int:
    """Return the number of columns, at most ``most``, that fit side by side."""
    for columns in range(most, 1, -1):
        rows = -(-len(labels) // columns)
        widths = [max(map(len, labels[i : i + rows])) for i in range(0, len(labels), rows)]
        if sum(widths) + _HANDLE_CHARS * columns <= _MAX_LEGEND_ROW_CHARS:
            return columns
    return 1


def one_panel_chart(
    scenario: Scenario, title: str, x: Axis, y: Axis, series: Sequence[Drawable], **more: Any
) -> Chart:
    """Return a one-panel chart with a message as title and the scenario as subtitle."""
    panels = [Panel(series, x, y, legend=more.pop("panel_legend", {}))]
    return Chart(title=title, panels=panels, subtitle=scenario_subtitle(scenario), **more)


def scenario_subtitle(scenario: Scenario) -> str:
    """Return the name, traffic, path and stack of a scenario, and the duration of its run."""
    duration = scenario.run.duration
    length = [] if duration is None else [amount_text(duration, "s")]
    return f"{scenario.name}: {', '.join([describe_scenario(scenario), *length])}"
