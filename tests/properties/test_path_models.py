"""Properties of the models of one path that hold for every path, and their refusals."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tcpcast.models.cubic import (
    cubic_response,
    cubic_tolerated_loss_ratio,
    reno_friendly_loss_ratio,
)
from tcpcast.models.mathis import mathis_rate_pps, mathis_tolerated_loss_ratio
from tcpcast.models.pftk import (
    Throughput,
    approximate_rate_pps,
    tcp_friendly_loss_event_ratio,
    tcp_friendly_rate_pps,
    td_only_rate_pps,
    throughput,
    tolerated_loss_ratio,
    tolerated_loss_ratio_approximate,
    window_limit_loss_ratio,
)

rtts = st.floats(1e-3, 2)
timers = st.floats(1, 20)
"""T0 in round trips; timers are at least one round trip."""
acks = st.sampled_from([1.0, 1.5, 2.0, 3.0, 8.0])
windows = st.one_of(st.floats(1, 1000), st.just(np.inf))
losses = st.floats(1e-7, 0.999)
GRID = np.geomspace(1e-7, 0.99, 400)
ROUNDING = 1 + 1e-9


@given(rtt=rtts, timer=timers, b=acks, window=windows, continuous=st.booleans())
def test_rate_falls_with_loss_within_each_branch(
    rtt: float, timer: float, b: float, window: float, continuous: bool
) -> None:
    result = throughput(
        rtt_s=rtt,
        t0_s=rtt * timer,
        loss_indication_ratio=GRID,
        packets_per_ack=b,
        receiver_window_pkts=window,
        continuous=continuous,
    )
    for branch in (result.window_limited, ~result.window_limited):
        rates = result.rate_pps[branch]
        assert np.all(rates[1:] <= rates[:-1] * ROUNDING)
    if continuous or b == 2:
        assert np.all(result.rate_pps[1:] <= result.rate_pps[:-1] * ROUNDING)


@given(p=losses, rtt=rtts, timer=timers, b=acks, window=windows)
def test_rate_falls_with_rtt_and_t0(
    p: float, rtt: float, timer: float, b: float, window: float
) -> None:
    def both(rtt_s: np.ndarray | float, t0_s: np.ndarray | float) -> list[np.ndarray]:
        full = throughput(
            rtt_s=rtt_s,
            t0_s=t0_s,
            loss_indication_ratio=p,
            packets_per_ack=b,
            receiver_window_pkts=window,
        )
        short = approximate_rate_pps(
            rtt_s=rtt_s,
            t0_s=t0_s,
            loss_indication_ratio=p,
            packets_per_ack=b,
            receiver_window_pkts=window,
        )
        return [full.rate_pps, short]

    growing = np.geomspace(1, 10, 20)
    for rates in (*both(rtt * growing, rtt * timer), *both(rtt, rtt * timer * growing)):
        assert np.all(rates[1:] <= rates[:-1] * ROUNDING)


@given(p=losses, rtt=rtts, timer=timers, b=acks, window=windows)
def test_results_are_consistent(
    p: float, rtt: float, timer: float, b: float, window: float
) -> None:
    result = throughput(
        rtt_s=rtt,
        t0_s=rtt * timer,
        loss_indication_ratio=p,
        packets_per_ack=b,
        receiver_window_pkts=window,
    )
    assert 0 < result.timeout_probability <= 1
    assert 0 < result.timeout_time_share < 1
    assert result.window_pkts == min(window, float(result.unlimited_window_pkts))
    assert result.window_pkts / rtt >= result.rate_pps
    if not result.window_limited:
        # (21) lies between the rate of its periods and that of its timeout sequences.
        td = td_only_rate_pps(rtt_s=rtt, loss_indication_ratio=p, packets_per_ack=b)
        assert result.rate_pps <= max(float(td), 1 / (rtt * timer)) * ROUNDING


@given(rtt=rtts, b=acks, window=st.floats(4, 1000))
def test_branch_border_is_where_windows_are_equal(rtt: float, b: float, window: float) -> None:
    border = float(window_limit_loss_ratio(receiver_window_pkts=window, packets_per_ack=b))
    result = throughput(
        rtt_s=rtt, t0_s=1, loss_indication_ratio=border, packets_per_ack=b
    ).unlimited_window_pkts
    assert result == pytest.approx(window, rel=1e-9)


@given(
    rtt=rtts,
    timer=timers,
    b=acks,
    window=windows,
    share=st.floats(0.01, 0.99),
    continuous=st.booleans(),
)
def test_tolerated_loss_is_the_largest_that_gives_the_rate(
    *, rtt: float, timer: float, b: float, window: float, share: float, continuous: bool
) -> None:
    path: dict[str, Any] = {
        "rtt_s": rtt,
        "t0_s": rtt * timer,
        "packets_per_ack": b,
        "receiver_window_pkts": window,
    }
    target = share * min(window, 1000.0) / rtt
    p = float(tolerated_loss_ratio(rate_pps=target, continuous=continuous, **path))

    def rate(loss: float | np.ndarray) -> np.ndarray:
        return throughput(loss_indication_ratio=loss, continuous=continuous, **path).rate_pps

    if p == 1:
        assert rate(1 - 1e-13) >= target
        return
    assert rate(p * (1 - 1e-9)) >= target / ROUNDING
    above = p * (1 + 1e-9)
    assert np.all(rate(np.maximum(GRID, above)) < target * ROUNDING)


def test_rate_within_the_jump_tolerates_the_loss_at_the_jump() -> None:
    path: dict[str, Any] = {
        "rtt_s": 0.1,
        "t0_s": 0.2,
        "packets_per_ack": 4,
        "receiver_window_pkts": 10,
    }
    border = float(window_limit_loss_ratio(receiver_window_pkts=10, packets_per_ack=4))
    sides = throughput(
        loss_indication_ratio=[border * (1 - 1e-9), border * (1 + 1e-9)], **path
    ).rate_pps
    assert sides[1] < sides[0]
    tolerated = tolerated_loss_ratio(rate_pps=float(sides.mean()), **path)
    assert tolerated == pytest.approx(border, rel=1e-12)


@given(p=st.floats(1e-9, 0.9), rtt=rtts, timer=timers, b=acks)
def test_simple_inverses_return_the_loss(p: float, rtt: float, timer: float, b: float) -> None:
    t0 = rtt * timer
    short = approximate_rate_pps(rtt_s=rtt, t0_s=t0, loss_indication_ratio=p, packets_per_ack=b)
    back = tolerated_loss_ratio_approximate(rate_pps=short, rtt_s=rtt, t0_s=t0, packets_per_ack=b)
    assert back == pytest.approx(p, rel=1e-9)
    tfrc = tcp_friendly_rate_pps(rtt_s=rtt, loss_event_ratio=p, packets_per_ack=b)
    back = tcp_friendly_loss_event_ratio(rate_pps=tfrc, rtt_s=rtt, packets_per_ack=b)
    assert back == pytest.approx(p, rel=1e-9)
    distribution = mathis_rate_pps(rtt_s=rtt, loss_indication_ratio=p, packets_per_ack=b)
    back = mathis_tolerated_loss_ratio(rate_pps=distribution, rtt_s=rtt, packets_per_ack=b)
    assert back == pytest.approx(p, rel=1e-9)
    cubic = cubic_response(rtt_s=rtt, loss_ratio=p).rate_pps
    back = cubic_tolerated_loss_ratio(rate_pps=cubic, rtt_s=rtt)
    assert back == pytest.approx(p, rel=1e-9)


def test_receiver_window_limits_all_models() -> None:
    tiny: dict[str, Any] = {"rtt_s": 0.1, "receiver_window_pkts": 10}
    assert mathis_rate_pps(loss_indication_ratio=1e-9, **tiny) == pytest.approx(100)
    assert approximate_rate_pps(t0_s=1, loss_indication_ratio=1e-9, **tiny) == pytest.approx(100)
    full = throughput(t0_s=1, loss_indication_ratio=1e-9, **tiny)
    assert full.rate_pps == pytest.approx(100, rel=1e-6)
    capped = cubic_response(loss_ratio=1e-9, **tiny)
    assert capped.rate_pps == pytest.approx(100)
    assert bool(capped.window_limited)


@given(rtt=st.floats(1e-3, 0.3))
def test_cubic_leaves_reno_region_at_equal_rates(rtt: float) -> None:
    border = float(reno_friendly_loss_ratio(rtt_s=rtt))
    around = cubic_response(rtt_s=rtt, loss_ratio=[border * 0.999, border * 1.001])
    assert around.reno_friendly.tolist() == [False, True]
    assert around.rate_pps[0] == pytest.approx(around.rate_pps[1], rel=2e-3)


def regime(**path: Any) -> str:
    return str(throughput(rtt_s=0.1, t0_s=0.4, **path).regime)


def test_regime_is_window_triple_duplicates_or_timeouts() -> None:
    assert regime(loss_indication_ratio=1e-5, receiver_window_pkts=20) == "window"
    assert regime(loss_indication_ratio=1e-3) == "triple duplicates"
    assert regime(loss_indication_ratio=0.2) == "timeouts"
    assert regime(loss_indication_ratio=0.3, receiver_window_pkts=1) == "timeouts"


def test_arguments_broadcast() -> None:
    result = throughput(
        rtt_s=[[0.02], [0.2]],
        t0_s=1,
        loss_indication_ratio=[0.001, 0.01, 0.1],
        receiver_window_pkts=[[20.0], [np.inf]],
    )
    assert result.regime.shape == (2, 3)
    for name in Throughput.__slots__:
        assert getattr(result, name).shape == (2, 3), name
    alone = throughput(rtt_s=0.2, t0_s=1, loss_indication_ratio=0.01)
    assert result.rate_pps[1, 1] == alone.rate_pps
    loss = tolerated_loss_ratio(rate_pps=[[10.0], [20.0]], rtt_s=0.1, t0_s=[0.2, 0.4, 0.8])
    assert loss.shape == (2, 3)
    empty = throughput(rtt_s=0.1, t0_s=1, loss_indication_ratio=[])
    assert empty.rate_pps.shape == (0,)
