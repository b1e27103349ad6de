"""Sheets: cases and quantities become rows, with the verdict of each."""

import math
from pathlib import Path

import pytest
from tcpcast.answer import Metric
from tcpcast.report.chart import Axis, Chart, Panel
from tcpcast_papers.drawing import curve_with_intervals
from tcpcast_papers.printed import Line
from tcpcast_papers.reproduction import Section, Tolerance, Verdict
from tcpcast_papers.section_definition import (
    Quantity,
    SectionDefinition,
    metric_from_half_width,
    read_column,
)
from tcpcast_papers.simulations import Runs

LINES = [Line({"name": name, "rate": rate}) for name, rate in (("a", "10"), ("b", ""), ("c", "20"))]


def section(*quantities: Quantity[Runs[None], Line]) -> Section:
    sheet = SectionDefinition(
        "Table 1. Rates",
        ("name", "by"),
        "kbit/s",
        lambda line: (line["name"],),
        lambda _: LINES,
        quantities,
        notes=lambda runs: [f"{len(runs)} simulations"],
    )
    (compute,) = sheet.SECTIONS
    return compute(Runs(None), Path())


def quantity(value: float, **more: object) -> Quantity[Runs[None], Line]:
    def computed(_: object, __: object) -> Metric:
        return metric_from_half_width(value, 2.0)

    return Quantity(("model",), computed, read_column("rate"), **more)  # type: ignore[arg-type]


def test_section_has_one_row_per_case_and_quantity() -> None:
    result = section(quantity(11.0), quantity(19.0, condition=lambda line: line["name"] == "c"))
    assert [(row.label, row.own) for row in result.rows] == [
        (("a", "model"), 11.0),
        (("b", "model"), 11.0),
        (("c", "model"), 11.0),
        (("c", "model"), 19.0),
    ]
    assert {row.verdict for row in result.rows} == {Verdict.SHOWN}
    assert result.rows[0].unit == "kbit/s"
    assert result.remarks == ["0 simulations"]


@pytest.mark.parametrize(("allowed", "verdict"), [(1.0, Verdict.AGREES), (0.5, Verdict.DIFFERS)])
def test_row_verdict_depends_on_tolerance(allowed: float, verdict: Verdict) -> None:
    tolerance = Tolerance(absolute=allowed)
    (row, nothing, other) = section(quantity(11.0, tolerance=tolerance)).rows
    assert row.verdict is verdict
    assert nothing.verdict is Verdict.SHOWN
    assert other.verdict is Verdict.DIFFERS


def test_row_states_the_first_matching_cause() -> None:
    causes = tuple((f"{own}", lambda _, __, own=own: Metric(own)) for own in (12.0, 9.0, 8.0))
    rows = section(quantity(13.0, tolerance=Tolerance(absolute=0.5), causes=causes)).rows
    assert rows[0].cause is not None
    assert (rows[0].cause.reason, rows[0].cause.own) == ("9.0", 9.0)
    assert rows[1].explained_by is None
    assert rows[2].verdict is Verdict.DIFFERS


def test_case_overrides_tolerance_unit_and_note() -> None:
    rows = section(
        quantity(
            11.0,
            tolerance=lambda line: Tolerance(absolute=1) if line["name"] == "a" else None,
            note=lambda _, line: f"line {line['name']}",
            unit="%",
        )
    ).rows
    assert [row.verdict for row in rows] == [Verdict.AGREES, Verdict.SHOWN, Verdict.SHOWN]
    assert (rows[0].unit, rows[0].note) == ("%", "line a")


def test_misprinted_value_without_tolerance_is_inconsistent() -> None:
    line = Line({"rate": "10", "misprint": "value", "note": "a wrong digit"})
    row = quantity(11.0).row(Runs(None), line, ("a",), "kbit/s")
    assert (row.verdict, row.note) == (Verdict.INCONSISTENT, "a wrong digit")
    checked = quantity(11.0, tolerance=Tolerance(absolute=1)).row(Runs(None), line, ("a",), "")
    assert checked.verdict is Verdict.AGREES


def test_interval_is_limited_to_the_minimum() -> None:
    assert metric_from_half_width(1.0, 2.0, least=0.0) == Metric(1.0, 0.0, 3.0)
    assert metric_from_half_width(-1.0, 2.0, least=0.0) == Metric(0.0, 0.0, 1.0)
    assert metric_from_half_width(1.0) == Metric(1.0, None, None)
    assert math.isnan(metric_from_half_width(math.nan, math.nan).value)


def test_panels_that_share_an_axis_show_all_series() -> None:
    np, _ = pytest.importorskip("numpy"), pytest.importorskip("matplotlib")
    x, y = Axis("", 0, 3), Axis("", 0)
    panels = [
        Panel([curve_with_intervals([1, 2], np.array([[1.0, 2.0]]))], x, y, "low"),
        Panel(
            [curve_with_intervals([1, 2], np.array([[5.0, 9.0], [1.0, 1.0]]), "points")],
            x,
            y,
            "high",
        ),
    ]
    low, high = Chart(panels=panels, columns=2, shared_axes="y").draw().axes
    assert low.get_ylim() == high.get_ylim()
    assert low.get_ylim()[0] == 0
    assert low.get_ylim()[1] >= 10
    assert low.get_xlim() == (0, 3)
