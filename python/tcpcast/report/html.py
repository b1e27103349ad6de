"""A comparison as an HTML table, for notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from tcpcast.compare import compare
from tcpcast.report.quantity import (
    ABSENT,
    UNTRUSTED,
    difference_text,
    interval_text,
    label,
    row_scale,
    value_text,
)
from tcpcast.report.summary import caveats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpcast.answer import Answer, Metric
    from tcpcast.compare import Comparison, Row
    from tcpcast.report.quantity import Scale

_DIM = ' style="opacity:.55"'


def html_table(answers: Sequence[Answer], caption: str = "") -> str:
    """Return the answers side by side as one ``<table>`` with the warnings beneath it."""
    comparison = compare(answers)
    head = "".join(f"<th>{escape(h)}</th>" for h in _headers(comparison))
    rows = "".join(_row(comparison, row) for row in comparison.rows)
    notes = "".join(
        f"<li>{escape(a.engine)}: {escape(note)}</li>"
        for a in answers
        for note in ([a.not_applicable] if a.not_applicable else caveats(a))
    )
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    table = f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return table + (f"<ul>{notes}</ul>" if notes else "")


def _headers(comparison: Comparison) -> list[str]:
    headers = ["", "unit", *comparison.engines]
    if comparison.reference is not None:
        held = comparison.engines[comparison.reference]
        headers += [f"{comparison.engines[i]} vs {held}" for i in comparison.compared]
    return headers


def _row(comparison: Comparison, row: Row) -> str:
    scale = row_scale(row)
    cells = [f'<th title="{row.metric}">{escape(label(row.metric))}</th>', f"<td>{scale.unit}</td>"]
    cells += [_cell(figure, scale) for figure in row.figures]
    cells += [f"<td>{difference_text(row.differences[i])}</td>" for i in comparison.compared]
    return f"<tr>{''.join(cells)}</tr>"


def _cell(figure: Metric | None, scale: Scale) -> str:
    if figure is None:
        return f"<td{_DIM}>{ABSENT}</td>"
    if not figure.trusted:
        why = "outside the engine's domain: never compared"
        return f'<td{_DIM} title="{why}">{value_text(figure, scale)}{UNTRUSTED}</td>'
    interval = interval_text(figure, scale)
    return (
        f"<td>{value_text(figure, scale)}{f' <small>{interval}</small>' if interval else ''}</td>"
    )
