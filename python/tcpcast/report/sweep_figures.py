"""Figures of a sweep: curves over one varied key, or heat maps with isolines over two keys."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tcpcast import output, units
from tcpcast.answer import UNITS
from tcpcast.errors import TcpcastError, UnitError
from tcpcast.metrics import HEADLINE_METRICS
from tcpcast.output import save_figure
from tcpcast.report.chart import (
    Axis,
    Band,
    Chart,
    IntervalLines,
    Panel,
    ReferenceLine,
    Series,
    new_figure,
    scenario_subtitle,
)
from tcpcast.report.chart_text import write_titles
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
from tcpcast.report.sweep_titles import sweep_figure_title as sweep_title
from tcpcast.scenario.table import did_you_mean_text
from tcpcast.sweeps.prepared import MAX_FIGURE_KEYS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tcpcast.report.chart import Drawable, Style
    from tcpcast.report.sweep_cells import MetricGrid, SweptKey
    from tcpcast.scenario import Scenario

    Levels = Mapping[str, Sequence[float]]

MAX_PANELS = 6
"""Maximum number of panels (engines) in a heat map."""
_MAX_PERCENT = 101.5
"""Upper end of an axis in per cent, which leaves space for a line at 100 %."""
_HEADROOM_SHARE = 0.09
"""Space above the largest value as a share of the axis."""
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
_DOUBTED_STYLE = {"linestyle": "none", "marker": "x", "color": REFERENCE, "markersize": 6}
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
                f"--level: {units.quote(text)} is not a level; write METRIC=VALUE, for example "
                "goodput_bps=50mbit"
            )
        if metric not in UNITS:
            near = did_you_mean_text(metric, UNITS)
            raise TcpcastError(
                f"--level: {units.quote(metric)} is not a metric{near}; write, for example, "
                "goodput_bps"
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
            f"{units.quote(text.strip())} is not a number; write, for example, 100"
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
        More than two keys vary; keys vary in parallel instead of in all combinations; or an
        existing file is not a figure of tcpcast.
    MachineError
        matplotlib is not installed, or the folder cannot be written.
    """
    if len(key_groups) > MAX_FIGURE_KEYS or any(len(group) > 1 for group in key_groups):
        keys = ", ".join(key for group in key_groups for key in group)
        raise TcpcastError(
            "--plot supports one or two keys that vary in all combinations, without zip and latin, "
            f"but these keys vary: {keys}; fix some of the keys with --set, or write the values "
            "with --out and plot them with another program"
        )
    names = [f"{metric}.{form}" for metric in dict.fromkeys((*HEADLINE_METRICS, *levels))]
    check_figure_files(folder, names, force=force)


def plot_sweep(  # noqa: PLR0913 - what to draw, and where to write it
    table: Any,
    keys: Mapping[str, str],
    folder: str | Path,
    *,
    subtitle: str = "",
    levels: Levels | None = None,
    form: str = "png",
    force: bool = False,
) -> list[Path]:
    """Write one figure for each main metric of a sweep, and for each metric with levels.

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
    folder
        Folder for the files, for example ``goodput_bps.png``.
    subtitle
        Scenario and varied keys, for the subtitle.
    levels
        Values of metrics, in their units, at which a line is drawn.
    form
        ``"png"``, ``"svg"`` or ``"pdf"``.
    force
        Overwrite existing files, even if tcpcast did not create them.

    Returns
    -------
    list of Path
        Paths of the files; empty if the sweep has no values.

    Raises
    ------
    MachineError
        matplotlib is not installed, or the folder cannot be written.
    """
    output.check_folder_is_writable(folder)
    return [
        save_figure(figure, Path(folder) / f"{metric}.{form}", force=force)
        for metric, figure in iter_sweep_figures(table, keys, subtitle, levels or {})
    ]


def iter_sweep_figures(
    table: Any, keys: Mapping[str, str], subtitle: str, levels: Levels
) -> Iterator[tuple[str, Figure]]:
    """Yield each metric with its figure, one at a time."""
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
            scale = scale_for_metric(metric, _largest_value(grids))
            draw = _color_map_figure if len(keys_of) == MAX_FIGURE_KEYS else _curve_figure
            at = levels.get(metric, ())
            heading = FigureHeading(
                sweep_title(metric, grids, list(axes.values()), scale, at), subtitle
            )
            yield metric, draw(heading, grids, keys_of, metric, scale, at)


class FigureHeading(NamedTuple):
    """The title and the subtitle of a figure."""

    title: str
    subtitle: str


def _largest_value(grids: Sequence[MetricGrid]) -> float:
    return float(np.max(np.abs(trusted_or_all_values(grids))))


def trusted_or_all_values(grids: Sequence[MetricGrid]) -> Any:
    """Return the finite trusted values, or all finite values if none is trusted."""
    values = np.concatenate([each.value.ravel() for each in grids])
    marks = np.concatenate([each.marks.ravel() for each in grids])
    finite = np.isfinite(values)
    trusted = finite & (marks != UNTRUSTED_MARK)
    return values[trusted if trusted.any() else finite]


