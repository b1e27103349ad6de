"""A report as one HTML file that loads no external resource and runs no script."""

from __future__ import annotations

from functools import cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

from tcpcast.process.sanitize import escape_control_characters
from tcpcast.report.document import (
    ARROW,
    Code,
    Figure,
    Heading,
    Paragraph,
    ShareBar,
    SideBySide,
    Table,
)
from tcpcast.report.quantity import difference_text, is_absent_or_untrusted_text, scale_for_row
from tcpcast.report.side_by_side import (
    KIND_LABELS,
    difference_heading,
    interval_cell,
    row_name,
    value_or_mark_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tcpcast.answer import Kind, Metric
    from tcpcast.report.document import Column, Document, Part
    from tcpcast.report.quantity import Scale

_CONTENT_SECURITY_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""Content security policy: no scripts and no external resources."""


def html_page(document: Document, mark: str) -> str:
    """Return a report as a complete page; ``mark`` identifies it as written by tcpcast."""
    title = escape_html(document.title)
    return (
        f'<!doctype html>\n{mark}\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_CONTENT_SECURITY_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title>\n<style>\n{_read_stylesheet()}</style></head>\n"
        f"<body><main>\n<h1>{title}</h1>\n{html_elements(document.parts)}\n</main></body></html>\n"
    )


def html_elements(parts: Iterable[Part]) -> str:
    """Return parts as HTML elements, one per line."""
    return "\n".join(filter(None, map(_html_of_part, parts)))


def escape_html(text: object) -> str:
    """Return a text with markup and control characters escaped."""
    return escape(escape_control_characters(str(text)))


@cache
def _read_stylesheet() -> str:
    return files("tcpcast.report").joinpath("page.css").read_text(encoding="utf-8")


def _html_of_part(part: Part) -> str:
    match part:
        case Paragraph():
            return _html_of_paragraph(part)
        case Table():
            columns = part.all_columns
            heads = "".join(
                _html_table_heading(escape_html(column.heading), column.right, _drop_class(column))
                for column in columns
            )
            rows = [
                "".join(
                    _html_table_cell(
                        # The arrow does not separate from the destination.
                        escape_html(cell).replace(escape_html(ARROW), " &gt;&nbsp;"),
                        column.right,
                        cell,
                        _drop_class(column),
                    )
                    for cell, column in zip(row, columns, strict=True)
                )
                for row in zip(*(column.cells for column in columns), strict=True)
            ]
            return _table_element(part.title, heads, rows, part.emphasized_rows)
        case SideBySide():
            return _html_side_by_side(part)
        case ShareBar():
            percent = f"{100 * part.share:.0f} %"
            filled = f'<span class="bar"><span style="width:{100 * part.share:.1f}%"></span></span>'
            label = escape_html(part.name)
            return f'<p class="share"><span>{label}</span> <span>{percent}</span> {filled}</p>'
        case Figure():
            kind = ' class="wide"' if part.is_wide else ""
            caption = f"<figcaption>{escape_html(part.caption)}</figcaption>"
            return f"<figure{kind}>{part.svg}{caption}</figure>"
        case Heading() | Code():
            name = f"h{part.level}" if isinstance(part, Heading) else "pre"
            return f"<{name}>{escape_html(part.text)}</{name}>"


def _html_of_paragraph(part: Paragraph) -> str:
    if not (part.text or part.lead):
        return ""
    if part.role == "heading":
        return f"<h3>{escape_html(part.lead + part.text)}</h3>"
    mark = (
        f'<span class="mark">{escape_html(part.mark.strip())}</span> ' if part.mark.strip() else ""
    )
    lead = f"<strong>{escape_html(part.lead)}</strong>" if part.lead else ""
    kind = f' class="{part.role}"' if part.role else ""
    return f"<p{kind}>{mark}{lead}{escape_html(part.text)}</p>"


def _drop_class(column: Column) -> str:
    """Return the class of a column that a narrow window omits, like a narrow terminal, or ""."""
    return "extra" if column.drop_order else ""


def _html_side_by_side(part: SideBySide) -> str:
    comparison = part.comparison
    kinds = comparison.kinds
    heads = _html_table_heading("", False) + _html_table_heading("unit", False)
    for engine, kind in zip(comparison.engines, kinds, strict=True):
        heads += _html_table_heading(
            f'{escape_html(engine)}<br/><span class="kind">{KIND_LABELS[kind]}</span>', True
        )
    heads += "".join(
        _html_table_heading(escape_html(difference_heading(comparison, i)), True)
        for i in comparison.compared_columns
    )
    rows = []
    for row in comparison.rows:
        scale = scale_for_row(row)
        cells = (
            f'<th scope="row" title="{escape_html(row.metric)}">{escape_html(row_name(row))}</th>'
        )
        cells += _html_table_cell(escape_html(scale.unit), False)
        cells += "".join(
            _html_of_value(figure, scale, kind)
            for figure, kind in zip(row.metrics, kinds, strict=True)
        )
        cells += "".join(
            _html_table_cell(escape_html(difference_text(row.differences[i])), True)
            for i in comparison.compared_columns
        )
        rows.append(cells)
    return _table_element(part.title, heads, rows)


def _html_of_value(metric: Metric | None, scale: Scale, kind: Kind) -> str:
    bounds = interval_cell(metric, scale)
    suffix = f" <small>{escape_html(bounds)}</small>" if bounds else ""
    value = value_or_mark_text(metric, scale)
    return _html_table_cell(f"{escape_html(value)}{suffix}", True, value, kind)


def _html_table_heading(inner: str, right: bool, kind: str = "") -> str:
    inner = inner.strip("\n").replace("\n", "<br/>")
    names = " ".join(filter(None, ("r" if right else "", kind)))
    classes = f' class="{names}"' if names else ""
    return f'<th scope="col"{classes}>{inner}</th>'


def _html_table_cell(inner: str, right: bool, text: str = "", kind: str = "") -> str:
    names = " ".join(
        filter(
            None, ("r" if right else "", kind, "dim" if is_absent_or_untrusted_text(text) else "")
        )
    )
    classes = f' class="{names}"' if names else ""
    return f"<td{classes}>{inner}</td>"


def _table_element(
    title: str, heads: str, rows: Iterable[str], emphasized: Sequence[int] = ()
) -> str:
    caption = f"<caption>{escape_html(title)}</caption>" if title else ""
    marks = dict.fromkeys(emphasized, ' class="loud"')
    body = "\n".join(f"<tr{marks.get(i, '')}>{row}</tr>" for i, row in enumerate(rows))
    return (
        f'<div class="scroll"><table>{caption}<thead><tr>{heads}</tr></thead>\n'
        f"<tbody>{body}</tbody></table></div>"
    )
