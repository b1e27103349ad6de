"""Several flows together: their loss, their rate, and the rates of models."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpcast.captures.groups import ANY
from tcpcast.captures.predicted_gain import FEW_IN_TIMEOUT
from tcpcast.report.document import BLANK, Column, Paragraph
from tcpcast.report.document import Table as Columns
from tcpcast.report.trace_cells import (
    counts,
    figure,
    figures,
    rate_scale,
)

if TYPE_CHECKING:
    from tcpcast.captures import Table
    from tcpcast.report.document import Part
    from tcpcast.report.trace_cells import Figures

ESTIMATED = "~"
"""Marks a p_r that is an estimate."""
LEAST_ENDS = 21
"""Characters that a terminal shows of both hosts at least."""
MODELS = {"alg. 1": "parallel", "alg. 2": "parallel_cumulative", "n × PFTK": "multiplied_pftk"}


def group_parts(groups: Table, most: int | None = None) -> list[Part]:
    """Return a table, a line a group, those with most loss events first, and what it means."""
    order = np.lexsort((-groups["bytes"], -groups["td"] - groups["to"]))[:most]
    shown = {name: column[order] for name, column in groups.items()}
    ends = [
        (whole(source), "" if source == destination == ANY else whole(destination))
        for source, destination in zip(shown["src"].tolist(), shown["dst"].tolist(), strict=True)
    ]
    parts: list[Part] = [Columns(_columns(shown), ends=ends, least_ends=LEAST_ENDS)]
    left = groups["src"].size - order.size
    if left > 0:
        parts.append(Paragraph(f"… and {left:,} more; --all prints all", mark=" "))
    return [*parts, BLANK, *_notes(shown)]


def whole(host: str) -> str:
    """Return a host, or ``all`` where it may be any."""
    return "all" if host == ANY else host


def _columns(shown: Table) -> list[Column]:
    rates = _rates(shown)
    scale = rate_scale(np.concatenate([shown["throughput_bps"], *rates.values()]))
    exact = np.isfinite(shown["loss_ratio"])
    lost = np.where(exact, shown["loss_ratio"], shown["loss_ratio_estimate"])
    marked = [
        ("" if known else ESTIMATED) + figure(100 * value)
        for known, value in zip(exact.tolist(), lost.tolist(), strict=True)
    ]
    return [
        Column("\nflows", counts(shown["flows"])),
        Column("at\nonce", figures(shown["parallel_flows"]), spare=2),
        Column("data\npkts", counts(shown["packets_sent"]), spare=3),
        Column("p\n%", figures(shown["loss_indication_ratio"], 100)),
        Column("p_e\n%", figures(shown["loss_event_ratio_cumulative"], 100)),
        Column("p_r\n%", marked),
        Column("RTT\nms", figures(shown["rtt_mean_s"], 1e3)),
        Column(f"rate\n{scale.unit}", figures(shown["throughput_bps"], 1 / scale.factor)),
        *(
            Column(
                f"{name}\n{scale.unit}",
                figures(rate, 1 / scale.factor),
                spare=4 if name.startswith("n ") else 0,
            )
            for name, rate in rates.items()
        ),
        Column("\nJain", figures(shown["jain_index"]), spare=1),
    ]


def _rates(shown: Table) -> dict[str, Figures]:
    """Return what models say as payload, of the mean packet that was sent."""
    with np.errstate(divide="ignore", invalid="ignore"):
        packet = shown["throughput_bps"] / shown["send_rate_pps"]
        return {name: shown[f"{model}_pps"] * packet for name, model in MODELS.items()}


def _notes(shown: Table) -> list[Paragraph]:
    notes = [
        Paragraph(
            "p: loss indications of any flow per packet; p_e: loss events of all flows, at most "
            "one "
            "per RTT; p_r: packets lost. Rates are means over the time in which a flow was "
            "active. alg. 1, alg. 2: Damjanovic et al. (2008), for as many flows as were active "
            "at once.",
        )
    ]
    if np.isnan(shown["loss_ratio"]).any():
        notes.append(
            Paragraph("p_r is an estimate: the share of packets that are retransmissions", "", "~ ")
        )
    if (shown["waiting_share"] > FEW_IN_TIMEOUT).any():
        notes.append(
            Paragraph(
                "algorithm 1 finds more than a quarter of the flows of a group in RTO and assumes "
                "few, so it underestimates there",
                "warning",
                "check: ",
            )
        )
    return notes
