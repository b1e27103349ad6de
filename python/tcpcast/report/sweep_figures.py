"""Figures of a sweep: curves along one key that varies, heat maps with isolines over two."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast import output, units
from tcpcast.answer import UNITS
from tcpcast.errors import TcpcastError, UnitError
from tcpcast.metrics import HEADLINE
from tcpcast.output import save_figure
from tcpcast.report.chart import (
    REFERENCE,
    Axis,
    Band,
    Chart,
    Note,
    Panel,
    Reference,
    Series,
    Uprights,
    figure_class,
    styles,
)
from tcpcast.report.quantity import Scale, label, scale_of
from tcpcast.report.sweep_cells import WIDE, along, by_word, cells
from tcpcast.scenario.table import suggestion
from tcpcast.sweeps.definition import MAX_KEYS
from tcpcast.units import digits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tcpcast.report.chart import Drawable, Style
    from tcpcast.report.sweep_cells import Along, Cells

    Levels = Mapping[str, Sequence[float]]

MOST_PANELS = 6
"""Engines that a heat map has panels for."""
_DPI = 150
_ABOVE = 0.09
"""Room above the largest value, as a share of the axis."""
_LINES = 5
"""Isolines about, where none is asked for."""
_READ: dict[str, Callable[[str], float]] = {
    "bit/s": units.parse_rate,
    "s": units.parse_duration,
    "1": units.parse_ratio,
    "packet": units.parse_packets,
}
"""How a level of a metric is written, by its unit; without one it is a number."""
_CROSS = {"linestyle": "none", "marker": "x", "color": REFERENCE, "markersize": 6}
_BEYOND = "outside the domain, no steady state, or no certain interval"


def read_levels(typed: Iterable[str]) -> dict[str, list[float]]:
    """Read levels of metrics, as ``goodput_bps=50mbit,20mbit``.

    Returns
    -------
    dict
        The levels by metric, in its unit.

    Raises
    ------
    TcpcastError
        No such metric, or no value of its unit; the message says what to write instead.
    """
    found: dict[str, list[float]] = {}
    for text in typed:
        metric, equals, values = (part.strip() for part in text.partition("="))
        if not equals or not values:
            raise TcpcastError(
                f"--level: {units.show(text)} is no level; write METRIC=VALUE, such as "
                "goodput_bps=50mbit"
            )
        if metric not in UNITS:
            near = suggestion(metric, UNITS)
            raise TcpcastError(
                f"--level: {units.show(metric)} is no metric{near}; write goodput_bps, say"
            )
        read = _READ.get(UNITS[metric], _number)
        try:
            found.setdefault(metric, []).extend(read(value) for value in values.split(","))
        except ValueError as fault:
            raise TcpcastError(f"--level {metric}: {fault}") from None
    return found


def _number(typed: str) -> float:
    try:
        return float(typed)
    except ValueError:
        raise UnitError(f"{units.show(typed.strip())} is no number; write 100, say") from None


def check_sweep_figures(
    groups: Sequence[Sequence[str]],
    folder: str | Path,
    levels: Levels,
    form: str,
    *,
    force: bool = False,
) -> None:
    """Refuse, before the work, a sweep that has no figures, and a folder that they cannot go to.

    ``groups`` are the keys that vary, those together that go side by side.

    Raises
    ------
    TcpcastError
        Neither one nor two keys vary in all combinations, or a file is already there that is no
        figure of tcpcast.
    MachineError
        matplotlib is not installed, or the folder cannot be written.
    """
    if len(groups) > MAX_KEYS or any(len(group) > 1 for group in groups):
        keys = ", ".join(key for group in groups for key in group)
        raise TcpcastError(
            f"--plot draws one or two keys that vary in all combinations, not {keys} (zip and "
            "latin draw no map); set the others by --set, or draw what --out writes"
        )
    figure_class()
    output.check_folder(folder)
    for metric in dict.fromkeys((*HEADLINE, *levels)):
        path = Path(folder) / f"{metric}.{form}"
        output.check_file(path, kind=output.FIGURES[form], force=force)


def plot_sweep(  # noqa: PLR0913 - what is drawn, and where to
    table: Any,
    keys: Mapping[str, tuple[str, str]],
    folder: str | Path,
    *,
    name: str = "sweep",
    levels: Levels | None = None,
    form: str = "png",
    force: bool = False,
) -> list[Path]:
    """Write a figure for each leading metric of a sweep, and for those that have levels.

    Over one key a line an engine, with intervals as bands; over two a heat map an engine, with
    isolines, or, where one of them has words, a line for each of these. Formulas are lines without
    points, simulations have points.

    Parameters
    ----------
    table
        The rows, a ``pyarrow.Table``.
    keys
        One key or two that vary, each with what its column holds and its unit.
    folder
        Where the files go: ``goodput_bps.png`` and so on.
    name
        The scenario's.
    levels
        Values of metrics, in their units, at which a line is drawn.
    form
        ``"png"``, ``"svg"`` or ``"pdf"``.
    force
        Whether files that are no figures of tcpcast are replaced, too.

    Returns
    -------
    list of Path
        The files written; empty if nothing was answered.

    Raises
    ------
    MachineError
        matplotlib is not installed, or the folder cannot be written.
    """
    output.check_folder(folder)
    return [
        save_figure(figure, Path(folder) / f"{metric}.{form}", force=force)
        for metric, figure in drawn_sweep(table, keys, name, levels or {})
    ]


def drawn_sweep(
    table: Any, keys: Mapping[str, tuple[str, str]], name: str, levels: Levels
) -> Iterator[tuple[str, Figure]]:
    """Yield a metric and its figure, one at a time."""
    columns = table.to_pydict()
    if not columns:
        return
    axes = {key: along(key, columns[key], *holds) for key, holds in keys.items()}
    for metric in dict.fromkeys((*HEADLINE, *levels)):
        found = cells(columns, metric, axes) if metric in columns else []
        if found:
            keys_of = list(axes.values())
            curves = by_word(found, keys_of)
            if curves:
                found, keys_of = curves, [key for key in keys_of if key.quantities]
            scale = scale_of(metric, _largest(found))
            draw = _map if len(keys_of) == MAX_KEYS else _curves
            title = f"{name}: {label(metric)}"
            yield metric, draw(title, found, keys_of, metric, scale, levels.get(metric, ()))


def _largest(found: Sequence[Cells]) -> float:
    return max(float(np.nanmax(np.abs(each.value))) for each in found)


def _unit(scale: Scale) -> str:
    return f" ({scale.unit})" if scale.unit else ""


def _curves(  # noqa: PLR0913, PLR0917 - what is drawn, and how
    title: str,
    found: Sequence[Cells],
    keys: Sequence[Along],
    metric: str,
    scale: Scale,
    levels: Sequence[float],
) -> Figure:
    """Draw a metric along one key, a line an engine."""
    (x,) = keys
    series: list[Drawable] = []
    for each, style in zip(found, styles(each.simulated for each in found), strict=False):
        series += _curve(each, x, scale, style)
    for level in levels:
        at = level / scale.factor
        series.append(Reference(at, style={"linestyle": (0, (1, 2))}))
        words = f"{digits(at, 4)} {scale.unit}".rstrip()
        style = {"ha": "right", "va": "bottom", "fontsize": 8}
        series.append(Note(words, (0.99, at), ("axes fraction", "data"), style))
    if any(each.doubted.any() for each in found):
        series.append(Series([], [], _BEYOND, _CROSS))
    y = _value_axis(f"{label(metric)}{_unit(scale)}", found, levels, scale)
    return Chart(title=title, panels=[Panel(series, _key_axis(x), y)]).draw()


def _value_axis(label: str, found: Sequence[Cells], levels: Sequence[float], scale: Scale) -> Axis:
    """Return an axis from 0 with room above all values, logarithmic if they are far apart."""
    values = np.concatenate([each.value for each in found])
    values = values[np.isfinite(values)]
    least = float(values.min())
    if least > 0 and values.max() / least >= WIDE:
        return Axis(label, log=True)
    every = np.concatenate([values, levels, *(each.high for each in found)])
    low = min(0.0, 1.05 * least)
    most = float(np.nanmax(every))
    return Axis(label, low / scale.factor, (most + _ABOVE * (most - low)) / scale.factor)


def _key_axis(key: Along) -> Axis:
    places, labels = key.ticks
    turned = not key.quantities and sum(map(len, labels)) > 40
    return Axis(key.title, ticks=dict(zip(places, labels, strict=True)), turned=turned)


def _curve(each: Cells, x: Along, scale: Scale, style: Style) -> Iterator[Drawable]:
    """Yield one engine's values with their intervals; crosses are on those in doubt.

    Formulas are lines without points, simulations have points; words are not joined.
    """
    value, low, high = (part / scale.factor for part in (each.value, each.low, each.high))
    said = f"{each.engine} ({'simulated' if each.simulated else 'formula'})"
    if each.simulated:
        style |= {"markersize": 5, "linewidth": 0.8, "linestyle": "-" * x.quantities}
    elif not x.quantities:
        style |= {"marker": "_", "linestyle": ""}
    known = np.isfinite(low) & np.isfinite(high)
    if known.any():
        said = f"{each.engine} (simulated), 95 % intervals"
        colour = {"color": style["color"]}
        if x.quantities:
            yield Band(x.places, low, high, style=colour | {"alpha": 0.25})
        yield Uprights(x.places[known], low[known], high[known], colour | {"linewidth": 1})
    yield Series(x.places, value, said, style)
    doubted = each.doubted & np.isfinite(value)
    yield Series(x.places[doubted], value[doubted], style=_CROSS)


def _map(  # noqa: PLR0913, PLR0917 - what is drawn, and how
    title: str,
    found: Sequence[Cells],
    keys: Sequence[Along],
    metric: str,
    scale: Scale,
    levels: Sequence[float],
) -> Figure:
    """Draw a metric over two keys, a panel an engine, all of one scale of colours."""
    from matplotlib.colors import LogNorm, Normalize  # noqa: PLC0415 - optional, slow to import

    shown = found[:MOST_PANELS]
    columns = min(len(shown), 3)
    rows = math.ceil(len(shown) / columns)
    size = 1.6 + 3.8 * columns, 0.9 + 3.3 * rows
    figure = figure_class()(figsize=size, dpi=_DPI, layout="constrained")
    figure.suptitle(title, fontsize=12)
    panels = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    values = np.concatenate([each.value.ravel() for each in shown]) / scale.factor
    least, most = float(np.nanmin(values)), float(np.nanmax(values))
    log = least > 0 and most / least >= WIDE
    norm: Any = (LogNorm if log else Normalize)(least, most if most > least else least + 1)
    picture: Any = None
    for each, axes in zip(shown, panels.flat, strict=False):
        picture = _panel(axes, each, keys, scale, norm)
        _isolines(axes, each, keys, scale, levels, norm, log=log)
    for axes in panels.flat[len(shown) :]:
        axes.set_visible(False)
    for axes in panels[:, 0]:
        axes.set_ylabel(keys[1].title)
    figure.colorbar(picture, ax=panels, label=f"{label(metric)}{_unit(scale)}", format="{x:g}")
    if any(each.doubted.any() for each in shown):
        figure.supxlabel(f"x  {_BEYOND}", fontsize=8, color="#444444")
    return figure


def _panel(axes: Axes, each: Cells, keys: Sequence[Along], scale: Scale, norm: Any) -> Any:
    x, y = keys
    axes.set_facecolor("#dddddd")  # where nothing was answered
    value = np.ma.masked_invalid(each.value.T / scale.factor)
    picture = axes.pcolormesh(x.edges, y.edges, value, cmap="cividis", norm=norm)
    across, up = np.meshgrid(x.places, y.places)
    known = np.isfinite(each.value.T)
    if each.simulated:
        sure = known & ~each.doubted.T
        axes.plot(across[sure], up[sure], "o", color="white", markersize=2.5, mec="black", mew=0.4)
    doubted = known & each.doubted.T
    axes.plot(across[doubted], up[doubted], "x", color="white", markersize=5, mew=2.2)
    axes.plot(across[doubted], up[doubted], "x", color="black", markersize=4.5, mew=0.9)
    kind = "simulated: points" if each.simulated else "formula"
    axes.set_title(f"{each.engine} ({kind})", fontsize=10)
    _key_axis(x).apply(axes, "x")
    axes.set_yticks(*y.ticks)
    return picture


def _isolines(  # noqa: PLR0913, PLR0917 - what is drawn, and how
    axes: Axes,
    each: Cells,
    keys: Sequence[Along],
    scale: Scale,
    levels: Sequence[float],
    norm: Any,
    *,
    log: bool,
) -> None:
    """Draw where a metric has certain values, between the centres of the cells."""
    from matplotlib.patheffects import withStroke  # noqa: PLC0415 - optional, slow to import
    from matplotlib.ticker import LogLocator, MaxNLocator  # noqa: PLC0415

    x, y = keys
    if min(each.value.shape) < 2 or not (x.quantities and y.quantities):
        return
    value = np.ma.masked_invalid(each.value.T / scale.factor)
    wanted = np.array(sorted(levels)) / scale.factor
    if not len(wanted):
        locator = LogLocator(subs=(1, 2, 5)) if log else MaxNLocator(_LINES)
        wanted = np.asarray(locator.tick_values(norm.vmin, norm.vmax))
    there = [level for level in wanted if value.min() < level < value.max()]
    if not there:
        axes.set_xlabel(f"{x.title}\n{_nowhere(wanted.tolist(), scale)}" if levels else x.title)
        return
    # Of values that span decades the logarithm is the straighter between two cells.
    surface, at = (np.ma.log10(value), np.log10(there)) if log else (value, np.array(there))
    drawn = axes.contour(x.places, y.places, surface, levels=at, colors="black", linewidths=1.3)
    outline: list[Any] = [withStroke(linewidth=3, foreground="white")]
    drawn.set_path_effects(outline)
    words = {a: f"{digits(b, 4)} {scale.unit}".rstrip() for a, b in zip(at, there, strict=True)}
    for text in axes.clabel(drawn, fmt=words, fontsize=8):
        text.set_path_effects(outline)


def _nowhere(levels: Sequence[float], scale: Scale) -> str:
    said = ", ".join(f"{digits(level, 4)} {scale.unit}".rstrip() for level in levels)
    return f"{said}: nowhere here"
