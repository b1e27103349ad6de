"""Helpers for tests of reports: made-up parts, sections and rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tcpcast_papers.report import Report
from tcpcast_papers.reproduction import Section


@dataclass(frozen=True, slots=True)
class Part:
    """Sections of a made-up paper, with the interface of a module."""

    SECTIONS: Sequence[Callable[..., Any]]
    request: Callable[..., object] | None = None


def section(report: Report, title: str) -> Section:
    """Return the section whose title starts with this text."""
    (result,) = [s for s in report.sections if s.title.startswith(title)]
    return result


def own(part: Section, *label: str) -> float:
    """Return the own value in the row with this label."""
    (row,) = [r for r in part.rows if r.label == label]
    assert row.own is not None
    return row.own
