"""The report of a sweep: what varies, its rows, what to check, figures, how to make it again."""

from __future__ import annotations

import math
import re
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.answer import Metric
from tcpcast.metrics import HEADLINE
from tcpcast.report.document import Code, Column, Document, Heading, Paragraph, Table
from tcpcast.report.quantity import ABSENT, interval_text, label, scale_of, value_text
from tcpcast.report.summary import MOST_WARNINGS, describe
from tcpcast.report.sweep import by_class, marks_explained, rows_parts
from tcpcast.report.sweep_cells import along, cells
from tcpcast.scenario.toml import write_toml

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tcpcast.report.document import Part
    from tcpcast.report.quantity import Scale
    from tcpcast.report.sweep_cells import Along, Cells
    from tcpcast.sweeps.axes import Axis
    from tcpcast.sweeps.definition import FinishedSweep

    Levels = Mapping[str, Sequence[float]]

MOST_VALUES = {1: 40, 2: 6}
"""Values of each key that a table has, by the number of keys."""

_NUMBER = re.compile(r"[0-9][0-9.,]*")

MOST_REMARKS = 12
"""Reasons that are listed, those of the most rows."""


def sweep_document(
    found: FinishedSweep, again: str, figures: bool = False, *, levels: Levels | None = None
) -> Document:
    """Return the report of a sweep.

    Parameters
    ----------
    found
        The sweep.
    again
        The command that makes the report again.
    figures
        Whether figures are drawn, by matplotlib.
    levels
        Values of metrics, in their units, at which a line is drawn.
    """
    rows = found.results.to_arrow()
    parts: list[Part] = [
        Paragraph(f"{describe(found.scenario)}."),
        Paragraph("What varies replaces these values.", "aside"),
        Heading("What varies"),
        _varied(found.axes),
        Paragraph(f"{len(found.results):,} rows: {found.results.counts()}."),
    ]
    if figures:
        parts += _figures(found, rows, levels or {})
    parts += [Heading("Answers"), *_answers(found, rows), *_to_check(found, rows)]
    asked = write_toml({"sweep": found.table})
    parts += [
        Heading("The scenario"),
        Paragraph("Every key, with the defaults that were taken, and what varies."),
        Code(f"{found.scenario.to_toml().rstrip()}\n\n{asked}"),
        Heading("Where it comes from"),
        Paragraph(_origin(found)),
        Paragraph(f"Sweep {found.digest}", "aside"),
        Heading("Make it again"),
        Code(again),
    ]
    return Document(f"{found.scenario.name}: a sweep", parts)


def _varied(axes: Sequence[Axis]) -> Table:
    return Table(
        [
            Column("key", [axis.key for axis in axes], right=False),
            Column("values", [f"{len(axis.values):,}" for axis in axes]),
            Column("from", [str(axis.values[0]) for axis in axes], right=False),
            Column("to", [str(axis.values[-1]) for axis in axes], right=False),
        ]
    )


def _answers(found: FinishedSweep, rows: Any) -> Iterator[Part]:
    """Yield a table a metric, engines side by side; where keys go together, the rows."""
    if not found.is_grid:
        yield from rows_parts(rows, found.results.keys, more="`tcpcast query` has them all")
        return
    columns = rows.to_pydict()
    keys = {
        key: along(key, columns[key], *holds)
        for key, holds in found.column_kinds.items()
        if columns
    }
    marks: set[str] = set()
    for group, of_group in {"": columns, **by_class(columns)}.items():
        for metric in HEADLINE:
            told = cells(of_group, metric, keys) if metric in of_group else []
            if told:
                yield _of_metric(metric, told, list(keys.values()), group)
                marks |= {str(mark) for each in told for mark in each.marks.flat}
    yield from marks_explained(marks)
    if any(
        len(key.values) > len(places)
        for key, places in zip(keys.values(), _some(keys.values()), strict=True)
    ):
        yield Paragraph("Some of the values; `tcpcast query` has them all.", "aside")


def _some(keys: Iterable[Along]) -> list[Any]:
    """Return the places of the values that a table has, of each key."""
    sizes = [len(key.values) for key in keys]
    most = MOST_VALUES[len(sizes)]
    return [np.unique(np.linspace(0, size - 1, min(size, most)).astype(int)) for size in sizes]


