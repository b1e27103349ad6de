"""Options of short transfers beyond the paper, compared with packet simulation."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from newreno_rounds import Path, Transfer, mean_duration
from scipy.integrate import quad
from tcpcast.errors import DomainError
from tcpcast.models.short import (
    ShortTransfer,
    conditional_latency_s,
    expected_latency_s,
    loss_probability,
    lossless_latency_s,
)
from tcpcast.models.short.interpolation_mesh import BlockMatrix
from tcpcast.models.short.recursion import LatencyMeshes

PAPER = ShortTransfer(rtt_s=0.1, initial_ssthresh_pkts=30, receiver_window_pkts=30)
DELAYED = replace(PAPER, acked_packets=2)
WHOLE = replace(PAPER, shared_recovery=True, backoff=True)


def mean_error(transfer: ShortTransfer, sizes: range, losses: int, **path: Any) -> float:
    exact = np.array([mean_duration(n, losses, **path) for n in sizes])
    model = conditional_latency_s(transfer, list(sizes), max_losses=losses)[losses]
    return float(np.mean(np.abs(model / exact - 1)))


@pytest.mark.parametrize(
    ("size", "published"),
    [
        (2, (0.100, 1.150, 2.500, 4.925)),
        (5, (0.200, 1.280, 2.252, 3.527)),
        (8, (0.300, 1.000, 1.863, 2.961)),
        (30, (0.400, 0.770, 1.156)),
    ],
)
def test_packets_take_the_exact_times(size: int, published: tuple[float, ...]) -> None:
    # With several losses in a flight the other enumeration has different details: 0.5 %.
    for losses, expected in enumerate(published):
        tolerance = 5e-4 if losses < 2 else 5e-3 * expected
        assert mean_duration(size, losses) == pytest.approx(expected, abs=tolerance)


# The delayed-ack timer.


@pytest.mark.parametrize("timer", [0.1, 0.2])
def test_ack_timer_explains_most_of_the_error_for_b_of_2(timer: float) -> None:
    sizes = range(1, 31)
    timed = replace(DELAYED, delayed_ack_timer_s=timer)
    staircase = mean_error(PAPER, sizes, 0)  # partial rounds: 12 %, also for b = 1
    without = mean_error(DELAYED, sizes, 0, b=2, ack_timer_s=timer)
    assert without > (0.24 if timer == 0.1 else 0.29)
    assert mean_error(timed, sizes, 0, b=2, ack_timer_s=timer) < 1.15 * staircase < 0.15
    given_one = mean_error(DELAYED, range(1, 21), 1, b=2, ack_timer_s=timer)
    assert mean_error(timed, range(1, 21), 1, b=2, ack_timer_s=timer) < 0.6 * given_one


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


@pytest.mark.parametrize("b", [2, 3, 4])
def test_ack_timer_waits_equal_simulated_transfers(b: int) -> None:
    """An RTT of zero leaves only the waits."""
    for window in (1, 2, 3):
        for size in range(1, 12):
            path = Path(b=b, initial_window=window, rtt_s=1e-6, ack_timer_s=10, rto_s=1e9)
            took = Transfer(path, size, frozenset()).run()
            timed = ShortTransfer(
                rtt_s=1e-6, initial_window_pkts=window, acked_packets=b, delayed_ack_timer_s=10
            )
            # Within the transfer the timer ends odd rounds of packets, which the model ignores.
            counted = float(lossless_latency_s(timed, size)) / 10
            inside = round(took / 10) - round(counted)
            assert inside >= 0, (window, size)
            if size <= window:
                assert inside == 0, (window, size)


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
    exact = [mean_duration(1, k) for k in (1, 2, 3)]
    np.testing.assert_allclose(exact, (1.1, 3.1, 7.1))
    np.testing.assert_allclose(latency[1:4], exact, rtol=0.03)


def grow(sent: float, window: float, threshold: float) -> tuple[float, float]:
    """Window and round trips, b = 1 and M = 30."""
    rise = min(sent, max(threshold - window, 0.0))
    top = window + rise
    rounds = math.log2(top / window)
    top = max(top, threshold) if rise < sent else top
    end = math.sqrt(top**2 + 2 * (sent - rise))
    return end, rounds + end - top


def draw(rng: np.random.Generator, size: float, losses: int) -> float:
    """Draw the latency of PAPER with doubling timeouts, loss by loss."""
    total, left, window, threshold = 0.0, size, 2.0, 30.0
    doublings: int | None = None
    for remaining in range(losses, 0, -1):
        sent = left * (1 - rng.random() ** (1 / remaining))
        if doublings is not None and sent < 1:  # the retransmitted packet
            doublings, threshold = doublings + 1, 2.0
            total += 2.0 ** min(doublings, 6)
            continue
        end, rounds = grow(sent, window, threshold)
        total += 0.1 * rounds
        if left - sent < 3:
            total, left, window, threshold, doublings = total + 1, 1.0, 1.0, 2.0, 0
        elif end < 4:
            total, left, window, threshold, doublings = total + 1, left - sent + 1, 1.0, 2.0, 0
        else:
            again = max(end / 2 - 1, 1.0)
            total, left, window, threshold, doublings = total + 0.1, left - sent, again, again, None
    return total + 0.1 * grow(left, window, threshold)[1]


@pytest.mark.parametrize(("size", "losses"), [(4, 2), (10, 3), (25, 5)])
def test_backoff_latency_equals_monte_carlo(size: int, losses: int) -> None:
    rng = np.random.default_rng(losses)
    drawn = np.array([draw(rng, size, losses) for _ in range(6000)])
    latency = conditional_latency_s(replace(PAPER, backoff=True), size, max_losses=losses)[losses]
    assert abs(latency - drawn.mean()) < 4 * drawn.std() / math.sqrt(len(drawn))


# Losses of one flight that share a recovery.


@pytest.mark.parametrize(
    ("initial_window", "losses", "max_error"), [(2, 2, 0.04), (2, 3, 0.07), (4, 2, 0.05)]
)
def test_shared_recovery_reduces_the_error(
    initial_window: int, losses: int, max_error: float
) -> None:
    sizes = range(1, 21 if losses == 3 else 26, 2)
    paper = replace(PAPER, initial_window_pkts=initial_window)
    whole = replace(WHOLE, initial_window_pkts=initial_window)
    path = {"initial_window": initial_window}
    error = mean_error(whole, sizes, losses, **path)
    assert error < max_error
    assert error < 0.5 * mean_error(paper, sizes, losses, **path)
    # Only doubling the timeouts increases the error, because errors no longer cancel.
    with_backoff = replace(paper, backoff=True)
    assert mean_error(with_backoff, sizes, losses, **path) > mean_error(
        paper, sizes, losses, **path
    )


def test_shared_recovery_reduces_the_error_with_delayed_acks() -> None:
    sizes, path = range(1, 19, 2), {"b": 2, "ack_timer_s": 0.2}
    for losses in (2, 3):
        paper = replace(DELAYED, delayed_ack_timer_s=0.2)
        whole = replace(paper, shared_recovery=True, backoff=True)
        assert mean_error(whole, sizes, losses, **path) < 0.05
        assert mean_error(whole, sizes, losses, **path) < mean_error(paper, sizes, losses, **path)


def test_one_loss_has_no_shared_recovery() -> None:
    sizes = np.arange(1, 60)
    for k in (0, 1):
        whole = conditional_latency_s(WHOLE, sizes, max_losses=3)[k]
        paper = conditional_latency_s(PAPER, sizes, max_losses=3)[k]
        np.testing.assert_allclose(whole, paper, rtol=1e-5)


def two_losses_shared(size: float, nodes: int = 20_000) -> float:
    """L_2 with sharing and doubling from the model's text; midpoint rule for the first loss."""
    total = 0.0
    for i in range(nodes):
        sent = size * (i + 0.5) / nodes
        end, rounds = grow(sent, 2.0, 30.0)
        total += (0.1 * rounds + after_first(size - sent, end)) * 2 * (1 - sent / size) / nodes
    return total


