"""Section 5.4.2: Figure 12, Table 6 and Figure 13: queue and loss with a buffer of 200 packets."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tcpcast_papers import drawing
from tcpcast_papers.engset import published
from tcpcast_papers.engset.comparison_rows import printed_average_rows, theory_rows
from tcpcast_papers.engset.sample import metric_reader
from tcpcast_papers.engset.settings import read_setting
from tcpcast_papers.engset.theory import solve_model, with_load
from tcpcast_papers.reproduction import Row, scale_metric

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes
    from tcpcast.answer import Answer, Metric

    from tcpcast_papers.engset.runs import Runs
    from tcpcast_papers.engset.settings import Setting
    from tcpcast_papers.reproduction import Section

BUFFER_PKTS = 200
_TABLE6_SOURCES = (82, 98, 115, 134)
_MODERATE_LOAD_SOURCES = 66


def _table6_setting(distribution: str, sources: int) -> Setting:
    return read_setting(f"F12-N{sources}-10M2M-R50-{distribution}-W44-B{BUFFER_PKTS}")


def _figure12_panels() -> list[list[Setting]]:
    first = read_setting(f"F12-N82-10M2M-R50-E-W44-B{BUFFER_PKTS}")
    second = with_load(read_setting(f"F36-N1-10M1G-R50-E-W44-B{BUFFER_PKTS}"), 1.0)
    return [
        _settings_by_distribution(
            first, (("E", 44), ("EE(7)", 44), ("EE(7)", 12), ("EP", 44), ("EP", 12))
        ),
        _settings_by_distribution(second, (("E", 44), ("E", 16), ("EP", 44), ("EP", 16))),
    ]


def _figure13_panels() -> list[list[Setting]]:
    distributions = (("E", 44), ("EE(7)", 44), ("EE(7)", 12))
    return [
        _settings_by_distribution(_table6_setting("E", sources), distributions)
        for sources in (_MODERATE_LOAD_SOURCES, 98)
    ]


def _settings_by_distribution(
    base: Setting, distributions: tuple[tuple[str, int], ...]
) -> list[Setting]:
    return [
        replace(base, distribution=distribution, receiver_window_pkts=window)
        for distribution, window in distributions
    ]


def request(runs: Runs) -> None:
    """Request the settings of Table 6 and Figures 12 and 13."""
    runs.request(
        (
            _table6_setting(distribution, n)
            for distribution in ("E", "EE(7)")
            for n in _TABLE6_SOURCES
        ),
        checked=True,
        plotted=False,
    )
    for panel in (*_figure12_panels(), *_figure13_panels()):
        runs.request(panel)


def _table6(runs: Runs, _: Path) -> Section:
    section = runs.section(published.published_table(6).title, ("N", "source", "quantity"))
    for line in published.published_table(6):
        label = (line["sources"], line["source"])
        if line["source"] == "theory":
            section.rows += theory_rows(label, line, _table6_setting("E", int(line["sources"])))
            continue
        each = _table6_setting(line["source"], int(line["sources"]))
        section.rows += printed_average_rows(label, line, runs, each)
    longest = runs.sample(_table6_setting("E", 82))
    few = runs.sample(_table6_setting("E", 98))
    section.rows += [
        *longest.rows(
            ("82", "E", "longest queue"),
            "packets",
            published.value_printed_in_text("queue_max_82"),
            metric_reader("queue_max_pkts"),
            note=f"mean over runs of {100 * longest.share:.3g} % of the paper's length",
        ),
        *few.rows(
            ("98", "E", "drops"),
            "packets",
            published.value_printed_in_text("drops_98"),
            lambda answer: _count_drops(answer) / few.share,
            note="scaled to the paper's length",
        ),
    ]
    section.remarks = [
        "The setting is 100M10M2M-R50-WR44-B200 with F = 12. With increasing load the rates of all "
        "size distributions approach the rate of the model. The model's loss is far too high above "
        "1 %, as the paper states.",
    ]
    return section


def _count_drops(answer: Answer) -> float:
    # If there are no drops, the answer has no table of drops.
    table = answer.tables.get("drops_by_sequence")
    return 0.0 if table is None else float(table["drops"].sum())


def _figure12(runs: Runs, folder: Path) -> Section:
    section = _queue_figure_section(
        "Figure 12. P(Q > x) with a limited buffer at a load of 100 %",
        runs,
        _figure12_panels(),
        folder / "figure12.png",
    )
    section.remarks = [
        "The available text does not contain the settings of the paper's figure. The settings here "
        "have its load of 100 % and a buffer according to its rule. The legend contains the rate "
        "(h), utilisation (U) and loss (L).",
        "The model's queue is close to the simulated queue of exponential sizes (but lower in the "
        "tail), and to the simulated queue of long-tailed sizes with a small window. With "
        "long-tailed sizes and WR = 44 the queue is far longer.",
    ]
    return section


def _figure13(runs: Runs, folder: Path) -> Section:
    section = _queue_figure_section(
        "Figure 13. Queue at a moderate and at a high load, B = 200",
        runs,
        _figure13_panels(),
        folder / "figure13.png",
    )
    section.remarks = [
        "At a load of 80.5 % the model agrees with exponential sizes, and underestimates the queue "
        "of EE sizes even with WR = 12. At 119.6 % the model is closer to EE sizes, and the "
        "simulated curves bulge above the straight line of the model.",
    ]
    return section


def _queue_figure_section(
    title: str, runs: Runs, panels: list[list[Setting]], file: Path
) -> Section:
    """Return a section with a figure of queues, one panel per setting, and its rows."""
    section = runs.section(title, ("setting", "quantity"))
    for each in (each for variants in panels for each in variants):
        for name, key, unit, factor in (
            ("mean queue", "queue_mean_pkts", "packets", 1.0),
            ("utilisation", "utilisation", "%", 100.0),
        ):
            label = (each.name, name)
            section.rows += runs.metric(label, unit, _metric, runs, each, key, factor)
            expected = factor * getattr(solve_model(each), key)
            section.rows.append(Row((each.name, f"model: {name}"), unit, None, expected))
    figure, axes = drawing.create_panels(len(panels), width=5.6, height=4.3)
    for panel, variants in zip(axes, panels, strict=True):
        _draw_queue(panel, runs, variants)
    section.figures.append(drawing.Plot(figure, file))
    return section


def _metric(runs: Runs, each: Setting, key: str, factor: float) -> Metric:
    return scale_metric(runs[each].metrics[key], factor)


def _draw_queue(axes: Axes, runs: Runs, variants: list[Setting]) -> None:
    base = variants[0]
    result = solve_model(base)
    assert base.buffer_pkts is not None
    x = np.arange(base.buffer_pkts + 1)
    axes.plot(
        x,
        result.time_above(x),
        color="black",
        linewidth=1.4,
        label=f"model: {_legend_text(result.rate_bps, result.utilisation, result.loss_ratio)}",
    )
    for each, style in zip(variants, drawing.series_styles(), strict=False):
        answer = runs[each]
        table = answer.tables["queue"]
        seen = drawing.positive_points(table["queue_pkts"], table["time_above"])
        shown = _legend_text(
            answer["connection_rate_bps"], answer["utilisation"], answer["loss_ratio"]
        )
        name = f"{each.distribution}, W{each.receiver_window_pkts}: {shown}"
        axes.plot(*drawing.thin_points(*seen), linewidth=1.0, markersize=3, label=name, **style)
    drawing.set_tail_axes(axes, right=1.02 * base.buffer_pkts)
    axes.set(xlabel="queue x (packets)", ylabel="share of time with a queue above x")
    title = f"F{base.mean_size_pkts}-N{base.sources}: load {100 * result.offered_load:.1f} %"
    axes.set_title(title, fontsize=10)
    axes.legend(frameon=False, fontsize=7, loc="lower left")


def _legend_text(rate_bps: float, utilisation: float, loss_ratio: float | None) -> str:
    loss = f"{100 * loss_ratio:.2g}" if loss_ratio is not None else "–"
    return f"h {1e-3 * rate_bps:.1f}k, U {100 * utilisation:.1f} %, L {loss} %"


SECTIONS = (_figure12, _table6, _figure13)
