"""Short transfers: values of Ayesta and Avrachenkov's model and their derivation.

The recursion is compared with adaptive quadrature of its own integrals and with sequential random
draws of the positions of losses, neither of which uses its meshes.
"""

import math
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from tcpcast.models.short import (
    ShortTransfer,
    conditional_latency_s,
    expected_latency_s,
    first_negligible_loss_count,
    fluid_timeout_pkts,
    loss_probability,
    lossless_latency_s,
    timeout_packets,
)

PAPER = ShortTransfer(rtt_s=0.1, initial_ssthresh_pkts=30, receiver_window_pkts=30)
LIMITED = replace(PAPER, limited_transmit=2)
PROPOSAL = replace(PAPER, limited_transmit=1, protects_last_packets=True)
DELAYED = replace(PAPER, acked_packets=2)
SIZES = np.arange(1, 31)

# Half a unit of the third decimal, plus errors of quadrature and meshes (3.4075 rounds both ways).
PRINTED = 5.5e-4


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