def after_first(left: float, window: float) -> float:
    if left < 3:
        behind = math.ceil(left) - 1
        both = behind / (behind + 1)  # of C(m + 1, 1) orders, m have another packet lost
        return 1 + both * 0.1 * grow(2, 1, 2)[1] + (1 - both) * (2 + 0.1)
    if window < 4:
        lost_too = min(max(window - 1.5, 0), left) / (left + 1)
        start = timed_out_once(left + 1)
        return 1 + lost_too * 0.1 * grow(left + 1, 1, 2)[1] + (1 - lost_too) * start
    again = max(window / 2 - 1, 1.0)
    free = 0.1 * grow(left + 1, 1, again + 1)[1]
    flight = min(2 * again + 0.5, left)
    share = flight / left
    joined = 0.1 + 0.1 * grow(left, again, again)[1]
    if min(2 * again + 1, left) - 3 < 1:
        joined = 1 - 0.1 + free
    apart = beyond_flight(left, again, flight) if flight < left else 0.0
    kept = left / (left + 1)
    return 0.1 + kept * (share * joined + (1 - share) * apart) + (1 - kept) * (1 + free)


def timed_out_once(packets: float) -> float:
    """After a timeout: one more loss, with the retransmitted packet first."""
    y = (np.arange(400) + 0.5) / 400 * packets
    return float(np.mean([one_more(volume, packets, 1.0, 2.0, resent=True) for volume in y]))


