"""`tcpcast sweep --plot`: figures of sweeps, and sweeps that have no figure."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tcpcast
from matplotlib.figure import Figure
from tcpcast.cli import main
from tcpcast.process.errors import TcpcastError
from tcpcast.report.sweep_cells import make_swept_key, metric_grids
from tcpcast.report.sweep_figures import iter_sweep_figures, read_levels

Output = pytest.CaptureFixture[str]

pytest.importorskip("matplotlib")
pytest.importorskip("pyarrow")

RTT, LOSS = "network.rtt", "network.bottleneck.loss"


def draw_figures(
    vary: dict[str, Any], levels: dict[str, list[float]], **options: Any
) -> dict[str, Figure]:
    results = tcpcast.sweep("lossy-path", vary, processes=1, **options)
    return dict(iter_sweep_figures(results.to_arrow(), results.keys, "lossy-path", levels))


def texts(figure: Figure) -> set[str]:
    from matplotlib.text import Text  # noqa: PLC0415 - optional

    return {item.get_text() for item in figure.findobj(Text) if isinstance(item, Text)}


def test_one_key_gives_line_per_engine() -> None:
    figures = draw_figures(
        {RTT: "10ms..160ms log 3"}, {"goodput_bps": [2e7]}, engines=["pftk", "mathis"]
    )
    assert list(figures) == ["goodput_bps", "send_rate_pps"]
    figure = figures["goodput_bps"]
    (axes,) = figure.axes
    lines = {str(line.get_label()): line for line in axes.lines}
    curve = lines["_pftk (formula)"]
    swept = tcpcast.sweep("lossy-path", {RTT: "10ms..160ms log 3"}, engines="pftk", processes=1)
    expected = np.array(swept.to_arrow()["goodput_bps"].to_pylist()) / 1e6
    np.testing.assert_allclose(np.asarray(curve.get_ydata()), expected)
    places = [math.log10(value) for value in (0.01, 0.04, 0.16)]
    np.testing.assert_allclose(np.asarray(curve.get_xdata()), places)
    assert lines["_mathis (formula)"].get_linestyle() != curve.get_linestyle()
    assert list(swept.to_pandas()["untrusted"].map(len) > 0) == [True, True, False]
    assert axes.get_ylim()[1] < expected[0]  # the axis does not extend to an untrusted value
    assert {"10", "40", "160", "round-trip time (ms)", "20 Mbit/s"} <= texts(figure)


def test_a_power_of_a_logarithmic_key_has_two_logarithmic_axes() -> None:
    # Most values are near the largest one, so that the median does not show the decade.
    many, few = ["0.003%", "0.006%", "0.012%", "1%"], ["0.1%", "0.2%", "1%"]
    for losses, scale in ((many, "log"), (few, "linear")):
        figures = draw_figures({LOSS: losses}, {}, engines="pftk")
        assert figures["goodput_bps"].axes[0].get_yscale() == scale


def test_simulated_curves_have_points_and_bands() -> None:
    vary = {RTT: ["20ms", "40ms"]}
    short = tcpcast.load("lossy-path", changes={"run.duration": "4s", "run.warmup": "1s"})
    results = tcpcast.sweep(short, vary, engines=["pftk", "packet"], replications=3, processes=1)
    table = results.to_arrow().to_pydict()
    axes = {RTT: make_swept_key(RTT, table[RTT], "s")}
    formula, packet = metric_grids(table, "goodput_bps", axes)
    assert (formula.is_simulated, packet.is_simulated) == (False, True)
    assert np.isnan(formula.low).all()
    assert (packet.low < packet.value).all()
    where = zip(table["engine"], table[RTT], table["goodput_bps"], strict=True)
    rows = [value for engine, rtt, value in where if (engine, rtt) == ("packet", 0.02)]
    assert len(rows) == 3
    assert packet.value[0] == pytest.approx(np.mean(rows))
    figure = dict(iter_sweep_figures(results.to_arrow(), {RTT: "s"}, "x", {}))["goodput_bps"]
    (panel,) = figure.axes
    line = next(curve for curve in panel.lines if str(curve.get_label()).startswith("_packet"))
    assert line.get_marker() == "o"
    assert len(panel.collections) == 2  # the band and the intervals


def test_two_keys_give_map_with_isolines() -> None:
    from matplotlib.contour import QuadContourSet  # noqa: PLC0415 - optional

    vary = {RTT: "10ms..160ms log 9", LOSS: "0.1%..1% log 7"}
    figures = draw_figures(vary, {"goodput_bps": [3e7]}, engines="mathis")
    figure = figures["goodput_bps"]
    (lines,) = figure.findobj(QuadContourSet)
    (path,) = lines.get_paths()
    # By Mathis' formula, RTT sqrt(p) is constant along an isoline, apart from retransmissions.
    x, y = np.asarray(path.vertices, dtype=float).T
    np.testing.assert_allclose(x + y / 2, x[0] + y[0] / 2, atol=5e-3)
    labels = texts(figure)
    assert {"mathis (formula)", "30 Mbit/s", "round-trip time (ms)", "loss (%)"} <= labels


@pytest.mark.parametrize("stacks_first", [True, False])
def test_text_key_gives_curve_per_value(stacks_first: bool) -> None:
    keys = {"tcp.stack": ["linux-reno", "rfc-newreno"], RTT: "10ms..160ms log 4"}
    vary = dict(keys.items() if stacks_first else reversed(keys.items()))
    figure = draw_figures(vary, {}, engines=["pftk", "mathis"])["goodput_bps"]
    (panel,) = figure.axes
    rows = tcpcast.sweep("lossy-path", vary, engines=["pftk", "mathis"], processes=1).to_pandas()
    for stack in keys["tcp.stack"]:
        for engine in ("pftk", "mathis"):
            label = f"_{stack}, {engine}"
            line = next(curve for curve in panel.lines if curve.get_label() == label)
            selected = rows[(rows["tcp.stack"] == stack) & (rows["engine"] == engine)]
            goodput = selected.sort_values(RTT)["goodput_bps"].to_numpy()
            shown = np.asarray(line.get_ydata(), dtype=float)
            np.testing.assert_allclose(shown / shown[0], goodput / goodput[0])
    assert "round-trip time (ms)" in texts(figure)


def test_many_text_values_give_map() -> None:
    rates = [f"{rate}mbit" for rate in range(10, 19)]
    vary = {"network.bottleneck.rate": [*rates, "unlimited"], RTT: "10ms..160ms log 3"}
    figure = draw_figures(vary, {}, engines="mathis")["goodput_bps"]
    assert "mathis (formula)" in texts(figure)


def test_level_outside_values_is_noted() -> None:
    vary = {RTT: "10ms..20ms log 2", LOSS: ["1%", "2%"]}
    figure = draw_figures(vary, {"goodput_bps": [1e3]}, engines="mathis")["goodput_bps"]
    assert any("no contour line at" in label for label in texts(figure))


def test_text_values_are_shown_along_axis() -> None:
    vary = {"tcp.stack": ["linux-reno", "rfc-newreno"]}
    figure = draw_figures(vary, {}, engines="pftk")["goodput_bps"]
    assert {"linux-reno", "rfc-newreno", "TCP stack"} <= texts(figure)


def test_sweep_writes_figures_and_prints_table(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["sweep", "lossy-path", "--vary", f"{RTT}=10ms..40ms log 3", "--engine", "pftk"]
    assert main([*arguments, "--plot", "out", "--format", "svg"]) == 0
    shown = capsys.readouterr()
    assert "pftk" in shown.out
    assert "tcpcast: wrote out/goodput_bps.svg" in shown.err
    assert (tmp_path / "out" / "goodput_bps.svg").stat().st_size > 1000
    (tmp_path / "out" / "loss_ratio.svg").write_text("mine")
    assert main([*arguments, "--plot", "out", "--format", "svg"]) == 2
    assert "--force" in capsys.readouterr().err


def test_levels_are_read_in_units_of_metric() -> None:
    typed = ["goodput_bps=50mbit, 2mbit", "loss_ratio=1%", "queue_delay_mean_s=10ms", "timeouts=3"]
    assert read_levels(typed) == {
        "goodput_bps": [5e7, 2e6],
        "loss_ratio": [0.01],
        "queue_delay_mean_s": [0.01],
        "timeouts": [3.0],
    }
    with pytest.raises(TcpcastError, match="not a metric"):
        read_levels(["nothing=1"])
