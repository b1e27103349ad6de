"""Groups of flows: their loss, their rate, and the rates of models."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpcast.captures.groups import ANY_HOST, have_many_flows_in_rto
from tcpcast.captures.quantity_text import format_percent
from tcpcast.captures.table import select_rows
from tcpcast.readable_units import count_text
from tcpcast.report.document import BLANK_LINE, Column, Paragraph
from tcpcast.report.document import Table as Columns
from tcpcast.report.trace_cells import (
    integer_texts,
    number_text,
    omitted_rows_parts,
    rate_scale,
    scaled_number_texts,
)

if TYPE_CHECKING:
    from tcpcast.array_types import Table
    from tcpcast.report.document import Part
    from tcpcast.report.trace_cells import Array

MAX_NAMES = 3
"""Maximum number of groups that a warning names."""
ESTIMATED_MARK = "~"
"""Mark of a p_r (loss probability within a loss event) that is only estimated."""
MODEL_COLUMNS = {
    "alg. 1": "parallel",
    "alg. 2": "parallel_cumulative",
    "n × PFTK": "multiplied_pftk",
}


def group_parts(groups: Table, max_rows: int | None = None) -> list[Part]:
    """Return a table of groups, sorted by the number of loss events, and explanations."""
    order = np.lexsort((-groups["bytes"], -groups["td"] - groups["to"]))[:max_rows]
    shown = select_rows(groups, order)
    parts: list[Part] = [Columns(_group_columns(shown), ends=_group_ends(shown))]
    parts += omitted_rows_parts(groups["src"].size, order.size)
    return [*parts, BLANK_LINE, *_note_paragraphs(shown)]


def _group_ends(shown: Table) -> list[tuple[str, str]]:
    return [
        (host_text(source), "" if source == destination == ANY_HOST else host_text(destination))
        for source, destination in zip(shown["src"].tolist(), shown["dst"].tolist(), strict=True)
    ]


def host_text(host: str) -> str:
    """Return a host, or ``all`` if the group includes all hosts."""
    return "all" if host == ANY_HOST else host


def _group_columns(shown: Table) -> list[Column]:
    rates = _model_rate_columns(shown)
    scale = rate_scale(np.concatenate([shown["throughput_bps"], *rates.values()]))
    exact = np.isfinite(shown["loss_ratio"])
    lost = np.where(exact, shown["loss_ratio"], shown["loss_ratio_estimate"])
    marked = [
        ("" if known else ESTIMATED_MARK) + number_text(100 * value)
        for known, value in zip(exact.tolist(), lost.tolist(), strict=True)
    ]
    return [
        Column("\nflows", integer_texts(shown["flows"])),
        Column("parallel\nflows", scaled_number_texts(shown["parallel_flows"]), drop_order=2),
        Column("data\npkts", integer_texts(shown["packets_sent"]), drop_order=3),
        Column("p\n%", scaled_number_texts(shown["loss_indication_ratio"], 100)),
        Column("p_e\n%", scaled_number_texts(shown["loss_event_ratio_cumulative"], 100)),
        Column("p_r\n%", marked),
        Column("RTT\nms", scaled_number_texts(shown["rtt_mean_s"], 1e3)),
        Column(
            f"rate\n{scale.unit}", scaled_number_texts(shown["throughput_bps"], 1 / scale.factor)
        ),
        *(
            Column(
                f"{name}\n{scale.unit}",
                scaled_number_texts(rate, 1 / scale.factor),
                drop_order=4 if name.startswith("n ") else 0,
            )
            for name, rate in rates.items()
        ),
        Column("\nJain", scaled_number_texts(shown["jain_index"]), drop_order=1),
    ]


def _model_rate_columns(shown: Table) -> dict[str, Array]:
    """Return the rates by models in bit/s of payload, using the mean packet size."""
    with np.errstate(divide="ignore", invalid="ignore"):
        packet = shown["throughput_bps"] / shown["send_rate_pps"]
        return {name: shown[f"{model}_pps"] * packet for name, model in MODEL_COLUMNS.items()}


def _note_paragraphs(shown: Table) -> list[Paragraph]:
    notes = [
        Paragraph(
            "p: loss indications of all flows per packet; p_e: loss events of the group per "
            "packet, at most one event per RTT; p_r: share of packets lost. Rates are means over "
            "the time in which at least one flow was active. alg. 1, alg. 2: Damjanovic et al. "
            "(2008), for the mean number of parallel flows.",
        )
    ]
    if np.isnan(shown["loss_ratio"]).any():
        notes.append(Paragraph("p_r is estimated as the share of retransmitted packets", "", "~ "))
    waiting = select_rows(shown, np.flatnonzero(have_many_flows_in_rto(shown)))
    if waiting["src"].size:
        notes.append(
            Paragraph(
                f"algorithm 1 underestimates the rate of {_group_names(waiting)}: it predicts that "
                f"up to {format_percent(waiting['waiting_share'].max())} of the flows are in RTO "
                "at the same time, but assumes few flows in RTO",
                "warning",
                "check: ",
            )
        )
    return notes


def _group_names(groups: Table) -> str:
    """Return the names of the first groups, and the number of other groups."""
    names = [f"{src} > {dst}" if dst else f"{src} flows" for src, dst in _group_ends(groups)]
    others = len(names) - MAX_NAMES
    more = f" and {count_text(others, 'more group')}" if others > 0 else ""
    return ", ".join(names[:MAX_NAMES]) + more
