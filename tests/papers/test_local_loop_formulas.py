"""Section 10 of INRIA report 4154: its three equations and its printed values."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from tcpcast.models.local_loop import (
    fair_send_rate_pps,
    mean_user_rate_pps,
    open_loop_load,
    overload_goodput_pps,
    restarting_goodput_pps,
    threshold_sources,
)

MSS_KBIT = 12.0
IDLENESS = 0.0165
"""Table 6, column 1-1, which is case 1."""

SOURCES = (2500, 5000, 7500, 10_000)
PUBLISHED = {
    1: {
        "loss_ratio": (0.0, 0.0, 0.0419, 0.0732),
        "timeout_ratio": (0.0, 0.0, 0.0016, 0.0060),
        "rtt_s": (0.10, 0.21, 1.77, 2.21),
        "goodput_kbps": (1151.9, 775.2, 41.9, 20.6),
        "table7_kbps": (1112.9, 538.9, 39.8, 23.6),
    },
    2: {
        "loss_ratio": (0.0, 0.0, 0.0390, 0.0725),
        "timeout_ratio": (0.0, 0.0, 0.0016, 0.0060),
        "rtt_s": (0.16, 0.25, 1.86, 2.22),
        "goodput_kbps": (750.8, 598.0, 41.5, 20.5),
        "table7_kbps": (702.7, 464.1, 39.1, 23.6),
    },
    3: {
        "loss_ratio": (0.0020, 0.0019, 0.0181, 0.0513),
        "timeout_ratio": (0.0015, 0.0017, 0.0024, 0.0068),
        "rtt_s": (0.59, 0.60, 2.95, 2.96),
        "goodput_kbps": (162.1, 158.8, 38.4, 19.9),
        "table7_kbps": (195.0, 188.5, 34.9, 20.6),
    },
}
"""Tables 3, 4 and 5 (cases 1 to 3) and Table 7, as printed."""

LINK: dict[str, Any] = {"link_pps": 1e8 / 12_000, "mean_off_s": 30.0, "mean_size_pkts": 50.0}


def equation_1_kbps(case: int) -> np.ndarray:
    printed = PUBLISHED[case]
    rate = restarting_goodput_pps(
        rtt_s=printed["rtt_s"],
        loss_ratio=printed["loss_ratio"],
        timeout_ratio=printed["timeout_ratio"],
        idle_restart_ratio=IDLENESS,
    )
    return MSS_KBIT * rate


@pytest.mark.parametrize("case", [1, 2, 3])
def test_congested_cells_agree_within_input_digits(case: int) -> None:
    """Cells whose round trip has three printed digits; 0.2 kbit/s is the fourth digit of p."""
    result = np.round(equation_1_kbps(case)[2:], 1)
    assert result == pytest.approx(PUBLISHED[case]["table7_kbps"][2:], abs=0.2)


def test_threshold_is_5000_sources() -> None:
    assert threshold_sources(**LINK) == pytest.approx(5000)
    assert open_loop_load(sources=SOURCES, **LINK) == pytest.approx([0.5, 1, 1.5, 2])


def test_overload_is_bounded_by_the_link_capacity() -> None:
    """40 and 20 kbit/s; exact simulation gives 39.9 and 20.0 (the report has 41.9 and 20.6)."""
    bound = MSS_KBIT * overload_goodput_pps(sources=SOURCES, **LINK)
    assert bound == pytest.approx([math.inf, math.inf, 40.0, 20.0])
    assert np.isinf(fair_send_rate_pps(sources=SOURCES[:2], **LINK)).all()


@pytest.mark.parametrize("case", [1, 2, 3])
def test_restored_equation_3_is_no_bound_with_loss(case: int) -> None:
    """With the losses of Tables 3 to 5 the report's own goodputs exceed it."""
    printed = PUBLISHED[case]
    bound = MSS_KBIT * overload_goodput_pps(
        sources=SOURCES[2:], loss_ratio=printed["loss_ratio"][2:], **LINK
    )
    assert np.all(bound < printed["goodput_kbps"][2:])


means = {
    "mean_off_s": st.floats(0.1, 1e3),
    "mean_size_pkts": st.floats(1, 1e5),
    "loss_ratio": st.floats(0, 0.9),
}


@given(link=st.floats(1, 1e6), excess=st.floats(1.01, 1e3), **means)
def test_equation_2_solution_equals_numerical_root(
    link: float, excess: float, mean_off_s: float, mean_size_pkts: float, loss_ratio: float
) -> None:
    """Compare with a root found by search, whose goodput is given by (3)."""
    given_means = {
        "mean_off_s": mean_off_s,
        "mean_size_pkts": mean_size_pkts,
        "loss_ratio": loss_ratio,
    }
    n = excess * link * mean_off_s * (1 - loss_ratio) / mean_size_pkts
    solved = float(fair_send_rate_pps(sources=n, link_pps=link, **given_means))

    def excess_load(log_rate: float) -> float:
        rate = math.exp(log_rate)
        return n * float(mean_user_rate_pps(send_rate_pps=rate, **given_means)) / link - 1

    root = math.exp(brentq(excess_load, math.log(solved) - 3, math.log(solved) + 3, xtol=1e-12))
    assert solved == pytest.approx(root, rel=1e-6)
    goodput = overload_goodput_pps(sources=n, link_pps=link, **given_means)
    on_s = n * mean_size_pkts / (link * (1 - loss_ratio)) - mean_off_s
    assert float(goodput) == pytest.approx(mean_size_pkts / on_s, rel=1e-6)


@given(n=st.floats(1, 1e6))
def test_goodput_decreases_with_users_and_loss(n: float) -> None:
    sources = n * np.array([1.0, 1.1, 2.0])
    rates = overload_goodput_pps(sources=sources, **LINK)
    assert np.all((rates[1:] < rates[:-1]) | np.isinf(rates[1:]))
    assert np.all(overload_goodput_pps(sources=sources, loss_ratio=0.1, **LINK) <= rates)


@given(p=st.floats(1e-6, 0.4), to=st.floats(0, 0.4), idle=st.floats(0, 0.9))
def test_more_frequent_cause_determines_rate(p: float, to: float, idle: float) -> None:
    rate = restarting_goodput_pps(
        rtt_s=[0.1, 0.2], loss_ratio=p, timeout_ratio=to, idle_restart_ratio=idle
    )
    assert rate[0] == pytest.approx(2 * rate[1])
    assert rate[0] * 0.1 == pytest.approx(math.sqrt(1.5 / max(p + to, idle)))