def _unit_suffix(scale: Scale) -> str:
    return f" ({scale.unit})" if scale.unit else ""


def _curve_figure(  # noqa: PLR0913, PLR0917 - what to draw, and how
    heading: FigureHeading,
    grids: Sequence[MetricGrid],
    keys: Sequence[SweptKey],
    metric: str,
    scale: Scale,
    levels: Sequence[float],
) -> Figure:
    """Draw a metric over one key, one line per engine."""
    (x,) = keys
    series: list[Drawable] = []
    several = len({each.engine for each in grids}) > 1
    for each, style in zip(grids, _curve_styles(grids), strict=True):
        series += _curve_series(
            each, x, scale, style, f"{each.text_value},\n" if several else each.text_value
        )
    for level in levels:
        y_level = level / scale.factor
        style = {"linestyle": (0, (1, 2))}
        series.append(ReferenceLine(y_level, style=style, name=scale.text(level)))
    if any(each.is_marked.any() for each in grids):
        series.append(Series([], [], _DOUBTED_LABEL, _DOUBTED_STYLE))
    y = _value_axis(f"{metric_label(metric)}{_unit_suffix(scale)}", grids, levels, scale)
    panel = Panel(series, _key_axis(x), y)
    return Chart(
        title=heading.title, subtitle=heading.subtitle, panels=[panel], legend_position="below"
    ).draw()


def _curve_styles(grids: Sequence[MetricGrid]) -> list[Style]:
    """Return one style per curve: the colour shows the engine, or the value of a key of texts."""
    words = list(dict.fromkeys(each.text_value for each in grids))
    known = [stack_colour(word) for word in words]
    distinct = None not in known and len(set(known)) == len(words)
    styles = []
    for each in grids:
        style = engine_style(each.engine, is_observed=each.is_simulated)
        if each.text_value:
            index = words.index(each.text_value)
            style["color"] = known[index] if distinct else COLOURS[index % len(COLOURS)]
            if not each.is_simulated and len({one.engine for one in grids}) == 1:
                style["linestyle"] = line_style(index)["linestyle"]
        styles.append(style)
    return styles


def _value_axis(
    label: str, grids: Sequence[MetricGrid], levels: Sequence[float], scale: Scale
) -> Axis:
    """Return an axis from 0 with space above all values, logarithmic for a wide range."""
    values = trusted_or_all_values(grids)
    smallest = float(values.min())
    if smallest > 0 and values.max() / smallest >= LOG_SCALE_RATIO:
        return Axis(label, log=True)
    ends = [each.high[each.marks != UNTRUSTED_MARK] for each in grids]
    every = np.concatenate([values, levels, *ends])
    low = min(0.0, 1.05 * smallest)
    high = float(np.nanmax(every))
    top = (high + _HEADROOM_SHARE * (high - low)) / scale.factor
    if scale.unit == "%" and values.max() <= 1.0:
        top = min(top, _MAX_PERCENT)
    return Axis(label, low / scale.factor, top)


def _key_axis(key: SweptKey) -> Axis:
    positions, labels = key.ticks
    turned = not key.is_numeric and sum(map(len, labels)) > 40
    return Axis(
        key.axis_label, ticks=dict(zip(positions, labels, strict=True)), rotate_labels=turned
    )


def _curve_series(
    grid: MetricGrid, x: SweptKey, scale: Scale, style: Style, text_value: str
) -> Iterator[Drawable]:
    """Yield the values of one engine with intervals, and crosses on values with a warning.

    Formulas are lines without points; simulations have points. Points are not connected if the
    values of the key are texts.
    """
    value, low, high = (part / scale.factor for part in (grid.value, grid.low, grid.high))
    kind = "simulated" if grid.is_simulated else "formula"
    name = f"{grid.engine}\n({kind})"
    if grid.text_value:
        name = f"{text_value}{grid.engine}" if text_value.endswith("\n") else text_value
    if grid.is_simulated:
        style |= {"markersize": 5, "linewidth": 0.8, "linestyle": "-" * x.is_numeric}
    elif not x.is_numeric:
        style |= {"marker": "_", "linestyle": ""}
    known = np.isfinite(low) & np.isfinite(high)
    if known.any():
        colour = {"color": style["color"]}
        bars = {"linewidth": 1, "label": "95 % intervals of simulations"}
        if x.is_numeric:
            yield Band(x.positions, low, high, style=colour | {"alpha": 0.25})
        yield IntervalLines(x.positions[known], low[known], high[known], colour | bars)
    text = {"name": name} if x.is_numeric else {"label": name.replace("\n", " ")}
    yield Series(x.positions, value, style=style, **text)
    doubted = grid.is_marked & np.isfinite(value)
    yield Series(x.positions[doubted], value[doubted], style=_DOUBTED_STYLE)


