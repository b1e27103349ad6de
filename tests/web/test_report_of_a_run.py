"""The report that the page downloads shows the simulated run over time."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("starlette", reason="needs starlette: the extra web")
pytest.importorskip("matplotlib", reason="needs matplotlib: the extra plot")

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
