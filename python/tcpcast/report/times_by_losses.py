"""Completion times of single transfers by number of lost packets."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tcpcast.comparison.compare import has_times, mean_time_metrics
from tcpcast.report.document import Column, Table
from tcpcast.report.quantity import ABSENT_MARK, scale_for_unit, value_text
from tcpcast.scenario.file_sizes import size_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tcpcast.answer import Answer, Metric

MAX_LOSS_COLUMNS = 4
"""Number of columns shown: 0, 1, 2 and 3 losses. The table in the answer has more."""

MAX_SIZES = 12
"""Maximum number of rows shown; of more sizes, evenly spaced ones are selected."""


def evenly_spaced_indices(length: int) -> list[int]:
    """Return evenly spaced indices of a list, including both ends."""
    if length <= MAX_SIZES:
        return list(range(length))
    return [round(i * (length - 1) / (MAX_SIZES - 1)) for i in range(MAX_SIZES)]


def losses_tables(answers: Sequence[Answer], typed_sizes: Mapping[int, str]) -> list[Table]:
    """Return one table per answer with completion times by size and losses.

    Answers without losses are omitted, because the table of sizes contains the same values.
    ``typed_sizes`` maps sizes in packets to the sizes in bytes that the user typed.
    """
    given = [(a, figures) for a in answers if (figures := times_by_size_and_losses(a))]
    return [
        _completion_times_table(answer.engine, figures, typed_sizes)
        for answer, figures in given
        if any(losses for _, losses in figures)
    ]


def times_by_size_and_losses(answer: Answer) -> dict[tuple[int, int], Metric]:
    """Return the mean completion times by size in packets and number of losses."""
    table = answer.tables.get("by_losses", {})
    if not has_times(table, "size_pkts", "losses"):
        return {}
    pairs = zip(table["size_pkts"].tolist(), table["losses"].tolist(), strict=True)
    keys = ((int(size), int(losses)) for size, losses in pairs)
    return dict(zip(keys, mean_time_metrics(table), strict=True))


def _completion_times_table(
    engine: str, times: dict[tuple[int, int], Metric], typed_sizes: Mapping[int, str]
) -> Table:
    columns = sorted({losses for _, losses in times})[:MAX_LOSS_COLUMNS]
    all_sizes = sorted({size for size, _ in times})
    sizes = [all_sizes[i] for i in evenly_spaced_indices(len(all_sizes))]
    shown = [times[s, k].value for s in sizes for k in columns if (s, k) in times]
    scale = scale_for_unit("s", max((v for v in shown if math.isfinite(v)), default=1.0))
    names = [size_text(size, typed_sizes) for size in sizes]
    table = [Column(engine, names, right=False), Column("unit", [scale.unit] * len(sizes), False)]
    for losses in columns:
        given = [times.get((size, losses)) for size in sizes]
        cells = [ABSENT_MARK if figure is None else value_text(figure, scale) for figure in given]
        table.append(Column(f"{losses} lost", cells))
    return Table(table)
