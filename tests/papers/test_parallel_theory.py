"""The models of parallel flows against the paper's algorithms, equations and limits."""

import math
from itertools import product

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray
from tcpcast.models.parallel import (
    cumulative_throughput,
    flows_to_fill,
    limited_rate_pps,
    multiplied_pftk_rate_pps,
    parallel_td_only_rate_pps,
    parallel_throughput,
    parallel_tolerated_loss_ratio,
)
from tcpcast.models.pftk import throughput
from tcpcast.process.errors import DomainError
from tcpcast_papers.parallel.multcp import multfrc_rate_pps

RTT, T0 = 0.06, 0.24
NS = np.array([1, 2, 3, 5, 10, 20, 50, 100, 200])[:, np.newaxis]


def per_flow(
    n: ArrayLike, p: ArrayLike, *, b: float = 2, t0: float = T0, equations: bool = False
) -> NDArray[np.float64]:
    return parallel_throughput(
        flows=n, rtt_s=RTT, t0_s=t0, loss_event_ratio=p, packets_per_ack=b, equations=equations
    ).rate_pps


def cumulative(
    n: ArrayLike, p: ArrayLike, lost: ArrayLike, *, b: float = 2, equations: bool = False
) -> NDArray[np.float64]:
    return cumulative_throughput(
        flows=n,
        rtt_s=RTT,
        t0_s=T0,
        loss_event_ratio_cumulative=p,
        loss_ratio=lost,
        packets_per_ack=b,
        equations=equations,
    ).rate_pps


def backoff(p: float) -> float:
    return 1 + p + 2 * p**2 + 4 * p**3 + 8 * p**4 + 16 * p**5 + 32 * p**6


def equation_29(n: int, p: float, b: float) -> float:
    """Eq. (29) with (26), with the missing minus of its second fraction; at most n flows wait."""
    d = (2 - n) * p * b + math.sqrt(
        n**2 * p**2 * b**2 - 4 * n * p**2 * b**2 + 4 * p**2 * b**2 + 24 * b * n**2 * p
    )
    w = d / (3 * n * p * b)
    r = 1 - 1 / w
    q = 1 if w <= 3 else min(1, (1 - r**3) * (1 + r**3 * (1 - r ** (w - 3))))
    z = T0 * backoff(p) / (1 - p)
    if q * z >= n * d / (6 * n**2 * p) * RTT:
        return n / (T0 * backoff(p))
    sent = 6 * n**2 * (1 + q * p / (1 - p)) / (d * RTT)
    return sent - 36 * n**3 * p * z * q / (d**2 * RTT**2)


def equation_48(n: int, pe: float, pr: float, b: float) -> float:
    """Eqs. (43), (47), (48); at most n flows wait."""
    j = min(n, pr / pe)
    root = math.sqrt(
        (n * pe * b * j) ** 2
        - 4 * n * pe**2 * b**2 * j**3
        + 4 * j**4 * pe**2 * b**2
        + 24 * n**2 * pe * b * j
    )
    x = (2 * j**2 * pe * b - n * pe * b * j + root) / (6 * n**2 * pe)
    hit = min(n * pr / pe / (n * x / (2 * b) + 3 * n**2 * x / (2 * b * j)), n)
    waiting = min(n, hit * backoff(pe) * T0 / ((1 - pe) * x * RTT))
    return (n - waiting) / (n * pe * x * RTT) + waiting / (backoff(pe) * T0)


@pytest.mark.parametrize(
    ("n", "expected"),
    [
        (1, (446.278, 124.996, 34.810)),
        (10, (4534.741, 1300.890, 332.811)),
        (100, (45419.968, 13060.083, 3303.319)),
    ],
)
def test_per_flow_model_equals_appendix_values_of_algorithm_1(
    n: int, expected: tuple[float, ...]
) -> None:
    rates = per_flow(n, [0.001, 0.01, 0.05])
    np.testing.assert_allclose(rates, expected, rtol=0, atol=5.1e-4)


def test_cumulative_model_equals_appendix_values_of_algorithm_2() -> None:
    # The note prints 3228.098 as the first value; the printed algorithm gives 3228.0998.
    p = np.array([0.001, 0.01, 0.05])
    expected = (3228.0998, 965.761, 271.153)
    np.testing.assert_allclose(cumulative(10, p, 2 * p), expected, rtol=0, atol=5.1e-4)


POINTS = list(product([1, 2, 3, 10, 100], [1e-6, 0.001, 0.03, 0.1, 0.15]))


@pytest.mark.parametrize("b", [1, 2, 3.5])
def test_per_flow_model_equals_equation_29(b: float) -> None:
    for n, p in POINTS:
        exact = float(per_flow(n, p, b=b, equations=True))
        assert exact == pytest.approx(equation_29(n, p, b), rel=1e-9), (n, p)


