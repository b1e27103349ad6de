"""What the tests of whole reports look at: sections, rows and figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tcpcast.papers.reproduction import Report, Section


def section(report: Report, title: str) -> Section:
    """Return the section whose title begins so."""
    (found,) = [s for s in report.sections if s.title.startswith(title)]
    return found


def own(part: Section, *label: str) -> float:
    """Return our own value in the row with that label."""
    (row,) = [r for r in part.rows if r.label == label]
    assert row.own is not None
    return row.own


def check_figure(report: Report, name: str) -> None:
    """Check that a figure is drawn, and shown on the report's page."""
    assert report.page is not None
    assert (report.page.parent / name).read_bytes().startswith(b"\x89PNG")
    assert f"]({name})" in report.page.read_text(encoding="utf-8")