def _of_metric(metric: str, told: Sequence[Cells], keys: Sequence[Along], group: str) -> Table:
    """Return a metric at each combination of values, a column an engine; of a class or of all."""
    largest = max(float(np.nanmax(np.abs(each.value))) for each in told)
    scale = scale_of(metric, largest)
    places = list(product(*_some(keys)))
    columns = [
        Column(key.title, [key.labels[place[at]] for place in places], right=key.quantities)
        for at, key in enumerate(keys)
    ]
    for each in told:
        kind = "simulated" if each.simulated else "formula"
        cells_of = [_cell(each, place, scale) for place in places]
        columns.append(Column(f"{each.engine}\n{kind}", cells_of))
    unit = f" ({scale.unit})" if scale.unit else ""
    of_class = f", class {group}" if group else ""
    return Table(columns, f"{label(metric)}{of_class}{unit}")


def _cell(each: Cells, place: tuple[int, ...], scale: Scale) -> str:
    value = float(each.value[place])
    if not math.isfinite(value):
        return ABSENT
    low, high = (float(end[place]) for end in (each.low, each.high))
    known = math.isfinite(low) and math.isfinite(high)
    doubt = each.doubts[place] or None
    figure = Metric(value, low if known else None, high if known else None, interval_warning=doubt)
    return f"{value_text(figure, scale)}{each.marks[place]} {interval_text(figure, scale)}".rstrip()


def _to_check(found: FinishedSweep, rows: Any) -> Iterator[Part]:
    """Yield what is not answered and what to check, those first that are of the most rows."""
    said: list[str] = []
    if found.results.interrupted:
        done, whole = found.results.done, found.results.batches
        said.append(f"not whole: {done:,} of {whole:,} parts are answered")
    reasons = [(str(status), why) for status, why in _pairs(rows, "status", "reason") if why]
    warned = [
        (at, str(engine), text)
        for engine, texts in _pairs(rows, "engine", "warnings")
        for at, text in enumerate(texts or ())
    ]
    warned.sort(key=lambda each: each[0])  # those of a row are in the order of severity
    doubts = _counted([(engine, text) for _, engine, text in warned])
    told = [*_counted(reasons), *doubts]
    said += [*_counted(reasons)[:MOST_REMARKS], *doubts[:MOST_WARNINGS]]
    if said:
        yield Heading("What to check before trusting them")
        yield from (Paragraph(text, "warning", " ! ") for text in said)
    if len(told) > len(said):
        left = f"and {len(told) - len(said):,} more, in the columns reason and warnings"
        yield Paragraph(left, "aside")


def _counted(said: Sequence[tuple[str, str]]) -> list[str]:
    """Return what is said, those first that are said of the most rows.

    Texts that differ in their numbers are told once, by the first of them.
    """
    alike: dict[tuple[str, str], list[str]] = {}
    for who, text in said:
        alike.setdefault((who, _NUMBER.sub("", text)), []).append(text)
    ordered = sorted(alike.items(), key=lambda each: -len(each[1]))
    return [
        f"{who}, {len(texts):,} row{'' if len(texts) == 1 else 's'}"
        f"{', such as' if len(set(texts)) > 1 else ''}: {texts[0]}"
        for (who, _), texts in ordered
    ]


def _pairs(rows: Any, first: str, second: str) -> Iterator[tuple[Any, Any]]:
    if {first, second} <= set(rows.column_names):
        yield from zip(rows[first].to_pylist(), rows[second].to_pylist(), strict=True)


def _figures(found: FinishedSweep, rows: Any, levels: Levels) -> Iterator[Part]:
    from tcpcast.report.figures import inline  # noqa: PLC0415 - matplotlib is slow to import
    from tcpcast.report.sweep_figures import drawn_sweep  # noqa: PLC0415

    if not found.is_grid:
        said = "No figure: one is drawn of one or two keys that vary in all combinations."
        yield Paragraph(said, "aside")
        return
    drawn = drawn_sweep(rows, found.column_kinds, found.scenario.name, levels)
    shown = [inline(name, figure) for name, figure in drawn]
    if shown:
        yield Heading("Figures")
        yield Paragraph(
            "Formulas are lines; simulations have points with their 95 % intervals.", "aside"
        )
        yield from shown


def _origin(found: FinishedSweep) -> str:
    engines = "every engine that applies and is quick"
    asked = engines if found.engines is None else ", ".join(found.engines)
    several = f", {found.replications} replications" if found.replications > 1 else ""
    seed = f"seed {found.scenario.run.seed}"
    return f"tcpcast {found.version}; engines: {asked}; {seed}{several}."
