"""Figures: files, contents, and the message if matplotlib is missing."""

from pathlib import Path

import numpy as np
import pytest
import tcpcast
from matplotlib.figure import Figure
from tcpcast.answer import Answer
from tcpcast.report import figures, time_figures
from tcpcast.scenario import Scenario

from cli.made_up import calculated, simulated, write_answer_figures

pytest.importorskip("matplotlib")

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> dict[str, Figure]:
    """Figures by file name; the files are not written."""
    saved: dict[str, Figure] = {}

    def save_in_memory(figure: Figure, path: Path, **_: bool) -> Path:
        saved[path.name] = figure
        return path

    monkeypatch.setattr(figures, "save_figure", save_in_memory)
    return saved


def traced_answer() -> Answer:
    answer = simulated()
    time = np.linspace(0.0, 9.0, 10)
    answer.tables["windows"] = {
        "time_s": np.tile(time, 2),
        "flow": np.repeat([3, 7], 10),
        "cwnd_pkts": np.tile(2 + time, 2),
        "ssthresh_pkts": np.full(20, np.inf),
        "flight_pkts": np.tile(time, 2),
    }
    return answer


def test_plot_writes_figure_per_table_with_stable_bytes(scenario: Scenario, tmp_path: Path) -> None:
    paths = write_answer_figures([calculated(), traced_answer()], scenario, tmp_path / "a")
    assert [p.name for p in paths] == ["states.png", "sharing.png", "queue.png", "windows.png"]
    assert all(p.read_bytes().startswith(PNG) for p in paths)
    repeated = write_answer_figures([calculated(), traced_answer()], scenario, tmp_path / "b")
    assert [p.read_bytes() for p in repeated] == [p.read_bytes() for p in paths]


def test_infinite_ssthresh_does_not_change_window_scale(
    scenario: Scenario, tmp_path: Path, drawn: dict[str, Figure]
) -> None:
    write_answer_figures([traced_answer()], scenario, tmp_path)
    panels = drawn["windows.png"].axes
    assert [axes.get_ylabel().split("\n") for axes in panels] == [
        ["window of", "user 4 of 134", "(packets)"],
        ["window of", "user 8 of 134", "(packets)"],
    ]
    for axes in panels:
        assert axes.get_ylim() == pytest.approx((0, 1.1 * 11))


def test_answer_without_tables_has_no_figure(scenario: Scenario, tmp_path: Path) -> None:
    assert write_answer_figures([Answer("pftk")], scenario, tmp_path / "none") == []
    assert not (tmp_path / "none").exists()


def test_states_figure_has_log_scale_and_all_engines(
    scenario: Scenario, tmp_path: Path, drawn: dict[str, Figure]
) -> None:
    write_answer_figures([calculated(), simulated()], scenario, tmp_path)
    axes = drawn["states.png"].axes[0]
    assert axes.get_yscale() == "log"
    assert [line.get_label() for line in axes.lines] == ["packet (simulated)", "engset (formula)"]
    assert axes.get_xlabel()
    assert axes.get_ylabel()
    assert axes.get_legend() is not None


def test_sharing_figure_uses_readable_unit_and_omits_nan(
    scenario: Scenario, tmp_path: Path, drawn: dict[str, Figure]
) -> None:
    write_answer_figures([calculated(), simulated()], scenario, tmp_path)
    axes = drawn["sharing.png"].axes[0]
    assert "kbit/s" in axes.get_ylabel()
    measured, theory, equal = axes.lines
    assert min(np.asarray(measured.get_xdata())) == 10
    assert np.isfinite(np.asarray(measured.get_ydata(), dtype=float)).all()
    assert np.asarray(theory.get_ydata()).max() == pytest.approx(800)
    np.testing.assert_allclose(np.asarray(equal.get_ydata())[:2], [10000, 5000])


def test_queue_figure_shows_buffer(
    scenario: Scenario, tmp_path: Path, drawn: dict[str, Figure]
) -> None:
    write_answer_figures(
        [simulated()], scenario.with_changes({"network.bottleneck.buffer": "1bdp"}), tmp_path
    )
    buffer = drawn["queue.png"].axes[0].lines[-1]
    assert buffer.get_label() == "buffer"
    # 10 Mbit/s x 50 ms = 41.7 packets of 1500 B
    assert list(np.asarray(buffer.get_xdata())) == [42, 42]


