"""Figures 4, 6, 7 and 8: the latency given how many transmissions were lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpcast.models.short import least_recoverable_pkts, timeout_volume_pkts
from tcpcast.papers import drawing
from tcpcast.papers.reproduction import PRINTED_DIGITS, Row, Section
from tcpcast.papers.short import published
from tcpcast.papers.short.runs import DEFAULT, Job
from tcpcast.papers.short.settings import DRAWN, PROPOSAL, SIZES
from tcpcast.papers.short.variants import AS_PRINTED, MODEL, REFINED, curves_s

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

    from tcpcast.papers.short.runs import Latency, Rules, Runs
    from tcpcast.papers.short.settings import Setting

LINES = {AS_PRINTED: ":", MODEL: "-", REFINED: "--"}
"""How each variant of the model is drawn."""


def wanted(runs: Runs) -> None:
    """Ask for every size of each figure."""
    for setting in DRAWN:
        runs.want(job(runs, setting))


def job(runs: Runs, setting: Setting, rules: Rules = DEFAULT) -> Job:
    """Return the simulation of all sizes of a setting."""
    return Job(setting, SIZES, runs.effort.drawn, rules=rules)


def sections(runs: Runs, folder: Path) -> list[Section]:
    """Return a section a figure."""
    return [_section(setting, runs, folder) for setting in DRAWN]


def _section(setting: Setting, runs: Runs, folder: Path) -> Section:
    section = Section(
        f"{setting.name.capitalize()}. Latency given the losses: {setting.words}",
        ("quantity", "by"),
    )
    packets = runs.latency(job(runs, setting))
    section.figures.append(_draw(setting, packets, folder))
    section.rows = _least_rows(setting, packets)
    section.remarks = _remarks(setting, packets)
    return section


def _draw(setting: Setting, packets: Latency, folder: Path) -> drawing.Drawn:
    figure, panels = drawing.panels(2, 2, width=4.8, height=3.2)
    sizes = np.array(SIZES)
    for losses, axes in enumerate(panels):
        colour = drawing.COLOURS[losses]
        known = np.isfinite(packets.mean_s[losses])
        axes.errorbar(
            sizes[known],
            packets.mean_s[losses][known],
            yerr=packets.half_s[losses][known],
            fmt="o",
            markersize=3.5,
            linewidth=1,
            color=colour,
            label="packets",
        )
        for variant, style in LINES.items():
            axes.plot(
                sizes,
                curves_s(setting, variant)[losses],
                style,
                color=drawing.MUTED if variant == AS_PRINTED else "black",
                linewidth=1.2,
                label=f"model, {variant}",
            )
        axes.set_title(f"{losses} lost", fontsize=10)
        axes.set_ylim(bottom=0)
        axes.set_xlim(0, SIZES[-1] + 1)
    _name(panels)
    path = folder / f"{setting.name.replace(' ', '')}.png"
    return drawing.Drawn(figure, path)


def _name(panels: list[Axes]) -> None:
    panels[0].legend(fontsize=8, frameon=False, loc="lower right")
    for axes in panels[2:]:
        axes.set_xlabel("file size, packets")
    for axes in panels[::2]:
        axes.set_ylabel("mean latency, s")


def peak_pkts(latency_s: np.ndarray) -> float:
    """Return the size at which a curve of latencies is highest."""
    return float(SIZES[int(np.nanargmax(latency_s))])


def _least_rows(setting: Setting, packets: Latency) -> list[Row]:
    """Return FileSize_min by the rule of the tables and by the fluid, and where the curves peak."""
    key = f"least_{setting.name.replace(' ', '')}"
    (line,) = published.text().where(key=key) or (None,)
    transfer = setting.transfer
    rows = [
        Row(
            ("FileSize_min", "Tables 1 and 2"),
            "packets",
            line.printed("value") if line else None,
            least_recoverable_pkts(transfer),
            tolerance=PRINTED_DIGITS if line else None,
            note=line.note if line else "every loss but that of the last packet is recovered",
        ),
        Row(
            ("FileSize_min", "the fluid's y_to"),
            "packets",
            None,
            timeout_volume_pkts(transfer) + transfer.unprotected_pkts,
        ),
    ]
    curves = {**{name: curves_s(setting, name)[1] for name in LINES}, "packets": packets.mean_s[1]}
    # With b = 2 the fluid sends a packet more before its window is 4 than the table's rule has.
    exact = PRINTED_DIGITS if line and transfer.acked_packets == 1 else None
    for name, curve in curves.items():
        rows.append(
            Row(
                ("peak of one loss", name),
                "packets",
                line.printed("value") if line else None,
                peak_pkts(curve),
                tolerance=exact if name in {MODEL, "packets"} else None,
                note=f"{np.nanmax(curve):.3f} s",
            )
        )
    return rows


def _remarks(setting: Setting, packets: Latency) -> list[str]:
    if setting is PROPOSAL:
        return [
            "No peak: the curve of one loss falls from one packet, which alone waits for the "
            "timer, to six, and then grows with the rounds that larger files take.",
        ]
    peak = peak_pkts(packets.mean_s[1])
    told = [
        f"Up to the peak at {peak:.0f} packets a loss means a timeout, whichever packet it is of; "
        "from there on more and more are recovered."
    ]
    if setting.transfer.acked_packets > 1:
        told.append(
            "The fluid sends four packets before its window is 4, the rule of Table 2 counts "
            "three: the peak of the curve is a packet later than the table's FileSize_min. Acks "
            "wait for up to 100 ms, which only the refined model has; the waves of packets are odd "
            "and even sizes."
        )
    return told
