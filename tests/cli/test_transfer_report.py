"""Single transfers in reports and figures, and the end of their runs."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tcpcast
from tcpcast.answer import Answer, Kind, Metric
from tcpcast.cli import main
from tcpcast.comparison.compare import compare_all
from tcpcast.report import figures
from tcpcast.report.run import run_parts
from tcpcast.report.summary import describe_scenario
from tcpcast.report.text import plain_text as plain
from tcpcast.scenario import Scenario

from cli.made_up import simulated, write_answer_figures

Capture = pytest.CaptureFixture[str]

REPORT = """\
                                           short
                  unit  short  packet  vs packet
─────────────────────────────────────────────────
 completion time  s     1.210   1.200     +0.8 %

                                                   short
 completion time  unit  short  packet  95 %    vs packet
─────────────────────────────────────────────────────────
 1 packet         ms    110.0   100.0  ± 0       +10.0 %
 1,000 packets    s     2.310    2.30  ± 0.10     +0.4 %

 short          unit  0 lost  1 lost  3 lost
─────────────────────────────────────────────
 1 packet       s     0.1100   1.110       –
 1,000 packets  s      2.110   2.310   4.310

 packet         unit  0 lost  1 lost  3 lost
─────────────────────────────────────────────
 1 packet       s     0.1000   1.100       –
 1,000 packets  s      2.100   2.300   4.300
