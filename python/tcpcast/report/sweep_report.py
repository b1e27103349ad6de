"""The report on a sweep: varied keys, answers, warnings, figures, and how to reproduce it."""

from __future__ import annotations

import math
import re
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.answer.metrics import HEADLINE_METRICS
from tcpcast.quantity.readable_units import count_text
from tcpcast.report.document import Code, Column, Document, Heading, Paragraph, Table, command_parts
from tcpcast.report.quantity import (
    ABSENT_MARK,
    interval_text,
    metric_label,
    scale_for_metric,
    value_text,
)
from tcpcast.report.summary import MAX_WARNINGS, describe_scenario
from tcpcast.report.sweep import (
    group_label,
    mark_meaning_parts,
    sweep_rows_parts,
    sweep_verdict_parts,
    tables_by_class,
)
from tcpcast.report.sweep_cells import make_swept_key, metric_grids
from tcpcast.scenario.toml import write_toml

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tcpcast.report.document import Part
    from tcpcast.report.quantity import Scale
    from tcpcast.report.sweep_cells import MetricGrid, SweptKey
    from tcpcast.sweeps.prepared import PreparedSweep
    from tcpcast.sweeps.results import SweepResults

    Levels = Mapping[str, Sequence[float]]

MAX_VALUES_PER_KEY = {1: 40, 2: 6}
"""Maximum number of values per key in a table, by the number of keys."""

_NUMBER_PATTERN = re.compile(r"[0-9][0-9.,]*")

MAX_REASONS = 12
"""Maximum number of listed messages; the most frequent ones come first."""


def sweep_document(
    results: SweepResults, command: str, figures: bool = False, *, levels: Levels | None = None
) -> Document:
    """Return the report on a sweep.

    Parameters
    ----------
    results
        The sweep.
    command
        The command that reproduces the report.
    figures
        Draw figures with matplotlib.
    levels
        Values of metrics, in their units, at which a line is drawn.
    """
    rows = results.to_arrow()
    axes = results.sweep.grid.axes
    parts: list[Part] = [
        *sweep_verdict_parts(rows, results.keys, results.sweep.scenario),
        Paragraph(f"{describe_scenario(results.sweep.scenario)}."),
        Paragraph("The varied keys below replace these values.", "aside"),
        Heading("Varied keys"),
        Table(
            [
                Column("key", [axis.key for axis in axes], right=False),
                Column("values", [f"{len(axis.values):,}" for axis in axes]),
                Column("from", [str(axis.values[0]) for axis in axes], right=False),
                Column("to", [str(axis.values[-1]) for axis in axes], right=False),
            ]
        ),
        Paragraph(f"{len(results):,} rows: {results.counts()}."),
    ]
    if figures:
        parts += _inline_figures(results, rows, levels or {})
    parts += [Heading("Answers"), *_answer_parts(results, rows), *_warning_parts(results, rows)]
    definition = write_toml({"sweep": results.sweep.table})
    parts += [
        Heading("The scenario"),
        Paragraph("All keys, including defaults, and the varied keys."),
        Code(f"{results.sweep.scenario.to_toml().rstrip()}\n\n{definition}"),
        Heading("Provenance"),
        Paragraph(_provenance_text(results.sweep)),
        Paragraph(f"Scenario {results.sweep.scenario.digest()}", "aside"),
        *command_parts(command),
    ]
    return Document(f"{results.sweep.scenario.name}: a sweep", parts)


def _answer_parts(results: SweepResults, rows: Any) -> Iterator[Part]:
    """Yield one table per metric with engines side by side.

    If keys vary in parallel, yield the rows of the sweep instead.
    """
    if not results.sweep.is_grid:
        yield from sweep_rows_parts(
            rows, results.keys, how_to_get_rest="`tcpcast query` shows all rows"
        )
        return
    columns = rows.to_pydict()
    keys = {
        key: make_swept_key(key, columns[key], unit)
        for key, unit in results.keys.items()
        if columns
    }
    marks: set[str] = set()
    for group, of_group in {"": columns, **tables_by_class(columns)}.items():
        for metric in HEADLINE_METRICS:
            grids = metric_grids(of_group, metric, keys) if metric in of_group else []
            if grids:
                yield _metric_table(metric, grids, list(keys.values()), group)
                marks |= {str(mark) for each in grids for mark in each.marks.flat}
    yield from mark_meaning_parts(marks)
    if any(
        len(key.values) > len(indices)
        for key, indices in zip(keys.values(), _shown_indices(keys.values()), strict=True)
    ):
        yield Paragraph("A selection of the values; `tcpcast query` shows all.", "aside")


def _shown_indices(keys: Iterable[SweptKey]) -> list[Any]:
    """Return, for each key, evenly spaced indices of the values in a table."""
    sizes = [len(key.values) for key in keys]
    limit = MAX_VALUES_PER_KEY[len(sizes)]
    return [np.unique(np.linspace(0, size - 1, min(size, limit)).astype(int)) for size in sizes]


