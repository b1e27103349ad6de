"""PFTK, the square-root formula and CUBIC's response, compared with printed and derived values."""

from typing import Any

import numpy as np
import pytest
from tcpcast.models.cubic import cubic_response, cubic_tolerated_loss_ratio
from tcpcast.models.mathis import mathis_constant, mathis_rate_pps
from tcpcast.models.pftk import (
    approximate_rate_pps,
    tcp_friendly_rate_pps,
    td_only_leading_rate_pps,
    td_only_rate_pps,
    throughput,
    timeout_probability,
    timeout_probability_approximate,
    timeout_sequence_s,
    unlimited_rounds,
    unlimited_window_pkts,
    window_limit_loss_ratio,
)
from tcpcast.models.pftk.closed_form import VALUES_PER_BLOCK
from tcpcast.process.errors import DomainError


def summed_q(w: int, p: float, last: int) -> float:
    """Eq. (22) term by term, with k up to ``last``."""

    def first_lost_after(k: int) -> float:  # A(w, k)
        return (1 - p) ** k * p / (1 - (1 - p) ** w)

    def acknowledged(n: int, m: int) -> float:  # C(n, m)
        return (1 - p) ** m * p if m <= n - 1 else (1 - p) ** n

    few = sum(first_lost_after(k) for k in range(3))
    return few + sum(
        first_lost_after(k) * sum(acknowledged(k, m) for m in range(3)) for k in range(3, last + 1)
    )


def test_equation_22_sum_ends_at_w_minus_1() -> None:
    closed = float(timeout_probability(window_pkts=4, loss_indication_ratio=0.02))
    assert round(summed_q(4, 0.02, last=4), 5) == 0.78576
    assert round(closed, 5) == 0.77178
    assert closed == pytest.approx(summed_q(4, 0.02, last=3), rel=1e-13)


@pytest.mark.parametrize("p", [1e-4, 0.003, 0.02, 0.1, 0.3, 0.7, 0.95])
@pytest.mark.parametrize("w", [4, 5, 8, 13, 44, 200])
def test_equation_23_equals_the_sum_of_22(w: int, p: float) -> None:
    closed = float(timeout_probability(window_pkts=w, loss_indication_ratio=p))
    assert closed == pytest.approx(min(1.0, summed_q(w, p, last=w - 1)), rel=1e-11)


@pytest.mark.parametrize("w", [1, 2, 3])
def test_losses_in_windows_up_to_three_always_time_out(w: int) -> None:
    assert timeout_probability(window_pkts=w, loss_indication_ratio=0.01) == 1


@pytest.mark.parametrize("w", [4, 10, 44, 1000])
def test_equation_24_is_the_limit_of_23(w: int) -> None:
    tiny = timeout_probability(window_pkts=w, loss_indication_ratio=1e-13)
    assert tiny == pytest.approx(timeout_probability_approximate(window_pkts=w), rel=1e-9)


def test_means_of_equations_13_and_15_satisfy_12() -> None:
    p, b = np.meshgrid([1e-5, 0.001, 0.05, 0.5, 0.9], [1, 2, 3, 8])
    w = unlimited_window_pkts(loss_indication_ratio=p, packets_per_ack=b)
    x = unlimited_rounds(loss_indication_ratio=p, packets_per_ack=b)
    printed = (2 + b) / 6 + np.sqrt(2 * b * (1 - p) / (3 * p) + ((2 + b) / 6) ** 2)
    assert x == pytest.approx(printed, rel=1e-12)
    assert (1 - p) / p + w == pytest.approx(x / 2 * (w / 2 + w - 1) + w / 2, rel=1e-12)


@pytest.mark.parametrize("p", [0.01, 0.2, 0.6])
def test_equation_28_is_the_mean_timeout_sequence(p: float) -> None:
    mean = 0.0
    for k in range(1, 2000):
        length = 2**k - 1 if k <= 6 else 63 + 64 * (k - 6)
        mean += length * p ** (k - 1) * (1 - p)
    result = timeout_sequence_s(t0_s=2.5, loss_indication_ratio=p)
    assert result == pytest.approx(2.5 * mean, rel=1e-12)


