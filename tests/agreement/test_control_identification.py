"""Congestion control that ``tcpcast trace`` identifies in captures of simulated stacks."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tcpcast
from tcpcast.captures import Capture
from tcpcast.captures.congestion_control import flight_decrease_share, identify_congestion_control
from tcpcast.scenario import Scenario


def capture_controls(
    stack: str, folder: Path, *, seconds: int = 60, ecn: bool = False, **link: str
) -> Capture:
    bottleneck = {"rate": "20mbit", "buffer": "101pkt", "loss": "0%", **link}
    tables: dict[str, Any] = {
        "network": {"rtt": "60ms", "ack": "52B", "bottleneck": bottleneck},
        "traffic": {"kind": "bulk", "flows": 1},
        "tcp": {"stack": stack, **({"ecn": True} if ecn else {})},
        "run": {"duration": f"{seconds}s", "warmup": "0s"},
        "probes": {"pcap": [{"link": "sender", "file": str(folder / "a.pcap"), "packets": 10**6}]},
    }
    tcpcast.run(Scenario.from_dict(tables), ["packet"])
    return tcpcast.trace(folder / "a.pcap")


@pytest.mark.parametrize("loss", ["0%", "0.1%"])
@pytest.mark.parametrize(
    ("stack", "control"),
    [
        ("linux-reno", "reno"),
        ("linux-reno-classic", "reno"),
        ("linux-cubic", "cubic"),
        ("linux-bbr", "bbr"),
    ],
)
def test_congestion_control_is_identified_in_captures(
    stack: str, control: str, loss: str, tmp_path: Path
) -> None:
    capture = capture_controls(stack, tmp_path, loss=loss)
    assert capture.connections["looks_like"].tolist() == [control]


LOSSES: dict[str, Any] = {
    "rtt_mean_s": 0.1, "t0_s": np.nan, "w_max_pkts": np.nan, "packets_per_ack": 2.0,
    "data_packets": 10_000, "super_segments": 0, "bytes": 10_000_000, "duration_s": 100.0,
    "td": 100, "to": 0, "by_sack": 100, "window_reductions": 0,
}  # fmt: skip
"""100 packets per second with one loss indication per 100 packets; PFTK predicts 122 packets/s."""


def directions(reduction: float, flights: list[int], limited_by: str) -> dict[str, Any]:
    count = len(flights)
    table = {
        "src": np.array(["10.0.0.1:1"]),
        "segment_bytes": np.array([1000.0]),
        "window_reduction": np.array([reduction]),
        **{name: np.array([value]) for name, value in LOSSES.items()},
    }
    rounds = {
        "direction": np.zeros(count, dtype=np.int64),
        "flight_bytes": 1000 * np.array(flights, dtype=np.int64),
        "retransmissions": np.zeros(count, dtype=np.int64),
        "limited_by": np.array([limited_by] * count),
    }
    return {"table": table, "rounds": rounds}


RISING = list(range(20, 60))
PROBING = [100, 125, 75, 100, 100, 100, 100, 100] * 6


@pytest.mark.parametrize(
    ("reduction", "flights", "control"),
    [
        (0.5, RISING, "reno"),
        (0.7, RISING, "cubic"),
        (0.57, RISING, "unknown"),
        (0.98, RISING, "bbr"),
        (0.7, PROBING, "bbr"),
        (np.nan, PROBING, "bbr"),
        (np.nan, RISING, "unknown"),
        (0.5, RISING[:10], "unknown"),  # too few rounds without losses
    ],
)
def test_reduction_and_falling_flights_identify_the_control(
    reduction: float, flights: list[int], control: str
) -> None:
    result = identify_congestion_control(**directions(reduction, flights, "congestion_window"))
    assert result["looks_like"].tolist() == [control]


@pytest.mark.parametrize(
    ("changed", "control"),
    [
        ({"duration_s": 30.0}, "bbr"),  # 2.7 times PFTK's rate
        ({"duration_s": 60.0}, "cubic"),
        ({"duration_s": 30.0, "by_sack": 0}, "cubic"),
        ({"duration_s": 30.0, "td": 19, "data_packets": 1900, "bytes": 1_900_000}, "cubic"),
    ],
)
def test_rate_above_the_loss_limit_identifies_bbr(changed: dict[str, Any], control: str) -> None:
    table = directions(0.7, RISING, "congestion_window")
    table["table"] |= {name: np.array([value]) for name, value in changed.items()}
    assert identify_congestion_control(**table)["looks_like"].tolist() == [control]


def test_flights_reduced_by_ecn_marks_are_ignored() -> None:
    """Half as many reductions by CWR as falls (RFC 3168, section 6.1.2)."""
    table = directions(np.nan, PROBING, "congestion_window")
    for marks, control in ((2, "bbr"), (12, "unknown")):
        table["table"]["window_reductions"] = np.array([marks])
        assert identify_congestion_control(**table)["looks_like"].tolist() == [control]


@pytest.mark.parametrize("stack", ["linux-cubic", "linux-reno"])
def test_ecn_is_not_mistaken_for_bbr(stack: str, tmp_path: Path) -> None:
    capture = capture_controls(stack, tmp_path, ecn=True, queue="codel")
    assert capture.connections["window_reductions"][0] >= 10
    assert capture.connections["looks_like"].tolist() == ["unknown"]


@pytest.mark.parametrize("loss", ["0%", "0.1%", "2%"])
def test_bbr_is_identified_at_frequent_losses(loss: str, tmp_path: Path) -> None:
    for stack, is_bbr in (("linux-bbr", True), ("linux-cubic", False)):
        folder = tmp_path / stack
        folder.mkdir()
        capture = capture_controls(
            stack, folder, seconds=30, rate="100mbit", buffer="12pkt", loss=loss
        )
        assert (capture.connections["looks_like"][0] == "bbr") is is_bbr


def test_rounds_limited_by_other_causes_are_ignored() -> None:
    assert np.isnan(flight_decrease_share(**directions(0.5, PROBING, "application"))).all()
