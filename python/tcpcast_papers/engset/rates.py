"""Sections 5.1 and 5.2: Figures 8 to 10 and Table 4, connection rates without losses."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast_papers import drawing
from tcpcast_papers.engset import published
from tcpcast_papers.engset.sample import interval_reader
from tcpcast_papers.engset.settings import read_setting
from tcpcast_papers.engset.theory import solve_model, with_load
from tcpcast_papers.reproduction import Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from matplotlib.axes import Axes
    from tcpcast.models.engset import EngsetResult

    from tcpcast_papers.engset.runs import Runs, SampleSizes
    from tcpcast_papers.engset.sample import Read
    from tcpcast_papers.engset.settings import Setting
    from tcpcast_papers.reproduction import Section

LOADS = (0.4, 0.6, 0.8, 1.0, 1.2, 1.4)
"""Open-loop loads of Figure 8."""

WINDOW_LOADS = (0.8, 1.0, 1.2)
"""Open-loop loads of Figures 9 and 10."""

EE_DISTRIBUTIONS = {5: "EE(3.9)", 12: "EE(7)"}
"""The distributions with an exponential tail; the paper gives c only for these two mean sizes."""

REDUCED_WINDOW = {5: 12, 12: 12, 22: 12, 36: 16, 80: 32}
"""Smallest receiver window of the paper with the same ON0 as 44 packets, by mean file size F. For F
= 120 it is 44 packets."""

_FIGURE8_SIZES = {
    "2M1G": (5, 12, 22),
    "10M2M": (5, 12, 22, 36, 80, 120),
    "10M1G": (5, 12, 22, 36, 80, 120),
}
_FIGURE8_SPARSE_SIZES = {"2M1G": (12,), "10M2M": (12, 36), "10M1G": (5, 22, 120)}


def setting_with_window_and_load(
    mean_size_pkts: int, distribution: str, window: int, load: float
) -> Setting:
    """Return a setting of section 5.2: 10M1G-R50 without a buffer limit."""
    return with_load(read_setting(f"F{mean_size_pkts}-N1-10M1G-R50-{distribution}-W{window}"), load)


def _figure8_settings(sample_sizes: SampleSizes) -> list[list[Setting]]:
    """Return a list of settings per curve, one for each load."""
    grid = _FIGURE8_SPARSE_SIZES if sample_sizes.sparse else _FIGURE8_SIZES
    loads = LOADS[::2] if sample_sizes.sparse else LOADS
    rtts = (50,) if sample_sizes.sparse else (50, 100)
    return [
        [with_load(read_setting(f"F{size}-N1-{rates}-R{rtt}-E-W44"), load) for load in loads]
        for rates, sizes in grid.items()
        for rtt in rtts
        for size in sizes
    ]


def request(runs: Runs) -> None:
    """Request the settings of Figures 8 to 10 and Table 4."""
    for curve in _figure8_settings(runs.sample_sizes):
        runs.request(curve)
    for size in (*REDUCED_WINDOW, 120):
        windows = {44, REDUCED_WINDOW.get(size, 44)}
        runs.request(
            setting_with_window_and_load(size, distribution, window, load)
            for distribution in [
                "E",
                "EP",
                *([EE_DISTRIBUTIONS[size]] if size in EE_DISTRIBUTIONS else []),
            ]
            for window in windows
            for load in WINDOW_LOADS
        )
    runs.request(_settings_with_printed_values(), checked=True, plotted=False)


def _settings_with_printed_values() -> Iterator[Setting]:
    """Return the settings whose values the paper prints: of Table 4 and of the model's errors."""
    for window in (44, 12):
        yield setting_with_window_and_load(12, "EP", window, 1.0)
        for load in WINDOW_LOADS:
            yield setting_with_window_and_load(12, "EE(7)", window, load)


def _simulated_rate_bps(runs: Runs, each: Setting) -> float:
    return runs[each]["connection_rate_bps"]