@pytest.mark.parametrize("b", [1, 2, 3.5])
@pytest.mark.parametrize("share", [1, 2, 5.5])
def test_cumulative_model_equals_equation_48(share: float, b: float) -> None:
    for n, p in POINTS:
        exact = float(cumulative(n, p, share * p, b=b, equations=True))
        assert exact == pytest.approx(equation_48(n, p, share * p, b), rel=1e-10), (n, p)


def test_cap_of_47_matters_for_large_events() -> None:
    """For events of 5 packets, the cap at 1 gives up to 3.7 times the rate of the equation."""
    for n, p, difference in ((10, 0.05, -0.730), (100, 0.01, -0.066)):
        printed, exact = (cumulative(n, p, 5 * p, equations=form) for form in (False, True))
        assert float(exact / printed - 1) == pytest.approx(difference, abs=5e-4)


def test_timeout_probability_jumps_at_window_3_in_equations_only() -> None:
    # At w = 3, (27) is 19/27 and (26) is 1, so only the equations jump. For n -> oo, p = 12/99
    # gives w = 3.
    def probabilities(p: float) -> list[float]:
        models = (
            parallel_throughput(
                flows=10**6, rtt_s=RTT, t0_s=T0, loss_event_ratio=p, equations=form
            ).timeouts_per_event
            for form in (False, True)
        )
        return [float(values) for values in models]

    border = 12 / 99
    assert probabilities(border - 1e-5) == pytest.approx([19 / 27] * 2, abs=1e-4)
    assert probabilities(border + 1e-5) == pytest.approx([19 / 27, 1], abs=1e-4)


def test_windows_below_1_cause_timeouts() -> None:
    p = 0.9  # 1 - 1/w is negative: the printed power has no value
    model = parallel_throughput(flows=100, rtt_s=RTT, t0_s=T0, loss_event_ratio=p)
    assert float(model.flow_window_pkts) < 1
    assert float(model.timeouts_per_event) == 1
    assert float(model.rate_pps) == pytest.approx(100 / (T0 * (1 + 32 * p * p)))


def test_windows_and_rounds_are_consistent() -> None:
    model = parallel_throughput(flows=NS, rtt_s=RTT, t0_s=T0, loss_event_ratio=0.01)
    n, x, w = NS, model.rounds, model.flow_window_pkts
    # (42) for j = 1: an event every 1/p packets; (39): the windows of flows hit 0, 1, ... ago.
    np.testing.assert_allclose(3 * n**2 * x**2 / 4 + n * x / 2 - x, np.full(NS.shape, 100.0))
    ages = [w[i] + sum(w[i] / 2 + k * x[i] / 2 for k in range(1, int(NS[i, 0]))) for i in range(9)]
    np.testing.assert_allclose(model.window_pkts, ages)


@pytest.mark.parametrize("b", [1, 2, 4])
def test_rate_without_timeouts_tends_to_n_times_square_root_rate(b: int) -> None:
    # 6 n^2/sqrt(24 b n^2 p) is n sqrt(3/(2bp)), (20) of PFTK.
    rates = parallel_td_only_rate_pps(
        flows=NS, rtt_s=RTT, loss_event_ratio=1e-12, packets_per_ack=b
    )
    np.testing.assert_allclose(rates, NS * math.sqrt(3 / (2 * b * 1e-12)) / RTT, rtol=1e-5)


def test_multiplied_pftk_is_n_times_pftk() -> None:
    rates = multiplied_pftk_rate_pps(
        flows=[1, 7], rtt_s=RTT, t0_s=T0, loss_indication_ratio=0.02, receiver_window_pkts=6
    )
    one = throughput(rtt_s=RTT, t0_s=T0, loss_indication_ratio=0.02, receiver_window_pkts=6)
    np.testing.assert_allclose(rates, one.rate_pps * [1, 7])


@pytest.mark.parametrize("b", [1, 2, 4])
@pytest.mark.parametrize("equations", [False, True])
def test_rate_decreases_in_loss(b: int, equations: bool) -> None:
    losses = np.geomspace(1e-6, 0.49, 3000)
    for t0 in (RTT, T0, 16 * RTT):
        rates = per_flow(NS, losses, b=b, t0=t0, equations=equations)
        assert (np.diff(rates, axis=1) < 0).all()
    assert (np.diff(cumulative(NS, losses, 2 * losses, b=b, equations=equations), axis=1) < 0).all()


