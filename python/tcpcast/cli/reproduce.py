"""``tcpcast reproduce``: a paper's printed results and our own side by side."""

# ruff: noqa: PLC0415, TC001 - heavy modules are imported when the command runs; typer reads types
from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tcpcast.cli.options import Force, Json, Threads
from tcpcast.errors import EnvironmentFault
from tcpcast.papers import PAPERS

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, Group, RenderResult
    from rich.table import Table

    from tcpcast.papers.reproduction import Cause, Report, Row, Section

EXAMPLE = "tcpcast reproduce engset --quick --output engset-paper"
WHICH = f"Which paper: {', '.join(PAPERS)}."


def reproduce(  # noqa: PLR0913, PLR0917 - one parameter an option
    name: Annotated[str, typer.Argument(metavar="PAPER", help=WHICH)],
    quick: Annotated[
        bool, typer.Option("--quick", help="Shorter runs: about a minute, wider intervals.")
    ] = False,
    output: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="Where the page and its figures go; ./PAPER-paper if not given."
        ),
    ] = None,
    as_json: Json = False,
    threads: Threads = None,
    force: Force = False,
) -> None:
    """Rerun a paper and compare with its printed results.

    Writes a page (index.md) with figures into a folder. Exit code 1 if a result differs.
    """
    folder = Path(output or f"{name}-paper")
    report = _reproduced(name, folder, quick=quick, threads=threads, force=force)
    if as_json:
        from tcpcast.report.json import encode

        print(encode(report_json(report)))
    else:
        from tcpcast.report.terminal import show

        show(report_text(report))
    if report.page is not None:
        print(f"tcpcast: wrote {report.page}", file=sys.stderr)
    for reason in report.unwritten:
        print(f"tcpcast: {reason}", file=sys.stderr)
    raise typer.Exit(_exit_code(report))


def _exit_code(report: Report) -> int:
    if report.interrupted:
        said = "interrupted: these sections were finished; no page was written"
        print(f"tcpcast: {said}", file=sys.stderr)
        return 130
    if report.unwritten:
        return EnvironmentFault.exit_code
    return 1 if report.failed else 0


def _reproduced(
    name: str, output: Path, *, quick: bool, threads: int | None, force: bool
) -> Report:
    from tcpcast.cli.progress import progress_bar
    from tcpcast.papers import paper

    run = paper(name)
    with progress_bar(f"reproducing {name}") as progress:
        return run(output, quick=quick, progress=progress, threads=threads, force=force)


def report_text(report: Report) -> Group:
    """Return a reproduction as something that a rich console prints, a table a section.

    What differs is told once more at the end, where one looks first after hundreds of rows: with
    a reason before the summary, without one after it.
    """
    from rich.console import Group
    from rich.text import Text

    from tcpcast.papers.reproduction import difference_text, own_text, summary

    parts: list[Any] = [Text(report.title, style="bold"), Text()]
    for section in report.sections:
        parts.append(Text(section.title, style="bold"))
        if section.rows:
            parts.append(_SectionTable(section))
        parts += [Text(remark) for remark in section.remarks] + [Text()]
    parts += [Text(line) for line in _explained_lines(report)]
    parts.append(Text(summary(report), style="bold"))
    for title, row in report.failed:
        figures = f"own {own_text(row)} {row.unit} ({difference_text(row)})"
        parts.append(Text(f"! {_published(title, row)}, {figures}", style="yellow"))
    return Group(*parts)


def _explained_lines(report: Report) -> list[str]:
    """Return the rows that differ for a reason, each with both of our figures, by reason."""
    from tcpcast.papers.reproduction import cause_text, own_text

    lines: dict[str, list[str]] = {}
    for title, row in report.explained:
        if row.cause is not None:
            figures = f"own {own_text(row)} to {cause_text(row)} {row.unit}"
            told = f"  {_published(title, row)}, {figures}"
            lines.setdefault(row.cause.reason, []).append(told)
    return [
        line
        for reason, told in lines.items()
        for line in (f"Explained by {reason}, with our figure as set and with that changed:", *told)
    ] + ([""] if lines else [])


def _published(title: str, row: Row) -> str:
    from tcpcast.papers.reproduction import published_text

    return f"{', '.join((title.partition('.')[0], *row.label))}: published {published_text(row)}"


class _SectionTable:
    """The rows of a section, with all the columns that there is room for; the page has them all."""

    def __init__(self, section: Section) -> None:
        self.section = section

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.measure import Measurement

        from tcpcast.papers.reproduction import note_text

        noted = any(note_text(row) for row in self.section.rows)
        beside = bool(self.section.beside)
        for shown in ((noted, beside), (False, beside)):
            table = _table(self.section, notes=shown[0], beside=shown[1])
            needed = Measurement.get(console, options.update(width=1000), table).maximum
            if needed <= options.max_width:
                yield table
                return
        yield _table(self.section, notes=False, beside=False)


def _table(section: Section, *, notes: bool, beside: bool) -> Table:
    from rich import box
    from rich.table import Table

    from tcpcast.papers import reproduction as shown

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, collapse_padding=True)
    for column in (*section.columns, "unit"):
        table.add_column(column)
    for column in ("published", "own"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("95 %", no_wrap=True)
    table.add_column("difference", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for column in section.beside if beside else ():
        table.add_column(column, justify="right", no_wrap=True)
    if notes:
        table.add_column("note")
    for row in section.rows:
        figures = (shown.published_text(row), shown.own_text(row), shown.interval_text(row))
        verdict = (shown.difference_text(row), row.verdict.value)
        more = (*(shown.beside_texts(row) if beside else ()), *((shown.note_text(row),) * notes))
        style = "bold yellow" if row.verdict is shown.Verdict.DIFFERS else None
        table.add_row(*row.label, row.unit, *figures, *verdict, *more, style=style)
    return table


def report_json(report: Report) -> dict[str, Any]:
    """Return a reproduction for programs: every row with its published and own figure."""
    sections = [
        {
            "title": section.title,
            "columns": list(section.columns),
            "remarks": section.remarks,
            "figures": [str(drawn.path) for drawn in section.figures],
            "rows": [_row_json(row, section.beside) for row in section.rows],
        }
        for section in report.sections
    ]
    page = None if report.page is None else str(report.page)
    told: dict[str, Any] = {"title": report.title, "page": page, "sections": sections}
    if report.interrupted:
        told["partial"] = "interrupted: these sections were finished"
    if report.unwritten:
        told["unwritten"] = report.unwritten
    return told


def _row_json(row: Row, beside: tuple[str, ...]) -> dict[str, Any]:
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
        "explained_by": _cause_json(row.explained_by),
        "beside": dict(zip(beside, map(_finite, row.beside), strict=True)) if row.beside else None,
        "withheld": [name for name, so in zip(beside, row.withheld, strict=False) if so] or None,
    }


def _cause_json(cause: Cause | None) -> dict[str, Any] | None:
    return None if cause is None else {"reason": cause.reason, "value": _finite(cause.own)}


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
