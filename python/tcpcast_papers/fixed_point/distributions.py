"""Figures 7, 8 and 11: one flow over time, and the instantaneous goodput by three definitions."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from tcpcast_papers import drawing
from tcpcast_papers.fixed_point.published import PACKET_KBIT, printed_cell
from tcpcast_papers.fixed_point.runs import Job
from tcpcast_papers.fixed_point.settings import Length, LocalLoop

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes
    from numpy.typing import NDArray
    from tcpcast.answer import Answer

    from tcpcast_papers.fixed_point.runs import Runs, SampleSizes
    from tcpcast_papers.reproduction import Section

    Floats = NDArray[np.float64]

TRACED_SOURCES = 7500
"""Number of users N in Figure 7, whose label is barely legible."""
SOURCES = 5000
"""Number of users N in Figure 8."""
PAUSE_S = 3.0
"""Minimum pause between two files."""
MIN_FILE_PACKETS = 3
"""Minimum packets of a file whose rate is computed."""
DENSITY_BINS = 60
"""Approximate values of the density in Figure 8."""
LEVELS_KBIT = (100, 300, 500, 1000, 2000)
DEFINITIONS = {
    "by_packets": "definition 1",
    "by_file": "definition 2",
    "by_large_file": "definition 3",
}


def _traced_job(sample_sizes: SampleSizes) -> Job:
    length = Length(sample_sizes.traced_s, 0.0, 1)
    return Job(LocalLoop(TRACED_SOURCES, traced=True), length)


def _block_job(sample_sizes: SampleSizes, pkts: int) -> Job:
    return Job(LocalLoop(SOURCES, block_pkts=pkts), sample_sizes.varied)


def request(runs: Runs) -> None:
    """Request a traced flow, and every block length."""
    runs.request(_traced_job(runs.sample_sizes))
    for pkts in runs.sample_sizes.blocks_pkts:
        runs.request(_block_job(runs.sample_sizes, pkts))


def send_times_s(result: Answer) -> Floats:
    """Return the times in seconds at which the traced source sent its packets, ``[packets]``."""
    marks = result.tables["sequences"]
    chosen: Floats = marks["time_s"][(marks["event"] == "sent") & (marks["flow"] == 0)]
    return chosen


def split_at_pauses(times_s: Floats) -> list[Floats]:
    """Split send times at pauses longer than :data:`PAUSE_S`."""
    ends = np.flatnonzero(np.diff(times_s) > PAUSE_S) + 1
    return [part for part in np.split(times_s, ends) if part.size]


def _figure7(runs: Runs, folder: Path) -> Section:
    section = runs.section("Figure 7. Send times of a flow", ("what", "of"))
    time = f"{runs.sample_sizes.traced_s:g} s"
    separated = f"files, separated by pauses of {PAUSE_S:g} s"
    section.rows = [
        *runs.value(("packets sent", time), "packets", lambda: float(_send_times(runs).size)),
        *runs.value((separated, time), "files", lambda: float(len(_files(runs)))),
        *runs.value(("send rate within a file", "mean over files"), "kbit/s", _file_rate, runs),
    ]
    times = _send_times(runs)
    figure, (axes,) = drawing.create_panels(1, width=7.0, height=3.6)
    axes.plot(times, np.arange(1, times.size + 1), ".", markersize=2.5, color=drawing.COLOURS[0])
    axes.set(xlabel="time, s", ylabel="packets sent")
    section.figures.append(drawing.Plot(figure, folder / "figure07.png"))
    section.remarks = [
        f"N = {TRACED_SOURCES} (barely legible in the figure). The slope of the line during a file "
        "is the goodput of the file. Think times are horizontal.",
    ]
    return section


def _send_times(runs: Runs) -> Floats:
    return send_times_s(runs[_traced_job(runs.sample_sizes)])


def _files(runs: Runs) -> list[Floats]:
    return split_at_pauses(_send_times(runs))


def _file_rate(runs: Runs) -> float:
    rates = [
        PACKET_KBIT * (part.size - 1) / (part[-1] - part[0])
        for part in _files(runs)
        if part.size >= MIN_FILE_PACKETS
    ]
    return float(np.mean(rates))


def _figure8(runs: Runs, folder: Path) -> Section:
    section = runs.section(
        "Figure 8. Distribution of the instantaneous goodput", ("share of files", "")
    )
    first = runs.sample_sizes.blocks_pkts[0]
    for level in LEVELS_KBIT:
        label = ("above", f"{level} kbit/s")
        section.rows += runs.value(label, "%", _tail_percent, runs, "by_file", first, level)
    section.remarks = [
        f"N = {SOURCES}, per file (definition 2). The dots are the levels in Table 3.",
    ]
    tail = _tail(runs, first)
    rate, above = tail["goodput_bps"] / 1e3, tail["by_file"]
    figure, (axes, density) = drawing.create_panels(2, width=4.8, height=3.6)
    axes.plot(rate, 1 - above, color=drawing.COLOURS[0], label="every flow")
    levels = [(printed_cell(3, f"g_{n}", str(SOURCES)), 1 - n / 100) for n in (95, 90, 80, 50)]
    for printed, share in levels:
        if printed is not None:
            axes.plot(printed.value, share, "o", color=drawing.COLOURS[1], markersize=4)
    axes.plot([], [], "o", color=drawing.COLOURS[1], markersize=4, label="printed in Table 3")
    axes.legend(fontsize=8, frameon=False, loc="upper left")
    wide, over = (points[:: max(1, rate.size // DENSITY_BINS)] for points in (rate, above))
    density.stairs(-np.diff(over) / np.diff(np.log10(wide)), wide, color=drawing.COLOURS[0])
    for panel, words in ((axes, "share of files below"), (density, "density over log10")):
        panel.set(xscale="log", xlabel="goodput of a file, kbit/s", ylabel=words, xlim=(10, 10_000))
    section.figures.append(drawing.Plot(figure, folder / "figure08.png"))
    return section


def tail_probability(rate: Floats, above: Floats, level: float) -> float:
    """Return a tail probability at a level, interpolated on a logarithmic axis."""
    return float(np.interp(np.log(level), np.log(rate), above))


def _figure11(runs: Runs, folder: Path) -> Section:
    section = runs.section(
        "Figure 11. Tail probability by definition", ("definition", "n", "above")
    )
    blocks = runs.sample_sizes.blocks_pkts
    curves = [("by_packets", n) for n in blocks]
    curves += [("by_file", blocks[0]), ("by_large_file", blocks[0])]
    for (name, n), level in product(curves, LEVELS_KBIT):
        label = (DEFINITIONS[name], f"{n}" * (name == "by_packets"), f"{level} kbit/s")
        section.rows += runs.value(label, "%", _tail_percent, runs, name, n, level)
    section.remarks = [
        "The goodput is measured over n consecutive packets of a file (definition 1), over whole "
        "files (definition 2), or over whole files of more than 10 packets (definition 3); N = "
        f"{SOURCES}. The paper mentions steps in the curves of definition 1. The steps come from "
        "the first packets of a file: they leave in windows of 1, 2, 4 and so on, so many blocks "
        "take the same number of round trips. Curves of whole files show no steps.",
    ]
    figure, (axes,) = drawing.create_panels(1, width=6.4, height=4.2)
    styles = iter(drawing.COLOURS)
    for n in blocks:
        name = f"definition 1, n = {n}"
        _draw_tail(axes, _tail(runs, n), "by_packets", color=next(styles), label=name)
    for name, style in (("by_file", "--"), ("by_large_file", ":")):
        tail = _tail(runs, blocks[0])
        _draw_tail(axes, tail, name, color="black", linestyle=style, label=DEFINITIONS[name])
    axes.set(
        xlabel="goodput, kbit/s", ylabel="probability of more", xscale="log", xlim=(10, 10_000)
    )
    axes.legend(fontsize=8, frameon=False)
    section.figures.append(drawing.Plot(figure, folder / "figure11.png"))
    return section


def _draw_tail(axes: Axes, tail: dict[str, Floats], name: str, **style: str) -> None:
    axes.plot(tail["goodput_bps"] / 1e3, tail[name], linewidth=1.3, **style)  # type: ignore[arg-type]


def _tail(runs: Runs, n: int) -> dict[str, Floats]:
    """Return the tail probabilities of the goodput, with blocks of ``n`` packets."""
    table: dict[str, Floats] = runs[_block_job(runs.sample_sizes, n)].tables["file_goodput_tail"]
    return table


def _tail_percent(runs: Runs, name: str, n: int, level: float) -> float:
    tail = _tail(runs, n)
    return 100 * tail_probability(tail["goodput_bps"] / 1e3, tail[name], level)


SECTIONS = (_figure7, _figure8, _figure11)
