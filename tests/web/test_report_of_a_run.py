"""The report that the page downloads shows the simulated run over time."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("starlette", reason="needs starlette: the extra web")
pytest.importorskip("matplotlib", reason="needs matplotlib: the extra plot")

from figure_faults import figure_faults
from tcpcast.report.palette import COLOURS
from tcpcast.web.drawing import curve_chart
from tcpcast.web.evaluation import evaluate_curve
from tcpcast.web.report import create_report_file
from tcpcast.web.simulation import simulate

PATH = {"rate": "1mbit", "loss": "5%", "rtt": "20ms"}


def _simulate_points(question: str, values: dict[str, str]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    simulate({"question": question, "values": values}, messages.append)
    return [message["point"] for message in messages if "point" in message]


def test_report_plots_simulated_run_over_time() -> None:
    body = {"question": "path", "values": PATH}
    html = create_report_file({**body, "points": _simulate_points("path", PATH)})["html"]
    assert "Simulated run" in html
    assert "window of" in html
    assert "flow gets" in html
    assert html.count("<svg") == 2


def test_report_does_not_simulate_on_its_own() -> None:
    html = create_report_file({"question": "path", "values": PATH})["html"]
    assert "Simulated run" not in html
    assert html.count("<svg") == 1


def _point(x: float, value: float, low: float, high: float, **more: Any) -> dict[str, Any]:
    given = {"name": "packet", "group": None, "value": value, "low": low, "high": high}
    return {"x": x, "values": [given | more]}


@pytest.mark.parametrize("factor", [1.0, 1e-3], ids=["linear", "logarithmic"])
def test_curve_has_tick_labels_and_intervals_inside_the_axes(factor: float) -> None:
    """Regression: a narrow logarithmic axis had no numbers, and intervals left the panel."""
    curve = evaluate_curve({"question": "path", "values": PATH})
    x = curve["x"]
    points = [_point(x[0], 8e5, -2e6, 9e7), _point(x[-1], 7e5 * factor, 1e2, 8e5)]
    (axes,) = (figure := curve_chart(curve, points).draw()).axes
    assert figure_faults(figure) == []
    assert axes.get_yscale() == ("log" if factor < 1 else "linear")


def test_values_of_a_group_have_the_colour_of_its_formulas() -> None:
    values = {"stack-a": "linux-reno", "stack-b": "linux-reno", "loss": "1%"}
    curve = evaluate_curve({"question": "winner", "values": values})
    assert {each["name"].rpartition(", ")[2]: each["group"] for each in curve["series"]} == {
        "A alone": 0, "B alone": 1,
    }  # fmt: skip
    values_of_b = {"name": "B (linux-reno)", "group": 1}
    figure = curve_chart(curve, [_point(curve["x"][1], 8e5, 7e5, 9e5, **values_of_b)]).draw()
    (axes,) = figure.axes
    colours: dict[str, set[Any]] = {"A": set(), "B": set()}
    for line in axes.lines:
        name = str(line.get_label())
        if name.endswith((", A alone", ", B alone")):
            colours[name.split()[-2]].add(line.get_color())
    (bars,) = axes.containers
    assert colours == {"A": {COLOURS[0]}, "B": {COLOURS[1]}}
    assert bars.lines[0].get_color() == COLOURS[1]  # type: ignore[attr-defined]
