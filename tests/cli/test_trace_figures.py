"""`tcpcast trace --plot`: written figures and their contents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import tcpcast
from capture_files import CAPTURES
from figure_faults import figure_faults
from tcpcast.captures.model_rates import model_curves
from tcpcast.cli import main
from tcpcast.process.errors import CaptureError
from tcpcast.report.trace_figures import (
    interval_points,
    iter_capture_figures,
    model_figures,
    worst_figures,
)
from tcpcast.report.trace_figures.direction_data import (
    Direction,
    file_name_prefixes,
    file_stem,
    worst_directions,
)
from tcpcast.report.trace_figures.over_time import LIMIT_COLOURS, covered_shares, draw_over_time
from tcpcast.report.trace_figures.sequence import (
    CAUSE_MARKS,
    DETAIL_SENDS,
    detail_span,
    draw_sequence,
)

matplotlib_text = pytest.importorskip("matplotlib.text")
matplotlib_figure = pytest.importorskip("matplotlib.figure")
StepPatch = pytest.importorskip("matplotlib.patches").StepPatch

if TYPE_CHECKING:
    from tcpcast.array_types import Table
    from tcpcast.captures import Capture

    Output = pytest.CaptureFixture[str]

ROOT = Path(__file__).parents[2]
TRANSFER = ROOT / "crates" / "trace" / "tests" / "data" / "transfer.pcap.gz"
PNG = b"\x89PNG\r\n\x1a\n"
START = np.datetime64("2026-01-02T03:04:05.678", "ns")


PATH = {"rtt_s": 0.1, "t0_s": 0.5, "packets_per_ack": 2.0, "receiver_window_pkts": 30.0}


def timestamps(seconds: Any) -> np.ndarray[Any, Any]:
    return START + (np.asarray(seconds, dtype=float) * 1e9).astype("timedelta64[ns]")


def legend(of: Any) -> list[str]:
    shown = of.legends[0] if isinstance(of, matplotlib_figure.Figure) else of.get_legend()
    return [] if shown is None else [text.get_text() for text in shown.get_texts()]


def direction(**by_table: Table) -> Direction:
    row: dict[str, Any] = {
        "connection": 7, "src": "10.0.0.1:1025", "dst": "[fd00::2]:80", "start": START,
        "data_packets": 1000, "retransmissions": 3, "td": 2, "to": 1, "throughput_bps": 1e6,
        "rtt_mean_s": 0.05, "rtt_min_s": 0.04, "duration_s": 10.0,
    }  # fmt: skip
    if "trail" in by_table:
        kinds = by_table["trail"]["kind"]
        row["data_packets"] = int((kinds == "data").sum()) + row["retransmissions"]
    return Direction(file="made.pcap", row=row, by_table=by_table)


def trail(count: int, retransmitted: dict[int, str] | None = None, step_s: float = 0.01) -> Table:
    """Segments of 1000 B in a row, each acknowledged 5 steps later, some retransmitted."""
    rows: list[tuple[float, str, int, int]] = []
    for number in range(count):
        time = number * step_s
        rows.append((time, "data", 1000 * number, 1000 * (number + 1)))
        acknowledged = 1000 * (number + 1)
        rows.append((time + 5 * step_s, "ack", acknowledged, acknowledged))
        rows.append((time + 5 * step_s, "window", acknowledged, acknowledged + 20_000))
        if retransmitted and number in retransmitted:
            rows.append(
                (time + 0.1 * step_s, retransmitted[number], 1000 * number, 1000 * (number + 1))
            )
            rows.append((time + 0.2 * step_s, "sacked", 1000 * number, 1000 * (number + 1)))
    rows.sort()
    return {
        "time": timestamps([row[0] for row in rows]),
        "kind": np.array([row[1] for row in rows]),
        "start_bytes": np.array([row[2] for row in rows]),
        "end_bytes": np.array([row[3] for row in rows]),
    }


def rounds(limits: list[str], duration_s: float = 0.1) -> Table:
    count = len(limits)
    return {
        "time": timestamps(np.arange(count) * duration_s),
        "duration_s": np.full(count, duration_s),
        "rtt_s": np.where(np.arange(count) % 4 == 3, np.nan, 0.05),
        "flight_bytes": np.full(count, 30_000),
        "window_bytes": np.full(count, 60_000),
        "sent_bytes": np.full(count, 30_000),
        "acked_bytes": np.full(count, 30_000),
        "retransmissions": np.zeros(count, dtype=np.int64),
        "limited_by": np.array(limits),
    }


def test_causes_have_distinct_colours_and_markers() -> None:
    for looks in zip(*CAUSE_MARKS.values(), strict=True):
        assert len(set(looks)) == len(CAUSE_MARKS)
    assert len(set(LIMIT_COLOURS.values())) == len(LIMIT_COLOURS)
    known = tcpcast.trace(TRANSFER).retransmissions["cause"]
    assert set(known.tolist()) <= CAUSE_MARKS.keys()


def test_retransmissions_are_drawn_at_time_and_sequence() -> None:
    retransmitted = {10: "duplicates", 20: "timeout", 30: "tail-loss-probe"}
    figure = draw_sequence(direction(trail=trail(60, retransmitted)))
    assert figure is not None
    (axes,) = figure.axes
    assert legend(figure) == [
        "sent", "SACK", "retransmitted: duplicates (1)",
        "retransmitted: tail-loss probe (1)", "retransmitted: timeout (1)",
    ]  # fmt: skip
    assert {text.get_text() for text in axes.texts} == {"acknowledged", "window edge"}
    (timeout,) = [line for line in axes.lines if line.get_marker() == CAUSE_MARKS["timeout"][2]]
    assert np.asarray(timeout.get_xdata()) == pytest.approx([0.201])
    assert np.asarray(timeout.get_ydata()) == pytest.approx([20.5])
    assert axes.get_ylabel() == "data sent so far (kB)"
    assert axes.get_xlabel() == "time (s) since 2026-01-02 03:04:05.678 UTC"
    assert figure.get_suptitle() == "3 of 63 data packets are retransmitted"
    assert any(
        text.get_text().startswith("made.pcap: 10.0.0.1:1025 > [fd00::2]:80")
        for text in figure.findobj(matplotlib_text.Text)
    )


def test_rare_causes_share_one_legend_entry() -> None:
    again = {10 + 3 * row: cause for row, cause in enumerate(CAUSE_MARKS)} | {
        40: "rack",
        45: "sack",
    }
    figure = draw_sequence(direction(trail=trail(60, again)))
    assert figure is not None
    assert legend(figure) == [
        "sent", "SACK", "retransmitted: SACK (2)", "retransmitted: RACK (2)",
        "retransmitted: other causes (5)",
    ]  # fmt: skip


def test_long_transfer_has_overview_and_detail() -> None:
    retransmitted = {200: "sack", **dict.fromkeys(range(2000, 2040), "timeout")}
    complete = trail(4 * 10 * DETAIL_SENDS, retransmitted)
    figure = draw_sequence(direction(trail=complete))
    assert figure is not None
    above, below = figure.axes
    first, last = below.get_xlim()
    assert first < 20.0
    assert last > 20.4
    assert last - first < 0.1 * (above.get_xlim()[1] - above.get_xlim()[0])
    assert {"retransmitted: timeout (40)", "retransmitted: SACK (1)"} <= set(legend(figure))
    assert len(above.collections) == len(below.collections) + 1
    low, high = below.get_ylim()
    assert high - low < 2 * 1.2 * DETAIL_SENDS * 1000 / 1e6


def test_detail_of_thinned_trail_is_not_longer() -> None:
    retransmitted = dict.fromkeys(range(500, 504), "timeout")
    made = direction(trail=trail(1000, retransmitted, step_s=0.04))
    made.row.update(data_packets=4004, retransmissions=4)
    figure = draw_sequence(made)
    assert figure is not None
    assert legend(figure)[0] == "sent (one of 4 packets)"
    first, last = figure.axes[1].get_xlim()
    assert first < 20 < last
    assert last - first < 1.2 * DETAIL_SENDS * 0.01


def test_detail_without_retransmissions_shows_start() -> None:
    table = trail(1000)
    time = (table["time"] - START) / np.timedelta64(1, "s")
    assert detail_span(time, table) == pytest.approx((0.0, DETAIL_SENDS * 0.01))
    assert detail_span(time[:300], {name: column[:300] for name, column in table.items()}) is None


def test_direction_without_data_has_no_figure() -> None:
    assert draw_sequence(direction()) is None
    only_acks = {name: column[:0] for name, column in trail(2).items()}
    assert draw_sequence(direction(trail=only_acks)) is None
    assert draw_over_time(direction()) is None


def test_over_time_figure_shows_flight_rtt_and_limits() -> None:
    limits = ["slow_start"] * 10 + ["congestion_window"] * 60 + ["timeout"] * 30
    losses = {"time": timestamps([7.0, 7.5]), "kind": np.array(["to", "td"])}
    made = direction(rounds=rounds(limits), loss_indications=losses)
    made.row.update(share_slow_start=0.1, share_congestion_window=0.598, share_timeout=0.302)
    figure = draw_over_time(made)
    assert figure is not None
    flight, rtt, strip = figure.axes
    assert legend(flight) == ["in flight", "receiver window", "fast recoveries (1)", "timeouts (1)"]
    assert flight.get_ylim()[1] > 60
    assert flight.get_ylabel() == "bytes in flight (kB)"
    assert legend(rtt) == ["mean per round", "minimum, 40 ms"]
    samples = np.asarray(rtt.lines[0].get_ydata())
    assert samples == pytest.approx(np.full(75, 50.0))
    assert legend(strip) == ["slow start 10 %", "congestion window 60 %", "timeouts 30 %"]
    assert all(axes.get_xlim() == pytest.approx((0.0, 10.0)) for axes in figure.axes)


def test_round_extends_to_next_round() -> None:
    table = rounds(["bottleneck"] * 50)
    table["duration_s"] = np.full(50, 0.05)
    made = direction(rounds=table)
    made.row["share_bottleneck"] = 1.0
    figure = draw_over_time(made)
    assert figure is not None
    (filled,) = figure.axes[2].patches
    assert isinstance(filled, StepPatch)
    tops = np.asarray(filled.get_data().values)
    assert tops == pytest.approx(np.ones(tops.size))


def test_long_legends_leave_width_to_the_panels() -> None:
    """Regression: legends wider than the figure were cut off, and the panels took 60 % of it."""
    table = rounds([limit for limit in LIMIT_COLOURS for _ in range(10)])
    table["window_bytes"] = np.repeat([4_000_000, 20_000], [60, 30])
    losses = {"time": timestamps([1.0, 7.0, 7.5]), "kind": np.array(["to", "td", "td"])}
    made = direction(rounds=table, loss_indications=losses)
    made.row.update({f"share_{limit}": 1 / 9 for limit in LIMIT_COLOURS})
    course = draw_over_time(made)
    assert course is not None
    assert legend(course.axes[0])[1].endswith("(mostly above this axis, up to 4 MB)")
    assert figure_faults(course) == []
    causes = dict(enumerate(CAUSE_MARKS))
    graph = draw_sequence(direction(trail=trail(20, causes)))
    assert graph is not None
    assert len(legend(graph)) == 5
    assert figure_faults(graph) == []


def test_title_names_no_limit_that_is_mostly_unknown() -> None:
    """Regression: "The rate is limited by slow start 0 % of the time"."""
    made = direction(rounds=rounds(["unknown"] * 99 + ["slow_start"]))
    made.row.update(share_unknown=0.999, share_slow_start=0.001)
    figure = draw_over_time(made)
    assert figure is not None
    assert figure.get_suptitle() == "Data in flight, round-trip times and limits of the rate"


SMALL_CAPTURES = [path for path in CAPTURES if path.stat().st_size <= 500_000]


@pytest.mark.parametrize("path", SMALL_CAPTURES, ids=lambda path: path.name)
def test_figures_of_captures_are_complete(path: Path) -> None:
    """Draw the worst direction of each small capture."""
    assert incomplete_figures(path, 1, is_rendered=False) == {}


@pytest.mark.long
@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_more_figures_of_captures_are_complete(path: Path) -> None:
    assert incomplete_figures(path, 8, is_rendered=True) == {}


def incomplete_figures(path: Path, directions: int, *, is_rendered: bool) -> dict[str, list[str]]:
    """Return the faults of the figures of the worst directions, by the names of the figures."""
    try:
        capture = tcpcast.trace(path, trail_points=20_000)
    except CaptureError:
        pytest.skip("not a capture")
    faults = {
        name: figure_faults(figure, is_rendered=is_rendered)
        for name, figure in worst_figures([capture], directions)
    }
    return {name: found for name, found in faults.items() if found}


def test_time_shares_are_split_at_interval_edges() -> None:
    edges = np.linspace(0, 10, 6)
    result = covered_shares(np.array([4.0, 0.0]), np.array([3.0, 1.0]), edges)
    assert result == pytest.approx([0.5, 0, 1, 0.5, 0])
    assert covered_shares(np.array([2.0]), np.array([100.0]), edges) == pytest.approx(
        [0, 1, 1, 1, 1]
    )


def capture_with_intervals(directions: int = 1) -> Capture:
    """Return a real capture with replaced tables: it has intervals of every class."""
    capture = tcpcast.trace(TRANSFER)
    count = 6
    changed: dict[str, Any] = {
        "duration_s": 540.0, "rtt_mean_s": 0.1, "t0_s": 0.5, "packets_per_ack": 2.0,
        "w_max_pkts": 30.0, "start": START, "data_packets": 1000, "super_segments": 0,
    }  # fmt: skip
    for name, column in capture.connections.items():
        row = np.full(1, changed[name]) if name in changed else column
        capture.connections[name] = np.repeat(row, directions)
    capture.connections["connection"] = np.arange(directions)
    zeros = np.zeros(count * directions, dtype=np.int64)
    table = {name: zeros.copy() for name in capture.intervals}
    table["direction"] = np.repeat(np.arange(directions), count)
    table["start_s"] = np.tile(np.arange(count) * 100, directions)
    table["data_packets"] = np.tile([1000, 900, 800, 700, 600, 200], directions)
    table["td"] = np.tile([10, 10, 10, 10, 0, 2], directions)
    table["to"] = np.tile([0, 1, 1, 1, 0, 0], directions)
    table["timeouts"] = np.tile([0, 1, 2, 5, 0, 0], directions)
    capture.intervals = table
    capture.retransmissions = {
        "direction": np.array([0, 0, 0, 0]),
        "time": timestamps([150, 250, 251, 350]),
        "cause": np.array(["timeout"] * 4),
        "backoff": np.array([1, 1, 2, 5]),
    }
    return capture


def test_intervals_are_classified_by_longest_timeout_sequence() -> None:
    points = interval_points(capture_with_intervals(), np.array([0]))
    assert points["class"].tolist() == ["TD", "T0", "T1", "T4", "-", "TD"]
    assert points["pkts_in_100_s"].tolist() == [1000, 900, 800, 700, 600, 200 / 0.4]
    assert points["length_s"].tolist() == [100] * 5 + [40]
    ratios = [0.01, 11 / 900, 11 / 800, 11 / 700, 0, 0.01]
    assert points["loss_indication_ratio"] == pytest.approx(ratios)


def test_model_figure_shows_intervals_and_curves() -> None:
    ((name, figure),) = model_figures(capture_with_intervals(2), 8)
    ends = [str(tcpcast.trace(TRANSFER).connections[end][0]) for end in ("src", "dst")]
    hosts = [end.rpartition(":")[0] for end in ends]
    assert name == "-".join(map(file_stem, hosts))
    (axes,) = figure.axes
    assert legend(axes) == [
        "no timeout (4)", "single timeouts (2)", "two in sequence (2)", "four or more (2)",
    ]  # fmt: skip
    assert {text.get_text() for text in axes.texts} <= set(model_curves(np.array([0.01]), PATH))
    full, _, td_only = axes.lines[-3:]
    across, packets = np.asarray(full.get_xdata(), dtype=float), np.asarray(full.get_ydata())
    model = tcpcast.models.pftk.throughput(
        rtt_s=0.1, t0_s=0.5, loss_indication_ratio=across, receiver_window_pkts=30.0
    )
    assert packets == pytest.approx(100 * model.rate_pps)
    assert (np.asarray(td_only.get_ydata()) > packets).all()
    shown = [" ".join(t.get_text().split()) for t in figure.findobj(matplotlib_text.Text)]
    assert any("2 intervals without loss are not drawn" in text for text in shown)
    assert axes.get_xscale() == "log"


def test_single_interval_has_no_model_figure() -> None:
    assert list(model_figures(tcpcast.trace(TRANSFER), 8)) == []


def test_figure_file_names_are_unique_and_portable() -> None:
    capture = tcpcast.trace(TRANSFER)
    assert file_name_prefixes([capture, capture]) == ["transfer", "transfer-2"]
    for file, prefix in (("-", "stdin"), ("a/b.pcapng.zst", "b"), ("b.flow.cap", "b.flow")):
        capture.file = file
        assert file_name_prefixes([capture]) == [prefix]
    assert file_stem("[fe80::1%eth0]:443") == "fe80-1-eth0_443"
    assert direction().name == "7-10.0.0.1_1025-fd00-2_80"


def test_worst_directions_exclude_single_packets_if_possible() -> None:
    capture = tcpcast.trace(TRANSFER)
    capture.connections = {n: np.repeat(v, 12) for n, v in capture.connections.items()}
    capture.connections["connection"] = np.arange(12)
    capture.connections["timeouts"] = np.arange(12)
    capture.connections["data_packets"][10:] = 1
    drawn = [one.row["connection"] for one in worst_directions(capture, 8)]
    assert drawn == [9, 8, 7, 6, 5, 4, 3, 2]
    capture.connections["data_packets"][:] = 1
    assert len(worst_directions(capture, 3)) == 3


def test_trace_writes_figures_with_stable_bytes(tmp_path: Path, capsys: Output) -> None:
    for name in ("a", "b"):
        assert main(["trace", str(TRANSFER), "--plot", str(tmp_path / name)]) == 0
    out, err = capsys.readouterr()
    first, second = sorted((tmp_path / "a").iterdir()), sorted((tmp_path / "b").iterdir())
    kinds = [path.stem.split("_")[-1].partition("-")[2] for path in first]
    assert kinds == ["over-time", "sequence"]
    assert all(path.name.startswith("transfer-0-") for path in first)
    assert [path.name for path in first] == [path.name for path in second]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert first[0].read_bytes().startswith(PNG)
    assert out.count("TCP segments") == 2
    assert all(f"tcpcast: wrote {path}\n" in err for path in [*first, *second])


def test_capture_without_data_prints_note_instead_of_figures(
    tmp_path: Path, capsys: Output
) -> None:
    capture = tcpcast.trace(TRANSFER)
    capture.connections = {name: column[:0] for name, column in capture.connections.items()}
    assert list(iter_capture_figures([capture])) == []
    assert not (tmp_path / "none").exists()
    trace_files = pytest.importorskip("tcpcast.cli.trace")
    trace_files.write_figures_and_parquet(
        [capture], str(tmp_path / "none"), "png", None, force=False
    )
    assert (
        capsys.readouterr().err == "tcpcast: no figure was written, because no direction "
        "carries data\n"
    )
