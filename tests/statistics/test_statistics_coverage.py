"""Coverage of the 95 % intervals on known truths, by the functions the packet engine uses.

A long test is 1,000 runs from a fixed seed (known_truths.SEED), so a coverage of 0.95 is measured
to within 0.007 (one standard error); the same of every day is 125 runs, 0.019, with twice the
difference of the two as slack. Lengths are in slots of known_truths; 765 is chosen so that the
engine's 95 merged slots do not divide evenly and a remainder is left over.
"""

from __future__ import annotations

import numpy as np
import pytest
from known_truths import (
    AR1,
    RUNS,
    BurstyLoss,
    MM1Waiting,
    covers,
    measure,
    over_replications,
    ratio_of_correlated_terms,
)


@pytest.fixture(params=[RUNS // 8, pytest.param(RUNS, marks=pytest.mark.long)])
def runs(request: pytest.FixtureRequest) -> int:
    """How many runs of a process there are."""
    found: int = request.param
    return found


@pytest.fixture
def slack(runs: int) -> float:
    """Factor of the tolerance of a coverage, relative to 1,000 runs."""
    one, thousand = (np.sqrt(0.95 * 0.05 / count) for count in (runs, RUNS))
    return float(2 * (one - thousand))


def test_mm1_waiting_at_fixed_length(runs: int, slack: float) -> None:
    # 76,500 customers: about 1,100 relaxation times, 33 a batch.
    found = measure(MM1Waiting, length=765, runs=runs)
    assert 0.93 - slack <= found.share <= 0.97 + slack
    assert found.relative_half_width < 0.14
    assert found.correlated < 0.01


def test_ar1_at_fixed_length(runs: int, slack: float) -> None:
    # 7,650 observations: about 765 relaxation times, 24 a batch.
    found = measure(AR1, length=765, runs=runs)
    assert 0.93 - slack <= found.share <= 0.97 + slack
    assert found.relative_half_width < 0.03
    assert found.correlated < 0.01


def test_bursty_loss_at_fixed_length(runs: int, slack: float) -> None:
    # 76,500 packets with 765 losses in about 150 bursts.
    found = measure(BurstyLoss, length=765, runs=runs)
    assert 0.93 - slack <= found.share <= 0.97 + slack


@pytest.mark.parametrize("target", [0.20, 0.10])
def test_mm1_waiting_to_a_precision(target: float, runs: int, slack: float) -> None:
    # The first look is at 64 slots: 6,400 customers, 3 relaxation times a batch.
    found = measure(MM1Waiting, target=target, runs=runs)
    # 0.895 is measured at 20 %, within one standard error (0.009) of 0.90.
    assert found.share >= (0.875 if target == 0.20 else 0.90) - slack
    assert found.relative_half_width <= target
    assert found.length > 64


@pytest.mark.long
def test_mm1_waiting_to_five_percent() -> None:
    found = measure(MM1Waiting, target=0.05)
    assert found.share >= 0.90
    assert found.relative_half_width <= 0.05


@pytest.mark.parametrize("target", [0.05, 0.02])
def test_ar1_to_a_precision(target: float, runs: int, slack: float) -> None:
    # The first look is at 64 slots: 640 observations, 2 relaxation times a batch.
    found = measure(AR1, target=target, runs=runs)
    assert found.share >= 0.90 - slack
    assert found.relative_half_width <= target
    assert found.length > 64


def test_bursty_loss_to_a_precision(runs: int, slack: float) -> None:
    found = measure(BurstyLoss, target=0.10, runs=runs)
    assert found.share >= 0.90 - slack
    assert found.relative_half_width <= 0.10


def test_short_run_is_flagged() -> None:
    # Two observations a batch of a series that remembers ten: hardly any interval would be right.
    class Short(AR1):
        per_slot = 1

    found = measure(Short, length=64, runs=300)
    assert found.share < 0.90
    assert found.correlated > 0.90


def test_jackknife_of_ratio_with_correlated_terms() -> None:
    # Y = X**2, X exponential: the ratio of means is 2, and the delta method's variance of n pairs
    # is Var(Y - 2 X) / n = 8 / n. Taken as independent, Y and X would give (20 + 4) / n.
    estimates = [ratio_of_correlated_terms(run, pairs=400) for run in range(RUNS)]
    width = np.mean([found.half_width for found in estimates])
    bias = np.mean([found.value for found in estimates]) - 2.0
    assert 0.93 <= sum(covers(found, 2.0) for found in estimates) / RUNS <= 0.97
    # The t quantile of 8 frequencies and the correction for skewness cost a quarter.
    assert 0.98 < width / (2.0395 * np.sqrt(8.0 / (32 * 400))) < 1.3
    # The bias of the plain ratio is negligible compared with the interval.
    assert abs(bias) < 0.05 * width


@pytest.mark.parametrize("replications", [4, 40])
def test_replications_of_mm1(replications: int, runs: int, slack: float) -> None:
    # The same length in all, 1,200 slots; 300 runs, so one standard error is 0.0126.
    count = 3 * runs // 10
    estimates = [over_replications(replications, 1200 // replications, r) for r in range(count)]
    share = sum(covers(found, MM1Waiting.truth) for found in estimates) / count
    assert 0.92 - slack <= share <= 0.985 + slack
