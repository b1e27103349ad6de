"""Cardwell, Savage and Anderson's latency: by hand, by sums, and at its limits."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tcpcast.models.cardwell import cardwell_latency, connection_latency_s
from tcpcast.process.errors import DomainError

PATH: dict[str, Any] = {"rtt_s": 0.1, "t0_s": 0.4}
LOSSLESS: dict[str, Any] = {**PATH, "loss_ratio": 1e-12, "connection": False, "delayed_ack_s": 0.0}


@pytest.mark.parametrize(
    ("b", "windows"),
    [(1, (2, 4, 8, 16)), (2, (4, 6, 9, 13.5)), (1, (10, 20, 40)), (3, (9, 12, 16))],
)
def test_slow_start_multiplies_the_window_by_gamma(b: int, windows: tuple[float, ...]) -> None:
    for rounds in range(1, len(windows) + 1):
        result = cardwell_latency(
            size_pkts=sum(windows[:rounds]),
            initial_window_pkts=windows[0],
            packets_per_ack=b,
            **LOSSLESS,
        )
        assert result.latency_s == pytest.approx(0.1 * rounds, rel=1e-6)
        # (11): the window of the last round.
        assert result.slow_start_window_pkts == pytest.approx(windows[rounds - 1])


def test_receiver_window_ends_the_growth() -> None:
    # 2, 4, 4, 4 packets.
    result = cardwell_latency(
        size_pkts=14, initial_window_pkts=2, packets_per_ack=1, receiver_window_pkts=4, **LOSSLESS
    )
    assert result.latency_s == pytest.approx(0.4, rel=1e-6)
    assert result.slow_start_window_pkts == 4


@given(
    p=st.floats(1e-6, 0.45),
    rtt=st.floats(1e-3, 1),
    b=st.sampled_from([1, 2, 4]),
    window=st.floats(1, 40),
    window_max=st.one_of(st.floats(1, 200), st.just(math.inf)),
)
def test_latency_rises_with_size_and_round_trip(
    *, p: float, rtt: float, b: int, window: float, window_max: float
) -> None:
    path: dict[str, Any] = {
        "loss_ratio": p,
        "packets_per_ack": b,
        "initial_window_pkts": window,
        "receiver_window_pkts": window_max,
    }
    sizes = np.unique(np.geomspace(1, 1e5, 60))
    result = cardwell_latency(size_pkts=sizes, rtt_s=rtt, t0_s=max(4 * rtt, 1), **path)
    # Only the cost of the first loss may decrease, because a larger window recovers it faster.
    for part in (
        result.slow_start_s,
        result.congestion_avoidance_s,
        result.latency_s - result.first_loss_s,
    ):
        assert np.all(np.diff(part) >= -1e-9 * part[1:])
    farther = cardwell_latency(size_pkts=sizes, rtt_s=2 * rtt, t0_s=max(4 * rtt, 1), **path)
    assert np.all(farther.latency_s > result.latency_s)


def test_single_first_packet_waits_for_delayed_ack() -> None:
    path: dict[str, Any] = {"size_pkts": 5, "loss_ratio": 0.01, **PATH}
    assert cardwell_latency(**path).delayed_ack_s == pytest.approx(0.1)
    assert cardwell_latency(**path, packets_per_ack=1).delayed_ack_s == 0
    assert cardwell_latency(**path, initial_window_pkts=2).delayed_ack_s == 0


def test_arguments_broadcast() -> None:
    result = cardwell_latency(size_pkts=[[1.0], [10.0]], loss_ratio=[0.01, 0.02, 0.1], **PATH)
    for name in result.__slots__:
        assert getattr(result, name).shape == (2, 3), name
    assert result.latency_s.shape == (2, 3)
    single_result = cardwell_latency(size_pkts=10, loss_ratio=0.02, **PATH)
    assert result.latency_s[1, 1] == single_result.latency_s


def test_handshake_with_half_loss_is_rejected() -> None:
    with pytest.raises(DomainError, match="1/2"):
        connection_latency_s(rtt_s=0.1, forward_loss_ratio=0.5)
    with pytest.raises(DomainError, match="forward_loss_ratio"):
        cardwell_latency(size_pkts=1, loss_ratio=0.6, **PATH)
    assert cardwell_latency(size_pkts=1, loss_ratio=0.6, connection=False, **PATH).latency_s > 0
    assert connection_latency_s(rtt_s=0.1) == pytest.approx(0.1)
