"""Every figure of a random scenario can be drawn, and its texts and axes are complete."""

import os
from pathlib import Path
from random import Random
from typing import Any

import pytest
import tcpcast
from figure_faults import figure_faults
from generated_scenarios import Generator
from tcpcast.process.errors import TcpcastError
from tcpcast.report.chart import Axis, Chart, Panel, Series
from tcpcast.report.figures import iter_figures
from tcpcast.scenario import Scenario
from tcpcast.scenario.loading import get_packaged_names

pytest.importorskip("matplotlib")

LINK = {"rate": "20mbit", "buffer": "100pkt"}
WEB: dict[str, Any] = {
    "kind": "transfers",
    "size": {"distribution": "exponential", "mean": "30pkt"},
    "arrivals": {"distribution": "poisson", "rate": "20/s"},
}
BACKUP = {"name": "backup", "flows": 1, "traffic": {"kind": "bulk"}}
RANDOM_SIZES = {"distribution": "pareto", "mean": "36pkt", "alpha": 1.5}
NO_LIMIT: dict[str, Any] = {"network": {"rtt": "400ms"}, "run": {"duration": "2s"}}


def faults_of(tables: dict[str, Any], *, is_rendered: bool = False) -> list[str]:
    scenario = Scenario.from_dict(tables)
    try:
        answers = tcpcast.run(scenario, ["packet"], threads=1, over_time=True)
    except TcpcastError:
        return []
    return [
        f"{name}: {fault}"
        for name, figure in iter_figures(answers, scenario)
        for fault in figure_faults(figure, is_rendered=is_rendered)
    ]


@pytest.mark.parametrize(
    "tables",
    [
        {"network": {"rtt": "50ms", "bottleneck": LINK}, "traffic": WEB},
        {
            "network": {"rtt": "50ms", "bottleneck": LINK},
            "class": [{"name": "web", "traffic": WEB}],
        },
        {
            "network": {"rtt": "50ms", "bottleneck": LINK},
            "class": [{"name": "web", "traffic": WEB}, BACKUP],
        },
        {
            "network": {"bottleneck": LINK | {"rate": "2mbit", "delay": "1ms"}},
            "class": [{"name": "web", "traffic": WEB | {"size": RANDOM_SIZES}}],
            "run": {"duration": "5s"},
        },
        NO_LIMIT | {"traffic": WEB | {"size": 20, "arrivals": WEB["arrivals"] | {"rate": "0.5/s"}}},
        NO_LIMIT
        | {
            "traffic": {
                "kind": "on-off",
                "sources": 20,
                "off": {"distribution": "exponential", "mean": "4s"},
                "size": RANDOM_SIZES | {"mean": "6000pkt"},
            }
        },
    ],
    ids=["arrivals", "one-class", "two-classes", "few-by-size", "nothing-ends", "no-shared-rate"],
)
def test_figures_of_scenarios_that_failed(tables: dict[str, Any]) -> None:
    """Regression: tables without losses, sizes, RTT samples or shared rates ended a command."""
    run = {"duration": "20s"} | tables.get("run", {})
    assert faults_of(tables | {"run": run | {"max_wall": "2s"}}) == []


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.8e-4), (20.0, 3e8)])
def test_long_tick_labels_fit(low: float, high: float) -> None:
    x = Axis("time (s)", low, high, log=low > 0)
    assert (
        figure_faults(Chart(panels=[Panel([Series([low, high], [1, 2])], x, Axis("y"))]).draw())
        == []
    )


@pytest.mark.parametrize(("panels", "names"), [(1, 12), (6, 7)])
def test_names_at_line_ends_fit(panels: int, names: int) -> None:
    """Regression: the 6 names of the lowest panel of ``home`` covered a tick label."""
    x, y = Axis("time (s)", 0, 200), Axis("goodput", 0, 100)
    for value in (1, 50, 99):
        style = {"color": "black"}
        lines = [
            Series([0, 200], [value] * 2, style=style, name=f"class {n}") for n in range(names)
        ]
        chart = Chart(
            panels=[Panel(lines, x, y)] * panels,
            size=(5.8, 0.9 + 1.37 * panels),
            shared_axes="x",
            legend_position="below",
        )
        assert figure_faults(chart.draw()) == []


@pytest.mark.parametrize(
    "numbers",
    [range(6), *(pytest.param(range(n, n + 250), marks=pytest.mark.long) for n in (6, 256, 506))],
    ids=lambda numbers: f"{numbers.start}-{numbers.stop - 1}",
)
def test_figures_of_random_scenarios(
    numbers: range, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = {}
    for number in numbers:
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)  # captures of a scenario are written here
        tables = Generator(Random(f"figures {number}")).scenario("0.2s")
        if found := faults_of(tables, is_rendered=len(numbers) > 6):
            faults[number] = found
    assert faults == {}


@pytest.mark.parametrize("name", get_packaged_names())
def test_figures_of_packaged_scenarios(name: str) -> None:
    shorter = {"run.duration": "60s", "run.warmup": "10s"} if name == "local-loop" else {}
    scenario = tcpcast.load(name).with_changes({"run.max_wall": "unlimited"} | shorter)
    answers = tcpcast.run(scenario, threads=os.cpu_count(), over_time=True)
    faults = {figure: figure_faults(drawn) for figure, drawn in iter_figures(answers, scenario)}
    assert faults
    assert {figure: found for figure, found in faults.items() if found} == {}
