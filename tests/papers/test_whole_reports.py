"""Reports of whole papers: their structure, verdicts, figures and pages; both runs are long.

The values, claims and known differences of each paper are in its data, so these tests name none.
"""

import math
from functools import cache
from pathlib import Path

import pytest
from report_parts import section
from tcpcast_papers import claims, paper
from tcpcast_papers.engset.interpretations import SINCE_OWN_TRANSMISSION
from tcpcast_papers.report import Report
from tcpcast_papers.reproduction import Verdict

pytestmark = pytest.mark.long

SECTIONS = {"engset": 28, "pftk": 13, "parallel": 20, "fixed-point": 28, "short": 16}
"""Least number of sections of a quick run, so that none is lost."""
DETERMINISTIC = {"pftk", "short"}
"""Papers whose pages are compared byte by byte: their whole runs take minutes."""
EXPLAINED = {"engset", "pftk", "short"}
"""Papers whose quick runs have no differences other than the listed ones."""


@cache
def quick(name: str, folder: Path) -> tuple[Report, list[float]]:
    shares: list[float] = []
    return paper(name)(folder / name, quick=True, progress=shares.append), shares


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("papers")


@pytest.mark.parametrize("name", SECTIONS)
def test_quick_run_gives_the_listed_verdicts(name: str, folder: Path) -> None:
    report, _ = quick(name, folder)
    (part,) = (section for section in report.sections if section.title == claims.TITLE)
    lines = claims.read(f"tcpcast_papers.{name.replace('-', '_')}", "quick")
    assert [row.verdict for row in part.rows] == list(map(claims.expected_verdict, lines))
    if name in EXPLAINED:
        assert [*report.new, *report.gone] == []
    if name == "engset":
        checked = [row for _, row in report.rows if row.verdict is not Verdict.SHOWN]
        assert len(checked) > 540
        assert all(row.published is None or row in checked for _, row in report.rows)


@pytest.mark.parametrize("name", SECTIONS)
def test_every_section_and_figure_is_complete(name: str, folder: Path) -> None:
    report, shares = quick(name, folder)
    assert len(report.sections) >= SECTIONS[name]
    for part in report.sections:
        assert part.rows or part.figures or part.remarks, part.title
        for row in part.rows:
            assert len(row.label) == len(part.columns), (part.title, row.label)
            assert len(row.others) in {0, len(part.others)}, (part.title, row.label)
            if name not in {"engset", "fixed-point"}:
                assert row.own is None or math.isfinite(row.own), (part.title, row.label)
    assert report.page is not None
    page = report.page.read_text(encoding="utf-8")
    figures = [figure.path for part in report.sections for figure in part.figures]
    assert figures
    for path in figures:
        assert path.read_bytes().startswith(b"\x89PNG")
        assert f"]({path.name})" in page
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1)


@pytest.mark.parametrize("name", SECTIONS)
def test_whole_paper_agrees_with_listed_differences(name: str, tmp_path: Path) -> None:
    pages = []
    for threads in (1, None) if name in DETERMINISTIC else (None,):
        folder = tmp_path / f"{threads}"
        report = paper(name)(folder, threads=threads)
        assert [*report.new, *report.gone] == []
        pages.append({file.name: file.read_bytes() for file in folder.iterdir()})
    assert all(page == pages[0] for page in pages)


def test_causes_are_readings_at_the_base_rtt(folder: Path) -> None:
    report, _ = quick("engset", folder)
    reasons = {row.cause.reason for _, row in report.explained_rows if row.cause}
    assert SINCE_OWN_TRANSMISSION in reasons
    assert "TOend also after a fast retransmit" in reasons
    assert not any("RTT" in reason for reason in reasons)
    explained = {title.partition(".")[0] for title, _ in report.explained_rows}
    assert explained == {"Table 7", "Table 9"}


def values_by_rtt(report: Report, text: str) -> list[float]:
    """Values with the base RTT, with 50 ms, and with 49.999 ms."""
    (row,) = [r for r in section(report, "The base RTT").rows if r.label[1].startswith(text)]
    return [value or 0.0 for value in (row.own, *row.others)]


@pytest.mark.parametrize("text", [f"{d}, B = {b}" for d in ("EE(7)", "EP") for b in (50, 150)])
def test_rates_are_closest_with_the_base_rtt(text: str, folder: Path) -> None:
    base, tie, before = values_by_rtt(quick("engset", folder)[0], text)
    assert base < before < tie
    assert base < 3


def test_repeated_timeouts_are_rare_only_in_the_tie(folder: Path) -> None:
    base, tie, before = values_by_rtt(quick("engset", folder)[0], "TOTO per TO")
    assert base == pytest.approx(9.9, abs=1.5)
    assert before == pytest.approx(9.9, abs=1.5)
    assert tie < 1