def test_unlimited_buffer_and_rate_are_not_drawn(
    scenario: Scenario, tmp_path: Path, drawn: dict[str, Figure]
) -> None:
    changes = {"network.bottleneck.buffer": "unlimited", "network.bottleneck.rate": "unlimited"}
    write_answer_figures([simulated()], scenario.with_changes(changes), tmp_path)
    for name in ("queue.png", "sharing.png"):
        assert [x.get_label() for x in drawn[name].axes[0].lines] == ["packet (simulated)"]


def test_windows_figure_shows_complete_run_and_every_flow(
    scenario: Scenario, tmp_path: Path, drawn: dict[str, Figure]
) -> None:
    """One flow changes continuously for 1000 s, the other one rarely; both are fully shown."""
    answer = simulated()
    time = np.arange(10_000) * 0.1
    seldom = np.arange(0, 1000, 100.0)
    answer.tables["windows"] = {
        "time_s": np.concatenate([time, seldom]),
        "flow": np.repeat([0, 4], [len(time), len(seldom)]),
        "cwnd_pkts": np.concatenate([np.arange(10_000) % 20, np.full(10, 7)]),
        "ssthresh_pkts": np.full(10_010, 10),
    }
    write_answer_figures([answer], scenario, tmp_path)
    saw, flat = drawn["windows.png"].axes
    assert saw.get_xlim() == pytest.approx((0, 999.9))
    drawn_window = np.asarray(saw.lines[-1].get_xydata())
    assert drawn_window[:, 0].max() == pytest.approx(999.9)
    assert drawn_window[:, 1].max() == 19
    assert np.asarray(flat.lines[-1].get_xdata()).max() == 900


def test_flow_rates_include_all_packets_of_run() -> None:
    time, sequence = np.array([0.5, 1.5, 2.5, 7.5]), np.array([0, 1, 5, 0])
    rate = time_figures.send_rates(time, sequence, np.arange(9.0))
    # Numbers between two recorded ones were also sent; a smaller number starts a connection.
    assert rate.tolist() == [1, 1, 4, 0, 0, 0, 0, 1]


def test_rates_figure_has_curve_per_traced_flow(
    scenario: Scenario, tmp_path: Path, drawn: dict[str, Figure]
) -> None:
    answer = simulated()
    answer.tables = {
        "sequences": {
            "time_s": np.array([0.0, 1.0, 2.0, 3.0]),
            "flow": np.array([1, 2, 1, 2]),
            "sequence": np.array([0, 0, 100, 200]),
            "event": np.array(["sent", "sent", "sent", "dropped"]),
        }
    }
    write_answer_figures([answer], scenario, tmp_path)
    named = [text.get_text() for text in drawn["rates.png"].axes[0].texts]
    assert named == ["user 2 of 134", "user 3 of 134"]


@pytest.mark.parametrize(("form", "begins"), [("svg", b"<?xml"), ("pdf", b"%PDF"), ("png", PNG)])
def test_figure_formats_have_stable_bytes_and_are_replaced(
    form: str, begins: bytes, scenario: Scenario, tmp_path: Path
) -> None:
    queue = simulated()
    queue.tables = {"queue": queue.tables["queue"]}
    (first,) = [
        p.read_bytes() for p in write_answer_figures([queue], scenario, tmp_path, form=form)
    ]
    assert first.startswith(begins)
    assert [first] == [
        p.read_bytes() for p in write_answer_figures([queue], scenario, tmp_path, form=form)
    ]
    (tmp_path / f"queue.{form}").write_text("mine")
    with pytest.raises(tcpcast.MachineError, match="not overwritten"):
        write_answer_figures([queue], scenario, tmp_path, form=form)


def test_svg_figures_contain_text_as_text(scenario: Scenario, tmp_path: Path) -> None:
    states = calculated()
    states.tables = {"states": states.tables["states"]}
    write_answer_figures([states], scenario, tmp_path, form="svg")
    svg = (tmp_path / "states.svg").read_text()
    assert "users active at the same time</text>" in svg


def test_formulas_and_simulations_have_different_line_styles(
    scenario: Scenario, tmp_path: Path, drawn: dict[str, Figure]
) -> None:
    second_simulation, second_formula = simulated(), calculated()
    second_simulation.engine, second_formula.engine = "mean-field", "engset-2"
    write_answer_figures(
        [calculated(), second_formula, simulated(), second_simulation], scenario, tmp_path
    )
    lines = drawn["states.png"].axes[0].lines
    looks = {line.get_label(): (line.get_linestyle(), line.get_marker()) for line in lines}
    assert len(set(looks.values())) == 4
    assert looks["packet (simulated)"][0] == "None"
    assert looks["engset (formula)"][1] == "None"
