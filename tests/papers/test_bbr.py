"""The bound for BBR: the loss that probing survives, and its share with loss-based flows."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from tcpcast.models.bbr import TOLERATED_LOSS_RATIO, bbr_bound
from tcpcast.process.errors import DomainError

LINK: dict[str, Any] = {"bottleneck_pps": 10_000.0, "rtt_s": 0.1}  # a BDP of 1000 packets


def estimate_after(loss: float, cycles: int) -> float:
    """Return the estimate of a single flow on a link of 1, starting at half, cycle by cycle."""
    estimate = 0.5
    for _ in range(cycles):
        delivered = [min(gain * estimate, 1.0) * (1 - loss) for gain in (1.25, 0.75, *[1.0] * 6)]
        estimate = max(delivered)
    return estimate


@pytest.mark.parametrize("loss", [0.0, 0.01, 0.1, 0.15, 0.19, 0.21, 0.25, 0.5])
def test_probing_renews_estimate_up_to_20_percent_loss(loss: float) -> None:
    bound = bbr_bound(loss_ratio=loss, **LINK)
    kept = estimate_after(loss, 2000)
    if loss < TOLERATED_LOSS_RATIO:
        assert bound.rate_pps == pytest.approx(10_000 * kept)
        assert bound.regime == "bottleneck"
        assert bound.probe_factor > 1
    else:
        assert kept < 1e-6
        assert bound.rate_pps == 0
        assert bound.regime == "collapse"
        # Each cycle the estimate shrinks by the factor.
        assert estimate_after(loss, 9) / estimate_after(loss, 8) == pytest.approx(
            float(bound.probe_factor)
        )


def test_tolerated_loss_is_20_percent() -> None:
    assert TOLERATED_LOSS_RATIO == 0.2
    edge = bbr_bound(loss_ratio=[0.2, 0.2 + 1e-12], **LINK)
    assert edge.regime.tolist() == ["bottleneck", "collapse"]
    assert edge.rate_pps[0] == pytest.approx(8000)


def test_flows_share_the_link_and_keep_a_queue() -> None:
    single_flow = bbr_bound(**LINK)
    assert single_flow.rate_pps == 10_000
    assert single_flow.standing_queue_pkts == 0
    several = bbr_bound(flows=4, buffer_pkts=[500, 1000, 5000], loss_ratio=0.01, **LINK)
    np.testing.assert_allclose(several.rate_pps, 10_000 * 0.99 / 4)
    assert several.standing_queue_pkts.tolist() == [500, 1000, 1000]
    assert several.regime.tolist() == ["shallow buffer", "bottleneck", "bottleneck"]
    assert bbr_bound(buffer_pkts=10, **LINK).regime == "bottleneck"


@pytest.mark.parametrize("buffer", [1500, 4000, 32_000])
@pytest.mark.parametrize("flows", [1, 5])
def test_share_makes_cap_equal_data_in_flight(buffer: int, flows: int) -> None:
    def excess(others: float) -> float:
        in_flight = (1 - others) * (buffer + 1000)
        rtt = (others * buffer + 4 * flows + 1000) / 10_000  # without BBR's own queue
        return 2 * (1 - others) * 10_000 * rtt - in_flight

    others = brentq(excess, 0.0, 0.999) if excess(0.0) < 0 else 0.0
    bound = bbr_bound(buffer_pkts=buffer, flows=flows, with_loss_based_flows=True, **LINK)
    assert bound.share == pytest.approx(1 - others)
    assert bound.rate_pps == pytest.approx(10_000 * (1 - others) / flows)
    assert bound.regime == "loss-based competition"


@given(loss=st.floats(0, 0.999), flows=st.integers(1, 50), buffer=st.floats(1, 1e5))
def test_rate_is_at_most_the_link(loss: float, flows: int, buffer: float) -> None:
    bound = bbr_bound(loss_ratio=loss, flows=flows, buffer_pkts=buffer, **LINK)
    assert 0 <= bound.rate_pps * flows <= 10_000 * (1 - loss) * (1 + 1e-12)
    assert 0 <= bound.standing_queue_pkts <= min(buffer, 1000)


def test_arguments_broadcast() -> None:
    bound = bbr_bound(loss_ratio=[[0.0], [0.3]], flows=[1, 2, 3], buffer_pkts=100, **LINK)
    for name in bound.__slots__:
        assert getattr(bound, name).shape == (2, 3), name


@pytest.mark.parametrize("buffer", [900, math.inf])
def test_competition_needs_finite_deep_buffer(buffer: float) -> None:
    with pytest.raises(DomainError, match="buffer_pkts"):
        bbr_bound(buffer_pkts=buffer, with_loss_based_flows=True, **LINK)
