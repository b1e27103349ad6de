"""Helpers for tests of whole reports: sections, rows and figures."""

import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from tcpcast_papers.report import Report
from tcpcast_papers.reproduction import Section


@dataclass(frozen=True, slots=True)
class Part:
    """Sections of a made-up paper, with the interface of a module."""

    SECTIONS: Sequence[Callable[..., Any]]
    request: Callable[..., object] | None = None


@contextmanager
def without_layout() -> Iterator[None]:
    """Draw figures with few points and possibly overlapping labels.

    The layout of figures takes most of the time of a short report. The long tests draw
    reports of whole papers with it.
    """
    figure = pytest.importorskip("matplotlib.figure").Figure
    matplotlib = importlib.import_module("matplotlib")
    with matplotlib.rc_context({"savefig.dpi": 30}), pytest.MonkeyPatch.context() as patch:
        patch.setattr(figure, "get_layout_engine", lambda _: None)
        yield


def section(report: Report, title: str) -> Section:
    """Return the section whose title starts with this text."""
    (result,) = [s for s in report.sections if s.title.startswith(title)]
    return result


def own(part: Section, *label: str) -> float:
    """Return the own value in the row with this label."""
    (row,) = [r for r in part.rows if r.label == label]
    assert row.own is not None
    return row.own


def check_figure(report: Report, name: str) -> None:
    """Check that a figure is drawn, and shown on the report's page."""
    assert report.page is not None
    assert (report.page.parent / name).read_bytes().startswith(b"\x89PNG")
    assert f"]({name})" in report.page.read_text(encoding="utf-8")