def _figure8(runs: Runs, folder: Path) -> Section:
    section = runs.section(
        "Figure 8. Error of the calculated connection rate as a function of load",
        ("load", "quantity"),
    )
    for name in _RATES:
        for load in LOADS:
            label = (f"{100 * load:.0f} %", f"mean error of {name}")
            section.rows += runs.row(label, _mean_error_row, runs, name, load, label)
    figure, panels = drawing.create_panels(2, width=5.0, share_y=True)
    for name, style in zip(("h1", "h2"), drawing.series_styles(), strict=False):
        _draw_points_and_trend(panels[0], _error_points(runs, name), name, style)
    _draw_points_and_trend(
        panels[1], _error_points(runs, "h"), "h, their mean", {"color": "#009E73", "marker": "^"}
    )
    for axes in panels:
        axes.axhline(0, color=drawing.REFERENCE_COLOUR, linewidth=0.8)
        axes.set_xlabel("open-loop load (%)")
        axes.legend(frameon=False)
    panels[0].set_ylabel("model minus simulation (%)")
    section.figures.append(drawing.Plot(figure, folder / "figure08.png"))
    section.remarks = [
        "The paper prints no numbers. It states that h1 is slightly too high and h2 slightly too "
        "low, that their mean h is the most accurate, and that the errors decrease with increasing "
        "load. h2 is undefined if the link carries all sources at their peak rate (N <= s).",
    ]
    return section


_RATES: dict[str, Callable[[EngsetResult], float | None]] = {
    "h1": lambda result: result.sharing.rate1_bps,
    "h2": lambda result: result.sharing.rate2_bps,
    "h": lambda result: result.rate_bps,
}
"""Rates of the model by the paper's symbol; None where a rate is undefined."""


def _error_points(runs: Runs, name: str, load: float | None = None) -> list[tuple[float, float]]:
    """Return load and error of a rate for each point, in %, or for those nearest to a load."""
    points = []
    for each in (each for curve in _figure8_settings(runs.sample_sizes) for each in curve):
        result = solve_model(each)
        rate = _RATES[name](result)
        nearest = min(LOADS, key=lambda other: abs(result.offered_load - other))
        if rate is not None and result.can_overload_link and load in {None, nearest}:
            error = 100 * (rate / _simulated_rate_bps(runs, each) - 1)
            points.append((100 * result.offered_load, error))
    return points


def _mean_error_row(runs: Runs, name: str, load: float, label: tuple[str, ...]) -> Row | None:
    points = _error_points(runs, name, load)
    if not points:
        return None
    return Row(label, "%", None, float(np.mean([error for _, error in points])))


def _draw_points_and_trend(
    axes: Axes, points: list[tuple[float, float]], name: str, style: dict[str, Any]
) -> None:
    load, error = np.array(points).T
    axes.plot(load, error, linestyle="none", markersize=3.5, label=name, alpha=0.75, **style)
    nearest = np.abs(load[:, None] - 100 * np.array(LOADS)).argmin(axis=1)
    used = np.unique(nearest)
    middles, means = (
        [100 * LOADS[i] for i in used],
        [float(error[nearest == i].mean()) for i in used],
    )
    axes.plot(middles, means, color=style["color"], linewidth=1.6)


_SettingPair = tuple["Setting", "Setting"]


def _setting_pairs(
    names: tuple[str, ...], windows: dict[int, int], base: str = ""
) -> dict[str, dict[int, list[_SettingPair]]]:
    """Return settings and base settings by distribution and mean size, one pair for each load.

    ``windows`` has the receiver window by mean size. The base setting has a window of 44 packets,
    and the distribution ``base`` (default: the same distribution).
    """
    result: dict[str, dict[int, list[_SettingPair]]] = {name: {} for name in names}
    for name, (size, window) in product(names, windows.items()):
        distribution = EE_DISTRIBUTIONS.get(size) if name == "EE" else name
        if distribution is not None:
            result[name][size] = [
                (
                    setting_with_window_and_load(size, distribution, window, load),
                    setting_with_window_and_load(size, base or distribution, 44, load),
                )
                for load in WINDOW_LOADS
            ]
    return result


def _rate_change_percent(runs: Runs, pair: _SettingPair) -> float:
    changed, base = (_simulated_rate_bps(runs, each) for each in pair)
    return 100 * (changed / base - 1)


def _ratio_section(
    runs: Runs, title: str, pairs: dict[str, dict[int, list[_SettingPair]]], path: Path, y: str
) -> Section:
    """Return a section with the change of the rate for each pair, and its figure."""
    section = runs.section(title, ("distribution", "F", "load"))
    for distribution, curves in pairs.items():
        for size, each in curves.items():
            for load, pair in zip(WINDOW_LOADS, each, strict=True):
                label = (distribution, str(size), f"{100 * load:g} %")
                section.rows += runs.value(label, "%", _rate_change_percent, runs, pair)
    figure, axes = drawing.create_panels(len(pairs), width=3.9, share_y=True)
    for panel, (distribution, curves) in zip(axes, pairs.items(), strict=True):
        for (size, each), style in zip(curves.items(), drawing.series_styles(), strict=False):
            loads = [100 * load for load in WINDOW_LOADS]
            ratios = [100 + _rate_change_percent(runs, pair) for pair in each]
            panel.plot(loads, ratios, label=f"F = {size}", linewidth=1.4, markersize=5, **style)
        panel.axhline(100, color=drawing.REFERENCE_COLOUR, linewidth=0.8)
        panel.set_title(distribution, fontsize=10)
        panel.set_xlabel("open-loop load (%)")
        panel.set_xticks([100 * load for load in WINDOW_LOADS])
        panel.legend(frameon=False, fontsize=8)
    axes[0].set_ylabel(y)
    section.figures.append(drawing.Plot(figure, path))
    return section


