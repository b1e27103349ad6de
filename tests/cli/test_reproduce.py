"""``tcpcast reproduce``: differences, their reasons, and the exit code."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tcpcast.cli import main
from tcpcast.papers import find_paper_packages
from tcpcast.report.text import layout_lines, plain_text
from tcpcast_papers.page import write
from tcpcast_papers.report import Report
from tcpcast_papers.reproduction import Cause, Printed, Row, Section, Tolerance

Capture = pytest.CaptureFixture[str]
AGREES, EXPLAINED, DIFFERS = (390.0, 500.0), (286.3, 388.9), (500.0, 450.0)
"""Own value and own value with the cause changed, for a published value of 390.4."""


def report(*figures: tuple[float, float]) -> Report:
    rows = [
        Row(
            (f"{number}-9",),
            "kbit/s",
            Printed("390.4"),
            own,
            tolerance=Tolerance(relative=0.05),
            note="65 files",
            explained_by=Cause("the phase of the loop", changed),
        )
        for number, (own, changed) in enumerate(figures)
    ]
    return Report("A paper", [Section("Table 9. Rates", ("interval",), rows)])


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> dict[str, Report]:
    """Return a dictionary in which a test stores the report that the command prints."""
    given: dict[str, Report] = {}

    def reproduce(output: Path, **_: Any) -> Report:
        write(given["report"], output)
        return given["report"]

    monkeypatch.setattr("tcpcast.papers.load_reproduction", lambda _: reproduce)
    return given


@pytest.mark.parametrize(
    ("figures", "code"),
    [([AGREES], 0), ([AGREES, EXPLAINED], 0), ([EXPLAINED, DIFFERS], 1), ([DIFFERS], 1)],
)
def test_only_unexplained_differences_fail(
    figures: list[tuple[float, float]], code: int, reports: dict[str, Report], tmp_path: Path
) -> None:
    reports["report"] = report(*figures)
    assert main(["reproduce", "engset", "--out", str(tmp_path)]) == code


def test_json_has_verdict_and_explanation_per_row(
    reports: dict[str, Report], tmp_path: Path, capsys: Capture
) -> None:
    reports["report"] = report(AGREES, EXPLAINED, DIFFERS)
    assert main(["reproduce", "engset", "--json", "--out", str(tmp_path)]) == 1
    rows = json.loads(capsys.readouterr().out)["sections"][0]["rows"]
    assert [row["verdict"] for row in rows] == ["agrees", "explained", "differs"]
    assert rows[1]["explained_by"] == {"reason": "the phase of the loop", "value": 388.9}
    assert rows[1]["note"] == "65 files"


@pytest.mark.parametrize("width", [80, 130])
def test_summary_lists_differences_with_reasons(width: int) -> None:
    lines = plain_text(report(AGREES, EXPLAINED, DIFFERS).parts(), width).splitlines()
    summary = " ".join(" ".join(lines).split())
    assert (
        "Explained by the phase of the loop, with the value before and after that change: "
        "Table 9, 1-9: published 390.4, own 286.3 to 388.9 kbit/s"
    ) in summary
    assert (
        "1 of 3 values checked agree, 1 agree after one change (the phase of the loop), "
        "1 new difference. ! Table 9, 2-9: published 390.4, own 500.0 kbit/s (+28.1 %)"
    ) in summary
    table = next(line for line in lines if "286.3" in line)
    assert "explained" in table
    assert ("65 files; the phase of the loop: 388.9" in table) == (width > 100)


@pytest.mark.parametrize(("width", "noted", "shown"), [(150, 1, 1), (78, 0, 1), (60, 0, 0)])
def test_additional_columns_are_shown_if_terminal_is_wide(
    width: int, noted: int, shown: int
) -> None:
    result = report(AGREES)
    (part,) = result.sections
    part.others = ("fixed point", "every flow")
    part.rows = [replace(row, others=(417.3, None), withheld=(True, False)) for row in part.rows]
    shown_text = plain_text(result.parts(), width)
    assert ("65 files" in shown_text, "417.3" in shown_text) == (bool(noted), bool(shown))
    assert ("(417.3)" in shown_text) == bool(shown)
    (row, *_) = result.to_json()["sections"][0]["rows"]
    assert row["beside"] == {"fixed point": 417.3, "every flow": None}
    assert row["withheld"] == ["fixed point"]


def test_only_unexplained_differences_are_highlighted() -> None:
    lines = layout_lines(report(EXPLAINED, DIFFERS).parts(), 130)
    yellow = [line.styled for line in lines if "33m" in line.styled]
    assert len(yellow) == 2  # in the table and in the summary
    assert all("500.0" in line for line in yellow)


def test_reproduce_writes_html_page(
    reports: dict[str, Report], tmp_path: Path, capsys: Capture
) -> None:
    pytest.importorskip("matplotlib")
    reports["report"] = report(AGREES, DIFFERS)
    page = tmp_path / "page.html"
    options = ["--out", str(tmp_path / "paper"), "--out", str(page)]
    assert main(["reproduce", "engset", *options]) == 1
    assert f"wrote {page}" in capsys.readouterr().err
    html = page.read_text(encoding="utf-8")
    assert "<h2>Table 9. Rates</h2>" in html
    assert '<tr class="loud">' in html
    assert "tcpcast reproduce engset" in html


def test_help_lists_installed_papers(capsys: Capture) -> None:
    assert main(["reproduce", "--help"]) == 0
    names = ", ".join(find_paper_packages())
    assert f"One of {names}." in " ".join(capsys.readouterr().out.split())