@pytest.mark.parametrize("b", [1, 2, 4])
@pytest.mark.parametrize("equations", [False, True])
def test_rate_increases_in_flows(b: int, equations: bool) -> None:
    n = np.arange(1, 401)[:, np.newaxis]
    losses = np.geomspace(1e-6, 0.05, 100)
    assert (np.diff(per_flow(n, losses, b=b, equations=equations), axis=0) > 0).all()
    few = np.geomspace(1e-6, 0.02, 100)
    rates = cumulative(n, few, 2 * few, b=b, equations=equations)
    assert (np.diff(rates, axis=0) > 0).all()


@pytest.mark.parametrize("equations", [False, True])
def test_flows_to_fill_is_minimal(equations: bool) -> None:
    losses = np.array([1e-5, 1e-4, 1e-3, 0.01, 0.05])
    for rate in (1.0, 100.0, 83333.0, 8e6):
        n = flows_to_fill(
            bottleneck_rate_pps=rate,
            rtt_s=RTT,
            t0_s=T0,
            loss_event_ratio=losses,
            equations=equations,
        )
        assert (per_flow(n, losses, equations=equations) >= rate).all()
        fewer = per_flow(np.maximum(n - 1, 1), losses, equations=equations)
        assert ((fewer < rate) | (n == 1)).all()
    path = flows_to_fill(
        bottleneck_rate_pps=83333, rtt_s=RTT, t0_s=T0, loss_event_ratio=[1e-4, 1e-3, 0.01, 0.05]
    )
    if not equations:
        assert path.tolist() == [58, 184, 638, 2525]


def test_windows_and_capacity_limit_the_rate() -> None:
    def limited(window: float, rate: float) -> list[float]:
        rates = limited_rate_pps(
            flows=[1, 10, 100],
            rtt_s=RTT,
            t0_s=T0,
            loss_event_ratio=1e-3,
            receiver_window_pkts=window,
            bottleneck_rate_pps=rate,
        )
        return [float(value) for value in rates]

    assert limited(math.inf, math.inf) == per_flow([1, 10, 100], 1e-3).tolist()
    assert limited(6, math.inf) == pytest.approx([100, 1000, 10_000])
    assert limited(6, 500) == pytest.approx([100, 500, 500])


def test_windows_need_more_flows_to_fill() -> None:
    """6 packets per RTT are 100 packets/s per flow, a fifth of the rate that its loss allows."""

    def fill(window: float, rate: float) -> float:
        flows = flows_to_fill(
            bottleneck_rate_pps=rate,
            rtt_s=RTT,
            t0_s=T0,
            loss_event_ratio=1e-3,
            receiver_window_pkts=window,
        )
        return float(flows)

    assert fill(6, 83333) == 834
    assert fill(6, 100) == 1
    assert fill(math.inf, 83333) == fill(1e6, 83333) == 184


@pytest.mark.parametrize("equations", [False, True])
@pytest.mark.parametrize("b", [1, 2])
def test_tolerated_loss_is_the_inverse(b: int, equations: bool) -> None:
    p = np.geomspace(1e-9, 0.08, 60)
    for t0 in (RTT, T0, 1.0):
        rates = per_flow(NS, p, b=b, t0=t0, equations=equations)
        back = parallel_tolerated_loss_ratio(
            flows=NS, rate_pps=rates, rtt_s=RTT, t0_s=t0, packets_per_ack=b, equations=equations
        )
        np.testing.assert_allclose(back, np.broadcast_to(p, back.shape), rtol=1e-9)


def test_tolerated_loss_is_1_or_tiny_at_extreme_rates() -> None:
    def tolerated(rate: float, t0: float = T0) -> float:
        return float(parallel_tolerated_loss_ratio(flows=2, rate_pps=rate, rtt_s=RTT, t0_s=t0))

    # At p -> 1 each flow sends 1/(33 T): a rate below that any loss allows.
    assert tolerated(1.9 / (33 * T0)) == 1
    assert tolerated(2.1 / (33 * T0)) < 1
    assert 0 < tolerated(1e9) < 1e-15
    with pytest.raises(DomainError, match="t0_s must be at least rtt_s"):
        tolerated(100, RTT / 2)


@pytest.mark.parametrize("flows", [1, 4])
@pytest.mark.parametrize("loss", [0.001, 0.05])
def test_multfrc_sends_at_the_rate_for_its_own_loss_events(flows: int, loss: float) -> None:
    rtt_s = 0.064
    rate = multfrc_rate_pps(flows, loss, rtt_s)
    window = max(rate * rtt_s, 1)
    again = cumulative_throughput(
        flows=flows,
        rtt_s=rtt_s,
        t0_s=4 * rtt_s,
        packets_per_ack=1,
        loss_event_ratio_cumulative=(1 - (1 - loss) ** window) / window,
        loss_ratio=loss,
    )
    assert rate == pytest.approx(float(again.rate_pps), rel=1e-6)