def _figure9(runs: Runs, folder: Path) -> Section:
    section = _ratio_section(
        runs,
        "Figure 9. Connection rate with a reduced window, in % of that with WR = 44",
        _setting_pairs(("E", "EE", "EP"), REDUCED_WINDOW),
        folder / "figure09.png",
        "rate, % of WR = 44",
    )
    windows = ", ".join(f"F = {size}: {window}" for size, window in REDUCED_WINDOW.items())
    section.remarks = [
        f"Reduced windows are the smallest that do not change ON0 ({windows}). The paper gives the "
        "window only for F = 22: 12 packets. EE is plotted for the mean sizes with a printed c.",
        "With exponential sizes the window makes little difference. With longer tails a smaller "
        "window raises the mean rate, but less for larger F, as the paper states.",
    ]
    return section


def _figure10(runs: Runs, folder: Path) -> Section:
    section = _ratio_section(
        runs,
        "Figure 10. Connection rate in % of that with exponential sizes, WR = 44",
        _setting_pairs(("EE", "EP"), dict.fromkeys((*REDUCED_WINDOW, 120), 44), "E"),
        folder / "figure10.png",
        "rate, % of exponential sizes",
    )
    worst = -min(row.own or 0.0 for row in section.rows)
    section.remarks = [
        f"The rate falls by at most {worst:.0f} %. The paper's conclusion states up to 15 to "
        "20 %, decreasing with F.",
    ]
    return section


def _table4(runs: Runs, _: Path) -> Section:
    section = runs.section(
        published.published_table(4).title, ("distribution", "interval", "quantity")
    )
    for line in published.published_table(4):
        wide, low = (
            setting_with_window_and_load(12, line["distribution"], 44, 1.0),
            int(line["low_pkts"]),
        )
        label = (line["distribution"], published.interval_text(low, line.integer("high_pkts")))
        pairs = runs.sample(wide).paired(runs.sample(replace(wide, receiver_window_pkts=12)))
        shown = (
            ("files", "files_percent", runs.sample(wide), interval_reader(low, "share", 100)),
            ("ON time", "on_change_percent", pairs, interval_reader(low, "on_time_s")),
            (
                "queue seen",
                "queue_seen_change_percent",
                pairs,
                interval_reader(low, "queue_seen_mean_pkts"),
            ),
        )
        for name, column, sample, read in shown:
            section.rows += sample.rows((*label, name), "%", line.printed(column), read)
    section.remarks = [
        "The setting is F12-10M1G-R50-N80. The rows are changes of the ON time, and of the queue "
        "that a packet finds on arrival, from WR = 12 to WR = 44. Small files, which are nearly "
        "all files, wait longer behind the large windows of large files.",
    ]
    return section


def _prediction_error_reader(rate_bps: float) -> Read:
    """Return a function that reads the error of a predicted rate, in % of the simulated one."""
    return lambda answer: 100 * (rate_bps / answer["connection_rate_bps"] - 1)


def _model_errors(runs: Runs, _: Path) -> Section:
    section = runs.section(
        "Section 5.2. Error of the model for F12-10M1G-R50-EE(7)", ("window", "load", "quantity")
    )
    for window in (44, 12):
        for load in WINDOW_LOADS:
            each = setting_with_window_and_load(12, "EE(7)", window, load)
            section.rows += runs.sample(each).rows(
                (f"WR = {window}", f"{100 * load:.0f} %", "model minus simulation"),
                "%",
                published.value_printed_in_text(f"model_error_w{window}_{100 * load:.0f}"),
                _prediction_error_reader(solve_model(each).rate_bps),
                note=f"N = {each.sources}",
            )
    section.remarks = [
        "The model uses only the mean size. With WR = 44, large files fill the buffer in slow "
        "start, and all rates fall below the model. With WR = 12, which does not change ON0, the "
        "model is accurate.",
    ]
    return section


SECTIONS = (_figure8, _figure9, _figure10, _table4, _model_errors)
