"""Models and measurements of a capture: inputs, intervals and their classes, errors."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
import tcpcast
from tcpcast.array_types import Table
from tcpcast.captures import Capture
from tcpcast.captures.direction_selection import select_directions
from tcpcast.captures.models import LOSS_MODELS, MODEL_LABELS, measured_loss_ratio, model_errors
from tcpcast.models.bbr import bbr_bound
from tcpcast.models.cubic import cubic_response
from tcpcast.models.pftk import throughput, window_chain

ROOT = Path(__file__).parents[2]
TRANSFER = ROOT / "crates" / "trace" / "tests" / "data" / "transfer.pcap.gz"
SHARED = ROOT.parent / "shared" / "captures"


@pytest.fixture
def capture() -> Capture:
    """One transfer of 136 packets with 8 loss indications in 3.7 s."""
    return tcpcast.trace(TRANSFER)


def with_intervals(capture: Capture, counts: list[dict[str, int]], seconds: float) -> Capture:
    """Return the capture with another duration and these intervals."""
    names = {**dict.fromkeys(capture.intervals, 0), "data_packets": 1000}
    rows = [names | count | {"start_s": 100 * index} for index, count in enumerate(counts)]
    intervals = {name: np.array([row[name] for row in rows]) for name in names}
    connections = capture.connections | {"duration_s": np.array([seconds])}
    return dataclasses.replace(capture, connections=connections, intervals=intervals)


def test_models_use_measured_inputs(capture: Capture) -> None:
    row = {name: float(column[0]) for name, column in capture.models().items()}
    path = {name: row[name] for name in ("rtt_s", "t0_s", "packets_per_ack")}
    p, window = row["loss_indication_ratio"], row["receiver_window_pkts"]
    assert p == 8 / 136
    assert row["t0_s"] == row["rtt_s"] + 0.2

    def pftk(b: float, share: float | None = None) -> float:
        return float(
            throughput(
                rtt_s=path["rtt_s"],
                t0_s=path["t0_s"],
                loss_indication_ratio=p,
                packets_per_ack=b,
                receiver_window_pkts=window,
                timeout_share=share,
            ).rate_pps
        )

    assert row["pftk_pps"] == pftk(path["packets_per_ack"]) == capture.connections["pftk_pps"][0]
    timeouts = float(capture.connections["to"][0]) / 8
    assert row["pftk_share_pps"] == pftk(path["packets_per_ack"], timeouts) != row["pftk_pps"]
    assert row["pftk_b1_pps"] == pftk(1.0) > row["pftk_pps"]
    chain = window_chain(loss_probability=p, packets_per_ack=2, receiver_window_pkts=window)
    assert row["chain_pps"] == chain.rate_pps(rtt_s=row["rtt_s"], t0_s=row["t0_s"])
    cubic = cubic_response(rtt_s=row["rtt_s"], loss_ratio=p, receiver_window_pkts=window)
    assert row["cubic_pps"] == cubic.rate_pps
    assert {f"{name}_pps" for name in MODEL_LABELS} <= row.keys()
    assert 0 < row["cardwell_pps"] < 136 / row["rtt_s"]
    assert math.isnan(row["bbr_bound_pps"])


def test_bbr_bound_follows_the_link_rate(capture: Capture) -> None:
    table = capture.connections
    table["bottleneck_rate_bps"] = np.array([8e6])
    lost = float(measured_loss_ratio(table)[0])
    bound = bbr_bound(bottleneck_pps=8e6 / (8 * 1448), rtt_s=table["rtt_min_s"][0], loss_ratio=lost)
    assert capture.models()["bbr_bound_pps"][0] == pytest.approx(bound.rate_pps / (1 - lost))


def test_loss_models_are_nan_without_loss(capture: Capture) -> None:
    capture.connections["loss_indication_ratio"] = np.array([0.0])
    row = capture.models()
    assert all(np.isnan(row[f"{name}_pps"]).all() for name in LOSS_MODELS)


def test_spurious_retransmissions_are_not_losses(capture: Capture) -> None:
    table = capture.connections
    assert measured_loss_ratio(table)[0] == 9 / 136
    table["spurious_dsack"] = np.array([4])
    assert measured_loss_ratio(table)[0] == 5 / 136
    table["after_timeout"] = np.array([2])
    assert measured_loss_ratio(table)[0] == 5 / 136
    table["sack"] = np.array([False])
    assert measured_loss_ratio(table)[0] == 4 / 136
    # A second tap measures the loss ratio.
    assert measured_loss_ratio(table | {"loss_ratio_between": np.array([0.02])})[0] == 0.02


def test_each_interval_uses_its_own_loss_ratio(capture: Capture) -> None:
    long = with_intervals(capture, [{"td": 10}, {"td": 40}, {"td": 5, "data_packets": 300}], 230.0)
    intervals = long.model_intervals()
    assert intervals["loss_indication_ratio"].tolist() == [0.01, 0.04, 5 / 300]
    assert intervals["length_s"].tolist() == [100, 100, 30]
    assert intervals["sent_pkts"].tolist() == [1000, 1000, 300]
    path = {name: column[0] for name, column in long.models().items()}
    for p, length, packets in zip(
        intervals["loss_indication_ratio"],
        intervals["length_s"],
        intervals["pftk_pkts"],
        strict=True,
    ):
        rate = throughput(
            rtt_s=path["rtt_s"],
            t0_s=path["t0_s"],
            loss_indication_ratio=p,
            packets_per_ack=path["packets_per_ack"],
            receiver_window_pkts=path["receiver_window_pkts"],
        ).rate_pps
        assert packets == pytest.approx(float(rate) * length)


def test_average_error_follows_the_paper(capture: Capture) -> None:
    intervals: Table = {
        "direction": np.array([0, 0, 0, 0, 2]),
        "length_s": np.array([100.0, 100.0, 100.0, 12.0, 30.0]),
        "sent_pkts": np.array([100.0, 200.0, 50.0, 10.0, 40.0]),
        **{f"{name}_pkts": np.array([110.0, 150.0, np.nan, 99.0, 50.0]) for name in LOSS_MODELS},
    }
    errors = model_errors(intervals)
    assert errors["direction"].tolist() == [0, 2]
    # Intervals without loss and the short last interval are excluded.
    assert errors["intervals"].tolist() == [2, 1]
    np.testing.assert_allclose(errors["pftk"], [(0.1 + 0.25) / 2, 0.25])
    del capture


def test_connection_argument_selects_directions(capture: Capture) -> None:
    names = ("unique_bytes", "connection", "src", "dst")
    columns = (
        [5, 90, 10, 20],
        [3, 3, 7, 8],
        ["10.0.0.1:80", "10.0.0.2:81", "[fd00::1]:82", "10.0.0.2:83"],
        ["10.0.0.2:81", "10.0.0.1:80", "[fd00::2]:80", "10.0.0.1:80"],
    )
    capture.connections = {name: np.array(c) for name, c in zip(names, columns, strict=True)}
    cases: dict[int | str | None, list[int]] = {
        None: [1], 3: [1], 7: [2], "all": [1, 2, 3], "10.0.0.2": [1, 3], "10.0.0.2:83": [3],
        "fd00::1": [2], "[fd00::1]:82": [2], "fd00::2": [2], "10.0.0.2 > 10.0.0.1": [1, 3],
        "10.0.0.2:81 > 10.0.0.1:80": [1], "10.0.0.2>10.0.0.1:80": [1, 3],
    }  # fmt: skip
    for argument, rows in cases.items():
        assert select_directions(capture, argument).tolist() == rows, argument
    with pytest.raises(tcpcast.CaptureError, match=r"no connection 4 .* a number from 3 to 8"):
        select_directions(capture, 4)
    with pytest.raises(tcpcast.CaptureError, match=r'"10\.0\.0\.9".*for example "10\.0'):
        select_directions(capture, "10.0.0.9")


@pytest.mark.skipif(not SHARED.is_dir(), reason="no shared captures")
def test_pftk_is_within_10_percent_of_a_linux_reno_capture() -> None:
    """Linux Reno at 2 % loss: the window grows per acknowledged byte, so PFTK uses b = 1."""
    capture = tcpcast.trace(SHARED / "own-reno-2pct-320s.pcap")
    errors = capture.model_errors()
    assert errors["intervals"].tolist() == [3]
    assert capture.connections["window_grows_by"].tolist() == ["packets"]
    assert capture.connections["packets_per_ack"][0] > 2
    assert errors["pftk"][0] == errors["pftk_b1"][0] < 0.10
    classes = capture.model_intervals()["class"]
    assert set(classes.tolist()) <= {"TD", "T0", "T1"}
