"""Options of short transfers beyond the paper."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from tcpcast.models.short import (
    ShortTransfer,
    conditional_latency_s,
    expected_latency_s,
    loss_probability,
    lossless_latency_s,
)
from tcpcast.models.short.recursion import BlockMatrix, LatencyMeshes
from tcpcast.process.errors import DomainError

PAPER = ShortTransfer(rtt_s=0.1, initial_ssthresh_pkts=30, receiver_window_pkts=30)
DELAYED = replace(PAPER, acked_packets=2)
WHOLE = replace(PAPER, shared_recovery=True, backoff=True)


# The delayed-ack timer.


def test_last_segment_waits_for_ack_timer_if_count_is_odd() -> None:
    timed = replace(DELAYED, delayed_ack_timer_s=0.2)
    # For W0 = 2, a last packet with an odd number waits; for W0 = 1, the first one also waits.
    odd = lossless_latency_s(timed, range(1, 9)) - lossless_latency_s(DELAYED, range(1, 9))
    np.testing.assert_allclose(odd, 0.2 * np.array([1, 0] * 4), atol=1e-12)
    initial_window_1 = replace(timed, initial_window_pkts=1)
    base = replace(DELAYED, initial_window_pkts=1)
    waits = lossless_latency_s(initial_window_1, range(1, 9)) - lossless_latency_s(
        base, range(1, 9)
    )
    np.testing.assert_allclose(waits, 0.2 * np.array([1, 2, 1, 2, 1, 2, 1, 2]), atol=1e-12)
    # Every packet acknowledged: no ack waits.
    single = replace(PAPER, delayed_ack_timer_s=0.2)
    assert np.array_equal(lossless_latency_s(single, [1, 5]), lossless_latency_s(PAPER, [1, 5]))


def test_single_last_packet_waits_after_its_timeout() -> None:
    timed = replace(DELAYED, delayed_ack_timer_s=0.2)
    one = conditional_latency_s(timed, 1, max_losses=3)
    np.testing.assert_allclose(one - conditional_latency_s(DELAYED, 1, max_losses=3), 0.2)


# The handshake.


def test_handshake_takes_one_rtt_plus_timeouts() -> None:
    joined = replace(PAPER, handshake=True, syn_timeout_s=3.0)
    sizes = [1, 5, 30]
    more = conditional_latency_s(joined, sizes, max_losses=2)
    np.testing.assert_allclose(more - conditional_latency_s(PAPER, sizes, max_losses=2), 0.1)
    # One of its packets is lost like data: i timeouts take 3 (2^i - 1) s.
    p = 0.1
    waits = sum(3.0 * (2**i - 1) * p**i * (1 - p) for i in range(60))
    for given in (False, True):
        excess = expected_latency_s(joined, sizes, loss=p, given_loss=given) - expected_latency_s(
            PAPER, sizes, loss=p, given_loss=given
        )
        np.testing.assert_allclose(excess, 0.1 + waits, rtol=1e-9)
    with pytest.raises(DomainError, match="1/2"):
        expected_latency_s(joined, 3, loss=0.5)
    assert np.isfinite(expected_latency_s(PAPER, 3, loss=0.5))


# Doubling timeouts.


def test_one_packet_doubles_its_timeout() -> None:
    latency = conditional_latency_s(replace(PAPER, backoff=True), 1, max_losses=8)
    # 1, 2, 4, ... up to 64 s, after a part y of the packet, the minimum of k positions.
    waits = np.cumsum([1, 2, 4, 8, 16, 32, 64, 64])
    before = [
        quad(lambda y, k=k: k * (1 - y) ** (k - 1) * 0.1 * math.log2(1 + y / 2), 0, 1)[0]
        for k in range(1, 9)
    ]
    np.testing.assert_allclose(latency[1:], 0.1 + waits + before, rtol=1e-9)
    # Each packet is sent at once.
    np.testing.assert_allclose(latency[1:4], (1.1, 3.1, 7.1), rtol=0.03)


# Losses of one flight that share a recovery.


def test_one_loss_has_no_shared_recovery() -> None:
    sizes = np.arange(1, 60)
    for k in (0, 1):
        whole = conditional_latency_s(WHOLE, sizes, max_losses=3)[k]
        paper = conditional_latency_s(PAPER, sizes, max_losses=3)[k]
        np.testing.assert_allclose(whole, paper, rtol=1e-5)


def test_expectation_with_all_options_is_weighted_sum() -> None:
    transfer = replace(
        WHOLE, acked_packets=2, delayed_ack_timer_s=0.2, handshake=True, initial_window_pkts=10
    )
    sizes = np.arange(1, 80)
    latency = expected_latency_s(transfer, sizes, loss=0.05)
    assert np.all(
        latency > expected_latency_s(replace(transfer, handshake=False), sizes, loss=0.05)
    )
    curves = conditional_latency_s(transfer, 40, max_losses=30)
    weights = loss_probability(np.arange(31), size_pkts=40, loss=0.05)
    plain = 0.05 / 0.9  # T_s p/(1 - 2p) of the handshake
    assert latency[39] == pytest.approx(float((weights * curves).sum()) + plain, rel=1e-6)


def test_latency_grows_linearly_for_large_sizes() -> None:
    whole = expected_latency_s(WHOLE, [500, 1000, 1500], loss=0.02)
    first, second = np.diff(whole)
    assert second == pytest.approx(first, rel=5e-3)  # meshes: less than 0.1 % of the latency
    # For large windows, shared recovery saves more time than doubled timeouts cost.
    assert np.all(whole < expected_latency_s(PAPER, [500, 1000, 1500], loss=0.02))
    assert np.isfinite(conditional_latency_s(WHOLE, 30, max_losses=120)).all()


def test_block_matrix_interpolates_a_linear_function_exactly() -> None:
    tables = LatencyMeshes.from_transfer(PAPER, 30.0, 3)
    rng = np.random.default_rng(1)
    left, window = rng.uniform(1, 30, 500), rng.uniform(1, 10, 500)
    matrix = BlockMatrix(tables.recovered.stencil(left, window), len(left))
    nodes_left, nodes_window = tables.recovered.nodes()
    vector = 3 * nodes_left - 2 * nodes_window
    np.testing.assert_allclose(matrix @ vector, 3 * left - 2 * window, rtol=1e-9, atol=1e-9)