@pytest.mark.parametrize("b", [1, 2, 4])
def test_equation_19_tends_to_20(b: int) -> None:
    for p, close in ((1e-4, 0.03), (1e-8, 3e-4), (1e-12, 3e-6)):
        exact = td_only_rate_pps(rtt_s=0.1, loss_indication_ratio=p, packets_per_ack=b)
        leading = td_only_leading_rate_pps(rtt_s=0.1, loss_indication_ratio=p, packets_per_ack=b)
        assert exact == pytest.approx(leading, rel=close)


def test_b_of_1_gives_the_square_root_formula() -> None:
    assert mathis_constant(packets_per_ack=1) == pytest.approx(1.2247, abs=5e-5)
    assert mathis_constant() == pytest.approx(0.8660, abs=5e-5)
    p = np.array([1e-6, 1e-3])
    distribution = mathis_rate_pps(rtt_s=0.08, loss_indication_ratio=p, packets_per_ack=1)
    assert distribution == pytest.approx(np.sqrt(1.5 / p) / 0.08, rel=1e-12)
    exact = td_only_rate_pps(rtt_s=0.08, loss_indication_ratio=1e-12, packets_per_ack=1)
    assert exact == pytest.approx(np.sqrt(1.5e12) / 0.08, rel=1e-5)


def jump(window: float, b: float, *, t0_s: float = 0.2, continuous: bool = False) -> float:
    """Relative step of the rate as p grows across E[W_u] = W_max."""
    border = float(window_limit_loss_ratio(receiver_window_pkts=window, packets_per_ack=b))
    both = throughput(
        rtt_s=0.1,
        t0_s=t0_s,
        loss_indication_ratio=[border * (1 - 1e-9), border * (1 + 1e-9)],
        packets_per_ack=b,
        receiver_window_pkts=window,
        continuous=continuous,
    )
    assert both.window_limited.tolist() == [True, False]
    return float(both.rate_pps[1] / both.rate_pps[0] - 1)


@pytest.mark.parametrize(("window", "percent"), [(6, 4.4), (10, 3.6), (44, 1.1)])
def test_equation_31_is_discontinuous_for_b_of_1(window: float, percent: float) -> None:
    assert round(100 * jump(window, 1), 1) == percent


@pytest.mark.parametrize("window", [6, 10, 44])
def test_equation_31_is_continuous_for_b_of_2(window: float) -> None:
    assert jump(window, 2) == pytest.approx(0, abs=1e-7)


def test_equation_31_jumps_down_for_b_above_2() -> None:
    assert jump(10, 4) < -0.01


@pytest.mark.parametrize("b", [1, 1.5, 2, 4])
@pytest.mark.parametrize("window", [6, 10, 44])
def test_continuous_branches_are_continuous(window: float, b: float) -> None:
    assert jump(window, b, continuous=True) == pytest.approx(0, abs=1e-7)


def test_rfc_5348_equals_equation_29_while_q_is_below_1() -> None:
    p = 0.01  # 3 sqrt(3p/8) < 1
    tfrc = tcp_friendly_rate_pps(rtt_s=0.1, loss_event_ratio=p)
    printed = 0.1 * np.sqrt(2 * p / 3) + 0.4 * 3 * np.sqrt(3 * p / 8) * p * (1 + 32 * p**2)
    assert tfrc == pytest.approx(1 / printed, rel=1e-13)
    assert tfrc == pytest.approx(
        approximate_rate_pps(rtt_s=0.1, t0_s=0.4, loss_indication_ratio=p, packets_per_ack=1),
        rel=1e-13,
    )
    # Above p = 8/27 the RFC has no cap and is therefore below (32).
    assert tcp_friendly_rate_pps(rtt_s=0.1, loss_event_ratio=0.5) < approximate_rate_pps(
        rtt_s=0.1, t0_s=0.4, loss_indication_ratio=0.5, packets_per_ack=1
    )


