"""Errors of the model by number of losses, in every setting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast_papers import drawing
from tcpcast_papers.section_definition import Quantity, SectionDefinition
from tcpcast_papers.short.methods import (
    MAX_LOSSES,
    MODEL,
    PACKETS,
    PACKETS_RESET_BY_ACKS,
    REFINED,
    VARIANTS,
    latency_by_method,
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


def _mean_error_of_case(runs: Runs, case: Case, variant: str, packets: str = PACKETS) -> Metric:
    setting, losses = case
    curves = (
        latency_by_method(runs, setting, method).given[losses] for method in (variant, packets)
    )
    return mean_error(*curves)


def _error_quantity(variant: str) -> Quantity[Runs, Case]:
    def note(runs: Runs, case: Case) -> str:
        other = _mean_error_of_case(runs, case, variant, PACKETS_RESET_BY_ACKS).value
        return f"{other:.1f} % compared with packets at any ack" if case[1] > 1 else ""

    return Quantity(
        (variant,), lambda runs, case: _mean_error_of_case(runs, case, variant), note=note
    )


def _refinement_effect_text(runs: Runs) -> str:
    gains = []
    for packets, words in ((PACKETS_RESET_BY_ACKS, "at any ack"), (PACKETS, "by default")):
        for losses in (2, 3):
            before, after = (
                _mean_error_of_case(runs, (NEWRENO, losses), variant, packets).value
                for variant in (MODEL, REFINED)
            )
            gains.append(f"from {before:.1f} to {after:.1f} % given {losses} losses {words}")
    return f"Effect of the refinement for {NEWRENO.description}: {', '.join(gains)}."


def _draw_figure(runs: Runs, folder: Path) -> drawing.Plot:
    figure, panels = drawing.create_panels(4, 2, width=3.0, height=2.9, share_y=True)
    for axes, setting in zip(panels, ALL_SETTINGS, strict=True):
        for index, variant in enumerate(VARIANTS):
            losses = range(MAX_LOSSES + 1)
            result = [_mean_error_of_case(runs, (setting, each), variant).value for each in losses]
            places = [each + 0.27 * (index - 1) for each in losses]
            axes.bar(places, result, width=0.25, color=drawing.COLOURS[index], label=variant)
        axes.set_title(setting.description, fontsize=9)
        axes.set_xticks(range(MAX_LOSSES + 1))
        axes.set_xlabel("losses")
    panels[0].legend(fontsize=8, frameon=False)
    for axes in panels[::4]:
        axes.set_ylabel("mean error, %")
    return drawing.Plot(figure, folder / "errors.png")


SECTION: SectionDefinition[Runs, Case] = SectionDefinition(
    "Section 4. Errors of the model",
    ("setting", "losses", "model"),
    "%",
    lambda case: (case[0].description, str(case[1])),
    lambda _: [(setting, losses) for setting in ALL_SETTINGS for losses in range(MAX_LOSSES + 1)],
    tuple(map(_error_quantity, VARIANTS)),
    notes=lambda runs: [
        "The error is the mean of |model/packets - 1| over files of 1 to 30 packets, for transfers "
        "with this number of losses.",
        "Without losses, packets are sent in whole rounds, but the model is a fluid. Its latency "
        "is too long for sizes within a round, and exact at the end of a round. With b = 2 the ack "
        "timer adds to this error. With one loss, the error of the printed recursion is nearly the "
        "round trip of the duplicate acks (d = 1).",
        "Notes with *packets at any ack* compare the model with a sender that resets a doubled "
        "timeout at any ack of new data, as with timestamps. By default, a timeout stays doubled "
        "until there is a new RTT sample, which retransmissions do not give.",
        "With two and three losses, two errors of the model partly cancel. The model uses one "
        "recovery for each loss, although one recovery can repair a whole flight; its latency is "
        "too long for large files. The model never doubles a timeout; its latency is too short for "
        "small files. The refined model corrects both errors, and adds the ack timer if b = 2. Its "
        "timeouts double while the same packet is lost again, and are reset for the next packet. "
        "The refinement does not reduce the error for the proposal: small files with two or three "
        "losses still have a timeout, and cannot share a recovery.",
        _refinement_effect_text(runs),
    ],
    request=lambda runs: [
        runs.request(runs.figure_job(setting, rules))
        for setting in ALL_SETTINGS
        for rules in (DEFAULT_RULES, BACKOFF_UNTIL_ACK)
    ],
    figure=_draw_figure,
)