def _metric_table(
    metric: str, grids: Sequence[MetricGrid], keys: Sequence[SweptKey], group: str
) -> Table:
    """Return one metric as a table: one row per combination of values, one column per engine."""
    largest = max(float(np.nanmax(np.abs(each.value))) for each in grids)
    scale = scale_for_metric(metric, largest)
    shown = list(product(*_shown_indices(keys)))
    columns = [
        Column(key.heading, [key.labels[indices[i]] for indices in shown], right=key.is_numeric)
        for i, key in enumerate(keys)
    ]
    for each in grids:
        kind = "simulated" if each.is_simulated else "formula"
        cells_of = [_cell_text(each, indices, scale) for indices in shown]
        columns.append(Column(f"{each.engine}\n{kind}", cells_of))
    unit = f" ({scale.unit})" if scale.unit else ""
    of_class = f", {group_label(group)}" if group else ""
    return Table(columns, f"{metric_label(metric)}{of_class}{unit}")


def _cell_text(grid: MetricGrid, indices: tuple[int, ...], scale: Scale) -> str:
    metric = grid.metric_at(indices)
    if not math.isfinite(metric.value):
        return ABSENT_MARK
    text = f"{value_text(metric, scale)}{grid.marks[indices]} {interval_text(metric, scale)}"
    return text.rstrip()


def _warning_parts(results: SweepResults, rows: Any) -> Iterator[Part]:
    """Yield reasons for missing answers, and warnings, each list sorted by frequency."""
    texts: list[str] = []
    if results.interrupted:
        done, total = results.done, results.runs
        texts.append(f"incomplete: {done:,} of {total:,} runs are done")
    reasons = [(str(status), why) for status, why in _column_pairs(rows, "status", "reason") if why]
    warned = [
        (rank, str(engine), text)
        for engine, warnings in _column_pairs(rows, "engine", "warnings")
        for rank, text in enumerate(warnings or ())
    ]
    warned.sort(key=lambda each: each[0])  # the warnings of a row are in order of severity
    doubts = _count_distinct_messages([(engine, text) for _, engine, text in warned])
    available = [*_count_distinct_messages(reasons), *doubts]
    texts += [*_count_distinct_messages(reasons)[:MAX_REASONS], *doubts[:MAX_WARNINGS]]
    if texts:
        yield Heading("Check before use")
        yield from (Paragraph(text, "warning", " ! ") for text in texts)
    if len(available) > len(texts):
        left = (
            f"and {len(available) - len(texts):,} more messages in the columns reason and warnings"
        )
        yield Paragraph(left, "aside")


def _count_distinct_messages(messages: Sequence[tuple[str, str]]) -> list[str]:
    """Return distinct messages, each with its number of rows, the most frequent first.

    Messages that differ only in numbers count as equal; the first of them is shown.
    """
    grouped: dict[tuple[str, str], list[str]] = {}
    for subject, text in messages:
        grouped.setdefault((subject, _NUMBER_PATTERN.sub("", text)), []).append(text)
    ordered = sorted(grouped.items(), key=lambda each: -len(each[1]))
    return [
        f"{subject}, {count_text(len(texts), 'row')}"
        f"{', for example' if len(set(texts)) > 1 else ''}: {texts[0]}"
        for (subject, _), texts in ordered
    ]


def _column_pairs(rows: Any, first: str, second: str) -> Iterator[tuple[Any, Any]]:
    if {first, second} <= set(rows.column_names):
        yield from zip(rows[first].to_pylist(), rows[second].to_pylist(), strict=True)


def _inline_figures(results: SweepResults, rows: Any, levels: Levels) -> Iterator[Part]:
    from tcpcast.report.figures import figure_parts  # noqa: PLC0415 - matplotlib is slow to import
    from tcpcast.report.sweep_figures import iter_sweep_figures, sweep_subtitle  # noqa: PLC0415

    keys = results.sweep.figure_keys
    if not keys:
        text = (
            "No figure: figures require one or two keys that vary in all combinations, or the rows "
            "of a file with a column name."
        )
        yield Paragraph(text, "aside")
        return
    setup = sweep_subtitle(results.sweep.scenario, keys)
    drawn = iter_sweep_figures(rows, keys, setup, levels)
    text = "Formulas are lines; simulations are points with 95 % intervals."
    yield from figure_parts("Figures", drawn, text)


def _provenance_text(sweep: PreparedSweep) -> str:
    default = "every quick engine that applies"
    engines = default if sweep.engines is None else ", ".join(sweep.engines)
    several = f", {sweep.replications} replications" if sweep.replications > 1 else ""
    seed = f"seed {sweep.scenario.run.seed}"
    return f"tcpcast {sweep.version}; engines: {engines}; {seed}{several}."
