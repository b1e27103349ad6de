"""The data of the papers is complete, and their claims are judged by it."""

import csv
import math
from pathlib import Path
from typing import Any

import pytest
from tcpcast.process.errors import DomainError
from tcpcast_papers import PAPERS, claims
from tcpcast_papers.page import summary_text
from tcpcast_papers.printed import Line
from tcpcast_papers.report import KnownDifference, Report
from tcpcast_papers.reproduction import Row, Section, Verdict

DATA = sorted(Path(claims.__file__).parent.glob("*/data/*.csv"))
COLUMNS = (
    "runs place statement section rows of relative_to measure low high range_reason after cause "
    "verdict reason"
)
SECTION = Section(
    "Table 1. Errors",
    ("model", "points"),
    [
        Row(("A", "all"), "%", None, 4.0, others=(7.0,)),
        Row(("B", "all"), "%", None, 16.0),
        Row(("A", "first"), "%", None, -2.0),
        Row(("A", "changed"), "%", None, 9.0),
    ],
    others=("scheme 2",),
)


def claim(**cells: str) -> Line:
    base = dict.fromkeys(COLUMNS.split(), "") | {
        "runs": "both",
        "place": "Figure 1",
        "statement": "A is exact",
        "section": "Table 1",
        "rows": "A | all",
        "measure": "mean",
    }
    return Line(base | cells)


def judged(**cells: str) -> Row:
    (row,) = claims.section([claim(**cells)], [SECTION]).rows
    return row


@pytest.mark.parametrize(
    ("cells", "own", "verdict"),
    [
        ({"high": "5"}, 4, Verdict.AGREES),
        ({"high": "3"}, 4, Verdict.DIFFERS),
        ({"low": "3", "high": "5"}, 4, Verdict.AGREES),
        ({"relative_to": "B | all", "high": "1"}, 0.25, Verdict.AGREES),
        ({"of": "scheme 2", "high": "5"}, 7, Verdict.DIFFERS),
        ({"of": "scheme 2", "relative_to": "A | all", "high": "2"}, 1.75, Verdict.AGREES),
        ({"rows": "A | *", "measure": "largest size", "high": "9"}, 9, Verdict.AGREES),
        ({"rows": "A | *", "measure": "share above 0", "low": "100"}, 200 / 3, Verdict.DIFFERS),
        ({"rows": "* | all", "measure": "rises", "low": "100"}, 100, Verdict.AGREES),
        ({"rows": "* | all", "measure": "last / first", "high": "2"}, 4, Verdict.DIFFERS),
        ({"low": "8", "after": "A | changed", "cause": "a change"}, 4, Verdict.EXPLAINED),
        ({"low": "10", "after": "A | changed", "cause": "a change"}, 4, Verdict.DIFFERS),
        (
            {"low": "5", "high": "8", "after": "A | changed", "cause": "a change"},
            4,
            Verdict.BETWEEN,
        ),
        ({"high": "5", "verdict": "paper inconsistent"}, 4, Verdict.INCONSISTENT),
        ({"section": "", "verdict": "cannot be settled"}, None, Verdict.UNKNOWN),
    ],
)
def test_claim_is_judged_by_its_range(
    cells: dict[str, str], own: float | None, verdict: Verdict
) -> None:
    row = judged(**cells)
    assert row.own == (None if own is None else pytest.approx(own))
    assert row.verdict is verdict


def test_claim_without_rows_is_an_error() -> None:
    with pytest.raises(DomainError, match="Table 1 has no row 'C'"):
        judged(rows="C")


def test_claims_are_counted_apart_from_values() -> None:
    section = claims.section([claim(high="5"), claim(high="3", place="Figure 2")], [SECTION])
    report = Report("A paper", [section, SECTION])
    assert report.count(Verdict.DIFFERS) == 0
    assert summary_text(report) == (
        "no value has a verdict, no new differences. "
        "Claims of the paper by verdict: agrees 1, differs 1."
    )
    assert not report.has_only_known_differences
    known = KnownDifference(claims.TITLE, ("Figure 2", "A is exact"), "rounding")
    assert Report(
        "A paper", [section, SECTION], known_differences=(known,)
    ).has_only_known_differences


def lines() -> list[Any]:
    names = [name.replace("-", "_") for name in PAPERS]
    return [
        pytest.param(line, id=f"{name}: {line['statement']}")
        for name in names
        for line in claims.read(f"tcpcast_papers.{name}", "both")
        + claims.read(f"tcpcast_papers.{name}", "whole")
    ]


@pytest.mark.parametrize("line", lines())
def test_claim_of_a_paper_is_complete(line: Line) -> None:
    assert set(COLUMNS.split()) <= set(line.cells)
    assert line["place"]
    assert line["statement"]
    verdict = line["verdict"]
    assert bool(verdict) == bool(line["reason"])
    assert bool(line["after"]) == bool(line["cause"])
    assert verdict in {"", "differs", "lies between", "paper inconsistent", "cannot be settled"}
    if line["section"]:
        assert line["measure"] in claims.STATISTICS
        low, high = (line[end] and float(line[end]) for end in ("low", "high"))
        assert low != "" or high != ""
        assert not (low != "" and high != "" and low > high)
        assert all(math.isfinite(end) for end in (low, high) if end != "")
        assert line["range_reason"]
    else:
        assert verdict in {"paper inconsistent", "cannot be settled"}


@pytest.mark.parametrize("file", DATA, ids=lambda file: f"{file.parts[-3]}/{file.name}")
def test_every_line_is_complete_and_misprints_have_a_note(file: Path) -> None:
    with file.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    for row in rows:
        assert None not in row, f"a cell too many: {row}"
        assert None not in row.values(), f"a cell too few: {row}"
        assert row.get("note") or not row.get("misprint")
