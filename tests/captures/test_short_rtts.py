"""Round-trip times below 10 µs are unknown, as is everything derived from them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from replays import simulated
from segments import MSS, Connection, Written
from tcpcast.captures import trace
from tcpcast.cli import main

MIN_RTT_S = 10e-6
DERIVED = (
    "rtt_mean_s", "rtt_over_time_s", "rtt_min_s", "rtt_p50_s", "pftk_pps", "mathis_pps",
    "bottleneck_rate_bps", "window_reduction",
)  # fmt: skip


def transfer(away_us: tuple[float, float], *, handshake: bool, lost: bool) -> bytes:
    """Write a transfer of the client with a constant window, at a tap between the ends."""
    written = Written()
    away = (away_us[0] / 1e3, away_us[1] / 1e3)
    connection = Connection(written, 1000, away)
    time = connection.open(0.0) if handshake else 0.0
    for window in range(60):
        begun = time
        first = connection.numbers[0]
        for _ in range(8):
            connection.send(time, 0, size=MSS)
        if lost and window % 20 == 10:
            written.frames.pop(-5)
            for copy in range(4):
                acked = connection.numbers[0]
                connection.numbers[0] = first + 3 * MSS
                connection.send(time + away[1] + copy * 1e-3, 1)
                connection.numbers[0] = acked
            connection.send(time + away[1] + away[0] + 0.01, 0, size=MSS, at=first + 3 * MSS)
            time += away[1] + away[0] + 0.02
        connection.send(time + away[1], 1)
        time = max(time + away[1] + away[0] + 0.001, begun)
    return written.to_bytes()


def rtts(value: Any, key: str = "") -> Iterator[tuple[str, float]]:
    """Yield every number whose name says that it is a round-trip time."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from rtts(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from rtts(inner, key)
    elif isinstance(value, float) and "rtt_" in key and key.endswith("_s"):
        yield key, value


@pytest.mark.parametrize("lost", [False, True], ids=["lossless", "lossy"])
@pytest.mark.parametrize("handshake", [False, True], ids=["midstream", "handshake"])
@pytest.mark.parametrize(
    "away_us", [(0, 0), (0, 3), (3, 0), (1, 8), (6, 6), (0, 15), (0, 40), (60, 2), (2, 20_000)]
)
def test_no_rtt_is_below_10_us(
    away_us: tuple[float, float],
    handshake: bool,
    lost: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "near.pcap"
    file.write_bytes(transfer(away_us, handshake=handshake, lost=lost))
    assert main(["trace", "--json", "--models", str(file)]) == 0
    document = json.loads(capsys.readouterr().out)
    short = [(name, value) for name, value in rtts(document) if value < MIN_RTT_S]
    assert not short
    (row,) = document["captures"][0]["connections"]
    if row["rtt_mean_s"] is None:
        assert {name: row[name] for name in DERIVED if row.get(name) is not None} == {}
        assert "per RTT" not in row["advice"]
        assert row["rtt_too_short"]
        assert row["limited_by"] not in {"send_buffer", "congestion_window", "slow_start"}
    capture = trace(file)
    warned = any("below 10 µs" in line for line in capture.warnings)
    assert warned == bool(capture.connections["rtt_too_short"].any())
    if max(away_us) < 8:
        assert warned
        assert np.isnan(capture.connections["rtt_mean_s"]).all()
    if max(away_us) > 10_000:
        assert not warned


RACK = {
    "network": {"rtt": "30us", "bottleneck": {"rate": "1gbit", "buffer": "60pkt"}},
    "traffic": {"kind": "bulk", "flows": 1},
    "tcp": {"stack": "linux-cubic"},
    "run": {"duration": "1s", "warmup": "0s"},
}


@pytest.mark.parametrize("tap", ["sender", "receiver"])
@pytest.mark.parametrize(
    ("change", "cause"), [({}, "link"), ({"tcp.receiver_window": 4}, "receiver")]
)
def test_tap_in_a_rack_shows_the_limit(
    change: dict[str, int], cause: str, tap: str, tmp_path: Path
) -> None:
    """Regression: with an RTT below 50 µs, the position of the tap and the limit were unknown."""
    _, _, capture = simulated(RACK, tmp_path, change, tap)
    assert capture.connections["tap_side"].tolist() == [tap]
    assert capture.connections["cause"].tolist() == [cause]


@pytest.mark.parametrize("seed", [2, 3, 4, 12])
def test_slow_handshake_does_not_hide_the_full_window(seed: int, tmp_path: Path) -> None:
    """Delays of the hosts vary more than the RTT, and the handshake is a single sample of them.

    Over these seeds, the handshake RTT is a quarter of the mean RTT up to twice the mean.
    """
    change = {"tcp.receiver_window": 4, "run.seed": seed}
    _, _, capture = simulated(RACK, tmp_path, change, "receiver")
    flows = capture.connections
    assert flows["cause"].tolist() == ["receiver"]
    filled = flows["goodput_bps"] / 8 * flows["rtt_mean_s"] / flows["window_max_bytes"]
    assert filled == pytest.approx(0.91, abs=0.09)  # 0.83 to 0.95 over 20 seeds
