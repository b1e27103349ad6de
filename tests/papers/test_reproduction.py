"""Published and own values side by side, and tolerances."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tcpcast.answer import Metric
from tcpcast.papers import load_reproduction
from tcpcast.process.errors import ScenarioError
from tcpcast_papers.drawing import Plot, create_panels
from tcpcast_papers.page import (
    difference_text,
    further_value_texts,
    interval_text,
    own_value_text,
    summary_text,
    write,
)
from tcpcast_papers.report import Report
from tcpcast_papers.reproduction import (
    PRINTED_DIGITS,
    Cause,
    Printed,
    Row,
    Section,
    Tolerance,
    Verdict,
)

ONE_PERCENT = Tolerance(relative=0.01)


def row(text: str, own: float | None, tolerance: Tolerance | None, **more: Any) -> Row:
    return Row(("a",), more.pop("unit", "kbit/s"), Printed(text), own, tolerance=tolerance, **more)


@pytest.mark.parametrize(
    ("text", "own", "tolerance", "verdict"),
    [
        ("547.8", 547.849, PRINTED_DIGITS, Verdict.AGREES),
        ("547.8", 547.851, PRINTED_DIGITS, Verdict.DIFFERS),
        ("5.13", 5.125, PRINTED_DIGITS, Verdict.AGREES),
        ("0.4", 0.3, Tolerance(absolute=0.1), Verdict.AGREES),  # 0.4 - 0.1 is above 0.3
        ("100", 101, ONE_PERCENT, Verdict.AGREES),
        ("100", 101.1, ONE_PERCENT, Verdict.DIFFERS),
        ("0.004", 0.3, Tolerance(relative=0.08, absolute=0.3), Verdict.AGREES),
        ("6.3", 6.81, Tolerance(relative=0.08, absolute=0.3), Verdict.DIFFERS),
        ("396.2", 440, Tolerance(relative=0.1, between=(396.2, 432.4)), Verdict.DIFFERS),
        ("396.2", 435, Tolerance(relative=0.05, between=(396.2, 432.4)), Verdict.DIFFERS),
        ("396.2", 432, Tolerance(relative=0.05, between=(396.2, 432.4)), Verdict.AGREES),
        ("1", float("nan"), ONE_PERCENT, Verdict.DIFFERS),
        ("1", None, ONE_PERCENT, Verdict.DIFFERS),
        ("1", 5.0, None, Verdict.SHOWN),
    ],
)
def test_verdict_depends_on_difference_and_tolerance(
    text: str, own: float | None, tolerance: Tolerance | None, verdict: Verdict
) -> None:
    assert row(text, own, tolerance).verdict is verdict


def test_overlapping_interval_of_short_run_is_unsettled() -> None:
    outside: dict[str, Any] = {"low": 99.0, "high": 105.0}
    assert (
        row("100", 102.0, ONE_PERCENT, **outside, may_be_unsettled=True).verdict
        is Verdict.UNSETTLED
    )
    assert row("100", 102.0, ONE_PERCENT, **outside).verdict is Verdict.DIFFERS
    beyond: dict[str, Any] = {"low": 101.5, "high": 102.5}
    assert (
        row("100", 102.0, ONE_PERCENT, **beyond, may_be_unsettled=True).verdict is Verdict.DIFFERS
    )


@pytest.mark.parametrize(
    ("own", "changed", "verdict"),
    [
        (100.9, 150.0, Verdict.AGREES),
        (80.0, 120.0, Verdict.BETWEEN),
        (120.0, 80.0, Verdict.BETWEEN),
        (80.0, 99.1, Verdict.EXPLAINED),  # within 1 % of the changed value
        (101.5, 100.9, Verdict.EXPLAINED),
        (80.0, 98.9, Verdict.DIFFERS),  # closer, but published is outside
        (80.0, 60.0, Verdict.DIFFERS),  # the change increases the difference
        (101.5, 190.0, Verdict.DIFFERS),
        (500.0, 700.0, Verdict.DIFFERS),
        (500.0, 501.0, Verdict.DIFFERS),
        (80.0, math.nan, Verdict.DIFFERS),
        (80.0, math.inf, Verdict.DIFFERS),
        (math.nan, 100.0, Verdict.DIFFERS),
    ],
)
def test_cause_must_give_the_published_value(own: float, changed: float, verdict: Verdict) -> None:
    given = row("100", own, ONE_PERCENT, explained_by=Cause("a tie", changed))
    assert given.verdict is verdict
    assert (given.cause is not None) == (verdict in {Verdict.EXPLAINED, Verdict.BETWEEN})


def test_unchecked_and_unsettled_rows_have_no_cause() -> None:
    cause = Cause("a tie", 120.0)
    assert row("100", 80.0, None, explained_by=cause).verdict is Verdict.SHOWN
    wide: dict[str, Any] = {"low": 70.0, "high": 99.5, "may_be_unsettled": True}
    assert row("100", 80.0, ONE_PERCENT, **wide, explained_by=cause).verdict is Verdict.UNSETTLED


def test_simulated_value_without_interval_cannot_agree(tmp_path: Path) -> None:
    none = Metric(100.0, interval_warning="too few files: 12 of 100")
    known = Metric(100.0, 99.0, 101.0)
    formula = Metric(100.0)
    section = Section("Table 1", ("what",))
    section.rows = [
        Row.from_metric(("a",), "s", Printed("100"), metric, scale, tolerance=ONE_PERCENT)
        for metric in (none, known, formula)
        for scale in (1.0, 2.0)
    ]
    assert [each.verdict for each in section.rows] == [
        Verdict.UNSETTLED,
        Verdict.DIFFERS,
        *[Verdict.AGREES, Verdict.DIFFERS] * 2,
    ]
    write(Report("A paper", [section]), tmp_path)
    text = (tmp_path / "index.md").read_text()
    assert "| unsettled | no interval: too few files |" in text


def test_difference_is_measured_from_the_agreeing_range() -> None:
    step = Tolerance(between=(20, 30))
    assert row("30", 21.0, step).difference == 0
    assert row("30", 19.0, step).difference == pytest.approx(-1 / 30)
    assert row("30", 33.0, step).difference == pytest.approx(0.1)
    assert row("30", 21.0, None).difference == pytest.approx(-0.3)


def test_page_shows_causes(tmp_path: Path) -> None:
    section = Section("Table 1", ("what",))
    section.rows = [
        row("100", 100.4, ONE_PERCENT, explained_by=Cause("a tie", 103.0)),
        row("100", 80.0, ONE_PERCENT, explained_by=Cause("a tie", 100.6)),
        row("100", 90.0, ONE_PERCENT, explained_by=Cause("a tie", 103.4), note="12 files"),
    ]
    report = Report("A paper", [section])
    write(report, tmp_path)
    lines = (tmp_path / "index.md").read_text().splitlines()
    assert "- [Table 1](#table-1): 1 of 3 agree, 1 explained" in lines
    assert "| a | kbit/s | 100 | 100 | +0.4 % | agrees |  |" in lines
    assert "| a | kbit/s | 100 | 80 | -20.0 % | explained | a tie: 101 |" in lines
    assert "| a | kbit/s | 100 | 90 | -10.0 % | lies between | 12 files; a tie: 103 |" in lines
    assert report.differing == []
    assert report.explained_rows == [(section.title, row) for row in section.rows[1:]]
    assert summary_text(report) == (
        "1 of 3 values checked agree, 1 agree after one change (a tie), 1 lie between tcpcast's "
        "value and the one after one change (a tie), no new differences."
    )
    section.rows.append(row("100", 90.0, ONE_PERCENT))
    assert summary_text(report).endswith("(a tie), 1 new difference.")


def test_values_intervals_and_differences_are_formatted() -> None:
    plain = row("154.5", 155.27, ONE_PERCENT, low=154.0, high=156.5)
    assert own_value_text(plain) == "155.3"
    assert interval_text(plain) == "± 1.2"
    assert difference_text(plain) == "+0.5 %"
    assert difference_text(row("6.3", 6.2, None, unit="%")) == "-0.1 pp"
    assert difference_text(row("8.3", 8.333, PRINTED_DIGITS)) == ""
    assert difference_text(row("0", 0.2, None)) == ""


def test_rounding_difference_is_hidden_but_tolerance_is_not() -> None:
    wide = Tolerance(relative=0.05, printed_digits=True)
    assert difference_text(row("8.3", 8.333, wide)) == ""
    assert difference_text(row("8.3", 8.5, wide)) == "+2.4 %"


def test_further_values_have_no_verdict(tmp_path: Path) -> None:
    section = Section("Table 1", ("what",), others=("other", "third"))
    section.rows = [row("100.0", 100.41, ONE_PERCENT, note="why", others=(120.0, None))]
    assert further_value_texts(section.rows[0]) == ("120.0", "–")
    doubted = replace(section.rows[0], withheld=(True, True))
    assert further_value_texts(doubted) == ("(120.0)", "–")
    write(Report("A paper", [section]), tmp_path)
    lines = (tmp_path / "index.md").read_text().splitlines()
    head = "| what | unit | published | own | difference | verdict | other | third | note |"
    assert head in lines
    assert "| a | kbit/s | 100.0 | 100.4 | +0.4 % | agrees | 120.0 | – | why |" in lines


def test_page_shows_all_rows_and_marks_differences(tmp_path: Path) -> None:
    figure = Plot(create_panels(1)[0], tmp_path / "figure.png")
    section = Section("Table 1. A | B", ("what",), figures=[figure], remarks=["Mind the gap."])
    section.rows = [row("100", 100.4, ONE_PERCENT), row("100", 120.0, ONE_PERCENT, note="why")]
    report = Report("A paper", [section], preface=["Where it comes from."])
    write(report, tmp_path)
    assert report.page == tmp_path / "index.md"
    lines = report.page.read_text().splitlines()
    assert figure.path.is_file()
    assert lines[:3] == ["# A paper", "", "Where it comes from."]
    assert "- [Table 1. A | B](#table-1-a--b): 1 of 2 agree" in lines
    assert "![Table 1. A | B](figure.png)" in lines
    assert "| a | kbit/s | 100 | 100 | +0.4 % | agrees |  |" in lines
    assert "| a | kbit/s | 100 | 120 | +20.0 % | differs | why |" in lines
    assert lines[-3:] == ["Mind the gap.", "", "<!-- written by tcpcast reproduce -->"]
    assert report.differing == [(section.title, section.rows[1])]
    assert summary_text(report) == "1 of 2 values checked agree, 1 new difference."


def test_unknown_paper_is_rejected() -> None:
    with pytest.raises(ScenarioError, match=r"no paper 'engse'\. Did you mean 'engset'"):
        load_reproduction("engse")