"""


def made_up(engine: str, longer_s: float, half_s: float | None) -> Answer:
    sizes, losses = np.array([1, 1, 1000, 1000, 1000]), np.array([0, 1, 0, 1, 3])
    times = np.array([0.1, 1.1, 2.1, 2.3, 4.3]) + longer_s
    by_losses = {"size_pkts": sizes, "losses": losses, "completion_time_s": times}
    means = np.array([0.1, 2.3]) + longer_s
    by_size = {"size_pkts": np.array([1, 1000]), "completion_time_s": means}
    if half_s is not None:
        of_means = np.array([0.0, half_s])
        by_size |= {"low": means - of_means, "high": means + of_means}
        widths = np.where(sizes == 1, 0, half_s / 2)
        by_losses |= {"low": times - widths, "high": times + widths}
        by_losses["transfers"] = np.array([90, 9, 30, 30, 30])
    tables = {"by_size": by_size, "by_losses": by_losses}
    kind: Kind = "formula" if half_s is None else "simulation"
    metrics = {"completion_time_s": Metric(1.2 + longer_s)}
    return Answer(engine, kind=kind, metrics=metrics, tables=tables)


def test_report_has_tables_by_size_and_by_losses() -> None:
    answers = [made_up("short", 0.01, None), made_up("packet", 0.0, 0.1)]
    assert plain(run_parts(compare_all(answers)), 80).startswith(REPORT)
    narrow = plain(run_parts(compare_all(answers)), 50)
    assert "…" not in narrow
    assert max(len(line) for line in narrow.splitlines()) <= 50


def test_long_list_of_sizes_is_shortened() -> None:
    answer = made_up("packet", 0.0, None)
    sizes = np.arange(1, 101)
    answer.tables = {"by_size": {"size_pkts": sizes, "completion_time_s": sizes * 0.1}}
    text = plain(run_parts(compare_all([answer])), 80)
    assert text.count(" packet") > 10
    assert "1 packet " in text
    assert "100 packets" in text
    assert "99 packets" not in text


def test_sizes_in_bytes_and_all_percentiles_are_shown() -> None:
    changes: dict[str, Any] = {"tcp": {"stack": "linux-cubic"}, "network.packet": "1500B"}
    changes |= {"traffic.size": ["1pkt", "1.448MB"]}
    scenario = tcpcast.load("short-transfers", changes=changes)
    answer = made_up("packet", 0.0, 0.1)
    percentiles = {"p50": np.array([0.1, 1.0]), "p95": np.array([0.2, 2.0])}
    nothing = {"p99": np.full(2, np.nan)}
    answer.tables["by_size"] |= percentiles | nothing
    answer.tables["transfer_times"] = {
        "size_pkts": np.array([1, 1, 1000]),
        "quantity": np.array(["delivery_time", "total_time", "total_time"]),
        **{name: np.append([9.0], 2 * column) for name, column in (percentiles | nothing).items()},
    }
    text = plain(run_parts(compare_all([answer]), scenario), 90)
    rows = [" ".join(line.split()) for line in text.splitlines()]
    assert "completion time, 1.448 MB, 1,000 packets s packet 1 2 –" in rows
    assert "total time, 1 packet ms packet 200 400 –" in rows
    assert "total time, 1.448 MB, 1,000 packets s packet 2 4 –" in rows
    assert "delivery time, 1 packet s packet 9 9 9" in rows
    assert "–: fewer than 10 values exceed this percentile; run longer" in rows
    assert any(row.startswith("1.448 MB, 1,000 packets s 2.30") for row in rows)
    assert any(row.startswith("1.448 MB, 1,000 packets s 2.100") for row in rows)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ("10MB", "1,000 transfers of 10 MB (6,907 packets), one at a time"),
        ("64KiB", "1,000 transfers of 64 KiB (46 packets), one at a time"),
        ("1234567B", "1,000 transfers of 1,234,567 B (853 packets), one at a time"),
        ("1pkt", "1,000 transfers of 1 packet, one at a time"),
        (["1pkt", "10MB"], "2,000 transfers of 2 sizes, one at a time"),
        (
            {"distribution": "exponential", "mean": "2MB"},
            "transfers of 2 MB (1,381 packets) on average",
        ),
        (
            {"distribution": "exponential", "mean": "12pkt"},
            "transfers of 12 packets on average at 20/s",
        ),
    ],
)
def test_summary_shows_size_as_typed(size: Any, expected: str) -> None:
    tables: dict[str, Any] = {
        "network": {"rtt": "50ms", "bottleneck": {"rate": "10mbit"}},
        "traffic": {"kind": "transfers", "size": size},
    }
    if isinstance(size, dict):
        tables["traffic"]["arrivals"] = {"distribution": "poisson", "rate": "20/s"}
        tables["run"] = {"duration": "10s"}
    assert describe_scenario(Scenario.from_dict(tables)).startswith(expected)


def test_summary_and_report_show_return_path_and_marks() -> None:
    tables = {
        "network": {
            "rtt": "60ms",
            "jitter": {"distribution": "exponential", "mean": "5ms", "reorder": True},
            "bottleneck": {"rate": "20mbit", "buffer": "200KB", "queue": "codel"},
            "return": {"rate": "500kbit", "buffer": "20pkt"},
            "ack_loss": "1%",
        },
        "traffic": {"kind": "bulk", "flows": 1},
        "tcp": {"ecn": True},
        "run": {"duration": "3s", "warmup": "0s"},
    }
    scenario = Scenario.from_dict(tables)
    text = plain(run_parts(compare_all(tcpcast.run(scenario, ["packet"])), scenario), 200)
    head, *rows = text.splitlines()
    assert "buffer 200 kB, 133 packets, CoDel, jitter 5 ms with reordering, return link 500" in head
    assert "return link 500 kbit/s, ack loss 1 %" in head
    for name in ("ECN mark ratio", "return utilisation", "return loss ratio", "return queue delay"):
        assert any(name.lower() in row.lower() for row in rows), name


CROSSED: dict[str, Any] = {"model": "poisson", "mean": "40%"}


@pytest.mark.parametrize(
    ("streams", "expected"),
    [
        ([CROSSED], "100 packets, cross traffic 4 Mbit/s, return link 500 kbit/s, "),
        (
            [CROSSED | {"hop": "access"}, CROSSED, CROSSED | {"mean": "500kbit"}],
            ", cross traffic 4.5 Mbit/s, cross traffic 8 Mbit/s at access, return link 500 kbit/s,",
        ),
        ([CROSSED | {"hop": "return"}], ", cross traffic 200 kbit/s on the return link, return "),
        (
            [{"model": "trace", "times": [0, 0.3], "bytes": [1e4, 2e4]}],
            ", cross traffic 400 kbit/s, ",
        ),
        ([{"model": "trace", "times": [0, 0.7], "bytes": [1e4, 2e4]}], "traffic 171.4 kbit/s, "),
        (
            [CROSSED, CROSSED | {"hop": "access"}, CROSSED | {"hop": "return"}],
            "100 packets, cross traffic at 3 hops, return link",
        ),
    ],
)
def test_summary_shows_cross_traffic_rate_and_hop(
    streams: list[dict[str, Any]], expected: str
) -> None:
    tables = {
        "network": {
            "rtt": "50ms",
            "hop": [
                {"name": "access", "rate": "20mbit", "buffer": "100pkt"},
                {"name": "backbone", "rate": "10mbit", "buffer": "100pkt"},
            ],
            "return": {"rate": "500kbit", "buffer": "20pkt"},
        },
        "traffic": {"kind": "bulk", "flows": 1},
        "run": {"duration": "30s"},
        "cross": streams,
    }
    assert expected in describe_scenario(Scenario.from_dict(tables))


@pytest.mark.parametrize(
    ("burst", "expected"),
    [("50KB", "burst 50 kB"), ("64KiB", "burst 64 KiB"), ("1501B", "1,501 B")],
)
def test_summary_shows_burst_as_typed(burst: str, expected: str) -> None:
    rate = {"network.bottleneck.rate": {"bucket": "20mbit", "burst": burst, "policer": True}}
    assert expected in describe_scenario(tcpcast.load("policed-line", changes=rate))


def test_completion_figure_shows_times_by_size(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    scenario = tcpcast.load("short-transfers")
    answers = [made_up("short", 0.01, None), made_up("packet", 0.0, 0.1)]
    assert [p.name for p in write_answer_figures(answers, scenario, tmp_path)] == ["completion.png"]
    # Sizes of on/off sources are intervals, for which there is no such figure.
    web = simulated()
    web.tables["by_size"] = {"low_pkts": np.array([1]), "on_time_s": np.array([0.5])}
    names = [p.name for p in write_answer_figures([web], tcpcast.load("web-10mbit"), tmp_path)]
    assert names == ["states.png", "sharing.png", "queue.png"]


def test_means_have_gaps_for_missing_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There are no transfers of 4 and 16 packets."""
    pytest.importorskip("matplotlib")
    saved: list[Any] = []

    def save_in_memory(figure: Any, path: Path, **_: bool) -> Path:
        saved.append(figure)
        return path

    monkeypatch.setattr(figures, "save_figure", save_in_memory)
    answer = made_up("packet", 0.0, 0.1)
    sizes = np.array([1, 2, 8, 30])
    p50 = np.array([0.1, 0.2, 0.4, 0.6])
    answer.tables["by_size"] = {
        "size_pkts": sizes,
        "completion_time_s": p50 * 1.2,
        "p50": p50,
        "p95": 2 * p50,
        "p99": 3 * p50,
    }
    del answer.tables["by_losses"]
    changes = {"traffic.size": [f"{n}pkt" for n in (1, 2, 4, 8, 16, 30)]}
    write_answer_figures([answer], tcpcast.load("short-transfers", changes=changes), tmp_path)
    axes = saved[0].axes[0]
    lines = {line.get_label(): line for line in axes.lines}
    drawn = np.asarray(lines["mean, packet (simulated)"].get_ydata())
    assert np.isnan(drawn[[2, 4]]).all()
    assert drawn[[0, 1, 3, 5]] == pytest.approx(1e3 * 1.2 * p50)  # in ms
    assert np.asarray(lines["_packet, median"].get_ydata()) == pytest.approx(1e3 * p50)
    labels = [text.get_text() for text in saved[0].legends[0].get_texts()]
    assert not any("95 % interval" in label for label in labels)  # the table has no intervals
    assert {"median to 95th percentile", "95th to 99th percentile"} <= set(labels)
    tail = saved[1].axes[0].lines
    assert [line.get_label() for line in tail][:2] == ["packet, 1 packet", "packet, 2 packets"]
    assert np.asarray(tail[0].get_xdata()) == pytest.approx([100, 200, 300])
    assert np.asarray(tail[0].get_ydata()) == pytest.approx([0.5, 0.05, 0.01])
    bars = [np.array(c.get_segments()) for c in axes.collections if c.get_label()[0] != "_"]
    assert [segments[:, 0, 0].tolist() for segments in bars] == [sizes.tolist()] * 2
    assert bars[0][3, :, 1] == pytest.approx([600, 1200])


