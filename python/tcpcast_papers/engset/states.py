"""Figure 11: the number of active sources, and how they share the link."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from tcpcast.models.engset import shared_rate_bps

from tcpcast_papers import drawing
from tcpcast_papers.engset.settings import read_setting
from tcpcast_papers.engset.theory import solve_model, with_load

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

    from tcpcast_papers.engset.runs import Runs, SampleSizes
    from tcpcast_papers.engset.settings import Setting
    from tcpcast_papers.reproduction import Section

_VARIANTS_OF_SIZE = {
    5: (("E", 44), ("EE(3.9)", 44), ("EE(3.9)", 12), ("EP", 44), ("EP", 12)),
    12: (("E", 44), ("EE(7)", 44), ("EE(7)", 12), ("EP", 44), ("EP", 12)),
    120: (("E", 44), ("EP", 44)),
}
_PATH_OF_SIZE = {5: "10M1G-R50", 12: "10M2M-R50", 120: "10M1G-R50"}
_MIN_SAMPLES = 10
"""The paper shows the shared capacity of a state only if it has more samples than this."""


def _mean_sizes_pkts(sample_sizes: SampleSizes) -> tuple[int, ...]:
    return (12,) if sample_sizes.sparse else tuple(_PATH_OF_SIZE)


def _settings_of_figure_row(size: int) -> list[Setting]:
    """Return the settings of one row of the figure, the exponential one first."""
    base = with_load(read_setting(f"F{size}-N1-{_PATH_OF_SIZE[size]}-E-W44"), 1.0)
    return [
        replace(base, distribution=distribution, receiver_window_pkts=w)
        for distribution, w in _VARIANTS_OF_SIZE[size]
    ]


def request(runs: Runs) -> None:
    """Request each size distribution and window at an open-loop load of 100 %."""
    for size in _mean_sizes_pkts(runs.sample_sizes):
        runs.request(_settings_of_figure_row(size))


def _figure11(runs: Runs, folder: Path) -> Section:
    sizes = _mean_sizes_pkts(runs.sample_sizes)
    section = runs.section(
        "Figure 11. State probabilities and capacity sharing", ("setting", "quantity")
    )
    figures = [_settings_of_figure_row(size) for size in sizes]
    for variants in figures:
        for each in variants:
            label = (each.name, "time in other states than in the model")
            section.rows += runs.value(label, "%", _distance_percent, runs, each, variants[0])
    figure, panels = drawing.create_panels(2, len(sizes), width=5.2, height=3.7)
    for row, variants in enumerate(figures):
        _draw_states(panels[2 * row], runs, variants)
        _draw_sharing(panels[2 * row + 1], runs, variants)
    section.figures.append(drawing.Plot(figure, folder / "figure11.png"))
    section.remarks = [
        "The available text does not contain the settings of the paper's plot. The settings here "
        "have its open-loop load of 100 %. The paper prints no numbers. A source is active from "
        "the arrival of its first packet at the first shared link.",
        "With exponential sizes model and simulation agree over the whole range. Longer tails with "
        "a large window shift the distribution to more active sources, and a smaller window shifts "
        "it back. The rate of an active source falls with the number of active sources j, but less "
        "abruptly than min(h0, C/j).",
    ]
    return section


def _distance_percent(runs: Runs, each: Setting, modelled: Setting) -> float:
    """Return the total variation distance of the simulated states from the model's, in %."""
    expected = solve_model(modelled).probability
    table = runs[each].tables["states"]
    seen = np.zeros(len(expected))
    seen[table["active"].astype(int)] = table["probability"]
    return 50 * float(np.abs(seen - expected).sum())


def _draw_states(axes: Axes, runs: Runs, variants: list[Setting]) -> None:
    result = solve_model(variants[0])
    j = np.arange(variants[0].sources + 1)
    axes.plot(
        *drawing.positive_points(j, result.probability), color="black", linewidth=1.4, label="model"
    )
    right = 0.0
    for each, style in zip(variants, drawing.series_styles(), strict=False):
        table = runs[each].tables["states"]
        x, y = drawing.positive_points(table["active"], table["probability"])
        right = max(right, float(x[y > 1e-6].max()))
        axes.plot(x, y, linestyle="none", markersize=2.6, label=each.size_and_window, **style)
    drawing.set_tail_axes(axes, right=1.03 * right)
    shown = f"s = {result.isolated.servers:.1f}, beta = {result.path.beta:.1f}"
    axes.set_title(f"{_panel_title(variants[0])}: {shown}", fontsize=9)
    axes.set(xlabel="active sources j", ylabel="share of time with j active")
    axes.legend(frameon=False, fontsize=7)


def _draw_sharing(axes: Axes, runs: Runs, variants: list[Setting]) -> None:
    result = solve_model(variants[0])
    right = 0.0
    for each, style in zip(variants, drawing.series_styles(), strict=False):
        table = runs[each].tables["states"]
        seen = (table["active"] > 0) & (table["deaths"] > _MIN_SAMPLES)
        x, y = table["active"][seen], 1e-3 * table["shared_rate_bps"][seen]
        right = max(right, float(x.max(initial=1)))
        axes.plot(x, y, linestyle="none", markersize=2.6, label=each.size_and_window, **style)
    j = np.arange(1, right + 1)
    shared = shared_rate_bps(
        active=j, peak_bps=result.isolated.rate_bps, link_bps=result.path.bottleneck_bps
    )
    axes.plot(j, 1e-3 * shared, color="black", linewidth=1.4, label="model")
    axes.set(ylim=(0, 1.5e-3 * result.isolated.rate_bps), xlim=(0, 1.03 * right))
    axes.set_title(f"{_panel_title(variants[0])}: capacity sharing", fontsize=9)
    axes.set(xlabel="active sources j", ylabel="rate of each (kbit/s)")
    axes.legend(frameon=False, fontsize=7)


def _panel_title(each: Setting) -> str:
    return "-".join(
        t for t in each.name.split("-") if t != each.distribution and not t.startswith("W")
    )


SECTIONS = (_figure11,)
