"""Fast retransmits at duplicate thresholds other than three; b of senders that count bytes."""

import numpy as np
from tcpcast.array_types import Table
from tcpcast.captures import window_growth_units
from tcpcast.captures.model_rates import model_inputs


def directions(**columns: list[float] | list[bool] | list[str]) -> Table:
    count = len(next(iter(columns.values())))
    plain = {
        "src": np.array(["a"] * count),
        "segment_bytes": np.full(count, 1000),
        "packets_per_ack": np.full(count, 2.0),
        "sack": np.full(count, fill_value=False),
        "start_growth": np.full(count, np.nan),
        "start_acks": np.full(count, np.nan),
        "looks_like": np.full(count, "unknown"),
    }
    return plain | {name: np.array(values) for name, values in columns.items()}


def growth(growths: list[float]) -> Table:
    """Thirty rounds of congestion avoidance per direction, with the given growths in packets."""
    rounds = 30
    bytes_grown = np.concatenate([np.round(1000 * step * np.arange(rounds)) for step in growths])
    count = bytes_grown.size
    seconds = np.tile(np.arange(rounds), len(growths)).astype("timedelta64[s]")
    return {
        "direction": np.repeat(np.arange(len(growths)), rounds),
        "time": np.datetime64("2020-01-01", "ns") + seconds,
        "rtt_s": np.ones(count),
        "flight_bytes": 10_000 + bytes_grown,
        "retransmissions": np.zeros(count, dtype=np.int64),
        "limited_by": np.full(count, "congestion_window"),
    }


def test_slow_start_shows_the_growth_of_the_window() -> None:
    table = directions(start_growth=[1.0, 0.5, 1.0, np.nan], start_acks=[0.5, 0.5, 1.0, np.nan])
    result = window_growth_units(table, growth([0.0]) | {"direction": np.zeros(30, dtype=np.int64)})
    # A delayed acknowledgement for two packets is conclusive; one ack per packet is not.
    assert result["window_grows_by"].tolist()[:2] == ["packets", "acks"]
    assert result["window_grows_by"].tolist()[2:] == ["unknown", "unknown"]


def test_congestion_avoidance_shows_the_growth_except_for_cubic() -> None:
    table = directions(sack=[False, False, True, True])
    result = window_growth_units(table, growth([1.0, 0.5, 1.0, 0.5]))
    assert result["window_grows_by"].tolist() == ["packets", "acks", "packets", "unknown"]


def test_cubic_and_bbr_count_packets_by_default() -> None:
    controls = ["unknown", "reno", "cubic", "bbr", "cubic"]
    # In the last direction slow start is conclusive, whatever the identified control.
    table = directions(looks_like=controls, sack=[True] * 5, start_acks=[1.0] * 4 + [0.5])
    table["start_growth"] = np.array([1.0] * 4 + [0.5])
    result = window_growth_units(table, growth([0.5] * 5))
    assert result["window_grows_by"].tolist() == [
        "unknown",
        "unknown",
        "packets",
        "packets",
        "acks",
    ]


def test_models_use_one_packet_per_ack_if_windows_grow_by_packets() -> None:
    names = ("rtt_mean_s", "t0_s", "w_max_pkts")
    table = directions(**{name: [1.0, 1.0, 1.0] for name in names})
    table["window_grows_by"] = np.array(["packets", "acks", "unknown"])
    assert model_inputs(table)["packets_per_ack"].tolist() == [1.0, 2.0, 2.0]
