"""Short transfers: values of Ayesta and Avrachenkov's model and their derivation.

The recursion is compared with adaptive quadrature of its own integrals and with sequential random
draws of the positions of losses, neither of which uses its meshes.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.integrate import quad
from tcpcast.errors import DomainError
from tcpcast.models.short import (
    ShortTransfer,
    conditional_latency_s,
    expected_latency_s,
    first_negligible_loss_count,
    fluid_timeout_pkts,
    loss_probability,
    lossless_latency_s,
    min_recoverable_pkts,
    timeout_packets,
)

if TYPE_CHECKING:
    from collections.abc import Callable

PAPER = ShortTransfer(rtt_s=0.1, initial_ssthresh_pkts=30, receiver_window_pkts=30)
LIMITED = replace(PAPER, limited_transmit=2)
PROPOSAL = replace(PAPER, limited_transmit=1, protects_last_packets=True)
DELAYED = replace(PAPER, acked_packets=2)
SIZES = np.arange(1, 31)

# Half a unit of the third decimal, plus errors of quadrature and meshes (3.4075 rounds both ways).
PRINTED = 5.5e-4


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (2, (0.100, 1.156, 2.195, 3.226)),
        (5, (0.181, 1.267, 2.338, 3.408)),
        (8, (0.232, 0.993, 2.043, 3.183)),
        (30, (0.397, 0.787, 1.291, 2.148)),
    ],
)
def test_conditional_latency_equals_published_values(
    size: int, expected: tuple[float, ...]
) -> None:
    latency = conditional_latency_s(PAPER, size, max_losses=3)
    np.testing.assert_allclose(latency, expected, rtol=0, atol=PRINTED)


def test_one_packet_times_out_k_times() -> None:
    latency = conditional_latency_s(PAPER, 1, max_losses=3)
    np.testing.assert_allclose(latency[1:], (1.13, 2.18, 3.21), rtol=0, atol=5e-3)


@pytest.mark.parametrize(
    ("transfer", "peak", "value"),
    [(PAPER, 5, 1.267), (LIMITED, 4, 1.226), (DELAYED, 7, 1.380)],
    ids=["figure 6", "figure 7", "figure 4"],
)
def test_latency_given_one_loss_peaks_at_minimum_file_size(
    transfer: ShortTransfer, peak: int, value: float
) -> None:
    latency = conditional_latency_s(transfer, SIZES, max_losses=1)[1]
    assert SIZES[np.argmax(latency)] == peak
    assert latency.max() == pytest.approx(value, abs=PRINTED)


def test_proposal_removes_the_latency_peak() -> None:
    latency = conditional_latency_s(PROPOSAL, SIZES, max_losses=1)[1]
    assert np.argmax(latency) == 0


def test_reduction_of_latency_at_eight_packets() -> None:
    """Figure 10: the reduction given one lost packet."""
    paper, limited, proposal = (
        float(conditional_latency_s(transfer, 8, max_losses=1)[1])
        for transfer in (PAPER, LIMITED, PROPOSAL)
    )
    assert 1 - limited / paper == pytest.approx(0.12, abs=0.005)
    assert 1 - proposal / paper == pytest.approx(0.47, abs=0.005)
    # Given any number of losses, the recoveries of larger k also count.
    before, after = (
        float(expected_latency_s(transfer, 8, loss=0.1, given_loss=True))
        for transfer in (PAPER, PROPOSAL)
    )
    assert 0.38 < 1 - after / before < 0.52


# Tables 1 and 2: (b, limited transmit) -> y_to for W0 = 1, 2, 3, 4. The tables print 1 in the
# congestion-avoidance cells with W0 = 1 + dup, but their rule and the slow-start cells give 0.
SLOW_START = {
    (1, None): (3, 2, 1, 0),
    (1, 2): (2, 1, 0, 0),
    (2, None): (4, 3, 1, 0),
    (2, 2): (2, 1, 0, 0),
}
AVOIDANCE = {
    (1, None): (6, 5, 3, 0),
    (1, 2): (3, 2, 0, 0),
    (2, None): (11, 10, 6, 0),
    (2, 2): (5, 4, 0, 0),
}


@pytest.mark.parametrize(("ssthresh", "table"), [(math.inf, SLOW_START), (1, AVOIDANCE)])
def test_minimum_file_sizes_equal_tables_1_and_2(
    ssthresh: float, table: dict[tuple[int, int | None], tuple[int, ...]]
) -> None:
    for (b, limited), row in table.items():
        for window, expected in enumerate(row, start=1):
            transfer = ShortTransfer(
                rtt_s=0.1,
                initial_window_pkts=window,
                initial_ssthresh_pkts=ssthresh,
                acked_packets=b,
                limited_transmit=limited,
            )
            assert timeout_packets(transfer) == expected, (b, limited, window)
            assert min_recoverable_pkts(transfer) == expected + 3


def test_proposal_recovers_all_but_the_last_packet() -> None:
    for b in (1, 2):
        transfer = replace(PROPOSAL, acked_packets=b)
        assert timeout_packets(transfer) == 0
        assert min_recoverable_pkts(transfer) == 1


def test_fluid_timeout_volume_equals_hand_computed_value() -> None:
    for b in (1, 2):
        slow = ShortTransfer(rtt_s=0.1, initial_window_pkts=1, acked_packets=b)
        assert fluid_timeout_pkts(slow) == pytest.approx(3 * b)  # b (T - W0)
        avoiding = replace(slow, initial_ssthresh_pkts=2)
        assert fluid_timeout_pkts(avoiding) == pytest.approx(b * (1 + (16 - 4) / 2))
        assert fluid_timeout_pkts(replace(slow, initial_window_pkts=4)) == 0
    assert fluid_timeout_pkts(replace(PAPER, receiver_window_pkts=3)) == math.inf
    assert timeout_packets(replace(PAPER, receiver_window_pkts=3)) == math.inf


def test_lossless_latency_is_exact_at_round_ends() -> None:
    rounds = lossless_latency_s(replace(PAPER, rtt_s=1.0), [2, 6, 14])
    np.testing.assert_allclose(rounds, [1, 2, 3], rtol=1e-12)
    # At the cap M = 4 one window per round: 2 + 4 + 4 + 2 packets.
    capped = lossless_latency_s(ShortTransfer(rtt_s=1.0, receiver_window_pkts=4), 12)
    assert capped == pytest.approx(1 + 10 / 4)


@pytest.mark.parametrize(("size", "loss"), [(1, 0.1), (30, 0.1), (1000, 0.01), (10_000, 0.1)])
def test_loss_distributions_sum_to_one_with_retransmission_mean(size: int, loss: float) -> None:
    k = np.arange(3000)
    for distribution in ("generalised-poisson", "negative-binomial"):
        distribution_of: Any = distribution
        probability = loss_probability(k, size_pkts=size, loss=loss, distribution=distribution_of)
        assert probability.sum() == pytest.approx(1, rel=1e-9)
        assert (k * probability).sum() == pytest.approx(size * loss / (1 - loss), rel=1e-9)
    printed = loss_probability(k, size_pkts=size, loss=loss, distribution="as-printed")
    assert printed.sum() == pytest.approx(math.exp(-loss) / (1 - loss), rel=1e-9)


def test_negative_binomial_equals_known_values() -> None:
    probability = loss_probability(
        [0, 1, 2], size_pkts=3, loss=0.1, distribution="negative-binomial"
    )
    np.testing.assert_allclose(probability, [0.9**3, 3 * 0.1 * 0.9**3, 6 * 0.01 * 0.9**3])


def test_losses_considered_stops_at_negligible_probability() -> None:
    k = first_negligible_loss_count(size_pkts=10_000, loss=0.01)
    beyond = loss_probability([k - 1, k, k + 200], size_pkts=10_000, loss=0.01)
    assert beyond[0] >= 1e-9 > beyond[1] > beyond[2]


# A plain version of the recursion with scalars, from the window distribution of section 2.


def grow(t: ShortTransfer, sent: float, w0: float, ss: float) -> tuple[float, float]:
    """Return window and round trips after ``sent`` packets, by stages."""
    cap, b = t.receiver_window_pkts, t.acked_packets
    w0, ss = min(w0, cap), min(ss, cap)
    stage = b * max(ss - w0, 0)
    if sent <= stage:
        return w0 + sent / b, math.log((w0 + sent / b) / w0) / math.log(1 + 1 / b)
    first = math.log(max(w0, ss) / w0) / math.log(1 + 1 / b)
    s = max(w0, ss)
    to_cap = b * (cap**2 - s**2) / 2
    if sent - stage <= to_cap:
        w = math.sqrt(s**2 + 2 * (sent - stage) / b)
        return w, first + b * (w - s)
    return cap, first + b * (cap - s) + (sent - stage - to_cap) / cap


def after_loss(
    t: ShortTransfer, sent: float, n: float, w0: float, ss: float
) -> tuple[float, float, float, float]:
    """Return the time until the next stage starts, its packets, window and threshold."""
    w, rounds = grow(t, sent, w0, ss)
    if t.sack and n - sent >= t.unprotected_pkts and w >= t.recovery_window_pkts:
        again = max(t.decrease * w, 1.0)
        return t.rtt_s * (rounds + 1), max(n - sent - w, 1.0), again, again
    if n - sent < t.unprotected_pkts:
        return t.rtt_s * rounds + t.rto_s, 1.0, 1.0, max(w / 2, 2)
    if w < t.recovery_window_pkts:
        return t.rtt_s * rounds + t.rto_s, n - sent + 1, 1.0, max(w / 2, 2)
    again = max(w / 2 - 1, 1.0)
    return t.rtt_s * (rounds + (0 if t.as_printed else 1)), n - sent, again, again


def by_quadrature(t: ShortTransfer, k: int, n: float) -> float:
    """Return L_k by nested adaptive quadrature."""

    def latency(k: int, n: float, w0: float, ss: float) -> float:
        if k == 0:
            return t.rtt_s * grow(t, n, w0, ss)[1]

        def integrand(y: float) -> float:
            elapsed, left, w, s = after_loss(t, y, n, w0, ss)
            return (elapsed + latency(k - 1, left, w, s)) * k / n * (1 - y / n) ** (k - 1)

        edge = max(n - t.unprotected_pkts, 0.0)
        start = replace(t, initial_window_pkts=w0, initial_ssthresh_pkts=ss)
        cuts = sorted({0.0, min(fluid_timeout_pkts(start), edge), edge, n})
        parts = pairwise(cuts)
        return sum(float(quad(integrand, a, b, epsrel=1e-4, limit=30)[0]) for a, b in parts)

    return cache(latency)(k, n, t.initial_window_pkts, t.initial_ssthresh_pkts)


VARIANTS = {
    "paper": PAPER,
    "limited": LIMITED,
    "proposal": PROPOSAL,
    "delayed": DELAYED,
    "iw4 printed": replace(PAPER, initial_window_pkts=4, as_printed=True),
    "endless": ShortTransfer(rtt_s=0.4, initial_window_pkts=1),
    "dup 6": replace(PAPER, duplicate_threshold=6),
    "narrow": replace(PAPER, receiver_window_pkts=3),
    "sack": replace(PAPER, sack=True),
    "cubic": ShortTransfer(
        rtt_s=0.06,
        initial_window_pkts=10,
        receiver_window_pkts=40,
        limited_transmit=1,
        protects_last_packets=True,
        sack=True,
        decrease=0.7,
        timeout_s=0.12,
    ),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_recursion_equals_adaptive_quadrature(name: str) -> None:
    transfer = VARIANTS[name]
    for size in (4, 5, 11, *([50] if transfer.sack else [])):
        latency = conditional_latency_s(transfer, size, max_losses=2)
        for k in (1, 2):
            assert latency[k] == pytest.approx(by_quadrature(transfer, k, size), rel=1e-3), (
                k,
                size,
            )


def by_drawing(t: ShortTransfer, k: int, n: float, draws: int, seed: int) -> tuple[float, float]:
    """Return mean latency and standard error; each loss is drawn from its density in turn."""
    rng = np.random.default_rng(seed)
    times = np.empty(draws)
    for i in range(draws):
        total, left, w, ss = 0.0, n, t.initial_window_pkts, t.initial_ssthresh_pkts
        for remaining in range(k, 0, -1):
            sent = left * (1 - rng.random() ** (1 / remaining))
            elapsed, left, w, ss = after_loss(t, sent, left, w, ss)
            total += elapsed
        times[i] = total + t.rtt_s * grow(t, left, w, ss)[1]
    return float(times.mean()), float(times.std() / math.sqrt(draws))


@pytest.mark.parametrize(
    ("name", "size", "k"),
    [
        ("paper", 30, 6),
        ("delayed", 300, 20),
        ("endless", 3000, 40),
        ("dup 6", 100, 10),
        ("cubic", 70, 6),
        ("sack", 60, 4),
    ],
)
def test_recursion_equals_monte_carlo(name: str, size: int, k: int) -> None:
    latency = conditional_latency_s(VARIANTS[name], size, max_losses=k)[k]
    mean, error = by_drawing(VARIANTS[name], k, size, draws=min(2000, 20_000 // k), seed=k)
    assert error < 0.01 * mean
    assert abs(latency - mean) < 4 * error


def test_printed_recursion_lacks_one_rtt_per_recovery() -> None:
    # At n = 30 losses of two packets at the start and three at the end time out; 25 of 30 recover.
    default = conditional_latency_s(PAPER, 30, max_losses=1)[1]
    printed = conditional_latency_s(replace(PAPER, as_printed=True), 30, max_losses=1)[1]
    assert default - printed == pytest.approx(0.1 * 25 / 30)


def test_expectation_is_the_weighted_sum_over_losses() -> None:
    latency = conditional_latency_s(
        PAPER, 12, max_losses=first_negligible_loss_count(size_pkts=12, loss=0.1)
    )
    weights = loss_probability(np.arange(len(latency)), size_pkts=12, loss=0.1)
    total = float((weights * latency).sum())
    assert expected_latency_s(PAPER, 12, loss=0.1) == pytest.approx(total, rel=1e-4)
    given = expected_latency_s(PAPER, 12, loss=0.1, given_loss=True)
    assert given == pytest.approx((total - weights[0] * latency[0]) / (1 - weights[0]), rel=1e-4)


def test_expectation_falls_to_the_lossless_latency() -> None:
    sizes = np.array([[1, 5, 20], [100, 500, 2000]])
    latency = expected_latency_s(PAPER, sizes, loss=1e-9)
    assert latency.shape == sizes.shape
    np.testing.assert_allclose(latency, lossless_latency_s(PAPER, sizes), rtol=1e-4)


def test_expectation_rises_with_loss_and_round_trip() -> None:
    curves = [expected_latency_s(PAPER, SIZES, loss=p) for p in (0.001, 0.01, 0.05, 0.1, 0.2)]
    assert np.all(np.diff(curves, axis=0) > 0)
    far = expected_latency_s(replace(PAPER, rtt_s=0.3), SIZES, loss=0.05)
    assert np.all(far > curves[2])


def test_large_files_approach_a_rate() -> None:
    # Far beyond slow start equal parts of a file take equal times.
    latency = expected_latency_s(PAPER, [1000, 2000, 3000], loss=0.02)
    first, second = np.diff(latency)
    assert second == pytest.approx(first, rel=2e-3)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"rtt_s": 0}, "rtt_s"),
        ({"rtt_s": math.nan}, "rtt_s"),
        ({"initial_window_pkts": 0}, "initial_window_pkts"),
        ({"initial_window_pkts": math.inf}, "initial_window_pkts"),
        ({"initial_ssthresh_pkts": 0.5}, "initial_ssthresh_pkts"),
        ({"receiver_window_pkts": 0}, "receiver_window_pkts"),
        ({"acked_packets": 0}, "acked_packets"),
        ({"acked_packets": 1.5}, "acked_packets"),
        ({"duplicate_threshold": 0}, "duplicate_threshold"),
        ({"limited_transmit": 0}, "limited_transmit"),
        ({"limited_transmit": 4}, "limited_transmit"),
        ({"min_rto_s": -1}, "min_rto_s"),
    ],
)
def test_transfers_outside_the_domain_are_rejected(changes: dict[str, Any], word: str) -> None:
    with pytest.raises(DomainError, match=word):
        replace(PAPER, **changes)


@pytest.mark.parametrize(
    ("question", "word"),
    [
        (lambda: expected_latency_s(PAPER, 0, loss=0.1), "size_pkts"),
        (lambda: expected_latency_s(PAPER, [3, math.nan], loss=0.1), "size_pkts"),
        (lambda: expected_latency_s(PAPER, 3, loss=0), "loss"),
        (lambda: expected_latency_s(PAPER, 3, loss=1), "loss"),
        (lambda: expected_latency_s(PAPER, 3, loss=1.2), "loss"),
        (lambda: expected_latency_s(PAPER, 1e6, loss=0.1), "5000"),
        (lambda: first_negligible_loss_count(size_pkts=math.inf, loss=0.1), "size_pkts"),
        (lambda: conditional_latency_s(PAPER, 3, max_losses=-1), "max_losses"),
        (lambda: conditional_latency_s(PAPER, 3, max_losses=5001), "max_losses"),
        (lambda: lossless_latency_s(PAPER, 0.5), "size_pkts"),
        (lambda: loss_probability(-1, size_pkts=3, loss=0.1), "losses"),
        (lambda: timeout_packets(replace(PAPER, initial_window_pkts=1.5)), "whole number"),
    ],
)
def test_arguments_outside_the_domain_are_rejected(
    question: Callable[[], object], word: str
) -> None:
    with pytest.raises(DomainError, match=word):
        question()


def test_unknown_loss_distribution_is_rejected() -> None:
    distribution: Any = "poisson"
    with pytest.raises(DomainError, match="negative-binomial"):
        loss_probability(1, size_pkts=3, loss=0.1, distribution=distribution)