def beyond_flight(left: float, window: float, flight: float) -> float:
    y = flight + (np.arange(400) + 0.5) / 400 * (left - flight)
    return float(np.mean([one_more(volume, left, window, window, resent=False) for volume in y]))


def one_more(sent: float, left: float, window: float, threshold: float, *, resent: bool) -> float:
    if resent and sent < 1:
        return 2 + 0.1 * grow(left, 1, 2)[1]
    end, rounds = grow(sent, window, threshold)
    rest = left - sent
    if rest < 3:
        return 0.1 * rounds + 1 + 0.1
    if end < 4:
        return 0.1 * rounds + 1 + 0.1 * grow(rest + 1, 1, 2)[1]
    again = max(end / 2 - 1, 1.0)
    return 0.1 * rounds + 0.1 + 0.1 * grow(rest, again, again)[1]


@pytest.mark.parametrize("size", [2, 4, 7, 12])
def test_shared_recovery_of_two_losses_equals_integration(size: int) -> None:
    latency = conditional_latency_s(WHOLE, size, max_losses=2)[2]
    assert latency == pytest.approx(two_losses_shared(size, nodes=400), rel=5e-3)


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


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf])
@pytest.mark.parametrize("name", ["delayed_ack_timer_s", "syn_timeout_s"])
def test_timers_outside_the_domain_are_rejected(name: str, value: float) -> None:
    changes: dict[str, Any] = {name: value}
    with pytest.raises(DomainError, match=name):
        replace(PAPER, **changes)


def test_block_matrix_interpolates_a_linear_function_exactly() -> None:
    tables = LatencyMeshes.from_transfer(PAPER, 30.0, 3)
    rng = np.random.default_rng(1)
    left, window = rng.uniform(1, 30, 500), rng.uniform(1, 10, 500)
    matrix = BlockMatrix(tables.recovered.stencil(left, window), len(left))
    nodes_left, nodes_window = tables.recovered.nodes()
    vector = 3 * nodes_left - 2 * nodes_window
    np.testing.assert_allclose(matrix @ vector, 3 * left - 2 * window, rtol=1e-9, atol=1e-9)