def _color_map_figure(  # noqa: PLR0913, PLR0917 - what to draw, and how
    heading: FigureHeading,
    grids: Sequence[MetricGrid],
    keys: Sequence[SweptKey],
    metric: str,
    scale: Scale,
    levels: Sequence[float],
) -> Figure:
    """Draw a metric over two keys, one panel per engine, with a common colour scale."""
    from matplotlib.colors import LogNorm, Normalize  # noqa: PLC0415 - optional, slow to import

    shown = grids[:MAX_PANELS]
    columns = min(len(shown), 2)
    rows = math.ceil(len(shown) / columns)
    size = 1.4 + 2.9 * columns, 0.9 + 2.7 * rows
    figure = new_figure(size)
    write_titles(figure, heading.title, heading.subtitle)
    panels = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    values = trusted_or_all_values(shown) / scale.factor
    low, high = float(values.min()), float(values.max())
    log = low > 0 and high / low >= LOG_SCALE_RATIO
    norm: Any = (LogNorm if log else Normalize)(low, high if high > low else low + 1)
    picture: Any = None
    for each, axes in zip(shown, panels.flat, strict=False):
        picture = _map_panel(axes, each, keys, scale, norm)
        _draw_isolines(axes, each, keys, scale, levels, norm, log=log)
    for axes in panels.flat[len(shown) :]:
        axes.set_visible(False)
    for axes in panels[:, 0]:
        axes.set_ylabel(keys[1].axis_label)
    figure.colorbar(
        picture, ax=panels, label=f"{metric_label(metric)}{_unit_suffix(scale)}", format="{x:g}"
    )
    if any(each.is_marked.any() for each in shown):
        figure.supxlabel(f"x  {_DOUBTED_LABEL}", fontsize=8, color="#444444")
    return figure


def _map_panel(
    axes: Axes, grid: MetricGrid, keys: Sequence[SweptKey], scale: Scale, norm: Any
) -> Any:
    x, y = keys
    axes.set_facecolor("#dddddd")  # grey for cells without a value
    value = np.ma.masked_invalid(grid.value.T / scale.factor)
    picture = axes.pcolormesh(x.edges, y.edges, value, cmap="cividis", norm=norm)
    across, up = np.meshgrid(x.positions, y.positions)
    known = np.isfinite(grid.value.T)
    if grid.is_simulated:
        sure = known & ~grid.is_marked.T
        axes.plot(across[sure], up[sure], "o", color="white", markersize=2.5, mec="black", mew=0.4)
    doubted = known & grid.is_marked.T
    axes.plot(across[doubted], up[doubted], "x", color="white", markersize=5, mew=2.2)
    axes.plot(across[doubted], up[doubted], "x", color="black", markersize=4.5, mew=0.9)
    kind = "simulated at points" if grid.is_simulated else "formula"
    axes.set_title(f"{grid.engine} ({kind})", fontsize=10)
    _key_axis(x).apply(axes, "x")
    axes.set_yticks(*y.ticks)
    return picture


def _draw_isolines(  # noqa: PLR0913, PLR0917 - what to draw, and how
    axes: Axes,
    grid: MetricGrid,
    keys: Sequence[SweptKey],
    scale: Scale,
    levels: Sequence[float],
    norm: Any,
    *,
    log: bool,
) -> None:
    """Draw isolines of a metric, interpolated between the centres of the cells."""
    from matplotlib.patheffects import withStroke  # noqa: PLC0415 - optional, slow to import
    from matplotlib.ticker import LogLocator, MaxNLocator  # noqa: PLC0415

    x, y = keys
    if min(grid.value.shape) < 2 or not (x.is_numeric and y.is_numeric):
        return
    value = np.ma.masked_invalid(grid.value.T / scale.factor)
    wanted = np.array(sorted(levels)) / scale.factor
    if not len(wanted):
        locator = LogLocator(subs=(1, 2, 5)) if log else MaxNLocator(_DEFAULT_ISOLINES)
        wanted = np.asarray(locator.tick_values(norm.vmin, norm.vmax))
    inside = [level for level in wanted if value.min() < level < value.max()]
    if not inside:
        requested = ", ".join(map(scale.text, sorted(levels)))
        missing = f"\nno contour line at {requested}" if levels else ""
        axes.set_xlabel(f"{x.axis_label}{missing}")
        return
    # Over several decades, logarithms are closer to linear between two cells.
    surface, at = (np.ma.log10(value), np.log10(inside)) if log else (value, np.array(inside))
    lines = axes.contour(
        x.positions, y.positions, surface, levels=at, colors=_ISOLINE_COLOUR, linewidths=1.3
    )
    outline: list[Any] = [withStroke(linewidth=3, foreground=_ISOLINE_OUTLINE_COLOUR)]
    lines.set_path_effects(outline)
    texts = {a: scale.text(b * scale.factor) for a, b in zip(at, inside, strict=True)}
    for text in axes.clabel(lines, fmt=texts, fontsize=8):
        text.set_path_effects(outline)