def test_short_transfers_scenario_has_expected_results(capsys: Capture) -> None:
    arguments = ["run", "short-transfers", "--engine", "packet", "--json"]
    assert main([*arguments, "--set", "traffic.count=2000"]) == 0
    (packet,) = json.loads(capsys.readouterr().out)["answers"]
    assert packet["engine"] == "packet"
    assert packet["warnings"] == []
    by_size = packet["tables"]["by_size"]["columns"]
    assert by_size["size_pkts"] == [1, 2, 4, 8, 16, 30]
    assert by_size["transfers"] == [2000] * 6
    assert list(by_size) == [
        *("size_pkts", "transfers", "completion_time_s", "low", "high"),
        *("delivery_time_s", "p50", "p95", "p99"),
    ]
    metrics = packet["metrics"]
    assert metrics["transfers"] == {"value": 12000.0, "low": None, "high": None, "unit": "count"}
    assert metrics["mean_size_pkts"]["low"] is None
    mean = np.mean(by_size["completion_time_s"])
    assert metrics["completion_time_s"]["value"] == pytest.approx(mean, rel=1e-12)
    assert metrics["delivery_time_s"]["value"] < metrics["completion_time_s"]["value"]
    absent = {"utilisation", "queue_mean_pkts", "send_rate_pps", "goodput_pps", "on_time_s"}
    assert not absent & metrics.keys()
    assert "warmup_s" not in packet["provenance"]


def test_precision_increases_number_of_transfers() -> None:
    changes = {"traffic.count": 100, "run.precision": "3%"}
    scenario = tcpcast.load("short-transfers", changes=changes)
    (answer,) = tcpcast.run(scenario, ["packet"])
    assert answer.incomplete_reason is None
    time = answer.metrics["completion_time_s"]
    assert time.low is not None
    assert time.high is not None
    assert time.high - time.low <= 2 * 0.03 * time.value
    counts = answer.tables["by_size"]["transfers"]
    assert counts.min() == counts.max() > 200


def test_transfers_without_end_make_answer_incomplete() -> None:
    # At one packet per RTT, 1e9 packets take more than 100,000 years.
    scenario = Scenario.from_dict(
        {
            "network": {"rtt": "1h", "bottleneck": {"rate": "10mbit"}},
            "traffic": {"kind": "transfers", "size": "1000000000pkt", "count": 1},
            "tcp": {
                "stack": "rfc-newreno",
                "receiver_window": 1,
                "min_rto": "2h",
                "initial_rto": "2h",
                "max_rto": "2h",
            },
            "run": {},
        }
    )
    (answer,) = tcpcast.run(scenario, ["packet"])
    assert answer.incomplete_reason == "the transfers had not finished after 63 simulated years"
    assert "completion_time_s" not in answer.metrics
