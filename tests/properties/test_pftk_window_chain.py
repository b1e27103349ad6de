"""Properties of PFTK's window chain that hold on every path, and its refusals."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tcpcast.models.pftk import (
    AfterTimeout,
    FastRecovery,
    LaterLosses,
    timeout_probability,
    window_chain,
)

chances = st.floats(1e-4, 0.999)
acks = st.integers(1, 4)
windows = st.one_of(st.floats(1, 500), st.just(math.inf))
loss_models = st.sampled_from(["rest-of-round", "independent"])
restarts = st.sampled_from(["one", "slow-start", "half"])
recoveries = st.sampled_from(["none", "newreno"])


@given(
    p=chances, b=acks, window_max=windows, losses=loss_models, after=restarts, recovery=recoveries
)
@example(
    p=0.9, b=400, window_max=math.inf, losses="independent", after="slow-start", recovery="newreno"
)
def test_distributions_and_means_are_consistent(
    *,
    p: float,
    b: int,
    window_max: float,
    losses: LaterLosses,
    after: AfterTimeout,
    recovery: FastRecovery,
) -> None:
    chain = window_chain(
        loss_probability=p,
        packets_per_ack=b,
        receiver_window_pkts=window_max,
        losses=losses,
        after_timeout=after,
        recovery=recovery,
    )
    assert chain.window_pkts.tolist() == list(range(1, len(chain.window_pkts) + 1))
    assert chain.window_pkts[-1] <= window_max
    for distribution in (chain.loss_distribution, chain.end_distribution, chain.round_distribution):
        assert distribution.shape == chain.window_pkts.shape
        assert distribution.sum() == pytest.approx(1, rel=1e-12)
        assert distribution.min() > -1e-15
    # One round later the window is equal or larger by one.
    assert (
        0
        <= chain.mean_window_pkts - float(chain.loss_distribution @ chain.window_pkts) + 1e-12
        <= 1 + 1e-9
    )
    assert 0 < chain.timeout_probability <= 1 + 1e-12
    assert chain.rounds >= 1 or recovery == "newreno"
    assert chain.delivered_pkts < chain.sent_pkts
    assert 0 < chain.loss_indication_ratio < p
    rate = chain.rate_pps(rtt_s=0.1, t0_s=[0.2, 1.0])
    assert rate[1] < rate[0] < window_max / 0.1
    assert np.all(chain.goodput_pps(rtt_s=0.1, t0_s=[0.2, 1.0]) < rate)


@given(p=chances, b=acks, window_max=windows)
def test_timeout_probability_is_the_mean_of_equation_23(
    p: float, b: int, window_max: float
) -> None:
    chain = window_chain(loss_probability=p, packets_per_ack=b, receiver_window_pkts=window_max)
    probabilities = timeout_probability(window_pkts=chain.window_pkts, loss_indication_ratio=p)
    assert chain.timeout_probability == pytest.approx(
        float(chain.loss_distribution @ probabilities), rel=1e-12
    )


@given(p=chances, b=acks, window_max=windows, after=restarts)
def test_correlated_loss_reduces_the_rate(
    p: float, b: int, window_max: float, after: AfterTimeout
) -> None:
    path: dict[str, Any] = {
        "loss_probability": p,
        "packets_per_ack": b,
        "receiver_window_pkts": window_max,
        "after_timeout": after,
    }
    rest = window_chain(losses="rest-of-round", **path)
    alone = window_chain(losses="independent", **path)
    assert alone.timeout_probability <= rest.timeout_probability * (1 + 1e-12)
    delivered = alone.goodput_pps(rtt_s=0.1, t0_s=0.4)
    assert delivered >= rest.goodput_pps(rtt_s=0.1, t0_s=0.4) * (1 - 1e-12)


@given(
    p=chances,
    b=acks,
    window_max=windows,
    losses=loss_models,
    after=restarts,
    factor=st.floats(1, 3),
)
def test_rate_falls_with_loss(
    *, p: float, b: int, window_max: float, losses: LaterLosses, after: AfterTimeout, factor: float
) -> None:
    def rate(loss: float) -> float:
        chain = window_chain(
            loss_probability=loss,
            packets_per_ack=b,
            receiver_window_pkts=window_max,
            losses=losses,
            after_timeout=after,
        )
        return float(chain.rate_pps(rtt_s=0.1, t0_s=0.4))

    assert rate(min(p * factor, 0.9995)) <= rate(p) * (1 + 1e-11)


def test_fractional_receiver_window_is_rounded_down() -> None:
    integer = window_chain(loss_probability=0.01, receiver_window_pkts=10)
    fractional = window_chain(loss_probability=0.01, receiver_window_pkts=10.9)
    assert fractional.rounds == integer.rounds
    assert fractional.window_pkts.tolist() == list(range(1, 11))


def test_times_broadcast_to_a_common_shape() -> None:
    chain = window_chain(loss_probability=0.01)
    assert chain.rate_pps(rtt_s=[[0.02], [0.2]], t0_s=[0.2, 0.4, 1.0]).shape == (2, 3)
    assert chain.goodput_pps(rtt_s=0.1, t0_s=1).shape == ()


def test_tiny_loss_is_accepted_with_a_receiver_window() -> None:
    chain = window_chain(loss_probability=1e-12, receiver_window_pkts=100)
    assert chain.rate_pps(rtt_s=0.1, t0_s=1) == pytest.approx(1000, rel=1e-6)
