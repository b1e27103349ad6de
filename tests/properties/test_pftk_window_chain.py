"""Properties of PFTK's window chain that hold on every path, and its refusals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tcpcast.errors import DomainError
from tcpcast.models.pftk import closed_form_error, timeout_probability, window_chain

if TYPE_CHECKING:
    from tcpcast.models.pftk import AfterTimeout, Losses

chances = st.floats(1e-4, 0.999)
acks = st.integers(1, 4)
windows = st.one_of(st.floats(1, 500), st.just(math.inf))
loss_models = st.sampled_from(["rest-of-round", "independent"])
restarts = st.sampled_from(["one", "slow-start", "half"])


@given(p=chances, b=acks, most=windows, losses=loss_models, after=restarts)
def test_distributions_and_means_are_consistent(
    p: float, b: int, most: float, losses: Losses, after: AfterTimeout
) -> None:
    got = window_chain(
        loss_probability=p,
        packets_per_ack=b,
        receiver_window_pkts=most,
        losses=losses,
        after_timeout=after,
    )
    assert got.window_pkts.tolist() == list(range(1, len(got.window_pkts) + 1))
    assert got.window_pkts[-1] <= most
    for distribution in (got.loss_distribution, got.end_distribution, got.round_distribution):
        assert distribution.shape == got.window_pkts.shape
        assert distribution.sum() == pytest.approx(1, rel=1e-12)
        assert distribution.min() > -1e-15
    # One round later the window is equal or larger by one.
    assert (
        0
        <= got.mean_window_pkts - float(got.loss_distribution @ got.window_pkts) + 1e-12
        <= 1 + 1e-9
    )
    assert 0 < got.timeout_probability <= 1 + 1e-12
    assert got.rounds >= 1
    assert got.delivered_pkts < got.sent_pkts
    assert 0 < got.loss_indication_ratio < p
    rate = got.rate_pps(rtt_s=0.1, t0_s=[0.2, 1.0])
    assert rate[1] < rate[0] < most / 0.1
    assert np.all(got.goodput_pps(rtt_s=0.1, t0_s=[0.2, 1.0]) < rate)


@given(p=chances, b=acks, most=windows)
def test_q_is_the_mean_of_23(p: float, b: int, most: float) -> None:
    got = window_chain(loss_probability=p, packets_per_ack=b, receiver_window_pkts=most)
    each = timeout_probability(window_pkts=got.window_pkts, loss_indication_ratio=p)
    assert got.timeout_probability == pytest.approx(float(got.loss_distribution @ each), rel=1e-12)


@given(p=chances, b=acks, most=windows, after=restarts)
def test_correlated_loss_reduces_the_rate(
    p: float, b: int, most: float, after: AfterTimeout
) -> None:
    path: dict[str, Any] = {
        "loss_probability": p,
        "packets_per_ack": b,
        "receiver_window_pkts": most,
        "after_timeout": after,
    }
    rest = window_chain(losses="rest-of-round", **path)
    alone = window_chain(losses="independent", **path)
    assert alone.timeout_probability <= rest.timeout_probability * (1 + 1e-12)
    delivered = alone.goodput_pps(rtt_s=0.1, t0_s=0.4)
    assert delivered >= rest.goodput_pps(rtt_s=0.1, t0_s=0.4) * (1 - 1e-12)


@given(p=chances, b=acks, most=windows, losses=loss_models, after=restarts, factor=st.floats(1, 3))
def test_the_rate_falls_with_loss(
    *, p: float, b: int, most: float, losses: Losses, after: AfterTimeout, factor: float
) -> None:
    def rate(loss: float) -> float:
        got = window_chain(
            loss_probability=loss,
            packets_per_ack=b,
            receiver_window_pkts=most,
            losses=losses,
            after_timeout=after,
        )
        return float(got.rate_pps(rtt_s=0.1, t0_s=0.4))

    assert rate(min(p * factor, 0.9995)) <= rate(p) * (1 + 1e-11)


def test_fractional_packets_are_not_sent() -> None:
    whole = window_chain(loss_probability=0.01, receiver_window_pkts=10)
    part = window_chain(loss_probability=0.01, receiver_window_pkts=10.9)
    assert part.rounds == whole.rounds
    assert part.window_pkts.tolist() == list(range(1, 11))


def test_times_broadcast() -> None:
    got = window_chain(loss_probability=0.01)
    assert got.rate_pps(rtt_s=[[0.02], [0.2]], t0_s=[0.2, 0.4, 1.0]).shape == (2, 3)
    assert got.goodput_pps(rtt_s=0.1, t0_s=1).shape == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("loss_probability", 0),
        ("loss_probability", 1),
        ("loss_probability", 1.2),
        ("loss_probability", math.nan),
        ("loss_probability", 1e-12),
        ("packets_per_ack", 0),
        ("packets_per_ack", 1.5),
        ("packets_per_ack", math.inf),
        ("receiver_window_pkts", 0),
        ("receiver_window_pkts", math.nan),
        ("losses", "random"),
        ("after_timeout", "two"),
    ],
)
def test_outside_the_domain(name: str, value: object) -> None:
    bad: dict[str, Any] = {"loss_probability": 0.01, name: value}
    with pytest.raises(DomainError, match=name):
        window_chain(**bad)


def test_a_window_makes_a_tiny_loss_possible() -> None:
    got = window_chain(loss_probability=1e-12, receiver_window_pkts=100)
    assert got.rate_pps(rtt_s=0.1, t0_s=1) == pytest.approx(1000, rel=1e-6)


@pytest.mark.parametrize("name", ["rtt_s", "t0_s"])
@pytest.mark.parametrize("value", [0, -1, math.inf, math.nan])
def test_times_outside_the_domain(name: str, value: float) -> None:
    got = window_chain(loss_probability=0.01)
    times = {"rtt_s": 0.1, "t0_s": 1.0, name: value}
    with pytest.raises(DomainError, match=name):
        got.rate_pps(**times)
    with pytest.raises(DomainError, match=name):
        got.goodput_pps(**times)


def test_the_grid_refuses_what_the_models_refuse() -> None:
    with pytest.raises(DomainError, match="loss_indication_ratio"):
        closed_form_error(loss_probability=[0.01, 0])
    with pytest.raises(DomainError, match="rtt_s"):
        closed_form_error(rtt_s=[0])
