"""Table 1 and Figure 3: file sizes of the distributions, and as drawn by the simulator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpcast_papers import drawing
from tcpcast_papers.engset import published
from tcpcast_papers.engset.rates import setting_with_window_and_load
from tcpcast_papers.engset.rounded_size_distributions import SizeDistribution
from tcpcast_papers.engset.settings import CONNECTIONS
from tcpcast_papers.reproduction import PRINTED_DIGITS, Row, Tolerance

if TYPE_CHECKING:
    from pathlib import Path

    from tcpcast_papers.engset.runs import Runs
    from tcpcast_papers.engset.settings import Setting
    from tcpcast_papers.printed import Line
    from tcpcast_papers.reproduction import Section

SHARE = Tolerance(relative=0.1, absolute=0.05)
"""Tolerance of a measured share of files, in %: 10 % of the share or 0.05 points."""

_DISTRIBUTIONS = ("E", "EP")


def _setting(mean_size_pkts: int, distribution: str) -> Setting:
    return setting_with_window_and_load(mean_size_pkts, distribution, 44, 0.8)


def request(runs: Runs) -> None:
    """Request a simulation of each distribution and mean size; the network does not matter."""
    runs.request(
        _setting(size, distribution) for size in CONNECTIONS for distribution in _DISTRIBUTIONS
    )
    runs.request([_setting(12, "EE(7)")])


def _table1(runs: Runs, _: Path) -> Section:
    section = runs.section(published.published_table(1).title, ("F", "distribution", "interval"))
    for line in published.published_table(1):
        size, distribution, low = (
            line[name] for name in ("mean_size_pkts", "distribution", "low_pkts")
        )
        interval = published.interval_text(int(low), line.integer("high_pkts"))
        label = (size, distribution, interval)
        section.rows += runs.row(label, _share_row, line, label, runs)
    section.remarks = [
        "The column *own* is from the exact distribution, rounded to the nearest packet. The note "
        "states the share of the simulated files, and the mean sizes in the interval. "
        "The tolerance is 10 % of the share or 0.05 percentage points.",
        "In the printed table, two columns are shifted up by one row and lack one share: F = 22, E "
        "from 15 packets upwards, and F = 5, EP from 63 packets upwards. Their means are outside "
        "the intervals of their rows. One row further down, every column sums to 100 %.",
        "For F = 5 and 12 the paper's EP files are slightly too small for its distribution with "
        "the printed k: 92.8 % of the files have up to 6 packets, but the distribution gives 92.5 "
        "%. The difference is ten standard errors of 800,000 files. For larger F there is no such "
        "difference. The reason is unknown.",
    ]
    return section


def _share_row(line: Line, label: tuple[str, ...], runs: Runs) -> Row:
    size, distribution = int(line["mean_size_pkts"]), line["distribution"]
    low, high = int(line["low_pkts"]), line.integer("high_pkts")
    each = _setting(size, distribution)
    exact = SizeDistribution.from_setting(each)
    drawn = drawn_share_percent(runs, each, low)
    means = f"mean {line['mean_in_interval_pkts'] or '–'}, own {exact.mean(low, high):.1f}"
    note = f"drawn {drawn:.3g} %; {means}" + (f"; {line.note}" if line.misprint else "")
    return Row(
        label,
        "%",
        line.printed("share_percent"),
        100 * exact.share(low, high),
        tolerance=SHARE,
        note=note,
    )


def drawn_share_percent(runs: Runs, each: Setting, low_pkts: int) -> float:
    """Return the share of a run's files, in %, in the interval that starts at ``low_pkts``."""
    table = runs[each].tables["by_size"]
    return 100 * float(table["share"][table["low_pkts"] == low_pkts].sum())


def _figure3(runs: Runs, folder: Path) -> Section:
    section = runs.section(
        "Figure 3. File size distributions for F = 12 packets", ("distribution", "quantity")
    )
    figure, (axes,) = drawing.create_panels(1, width=6.4, height=4.2)
    x = np.geomspace(3, 4096, 400)
    for (distribution, name), style in zip(
        (("E", "E"), ("EP", "EP"), ("EE", "EE(7)")), drawing.series_styles(), strict=False
    ):
        each = _setting(12, name)
        exact = SizeDistribution.from_setting(each)
        axes.plot(
            *drawing.positive_points(x, exact.exceedance(x)),
            color=style["color"],
            label=f"{distribution}, distribution",
        )
        table = runs[each].tables["by_size"]
        above = 1 - np.cumsum(table["share"])
        axes.plot(
            *drawing.positive_points(table["high_pkts"][:-1] + 0.5, above[:-1]),
            linestyle="none",
            label=f"{distribution}, drawn",
            **style,
        )
        section.rows.append(
            Row(
                (name, "mean size beyond the 10 % point"),
                "packets",
                published.value_printed_in_text(f"mean_above_k_{distribution}"),
                exact.mean_above_k(),
                tolerance=PRINTED_DIGITS,
            )
        )
    axes.set(
        xscale="log",
        yscale="log",
        ylim=(1e-6, 1.5),
        xlabel="file size x (packets)",
        ylabel="share of files larger than x",
    )
    axes.set_title("Figure 3. File sizes for F = 12 packets", fontsize=11)
    axes.legend(frameon=False, fontsize=8)
    section.figures.append(drawing.Plot(figure, folder / "figure03.png"))
    return section


SECTIONS = (_table1, _figure3)
