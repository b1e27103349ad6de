"""``tcpcast reproduce``: a paper's printed figures beside our own."""

# ruff: noqa: PLC0415 - heavy modules are imported when the command runs, not for its help
from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tcpcast.errors import EnvironmentFault

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

    from tcpcast.papers.reproduction import Report, Row, Section

EXAMPLE = "tcpcast reproduce engset --quick --output engset-paper"


def reproduce(
    name: Annotated[str, typer.Argument(metavar="PAPER", help="Which paper: engset.")],
    quick: Annotated[
        bool, typer.Option("--quick", help="Shorter runs: about a minute, wider intervals.")
    ] = False,
    output: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="Where the page and its figures go; ./PAPER-paper if not given."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
    threads: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Threads of the simulator; default one a core."),
    ] = None,
) -> None:
    """Run a paper again, beside its printed figures.

    Writes a page (index.md) with figures into a folder. Exit code 1 if a figure differs.
    """
    report = _reproduced(name, Path(output or f"{name}-paper"), quick=quick, threads=threads)
    if as_json:
        from tcpcast.report.json import encode

        print(encode(report_json(report)))
    else:
        from tcpcast.report.terminal import console

        console().print(report_text(report))
    if report.page is not None:
        print(f"tcpcast: wrote {report.page}", file=sys.stderr)
    raise typer.Exit(1 if report.failed else 0)


def _reproduced(name: str, output: Path, *, quick: bool, threads: int | None) -> Report:
    from tcpcast.cli.progress import progress_bar
    from tcpcast.papers import paper

    run = paper(name)
    try:
        output.mkdir(parents=True, exist_ok=True)
        with progress_bar(f"reproducing {name}") as progress:
            return run(output, quick=quick, progress=progress, threads=threads)
    except OSError as fault:
        raise EnvironmentFault(f"cannot write to {output}: {fault.strerror}") from fault


def report_text(report: Report) -> Group:
    """Return a reproduction as something that a rich console prints, a table a section."""
    from rich.console import Group
    from rich.text import Text

    from tcpcast.papers.reproduction import summary

    parts: list[Any] = [Text(report.title, style="bold"), Text()]
    for section in report.sections:
        parts.append(Text(section.title, style="bold"))
        if section.rows:
            parts.append(_table(section))
        parts += [Text(remark) for remark in section.remarks] + [Text()]
    return Group(*parts, Text(summary(report), style="bold"))


def _table(section: Section) -> Table:
    from rich import box
    from rich.table import Table

    from tcpcast.papers import reproduction as shown

    table = Table(box=box.SIMPLE_HEAD, show_edge=False)
    for column in section.columns:
        table.add_column(column)
    table.add_column("unit")
    for column in ("published", "own"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("95 %", no_wrap=True)
    table.add_column("difference", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for row in section.rows:
        verdict = row.verdict
        style = "bold yellow" if verdict is shown.Verdict.DIFFERS else None
        figures = (shown.published_text(row), shown.own_text(row), shown.interval_text(row))
        table.add_row(
            *row.label, row.unit, *figures, shown.difference_text(row), verdict.value, style=style
        )
    return table


def report_json(report: Report) -> dict[str, Any]:
    """Return a reproduction for programs: every row with its published and own figure."""
    sections = [
        {
            "title": section.title,
            "columns": list(section.columns),
            "remarks": section.remarks,
            "figures": [str(path) for path in section.figures],
            "rows": [_row_json(row) for row in section.rows],
        }
        for section in report.sections
    ]
    page = None if report.page is None else str(report.page)
    return {"title": report.title, "page": page, "sections": sections}


def _row_json(row: Row) -> dict[str, Any]:
    return {
        "label": list(row.label),
        "unit": row.unit,
        "published": None if row.published is None else _finite(row.published.value),
        "value": _finite(row.own),
        "low": _finite(row.low),
        "high": _finite(row.high),
        "difference": _finite(row.difference),
        "verdict": row.verdict.value or None,
        "note": row.note or None,
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
