"""``tcpcast reproduce``: a paper's printed results and our own side by side."""

# ruff: noqa: PLC0415 - heavy modules are imported when the command runs; typer reads types
from __future__ import annotations

import functools
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tcpcast.cli.reports import check_reports, command_text, write_reports
from tcpcast.errors import EnvironmentFault, TcpcastError
from tcpcast.papers import MEASURED

if TYPE_CHECKING:
    from tcpcast.papers import Reproduce
    from tcpcast.papers.reproduction import Cause, Report, Row, Section


def reproduce(  # noqa: PLR0913 - one parameter per option
    *,
    context: typer.Context,
    name: str,
    quick: bool,
    output: str | None,
    measurements: list[str] | None,
    html: str | None,
    as_json: bool,
    threads: int | None,
    force: bool,
) -> None:
    """Print the results of a paper next to its printed ones, and write its page."""
    folder = Path(output or f"{name}-paper")
    run = _asked(name, measurements or [])
    check_reports(html, None, force=force)
    report = _reproduced(run, folder, quick=quick, threads=threads, force=force)
    if as_json:
        from tcpcast.report.json import encode

        print(encode(report_json(report)))
    else:
        from tcpcast.papers.told import reproduction_parts
        from tcpcast.report.text import print_parts

        print_parts(reproduction_parts(report))
    if report.page is not None:
        print(f"tcpcast: wrote {report.page}", file=sys.stderr)
    if not report.interrupted and html is not None:
        from tcpcast.papers.told import reproduction_document

        document = functools.partial(reproduction_document, report, command_text(context))
        write_reports(document, html, None, force=force)
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
    return 1 if report.new or report.gone else 0


def _asked(name: str, measurements: list[str]) -> Reproduce:
    """Return what reproduces a paper, given the files of measurements where it takes them."""
    from tcpcast.papers import paper

    run = paper(name)
    if not measurements:
        return run
    if name != MEASURED:
        raise TcpcastError(
            f"--measurements: {name} has its published values with it; leave the option out, or "
            f"write tcpcast reproduce {MEASURED}"
        )
    from tcpcast.papers.kernel import reproduce as kernel

    return functools.partial(kernel, measurements=[Path(each) for each in measurements])


def _reproduced(
    run: Reproduce, output: Path, *, quick: bool, threads: int | None, force: bool
) -> Report:
    from tcpcast.cli.progress import progress_bar

    with progress_bar("reproducing") as progress:
        return run(output, quick=quick, progress=progress, threads=threads, force=force)


def report_json(report: Report) -> dict[str, Any]:
    """Return a reproduction for programs: every row with its published and own figure."""
    sections = [
        {
            "title": section.title,
            "columns": list(section.columns),
            "remarks": section.remarks,
            "figures": [str(drawn.path) for drawn in section.figures],
            "rows": [_row_json(report, section, row) for row in section.rows],
        }
        for section in report.sections
    ]
    page = None if report.page is None else str(report.page)
    gone = [{"section": a.section, "label": list(a.label), "reason": a.reason} for a in report.gone]
    told: dict[str, Any] = {"title": report.title, "page": page, "sections": sections, "gone": gone}
    if report.interrupted:
        told["partial"] = "interrupted: these sections were finished"
    if report.unwritten:
        told["unwritten"] = report.unwritten
    return told


def _row_json(report: Report, section: Section, row: Row) -> dict[str, Any]:
    beside = section.beside
    return {
        "label": list(row.label),
        "unit": row.unit,
        "published": None if row.published is None else _finite(row.published.value),
        "value": _finite(row.own),
        "low": _finite(row.low),
        "high": _finite(row.high),
        "difference": _finite(row.difference),
        "verdict": row.verdict.value or None,
        "accepted": report.reason(section.title, row),
        "note": row.note or None,
        "explained_by": _cause_json(row.explained_by),
        "beside": dict(zip(beside, map(_finite, row.beside), strict=True)) if row.beside else None,
        "withheld": [name for name, so in zip(beside, row.withheld, strict=False) if so] or None,
    }


def _cause_json(cause: Cause | None) -> dict[str, Any] | None:
    return None if cause is None else {"reason": cause.reason, "value": _finite(cause.own)}


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
