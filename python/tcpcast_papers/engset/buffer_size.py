"""Section 5.4.4: Tables 9 and 10, small and large buffers under a very high load."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast_papers import drawing
from tcpcast_papers.engset import published
from tcpcast_papers.engset.comparison_rows import (
    interval_rate_reader,
    printed_average_rows,
    theory_rows,
)
from tcpcast_papers.engset.interpretations import (
    SINCE_OWN_TRANSMISSION,
    count_since_last_transmission,
)
from tcpcast_papers.engset.rounded_size_distributions import SizeDistribution
from tcpcast_papers.engset.sample import interval_reader
from tcpcast_papers.engset.settings import read_setting
from tcpcast_papers.engset.theory import solve_model

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

    from tcpcast_papers.engset.runs import Runs
    from tcpcast_papers.engset.settings import Setting
    from tcpcast_papers.printed import Line
    from tcpcast_papers.reproduction import Row, Section

BUFFERS_PKTS = (50, 75, 100, 150, 200, 300, 500, 750)
DISTRIBUTIONS = ("EE(7)", "E")
HIGH_LOAD_SOURCES, MODERATE_LOAD_SOURCES = 134, 82


def _setting_with_buffer(
    distribution: str, buffer_pkts: int, sources: int = HIGH_LOAD_SOURCES
) -> Setting:
    return read_setting(f"F12-N{sources}-10M2M-R50-{distribution}-W44-B{buffer_pkts}")


def request(runs: Runs) -> None:
    """Request the settings of Tables 9 and 10, and those of Table 10 at a load of 100 %."""
    runs.request(
        (
            _setting_with_buffer(distribution, b)
            for distribution in DISTRIBUTIONS
            for b in BUFFERS_PKTS
        ),
        checked=True,
    )
    sparse = (_setting_with_buffer("EP", b) for b in (50, 150, 750))
    runs.request(sparse, checked=True, plotted=False)
    runs.request(
        _setting_with_buffer(distribution, b, MODERATE_LOAD_SOURCES)
        for distribution in DISTRIBUTIONS
        for b in BUFFERS_PKTS
    )


def _table9(runs: Runs, _: Path) -> Section:
    section = runs.section(
        published.published_table(9).title, ("distribution", "B", "interval", "quantity")
    )
    for line in published.published_table(9):
        section.rows += _interval_rates(line, runs)
    section.remarks = [
        "The setting is F12-N134-10M2M-R50-WR44. Small buffers favour small files, large buffers "
        "favour large files. With a small buffer, files of every size spend much of their time in "
        "timeouts.",
        "The printed 642.9 kbit/s for EP files of more than 4096 packets at B = 150 are not "
        "reproduced. The printed value is a mean over about 20 files. It is 24 % above "
        "the rate of the preceding interval. Rates of adjacent intervals differ by at most 4 % in "
        "the paper's other columns and in tcpcast's full run. A misprint of 542.9 would explain "
        "the value, but nothing in the paper confirms it.",
    ]
    return section


def _interval_rates(line: Line, runs: Runs) -> list[Row]:
    distribution, buffer = line["distribution"], int(line["buffer_pkts"])
    each, low = _setting_with_buffer(distribution, buffer), int(line["low_pkts"])
    label = (distribution, str(buffer), published.interval_text(low, line.integer("high_pkts")))
    sample = runs.sample(each)
    rate = sample.rows(
        (*label, "rate"),
        "kbit/s",
        line.printed("rate_kbps"),
        interval_rate_reader(low),
        between=_printed_rates(line),
        note=line.note,
    )
    if not line["stalled_percent"]:
        return rate
    share = interval_reader(low, "timeout_time_share", 100)
    return rate + sample.rows(
        (*label, "time in TO"),
        "%",
        line.printed("stalled_percent"),
        share,
        causes=[(SINCE_OWN_TRANSMISSION, sample, count_since_last_transmission(share, low))],
    )


def _printed_rates(line: Line) -> tuple[float, ...]:
    """Return both values that the paper prints for a rate of Table 9 that Table 8 repeats."""
    if (line["distribution"], line["buffer_pkts"]) != ("EE(7)", "150"):
        return ()
    other = published.published_table(8).line_with(low_pkts=line["low_pkts"])
    return line.value("rate_kbps"), other.value("rate_kbps")


def _table10(runs: Runs, _: Path) -> Section:
    section = runs.section(published.published_table(10).title, ("distribution", "B", "quantity"))
    for line in published.published_table(10):
        label = (line["distribution"], line["buffer_pkts"])
        each = _setting_with_buffer(line["distribution"], int(line["buffer_pkts"]))
        section.rows += printed_average_rows(label, line, runs, each)
        if line["theory_loss_percent"]:
            section.rows += theory_rows(
                label, line, each, column_prefix="theory_", name_prefix="theory: "
            )
    section.remarks = [
        "The setting is F12-N134-10M2M-R50-W44. The paper's rates and ON times for EE(7) imply "
        "mean sizes of 11.88 to 11.94 packets, slightly below the mean of the rounded distribution "
        f"({SizeDistribution.from_setting(_setting_with_buffer('EE(7)', 150)).mean():.3f}), so "
        "its EE(7) runs "
        "probably used the same files. A mean size that is lower by 0.4 % reduces the cycle ON + "
        "OFF by 0.4 %.",
    ]
    return section


def _rate_by_buffer_section(runs: Runs, folder: Path) -> Section:
    section = runs.section(
        "The surprising observation of Table 10: delay and loss compensate each other",
        ("N", "distribution", "quantity"),
    )
    for sources in (HIGH_LOAD_SOURCES, MODERATE_LOAD_SOURCES):
        for distribution in DISTRIBUTIONS:
            label = (str(sources), distribution, "largest over smallest rate, minus 1")
            section.rows += runs.value(
                label, "%", _rate_spread_percent, runs, distribution, sources
            )
    figure, panels = drawing.create_panels(2, width=5.0)
    for axes, sources in zip(panels, (HIGH_LOAD_SOURCES, MODERATE_LOAD_SOURCES), strict=True):
        _draw_rates(axes, runs, sources)
    section.figures.append(drawing.Plot(figure, folder / "table10.png"))
    spread = {
        name: _rate_spread_percent(runs, name, MODERATE_LOAD_SOURCES) for name in ("E", "EE(7)")
    }
    section.remarks = [
        "With 134 sources, the mean rate hardly depends on the buffer: the waiting time in a large "
        "buffer is as long as the recovery time after drops at a small buffer. At a load of 163.5 "
        "% the link is always busy, so a cycle of N sources always takes ON + OFF = N 8FP/C. Drops "
        "occur before the link and use none of its capacity.",
        f"With 82 sources (100.1 %) the rate varies by {spread['E']:.0f} % (E) and "
        f"{spread['EE(7)']:.0f} % (EE(7)) over the same buffers. "
        "The paper attributes the compensation to the very high load.",
    ]
    return section


def _rate_spread_percent(runs: Runs, distribution: str, sources: int) -> float:
    rates = [_simulated_rate_bps(runs, distribution, b, sources) for b in BUFFERS_PKTS]
    return 100 * (max(rates) / min(rates) - 1)


def _simulated_rate_bps(runs: Runs, distribution: str, buffer_pkts: int, sources: int) -> float:
    return runs[_setting_with_buffer(distribution, buffer_pkts, sources)]["connection_rate_bps"]


def _draw_rates(axes: Axes, runs: Runs, sources: int) -> None:
    result = solve_model(_setting_with_buffer("E", BUFFERS_PKTS[0], sources))
    axes.axhline(1e-3 * result.rate_bps, color="black", linewidth=1.2, label="model")
    for distribution, style in zip(DISTRIBUTIONS, drawing.series_styles(), strict=False):
        rates = [1e-3 * _simulated_rate_bps(runs, distribution, b, sources) for b in BUFFERS_PKTS]
        axes.plot(BUFFERS_PKTS, rates, label=distribution, linewidth=1.4, **style)
        if sources == HIGH_LOAD_SOURCES:
            printed = [
                line.value("rate_kbps")
                for line in published.published_table(10).lines_with(distribution=distribution)
            ]
            axes.plot(
                BUFFERS_PKTS,
                printed,
                linestyle=":",
                marker="x",
                color=style["color"],
                label=f"{distribution}, published",
            )
    axes.set_xscale("log")
    axes.set_xticks(BUFFERS_PKTS, [str(b) for b in BUFFERS_PKTS], fontsize=8)
    axes.minorticks_off()
    axes.set_ylim(0, 1.25 * 1e-3 * result.rate_bps)
    axes.set_title(f"N = {sources}: load {100 * result.offered_load:.1f} %", fontsize=10)
    axes.set(xlabel="buffer (packets)", ylabel="connection rate (kbit/s)")
    axes.legend(frameon=False, loc="lower right", fontsize=8)


SECTIONS = (_table9, _table10, _rate_by_buffer_section)
