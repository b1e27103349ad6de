"""Figures of plans: the model as a line, simulations as points with intervals."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tcpcast.cli import app
from tcpcast.plan import plan_buffer, plan_max_loss, plan_rate, plan_users
from tcpcast.report.plan_figures import plan_figure
from tcpcast.scenario import Scenario, load
from typer.testing import CliRunner

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes
    from tcpcast.plan import Plan

pytest.importorskip("matplotlib", reason="needs matplotlib: the extra plot")

PATH = {
    "network": {"rtt": "80ms", "bottleneck": {"loss": "1%"}},
    "traffic": {"kind": "bulk", "flows": 1},
    "tcp": {"stack": "rfc-newreno", "receiver_window": "700pkt"},
    "run": {"duration": "10s"},
}


def _web() -> Scenario:
    return load("web-10mbit").with_changes({"traffic.sources": 67})


@cache
def _plan(name: str) -> Plan:
    if name == "loss":
        return plan_max_loss(Scenario.from_dict(PATH), goodput_bps=5e7)
    if name == "buffer":
        return plan_buffer(_web(), loss=0.01)
    return (plan_rate if name == "rate" else plan_users)(
        _web(), rate_bps=4e5 if name == "rate" else 2e5
    )


def _lines(axes: Axes) -> dict[str, Any]:
    return {str(line.get_label()): line.get_data() for line in axes.get_lines()}


@pytest.mark.parametrize(("name", "factors"), [
    ("buffer", (1, 0.01)), ("rate", (1e6, 1e3)), ("users", (1, 1e3)), ("loss", (0.01, 1e6)),
])  # fmt: skip
def test_curve_reaches_target_at_answer(name: str, factors: tuple[float, float]) -> None:
    plan = _plan(name)
    axes = plan_figure(plan, plan.scenario or _web()).get_axes()[0]
    assert plan.target is not None
    line = next(data for label, data in _lines(axes).items() if label in {"_model", "_PFTK"})
    x, y = (np.asarray(part, dtype=float) for part in line)
    (index,) = np.flatnonzero(np.isclose(x * factors[0], plan.value, rtol=1e-9))
    # The curve has steps of a whole packet or a whole user.
    assert y[index] * factors[1] == pytest.approx(plan.target[1], rel=0.1)
    # The curve extends to both sides of the target.
    assert (y[0] * factors[1] - plan.target[1]) * (y[-1] * factors[1] - plan.target[1]) < 0


def test_simulated_points_are_drawn_over_model() -> None:
    plan = plan_buffer(_web(), loss=0.01)
    plan.tables["simulated"] = {
        "buffer_pkts": np.array([60, 90]),
        "loss_ratio": np.array([0.012, 0.008]),
        "low": np.array([0.011, np.nan]),
        "high": np.array([0.013, np.nan]),
    }
    plan.simulated, plan.simulated_low, plan.simulated_high = 75, 70, 80
    axes = plan_figure(plan, _web()).get_axes()[0]
    (points,) = axes.containers
    assert points[0].get_xydata().tolist() == [[60, 1.2], [90, 0.8]]
    (bars,) = points[2]
    assert bars.get_segments()[0][:, 1] == pytest.approx([1.1, 1.3])
    assert "by simulation: 75 packets" in axes.get_legend_handles_labels()[1]


def test_max_loss_figure_has_isoline_of_goodput() -> None:
    plan = _plan("loss")
    isoline = plan.tables["isoline"]
    near = np.interp(0.08, isoline["rtt_s"], isoline["loss_ratio"])
    assert near == pytest.approx(plan.value, rel=0.05)
    # Half of the RTT permits four times the loss: the rate is proportional to 1/(RTT sqrt(p)).
    half = np.interp(0.04, isoline["rtt_s"], isoline["loss_ratio"])
    assert half == pytest.approx(4 * plan.value, rel=0.1)
    # A window of 700 packets per RTT gives 50 Mbit/s up to about 160 ms, even at very low loss.
    assert np.isnan(isoline["loss_ratio"][isoline["rtt_s"] > 0.17]).all()
    below = plan_figure(plan, Scenario.from_dict(PATH)).get_axes()[1]
    assert below.get_xlabel() == "round-trip time (ms)"


def test_curves_that_end_below_the_panel_have_labels() -> None:
    from matplotlib.text import Annotation  # noqa: PLC0415 - optional

    link = {"rate": "20mbit", "buffer": "1bdp", "loss": "1%"}
    path = Scenario.from_dict(
        PATH | {"network": {"rtt": "80ms", "bottleneck": link}, "tcp": {"stack": "linux-bbr"}}
    )
    axes = plan_figure(plan_max_loss(path, goodput_bps=5e6), path).get_axes()[0]
    lowest, _ = axes.get_ylim()
    ends = {str(line.get_label()): np.asarray(line.get_ydata())[-1] for line in axes.get_lines()}
    assert ends["_BBR’s bound"] < lowest
    labels = {text.get_text(): text.xy[1] for text in axes.texts if isinstance(text, Annotation)}
    assert {"BBR’s\nbound", "CUBIC\nresponse"} < labels.keys()
    assert labels["BBR’s\nbound"] > 0.8  # its last visible value, near the link's rate


@pytest.mark.parametrize("command", [
    ["buffer", "web-10mbit", "--set", "traffic.sources=67"],
    ["rate", "web-10mbit", "--rate", "300kbit"],
    ["users", "web-10mbit", "--rate", "200kbit"],
    ["max-loss", "--goodput", "50mbit", "--rtt", "80ms"],
])  # fmt: skip
def test_plan_commands_write_figure_and_report(tmp_path: Path, command: list[str]) -> None:
    page = tmp_path / "page.html"
    shown = ["--plot", str(tmp_path), "--format", "svg", "--out", str(page), "--json"]
    result = CliRunner().invoke(app, ["plan", *command, *shown])
    assert result.exit_code == 0, result.output
    written = tmp_path / f"{command[0].removeprefix('max-')}.svg"
    assert f"tcpcast: wrote {written}" in result.stderr
    assert page.read_text().count("<svg") == 1
    plan = json.loads(result.stdout)["plan"]
    assert "curve" in plan["tables"]
    assert plan["target"]["unit"] in {"1", "bit/s"}


def test_curves_of_figures_are_not_printed() -> None:
    result = CliRunner().invoke(app, ["plan", "max-loss", "--goodput", "50mbit", "--rtt", "80ms"])
    assert "File goodput by the number of sources" not in result.output
    assert "isoline" not in result.output


def test_simulation_without_losses_is_marked_below_log_axis() -> None:
    interval = {"low": np.array([0.008, 0.0]), "high": np.array([0.02, 1e-5])}
    simulated = {"buffer_pkts": np.array([200, 900]), "loss_ratio": np.array([0.012, 0.0])}
    plan = _plan("buffer")
    plan = replace(plan, tables={**plan.tables, "simulated": {**simulated, **interval}})
    figure = plan_figure(plan, _web())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.canvas.draw()
    (axes,) = figure.get_axes()
    position, height = _lines(axes)["packet (simulated), below this axis"]
    assert list(position) == [900]
    assert list(height) == [axes.get_ylim()[0]]
