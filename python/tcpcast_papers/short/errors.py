"""Errors of the model by number of losses, in every setting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast_papers import drawing
from tcpcast_papers.sheet import Quantity, Sheet
from tcpcast_papers.short.methods import (
    MAX_LOSSES,
    MODEL,
    PACKETS,
    PACKETS_RESET_BY_ACKS,
    REFINED,
    VARIANTS,
    latency,
    mean_error,
)
from tcpcast_papers.short.runs import BACKOFF_UNTIL_ACK, DEFAULT_RULES
from tcpcast_papers.short.settings import ALL_SETTINGS, NEWRENO, Setting

if TYPE_CHECKING:
    from pathlib import Path

    from tcpcast.answer import Metric

    from tcpcast_papers.short.runs import Runs

Case = tuple[Setting, int]
"""A setting and a number of losses."""


def _error(runs: Runs, case: Case, variant: str, packets: str = PACKETS) -> Metric:
    setting, losses = case
    curves = (latency(runs, setting, method).given[losses] for method in (variant, packets))
    return mean_error(*curves)


def _error_quantity(variant: str) -> Quantity[Runs, Case]:
    def note(runs: Runs, case: Case) -> str:
        other = _error(runs, case, variant, PACKETS_RESET_BY_ACKS).value
        return f"{other:.1f} % compared with packets at any ack" if case[1] > 1 else ""

    return Quantity((variant,), lambda runs, case: _error(runs, case, variant), note=note)


def _refinement_effect_text(runs: Runs) -> str:
    gains = []
    for packets, words in ((PACKETS_RESET_BY_ACKS, "at any ack"), (PACKETS, "by default")):
        for losses in (2, 3):
            before, after = (
                _error(runs, (NEWRENO, losses), variant, packets).value
                for variant in (MODEL, REFINED)
            )
            gains.append(f"from {before:.1f} to {after:.1f} % given {losses} losses {words}")
    return f"Effect of the refinement for {NEWRENO.description}: {', '.join(gains)}."


def _draw_figure(runs: Runs, folder: Path) -> drawing.Plot:
    figure, panels = drawing.create_panels(4, 2, width=3.0, height=2.9, share_y=True)
    for axes, setting in zip(panels, ALL_SETTINGS, strict=True):
        for index, variant in enumerate(VARIANTS):
            losses = range(MAX_LOSSES + 1)
            result = [_error(runs, (setting, each), variant).value for each in losses]
            places = [each + 0.27 * (index - 1) for each in losses]
            axes.bar(places, result, width=0.25, color=drawing.COLOURS[index], label=variant)
        axes.set_title(setting.description, fontsize=9)
        axes.set_xticks(range(MAX_LOSSES + 1))
        axes.set_xlabel("losses")
    panels[0].legend(fontsize=8, frameon=False)
    for axes in panels[::4]:
        axes.set_ylabel("mean error, %")
    return drawing.Plot(figure, folder / "errors.png")


SHEET: Sheet[Runs, Case] = Sheet(
    "Section 4. Errors of the model",
    ("setting", "losses", "model"),
    "%",
    lambda case: (case[0].description, str(case[1])),
    lambda _: [(setting, losses) for setting in ALL_SETTINGS for losses in range(MAX_LOSSES + 1)],
    tuple(map(_error_quantity, VARIANTS)),
    notes=lambda runs: [
        "The mean of |model/packets - 1| over the sizes 1 to 30 with this number of losses.",
        "Without losses, packets are sent in whole rounds, but the fluid model has fractions of "
        "rounds: the model is too high within a round, and exact at its end. With b = 2 the ack "
        "timer adds to this error. With one loss the round trip of the duplicate acks, d = 1, is "
        "nearly everything that the printed recursion lacks.",
        "*At any ack*: packets of a sender that ends the doubling of a timeout at any ack of new "
        "data, as with timestamps. By default the doubling lasts until there is a new round-trip "
        "sample, which retransmissions do not give.",
        "With two and three losses, two errors of the model partly cancel. It uses one recovery "
        "for each loss, although one can repair a whole flight: too slow for many packets. It "
        "never doubles a timeout: too fast for few packets. The refined model corrects both, and "
        "adds the ack timer if b = 2; its timeouts double while the same packet is lost again, and "
        "are reset for the next one. With the proposal this does not help: a few packets with two "
        "or three losses still have a timeout, and cannot share a recovery.",
        _refinement_effect_text(runs),
    ],
    request=lambda runs: [
        runs.request(runs.figure_job(setting, rules))
        for setting in ALL_SETTINGS
        for rules in (DEFAULT_RULES, BACKOFF_UNTIL_ACK)
    ],
    figure=_draw_figure,
)
