"""Selection of the table rows with the most important metrics for each kind of traffic."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tcpcast.answer.metric_definition import ANY_TRAFFIC
from tcpcast.answer.metrics import METRICS
from tcpcast.quantity.units import digits
from tcpcast.report.document import Column, Table
from tcpcast.report.quantity import ABSENT_MARK, scale_for_unit
from tcpcast.report.times_by_losses import evenly_spaced_indices
from tcpcast.scenario.classes import has_too_different_file_sizes
from tcpcast.scenario.file_sizes import size_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tcpcast.answer import Answer
    from tcpcast.comparison.compare import Comparison
    from tcpcast.scenario import Scenario

PERCENTILES = ("p50", "p95", "p99")
MAX_SIZE_PKTS = 2**32 - 1
"""Upper bound of the last size interval."""

_QUANTITY_LABELS = {"on_time": "ON time", "connection_rate": "connection rate", "queue": "queue"}
_UNIT_LABELS = {"packet": "pkt"}


def select_main_rows(
    comparison: Comparison,
    scenario: Scenario | None,
    *,
    has_classes: bool = False,
    of_class: str = "",
) -> Comparison:
    """Return the leading rows of a comparison; all rows if the kind of traffic is unknown.

    ``has_classes`` is True if each class has separate rows. Means over the files of all classes are
    then omitted if the file sizes of the classes differ much. ``of_class``: in a
    network, keep only the metrics of this class's traffic.
    """
    groups = [] if scenario is None else scenario.populations
    if of_class and scenario is not None and scenario.links:
        groups = [group for group in groups if group.name == of_class]
    kinds = {group.traffic.kind for group in groups}
    if not kinds:
        return comparison
    has_files = not (has_classes and has_too_different_file_sizes(groups))
    known = [(row, METRICS[row.metric]) for row in comparison.rows if row.metric in METRICS]
    main = [
        row
        for row, metric in known
        if not kinds.isdisjoint(metric.headline_of) and (has_files or not metric.file_kinds)
    ]
    path = [row for row, metric in known if metric.headline_of == ANY_TRAFFIC]
    return replace(comparison, rows=(*main, *path)) if main or path else comparison


def percentile_table(answers: Sequence[Answer], typed_sizes: Mapping[int, str]) -> Table | None:
    """Return p50, p95 and p99 of each quantity with a distribution, or None if there is none.

    ``typed_sizes`` maps sizes in packets to the sizes in bytes that the user typed.
    """
    rows = [
        row
        for answer in answers
        if not answer.withheld
        for row in _percentile_rows(answer, typed_sizes)
    ]
    if not rows:
        return None
    headings = ("percentiles", "unit", "by", *PERCENTILES)
    columns = zip(headings, zip(*rows, strict=True), strict=True)
    return Table([Column(name, cells, right=name in PERCENTILES) for name, cells in columns])


def has_missing_percentile(table: Table) -> bool:
    """Return True if a percentile is missing because too few transfers exceed it."""
    return any(ABSENT_MARK in column.cells for column in table.columns)


def _percentile_rows(answer: Answer, typed_sizes: Mapping[int, str]) -> Iterator[list[str]]:
    """Yield rows with quantity, unit, engine and percentiles."""
    table = answer.tables.get("percentiles", {})
    columns = [table[name].tolist() for name in ("quantity", "unit", *PERCENTILES) if table]
    classes = table.get("class", [""] * len(columns[0]) if columns else [])
    for of_class, quantity, unit, *values in zip(classes, *columns, strict=True):
        name = _QUANTITY_LABELS.get(quantity, quantity.replace("_", " "))
        yield _percentile_row(f"{name}, {of_class}" if of_class else name, unit, answer, values)
    sizes = answer.tables.get("by_size", {})
    if "class" in table:  # rows by size are totals over all classes
        return
    if set(PERCENTILES) <= sizes.keys():
        yield from _sizes_with_percentiles(
            "completion time", sizes, range(len(sizes["p50"])), answer, typed_sizes
        )
    times = answer.tables.get("transfer_times", {})
    for quantity in ("delivery_time", "total_time"):
        rows = [row for row, of in enumerate(times.get("quantity", ())) if of == quantity]
        yield from _sizes_with_percentiles(
            quantity.replace("_", " "), times, rows, answer, typed_sizes
        )


def _sizes_with_percentiles(
    quantity: str,
    table: Mapping[str, Any],
    rows: Sequence[int],
    answer: Answer,
    typed_sizes: Mapping[int, str],
) -> Iterator[list[str]]:
    """Yield one row per size; for many sizes, only rows of evenly spaced sizes."""
    for row in (rows[index] for index in evenly_spaced_indices(len(rows))):
        values = [float(table[p][row]) for p in PERCENTILES]
        yield _percentile_row(
            f"{quantity}, {sizes_of_row_text(table, row, typed_sizes)}", "s", answer, values
        )


def sizes_of_row_text(table: Mapping[str, Any], row: int, typed_sizes: Mapping[int, str]) -> str:
    """Return the size in packets, or the interval of sizes, of a row of ``by_size``, as text."""
    low, high = (
        float(table["size_pkts" if "size_pkts" in table else end][row])
        for end in ("low_pkts", "high_pkts")
    )
    if high >= MAX_SIZE_PKTS:
        return f"{low:,.0f} packets or more"
    if low == high:
        return size_text(round(low), typed_sizes)
    return f"{low:,.0f}–{high:,.0f} packets"


def _percentile_row(name: str, unit: str, answer: Answer, values: Sequence[float]) -> list[str]:
    known = [value for value in values if value == value]  # noqa: PLR0124 - not nan
    scale = scale_for_unit(unit, max(known, default=0.0))
    cells = [digits(v / scale.factor) if v in known else ABSENT_MARK for v in values]
    return [name, _UNIT_LABELS.get(unit, scale.unit), answer.engine, *cells]
