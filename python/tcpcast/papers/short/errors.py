"""How far the model is off, by the number of losses, in every setting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast.papers import drawing
from tcpcast.papers.reproduction import Row, Section
from tcpcast.papers.short.figures import job
from tcpcast.papers.short.runs import BACKOFF, DEFAULT
from tcpcast.papers.short.settings import ALL, NEWRENO
from tcpcast.papers.short.variants import (
    MODEL,
    MOST_LOSSES,
    REFINED,
    VARIANTS,
    curves_s,
    mean_error,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tcpcast.papers.short.runs import Runs


def wanted(runs: Runs) -> None:
    """Ask for every setting, and for each with timeouts that any ack brings back."""
    for setting in ALL:
        runs.want(job(runs, setting))
        runs.want(job(runs, setting, BACKOFF))


def sections(runs: Runs, folder: Path) -> list[Section]:
    """Return the errors of every setting, section 4.1's other initial windows among them."""
    section = Section("Section 4. How far the model is off", ("setting", "losses", "model"))
    section.figures.append(_draw(runs, folder))
    for setting in ALL:
        packets = runs.latency(job(runs, setting))
        at_acks = runs.latency(job(runs, setting, BACKOFF))
        for losses in range(MOST_LOSSES + 1):
            for variant in VARIANTS:
                error, half = mean_error(curves_s(setting, variant), packets, losses)
                low, high = 100 * max(error - half, 0.0), 100 * (error + half)
                label = (setting.words, str(losses), variant)
                other = 100 * mean_error(curves_s(setting, variant), at_acks, losses)[0]
                note = f"{other:.1f} % beside packets at any ack" if losses > 1 else ""
                section.rows.append(
                    Row(label, "%", None, 100 * error, low=low, high=high, note=note)
                )
    section.remarks = [
        "The mean of |model/packets - 1| over the sizes 1 to 30 that were seen to lose so many.",
        "Without a loss packets go in whole rounds, the fluid in parts of them: high between the "
        "ends of rounds, exact at them; with b = 2 the ack timer comes on top. Given one loss the "
        "round trip that the duplicates take to come back, d = 1, is nearly all that the printed "
        "recursion lacks.",
        "*At any ack*: packets of a sender whose timeout, once doubled, is as before after any ack "
        "of new data, as with timestamps. By default it stays doubled until there is a new "
        "round-trip sample, which retransmissions do not give.",
        "Given two and three losses, two errors of the model work against each other. It pays for "
        "a recovery for each loss, where one repairs all of a flight: too slow, for many packets. "
        "It never doubles a timeout: too fast, for few packets. The refined model has both, and "
        "the ack timer where b = 2; its timeouts double while the same packet is lost again, and "
        "are as before for the next one. With the proposal that is no gain: a few packets that "
        "lose two or three still come to a timeout, for which sharing a recovery has no place.",
        _gain(runs),
    ]
    return [section]


def _gain(runs: Runs) -> str:
    told = []
    for rules, words in ((BACKOFF, "at any ack"), (DEFAULT, "by default")):
        packets = runs.latency(job(runs, NEWRENO, rules))
        for losses in (2, 3):
            before, after = (
                100 * mean_error(curves_s(NEWRENO, variant), packets, losses)[0]
                for variant in (MODEL, REFINED)
            )
            told.append(f"from {before:.1f} to {after:.1f} % given {losses} losses {words}")
    return f"What the refinement gains for {NEWRENO.words}: {', '.join(told)}."


def _draw(runs: Runs, folder: Path) -> drawing.Drawn:
    figure, panels = drawing.panels(4, 2, width=3.0, height=2.9, share_y=True)
    for axes, setting in zip(panels, ALL, strict=True):
        packets = runs.latency(job(runs, setting))
        for at, variant in enumerate(VARIANTS):
            found = [
                100 * mean_error(curves_s(setting, variant), packets, losses)[0]
                for losses in range(MOST_LOSSES + 1)
            ]
            places = [losses + 0.27 * (at - 1) for losses in range(MOST_LOSSES + 1)]
            axes.bar(places, found, width=0.25, color=drawing.COLOURS[at], label=variant)
        axes.set_title(setting.words, fontsize=9)
        axes.set_xticks(range(MOST_LOSSES + 1))
        axes.set_xlabel("losses")
    panels[0].legend(fontsize=8, frameon=False)
    for axes in panels[::4]:
        axes.set_ylabel("mean error, %")
    return drawing.Drawn(figure, folder / "errors.png")
