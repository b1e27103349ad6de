"""Coverage of the 95 % intervals on known truths, by the functions of the packet engine.

A long test has 1,000 runs from a fixed seed (known_truths.SEED), so that a coverage of 0.95 has a
standard error of 0.007. The regular tests have 125 runs with 0.019, and their tolerance is twice
the difference. Lengths are in slots of known_truths; with 765 slots the engine's 95 merged slots do
not divide evenly and leave a remainder.
"""

import math

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
from tcpcast import statistics


@pytest.fixture(params=[RUNS // 8, pytest.param(RUNS, marks=pytest.mark.long)])
def runs(request: pytest.FixtureRequest) -> int:
    """Return the number of runs of a process."""
    result: int = request.param
    return result


@pytest.fixture
def slack(runs: int) -> float:
    """Return the additional tolerance of a coverage compared with 1,000 runs."""
    one, thousand = (np.sqrt(0.95 * 0.05 / count) for count in (runs, RUNS))
    return float(2 * (one - thousand))


def test_mm1_waiting_intervals_cover_at_fixed_length(runs: int, slack: float) -> None:
    # 76,500 customers: about 1,100 relaxation times, 33 per batch.
    result = measure(MM1Waiting, length=765, runs=runs)
    assert 0.93 - slack <= result.share <= 0.97 + slack
    assert result.relative_half_width < 0.14
    assert result.correlated < 0.01


def test_ar1_intervals_cover_at_fixed_length(runs: int, slack: float) -> None:
    # 7,650 observations: about 765 relaxation times, 24 per batch.
    result = measure(AR1, length=765, runs=runs)
    assert 0.93 - slack <= result.share <= 0.97 + slack
    assert result.relative_half_width < 0.03
    assert result.correlated < 0.01


def test_bursty_loss_intervals_cover_at_fixed_length(runs: int, slack: float) -> None:
    # 76,500 packets, 765 lost in about 150 bursts.
    result = measure(BurstyLoss, length=765, runs=runs)
    assert 0.93 - slack <= result.share <= 0.97 + slack


@pytest.mark.parametrize("target", [0.20, 0.10])
def test_mm1_waiting_intervals_cover_at_given_precision(
    target: float, runs: int, slack: float
) -> None:
    # The first check is at 64 slots: 6,400 customers, 3 relaxation times per batch.
    result = measure(MM1Waiting, target=target, runs=runs)
    # The measured coverage is 0.895 at 20 %, within one standard error (0.009) of 0.90.
    assert result.share >= (0.875 if target == 0.20 else 0.90) - slack
    assert result.relative_half_width <= target
    assert result.length > 64


def test_run_too_short_for_its_interval_is_flagged() -> None:
    # Two observations per batch with a correlation over ten: hardly any interval would be correct.
    class Short(AR1):
        per_slot = 1

    result = measure(Short, length=64, runs=300)
    assert result.share < 0.90
    assert result.correlated > 0.90


def test_jackknife_ratio_intervals_cover_with_correlated_terms() -> None:
    # Y = X**2, X exponential: the ratio of means is 2, and the delta method's variance of n pairs
    # is Var(Y - 2 X) / n = 8 / n. If Y and X were independent, it would be (20 + 4) / n.
    estimates = [ratio_of_correlated_terms(run, pairs=400) for run in range(RUNS)]
    width = np.mean([result.half_width for result in estimates])
    bias = np.mean([result.value for result in estimates]) - 2.0
    assert 0.93 <= sum(covers(result, 2.0) for result in estimates) / RUNS <= 0.97
    # The t quantile of 8 frequencies and the correction for skewness cost a quarter.
    assert 0.98 < width / (2.0395 * np.sqrt(8.0 / (32 * 400))) < 1.3
    # The remaining bias of the plain ratio is negligible compared with the interval.
    assert abs(bias) < 0.05 * width


@pytest.mark.parametrize("replications", [4, 40])
def test_mm1_replication_intervals_cover(replications: int, runs: int, slack: float) -> None:
    # The same total length of 1,200 slots; 300 runs, so one standard error is 0.0126.
    count = 3 * runs // 10
    estimates = [over_replications(replications, 1200 // replications, r) for r in range(count)]
    share = sum(covers(result, MM1Waiting.truth) for result in estimates) / count
    assert 0.92 - slack <= share <= 0.985 + slack


@pytest.mark.parametrize("replications", [2, 3, 4, 8, 16])
@pytest.mark.parametrize("noise", [0.01, 1.0])
def test_intervals_cover_the_mean_of_runs_that_lock(replications: int, noise: float) -> None:
    # Each replication has its own level; with a noise of 0.01, its batches do not show the spread.
    random = np.random.default_rng(1)
    batches = math.ceil(statistics.TOTAL_BATCHES / replications)
    covered, count = 0, 600
    for _ in range(count):
        level = random.normal(0.0, 1.0 if noise < 1.0 else 0.0, (replications, 1))
        units = 10.0 + level + noise * random.normal(0.0, 1.0, (replications, batches))
        estimate = statistics.estimate_mean(units.ravel(), replications=replications)
        assert estimate is not None
        assert estimate.low is not None
        assert estimate.high is not None
        covered += estimate.low <= 10.0 <= estimate.high
    assert 0.92 <= covered / count <= 0.98