RESPONSE = {
    (0.1, 0.04): [12, 38, 120, 593, 3332, 18740, 105383],
    (0.1, 0.4): [12, 38, 187, 1054, 5926, 33325, 187400],
    (0.1, 4.0): [12, 59, 333, 1874, 10538, 59261, 333250],
    (0.01, 0.04): [12, 38, 120, 379, 1200, 3795, 18740],
    (0.01, 0.4): [12, 38, 120, 379, 1200, 5926, 33325],
    (0.01, 4.0): [12, 38, 120, 379, 1874, 10538, 59261],
}
"""CUBIC's columns of RFC 8312, Tables 1 and 2, p = 1e-2 to 1e-8, by RTT and C."""


@pytest.mark.parametrize(("rtt", "scale"), list(RESPONSE))
def test_cubic_windows_equal_rfc_tables(rtt: float, scale: float) -> None:
    p = 10.0 ** -np.arange(2, 9)
    printed = np.array(RESPONSE[rtt, scale])
    result = cubic_response(rtt_s=rtt, loss_ratio=p, scale=scale)
    friendly = result.reno_friendly
    assert result.window_pkts[~friendly] == pytest.approx(printed[~friendly], abs=0.51)
    # The RFC has 1.2/sqrt(p) of RFC 3649 for Reno, 2 % less than sqrt(3/(2p)).
    assert friendly.tolist() == (printed == np.rint(1.2 / np.sqrt(p))).tolist()
    assert result.window_pkts[friendly] == pytest.approx(printed[friendly], rel=0.025)


def test_cubic_tolerated_loss_equals_rfc_8312_table_3() -> None:
    """RFC 8312, Table 3: windows of 0.1, 1 and 10 Gbit/s at 1500 bytes and RTT 0.1 s."""
    window = np.array([833.3, 8333.3, 83333.3])
    tolerated = cubic_tolerated_loss_ratio(rate_pps=window / 0.1, rtt_s=0.1)
    assert [f"{p:.1e}" for p in tolerated] == ["1.4e-05", "6.3e-07", "2.9e-08"]


def test_measured_share_of_timeouts_replaces_q() -> None:
    path: dict[str, Any] = {"rtt_s": 0.2, "t0_s": 1.5, "loss_indication_ratio": [0.01, 0.05]}
    full = throughput(**path)
    same = throughput(**path, timeout_share=full.timeout_probability)
    np.testing.assert_array_equal(same.rate_pps, full.rate_pps)
    without = throughput(**path, timeout_share=0)
    np.testing.assert_allclose(
        without.rate_pps, td_only_rate_pps(rtt_s=0.2, loss_indication_ratio=[0.01, 0.05])
    )
    assert (without.timeout_time_share == 0).all()
    with pytest.raises(DomainError, match="timeout_share must be between 0 and 1"):
        throughput(**path, timeout_share=1.5)


def test_large_arrays_equal_single_values_bit_for_bit() -> None:
    """Broadcast a row, a column and single values to arrays larger than a block."""
    rng = np.random.default_rng(3)
    rtt, p = rng.uniform(0.01, 0.3, (300, 1)), rng.uniform(1e-4, 0.5, 2 * VALUES_PER_BLOCK // 300)
    result = throughput(rtt_s=rtt, t0_s=[1.0], loss_indication_ratio=p, receiver_window_pkts=20)
    rows = [
        throughput(rtt_s=rtt_s, t0_s=1.0, loss_indication_ratio=p, receiver_window_pkts=20)
        for rtt_s in rtt[:, 0]
    ]
    for name in ("rate_pps", "window_pkts", "timeout_probability", "window_limited"):
        assert np.array_equal(getattr(result, name), [getattr(row, name) for row in rows])
    assert result.rate_pps.size > VALUES_PER_BLOCK
