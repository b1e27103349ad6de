"""Figures of a sweep: curves over one varied key, or heat maps with isolines over two keys."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.answer import UNITS
from tcpcast.answer.metrics import HEADLINE_METRICS
from tcpcast.comparison.verdict import sweep_findings
from tcpcast.process.errors import TcpcastError, UnitError, did_you_mean_text
from tcpcast.quantity import units
from tcpcast.report.chart import (
    Axis,
    Chart,
    IntervalLines,
    Panel,
    ReferenceLine,
    Series,
    scenario_subtitle,
    value_axis,
)
from tcpcast.report.figures import check_figure_files
from tcpcast.report.key_labels import key_label
from tcpcast.report.palette import COLOURS, REFERENCE, engine_style, line_style, stack_colour
from tcpcast.report.quantity import UNTRUSTED_MARK, Scale, metric_label, scale_for_metric
from tcpcast.report.sweep_cells import (
    LOG_SCALE_RATIO,
    curves_by_text_value,
    make_swept_key,
    metric_grids,
)
from tcpcast.report.verdict import verdict_text
from tcpcast.sweeps.prepared import MAX_FIGURE_KEYS, select_figure_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tcpcast.report.chart import Drawable, Style
    from tcpcast.report.sweep_cells import MetricGrid, SweptKey
    from tcpcast.scenario import Scenario

    Levels = Mapping[str, Sequence[float]]

MAX_PANELS = 6
"""Maximum number of panels (engines) in a heat map."""
_MAX_LINEAR_RATIO = 4.0
"""Ratio of the largest to the median value above which the axis of a curve is logarithmic."""
_MIN_LOG_RANGE = 10.0
"""Ratio of the largest to the smallest value from which both axes are logarithmic if that of the
key is: most metrics are nearly powers of a loss, a rate or a time, and then a straight line."""
_DEFAULT_ISOLINES = 5
"""Approximate number of isolines if no level is given."""
_LEVEL_PARSERS: dict[str, Callable[[str], float]] = {
    "bit/s": units.parse_rate,
    "s": units.parse_duration,
    "1": units.parse_ratio,
    "packet": units.parse_packets,
}
"""Parser of a level for each unit of a metric; for other units, levels are plain numbers."""
_ISOLINE_COLOUR, _ISOLINE_OUTLINE_COLOUR = "#010101", "#fefefe"
"""Colours of isolines; they and the colours of the map do not change on a dark page."""
_DOUBTED_STYLE: Style = {"linestyle": "none", "marker": "x", "color": REFERENCE, "markersize": 6}
_CROSS_STYLE: Style = {"linestyle": "none", "marker": "x", "color": "black", "markersize": 5}
_POINT_STYLE: Style = {"linestyle": "none", "marker": "o", "color": "white", "markersize": 2.5}
_POINT_STYLE |= {"markeredgecolor": "black", "markeredgewidth": 0.4}
_DOUBTED_LABEL = "not to be trusted, or without a reliable interval"


def read_levels(texts: Iterable[str]) -> dict[str, list[float]]:
    """Parse levels of metrics, for example ``goodput_bps=50mbit,20mbit``.

    Returns
    -------
    dict
        The levels by metric, in the unit of the metric.

    Raises
    ------
    TcpcastError
        A metric is unknown, or a level is not in the unit of its metric.
    """
    levels: dict[str, list[float]] = {}
    for text in texts:
        metric, equals, values = (part.strip() for part in text.partition("="))
        if not equals or not values:
            raise TcpcastError(
                f"--level: {units.quote(text)} is not a level; use METRIC=VALUE, for example "
                "goodput_bps=50mbit"
            )
        if metric not in UNITS:
            near = did_you_mean_text(metric, UNITS)
            raise TcpcastError(
                f"--level: {units.quote(metric)} is not a metric{near}; use "
                "goodput_bps, for example"
            )
        parse = _LEVEL_PARSERS.get(UNITS[metric], _parse_level)
        try:
            levels.setdefault(metric, []).extend(parse(value) for value in values.split(","))
        except ValueError as error:
            raise TcpcastError(f"--level {metric}: {error}") from None
    return levels


def _parse_level(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UnitError(
            f"{units.quote(text.strip())} is not a number; use 100, for example"
        ) from None


def sweep_subtitle(scenario: Scenario, keys: Iterable[str]) -> str:
    """Return the scenario of a sweep and the varied keys, as a subtitle."""
    varied = " and ".join(key_label(key) for key in keys)
    return f"{scenario_subtitle(scenario)}; varied: {varied}"


def check_sweep_figures(
    key_groups: Sequence[Sequence[str]],
    folder: str | Path,
    levels: Levels,
    form: str,
    *,
    force: bool = False,
) -> None:
    """Raise before the work starts if a sweep has no figures or the folder cannot be written.

    ``key_groups`` are the varied keys; keys that vary in parallel form one group.

    Raises
    ------
    TcpcastError
        More than two keys vary; keys vary in parallel, and no names label their values; or an
        existing file is not a figure of tcpcast.
    MachineError
        matplotlib is not installed, or the folder cannot be written.
    """
    if not select_figure_keys(key_groups):
        keys = ", ".join(key for group in key_groups for key in group)
        raise TcpcastError(
            "--plot supports one or two keys that vary in all combinations, or the rows of a file "
            f"with a column name, but these keys vary: {keys}; fix some of the keys with --set, or "
            "save the values with --out and plot them with another program"
        )
    names = [f"{metric}.{form}" for metric in dict.fromkeys((*HEADLINE_METRICS, *levels))]
    check_figure_files(folder, names, force=force)


def iter_sweep_figures(
    table: Any, keys: Mapping[str, str], subtitle: str, levels: Levels
) -> Iterator[tuple[str, Figure]]:
    """Yield each main metric of a sweep, and each metric with levels, with its figure.

    With one varied key, a figure has one line per engine, with intervals as bands. With two numeric
    keys, the figure has one heat map with isolines per engine. If the values of one of two keys are
    texts, the figure has one line per text and engine. Formulas are lines without points;
    simulations have points.

    Parameters
    ----------
    table
        The rows, a ``pyarrow.Table``.
    keys
        One or two varied keys, each with the unit of its column.
    subtitle
        Scenario and varied keys.
    levels
        Values of metrics, in their units, at which a line is drawn.
    """
    columns = table.to_pydict()
    if not columns:
        return
    axes = {key: make_swept_key(key, columns[key], unit) for key, unit in keys.items()}
    for metric in dict.fromkeys((*HEADLINE_METRICS, *levels)):
        grids = metric_grids(columns, metric, axes) if metric in columns else []
        if grids:
            keys_of = list(axes.values())
            curves = curves_by_text_value(grids, keys_of)
            if curves:
                grids, keys_of = curves, [key for key in keys_of if key.is_numeric]
            scale = scale_for_metric(metric, float(np.abs(trusted_or_all_values(grids)).max()))
            at = levels.get(metric, ())
            # Crosses mark values that are not trusted, and other metrics have their own figures.
            stated = [
                finding
                for finding in sweep_findings(columns, keys, "", metric)
                if finding.value.trusted and finding.metric == metric
            ]
            verdict = verdict_text(stated, intervals=False)
            plain = f"{metric_label(metric)} by {' and '.join(map(key_label, keys))}"
            title = verdict.rstrip(".") or plain[0].upper() + plain[1:]
            label = metric_label(metric) + (f" ({scale.unit})" if scale.unit else "")
            if len(keys_of) == MAX_FIGURE_KEYS:
                yield metric, _map_figure(grids, keys_of, label, scale, at, (title, subtitle))
                continue
            panel = _curves_panel(grids, keys_of[0], label, scale, at)
            chart = Chart(title=title, subtitle=subtitle, panels=[panel], legend_position="below")
            yield metric, chart.draw()


def trusted_or_all_values(grids: Sequence[MetricGrid]) -> Any:
    """Return the finite trusted values, or all finite values if none is trusted."""
    values = np.concatenate([each.value.ravel() for each in grids])
    marks = np.concatenate([each.marks.ravel() for each in grids])
    finite = np.isfinite(values)
    trusted = finite & (marks != UNTRUSTED_MARK)
    return values[trusted if trusted.any() else finite]


def _curves_panel(
    grids: Sequence[MetricGrid],
    x: SweptKey,
    label: str,
    scale: Scale,
    levels: Sequence[float],
) -> Panel:
    """Return a metric over one key, one line per engine, and crosses on values with a warning.

    Formulas are lines without points; simulations have points. Points are not connected if the
    values of the key are texts. The colour shows the engine, or the value of a key of texts.
    """
    words = list(dict.fromkeys(each.text_value for each in grids))
    known = [stack_colour(word) for word in words]
    distinct = None not in known and len(set(known)) == len(words)
    several = len({each.engine for each in grids}) > 1
    series: list[Drawable] = []
    ends = [trusted_or_all_values(grids), levels]
    for grid in grids:
        value, low, high = (part / scale.factor for part in (grid.value, grid.low, grid.high))
        name = f"{grid.engine}\n({'simulated' if grid.is_simulated else 'formula'})"
        style = engine_style(grid.engine, is_observed=grid.is_simulated)
        if grid.text_value:
            name = f"{grid.text_value},\n{grid.engine}" if several else grid.text_value
            index = words.index(grid.text_value)
            style["color"] = known[index] if distinct else COLOURS[index % len(COLOURS)]
            if not grid.is_simulated and not several:
                style["linestyle"] = line_style(index)["linestyle"]
        if grid.is_simulated:
            style |= {"markersize": 5, "linewidth": 0.8, "linestyle": "-" * x.is_numeric}
        elif not x.is_numeric:
            style |= {"marker": "_", "linestyle": ""}
        bars = {"linewidth": 1, "label": "95 % intervals of simulations"}
        if np.isfinite(low).any():
            series.append(IntervalLines(x.positions, low, high, {"color": style["color"]} | bars))
        text = {"name": name} if x.is_numeric else {"label": name.replace("\n", " ")}
        band = (low, high) if x.is_numeric else (None, None)
        series.append(Series(x.positions, value, style=style, **text, low=band[0], high=band[1]))
        doubted = grid.is_marked & np.isfinite(value)
        label_of_doubt = _DOUBTED_LABEL if doubted.any() else ""
        series.append(Series(x.positions[doubted], value[doubted], label_of_doubt, _DOUBTED_STYLE))
        ends.append(grid.high[grid.marks != UNTRUSTED_MARK])
    for level in levels:
        dotted = {"linestyle": (0, (1, 2))}
        series.append(ReferenceLine(level / scale.factor, style=dotted, name=scale.text(level)))
    ratio = _MAX_LINEAR_RATIO if ends[0].min() > 0 else math.inf
    if x.log and ends[0].max() >= _MIN_LOG_RANGE * ends[0].min() > 0:
        ratio = 0.0
    y = value_axis(label, [np.concatenate(ends) / scale.factor], ratio)
    return Panel(series, _key_axis(x), y)


def _key_axis(key: SweptKey, letters: int = 40) -> Axis:
    positions, labels = key.ticks
    turned = not key.is_numeric and sum(map(len, labels)) > letters
    return Axis(
        key.axis_label, ticks=dict(zip(positions, labels, strict=True)), rotate_labels=turned
    )


@dataclass(frozen=True, slots=True)
class _ColorMap:
    """Values over two keys as colours, with isolines between the centres of the cells."""

    keys: Sequence[SweptKey]
    value: Any
    norm: Any
    levels: Mapping[float, str]

    def draw(self, axes: Axes) -> None:
        """Draw the cells and the isolines."""
        from matplotlib.patheffects import withStroke  # noqa: PLC0415 - optional, slow to import

        x, y = self.keys
        axes.set_facecolor("#dddddd")  # grey for cells without a value
        axes.pcolormesh(x.edges, y.edges, self.value, cmap="cividis", norm=self.norm)
        if not self.levels:
            return
        # On a logarithmic scale, values are closer to linear between two cells.
        lines = axes.contour(
            x.positions,
            y.positions,
            self.norm(self.value),
            levels=self.norm(list(self.levels)),
            colors=_ISOLINE_COLOUR,
            linewidths=1.3,
        )
        outline: list[Any] = [withStroke(linewidth=3, foreground=_ISOLINE_OUTLINE_COLOUR)]
        lines.set_path_effects(outline)
        texts = dict(zip(lines.levels, self.levels.values(), strict=True))
        for text in axes.clabel(lines, fmt=texts, fontsize=8):
            text.set_path_effects(outline)


def _map_figure(  # noqa: PLR0913, PLR0917 - what to draw, and how
    grids: Sequence[MetricGrid],
    keys: Sequence[SweptKey],
    label: str,
    scale: Scale,
    levels: Sequence[float],
    titles: tuple[str, str],
) -> Figure:
    """Draw a metric over two keys, one panel per engine, with a common colour scale."""
    from matplotlib.colors import LogNorm, Normalize  # noqa: PLC0415 - optional, slow to import
    from matplotlib.ticker import LogLocator, MaxNLocator  # noqa: PLC0415

    shown = grids[:MAX_PANELS]
    columns = min(len(shown), 2)
    values = trusted_or_all_values(shown) / scale.factor
    low, high = float(values.min()), float(values.max())
    log = low > 0 and high / low >= LOG_SCALE_RATIO
    norm: Any = (LogNorm if log else Normalize)(low, high if high > low else low + 1)
    locator = LogLocator(subs=(1, 2, 5)) if log else MaxNLocator(_DEFAULT_ISOLINES)
    wanted = [level / scale.factor for level in sorted(levels)]
    panels = []
    x, y = keys
    across, up = np.meshgrid(x.positions, y.positions)
    for index, grid in enumerate(shown):
        title = f"{grid.engine} ({'simulated at points' if grid.is_simulated else 'formula'})"
        value = np.ma.masked_invalid(grid.value.T / scale.factor)
        inside = {}
        if min(value.shape) > 1 and x.is_numeric and y.is_numeric:
            inside = {
                level: scale.text(level * scale.factor)
                for level in wanted or locator.tick_values(low, high)
                if value.min() < level < value.max()
            }
            if levels and not inside:
                title += f"\nno contour line at {', '.join(map(scale.text, sorted(levels)))}"
        series: list[Drawable] = [_ColorMap(keys, value, norm, inside)]
        for rows, style in (
            (~grid.is_marked.T & grid.is_simulated, _POINT_STYLE),
            (grid.is_marked.T, _CROSS_STYLE | {"color": "white", "markeredgewidth": 2.2}),
            (grid.is_marked.T, _CROSS_STYLE),
        ):
            drawn = rows & np.isfinite(grid.value.T)
            series.append(Series(across[drawn], up[drawn], style=style))
        y_axis = _key_axis(y)
        y_axis = y_axis if index % columns == 0 else replace(y_axis, label="")
        panels.append(Panel(series, _key_axis(x, 22), y_axis, title))
    figure = Chart(
        title=titles[0],
        subtitle=titles[1],
        panels=panels,
        size=(1.4 + 2.9 * columns, 0.9 + 2.7 * math.ceil(len(shown) / columns)),
        columns=columns,
        shared_axes="xy",
    ).draw()
    picture = figure.axes[0].collections[0]
    ticks = locator if log else None
    bar = figure.colorbar(picture, ax=figure.axes, label=label, ticks=ticks, format="{x:g}")
    bar.minorticks_off()
    if any(each.is_marked.any() for each in shown):
        figure.supxlabel(f"x  {_DOUBTED_LABEL}", fontsize=8, color="#444444")
    return figure
