"""The report that the page downloads shows the simulated run over time."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("starlette", reason="needs starlette: the extra web")
pytest.importorskip("matplotlib", reason="needs matplotlib: the extra plot")

from tcpcast.web.evaluation import simulate
from tcpcast.web.report import report

PATH = {"rate": "1mbit", "loss": "5%", "rtt": "20ms"}


def _simulated(question: str, values: dict[str, str]) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = []
    simulate({"question": question, "values": values}, told.append)
    return [each["point"] for each in told if "point" in each]


def test_what_was_simulated_is_shown_over_time() -> None:
    asked = {"question": "path", "values": PATH}
    html = report({**asked, "points": _simulated("path", PATH)})["html"]
    assert "Simulated run" in html
    assert "window of" in html
    assert "flow gets" in html
    assert html.count("<svg") == 2


def test_without_a_simulation_nothing_is_simulated_for_the_report() -> None:
    html = report({"question": "path", "values": PATH})["html"]
    assert "Simulated run" not in html
    assert html.count("<svg") == 1
