"""Individual rules: units, ratios, rare events, warm-up, correlation, stopping."""

import math

import numpy as np
import pytest
from numpy.typing import ArrayLike
from scipy import special, stats
from tcpcast.process.errors import DomainError
from tcpcast.statistics import (
    Estimate,
    Truncation,
    estimate_mean,
    estimate_ratio,
    estimate_replication_mean,
    find_correlated_metrics,
    intervals,
    mser5,
    required_run_length,
    split_units,
    unmet_precision,
)
from tcpcast.statistics.intervals import (
    NORMAL_QUANTILE,
    UPPER_LEVEL,
    include_poisson_interval,
    skew_corrected_half_widths,
    student_quantile,
)

SEED = 20_090_517


def snapshots(slots: int, seed: int = SEED) -> np.ndarray:
    random = np.random.default_rng(seed)
    added = random.integers(0, 1000, (slots, 3))
    return np.concatenate((np.zeros((1, 3), dtype=np.uint64), np.cumsum(added, axis=0)))


def estimate(value: float, half_width: float, **more: float) -> Estimate:
    fields = {"units": 32, "lag1": 0.0, "pairs": 31, "has_few_events": False} | more
    return Estimate(value, value - half_width, value + half_width, half_width, **fields)  # type: ignore[arg-type]


# Units


@pytest.mark.parametrize(
    ("replications", "units"), [(1, 32), (2, 32), (3, 33), (5, 35), (31, 62), (32, 32), (50, 50)]
)
@pytest.mark.parametrize("slots", [64, 95, 127])
def test_about_32_units_contain_all_slots(replications: int, units: int, slots: int) -> None:
    tables = [snapshots(slots, seed) for seed in range(replications)]
    totals = [table[-1] + 7 for table in tables]
    cut = split_units(tables, totals=totals)
    assert cut.shape == (units, 3)
    per_replication = cut.reshape(replications, -1, 3).sum(axis=1)
    assert np.array_equal(per_replication, np.array(totals))


def test_batches_differ_by_one_slot_and_the_last_has_the_remainder() -> None:
    clock = np.arange(96.0)[:, None]  # 95 slots of 1 s
    units = split_units([clock], totals=[np.array([95.75])])[:, 0]
    assert set(units[:-1]) == {2.0, 3.0}
    assert units[-1] == 3.75
    assert set(split_units([clock])[:, 0]) == {2.0, 3.0}


def test_fewer_slots_than_batches_give_fewer_batches() -> None:
    assert len(split_units([snapshots(10)])) == 10
    assert len(split_units([snapshots(10), snapshots(3)])) == 6
    ended_in_the_first_slot = split_units([np.zeros((1, 2))], totals=[np.array([3.0, 4.0])])
    assert ended_in_the_first_slot.tolist() == [[3.0, 4.0]]


# Ratios and means


def test_mean_of_independent_units_has_the_t_interval() -> None:
    values = 10.0 + np.linspace(-1.0, 1.0, 41)  # symmetric: no skewness to correct
    result = estimate_mean(values, replications=41)
    low, high = stats.t.interval(0.95, 40, loc=10.0, scale=stats.sem(values))
    assert result is not None
    assert (result.value, result.low, result.high) == pytest.approx((10.0, low, high), rel=1e-9)
    assert (result.units, result.pairs) == (41, 0)


def test_interval_is_longer_towards_the_long_tail() -> None:
    values = np.random.default_rng(SEED).lognormal(0.0, 1.0, 40)
    result = estimate_mean(values, replications=40)
    assert result is not None
    assert result.low is not None
    assert result.high is not None
    assert result.high - result.value > 1.2 * (result.value - result.low)
    mirrored = estimate_mean(-values, replications=40)
    assert mirrored is not None
    assert (mirrored.low, mirrored.high) == pytest.approx((-result.high, -result.low))
    assert result.skewness_term > 0 > mirrored.skewness_term


def test_value_is_the_scaled_ratio_of_sums() -> None:
    random = np.random.default_rng(SEED)
    x = random.integers(1, 50, 32)
    y = random.binomial(x, 0.3)
    result = estimate_ratio(y, x)
    scaled = estimate_ratio(3.0 * y, 2.0 * x)
    assert result is not None
    assert scaled is not None
    assert result.value == y.sum() / x.sum()
    assert scaled.half_width == pytest.approx(1.5 * result.half_width, rel=1e-9)


def test_positive_correlation_widens_interval() -> None:
    ordered = np.sin(np.linspace(0.0, math.pi, 32))
    shuffled = np.random.default_rng(SEED).permutation(ordered)
    slow, quick = estimate_mean(ordered), estimate_mean(shuffled)
    assert slow is not None
    assert quick is not None
    assert slow.is_correlated
    assert not quick.is_correlated
    assert slow.half_width > 1.7 * quick.half_width


def correlated(units: ArrayLike, *, replications: int = 1) -> bool:
    result = estimate_mean(units, replications=replications)
    return result is not None and result.is_correlated


def test_units_of_different_replications_are_not_neighbours() -> None:
    values = np.tile([1.0, -1.0, -1.0, 1.0], 8)  # alike across replications of two, unlike within
    result = estimate_mean(values, replications=16)
    assert result is not None
    assert result.lag1 == pytest.approx(-1.0)
    assert result.pairs == 16
    within = np.repeat(np.random.default_rng(SEED).standard_normal(16), 2)
    assert correlated(within, replications=16)
    assert not correlated(np.roll(within, 1), replications=16)


def test_constant_has_neither_width_nor_correlation() -> None:
    random = np.random.default_rng(SEED)
    transfers = random.integers(1, 10_000, 32)
    result = estimate_ratio(12.7 * transfers, transfers)
    assert result is not None
    assert result.value == pytest.approx(12.7)
    assert result.half_width == 0.0
    assert not result.is_correlated


def test_no_events_give_no_estimate() -> None:
    assert estimate_ratio(np.zeros(32), np.zeros(32)) is None


def test_denominator_in_one_unit_gives_a_value_without_interval() -> None:
    one = np.zeros(32)
    one[3] = 4.0
    result = estimate_ratio(2.0 * one, one)
    assert result == Estimate(2.0, None, None, math.inf, 1)
    assert result is not None
    assert result.relative_half_width == math.inf


def test_rare_units_reduce_the_degrees_of_freedom() -> None:
    x = np.zeros(32)
    x[[2, 11, 17, 23, 30]] = 1.0
    y = x * np.linspace(0.0, 2.0, 32)
    result = estimate_ratio(y, x)
    assert result is not None
    assert result.units == 5
    among_the_five = stats.sem(y[x > 0.0]) * stats.t.ppf(0.975, 4)
    # At least the interval of the five units by themselves; 32 / 31 and 5 / 4 are factors of the
    # jackknife.
    assert result.half_width > 0.98 * among_the_five


def test_interval_stays_within_the_possible_range() -> None:
    busy = np.r_[np.full(31, 0.999), 0.9]
    result = estimate_ratio(busy, np.ones(32), maximum=1.0)
    scarce = estimate_ratio(np.r_[np.zeros(31), 50.0], np.full(32, 100.0))
    assert result is not None
    assert scarce is not None
    assert result.high is not None
    assert result.high <= 1.0
    assert scarce.low == 0.0
    assert scarce.half_width > scarce.value


def test_count_is_the_mean_of_the_replications() -> None:
    timeouts = np.random.default_rng(SEED).poisson(20.0, 64)
    result = estimate_replication_mean(timeouts, replications=2, events=True)
    assert result is not None
    assert result.value == timeouts.sum() / 2
    # 32 batches per replication, Poisson: the total of one replication has a variance of 640, the
    # mean of two 320.
    assert result.half_width == pytest.approx(2.0 * math.sqrt(320.0), rel=0.35)


# Rare events


def test_zero_events_are_bounded_by_the_rule_of_three() -> None:
    result = estimate_ratio(np.zeros(32), np.full(32, 1000.0), events=True)
    assert result is not None
    assert (result.value, result.low) == (0.0, 0.0)
    assert result.high == pytest.approx(3.0 / 32_000.0, rel=2e-3)
    assert result.has_few_events
    zero = estimate_ratio(
        np.zeros(32), np.full(32, 1000.0)
    )  # not a count: a queue that never existed
    assert zero is not None
    assert (zero.high, zero.has_few_events) == (0.0, False)


@pytest.mark.parametrize("expected", [1.0, 4.0, 8.0])
def test_interval_for_few_events_covers(expected: float) -> None:
    random = np.random.default_rng(SEED)
    covered, runs = 0, 1000
    for _ in range(runs):
        result = estimate_ratio(random.poisson(expected / 32, 32), np.ones(32), events=True)
        assert result is not None
        assert result.low is not None
        assert result.high is not None
        assert result.has_few_events == (result.value * 32 < 9.5)
        covered += result.low <= expected / 32 <= result.high
    assert covered / runs >= 0.94


def test_quantiles_agree_with_scipy() -> None:
    for freedom in (1, 2, 2.5, 7, 31, 32, 99, 500, 501, 1999, 1e5, 1e9):
        expected = special.stdtrit(freedom, UPPER_LEVEL)
        assert student_quantile(freedom) == pytest.approx(expected, rel=1e-12)
        lower, above = skew_corrected_half_widths(2.0, freedom, 0.0, 50)
        assert (lower, above) == pytest.approx((2 * expected,) * 2, rel=1e-12)
    for count in (1.0, 2.0, 9.0, 30.0, 1000.0, 9_999.0, 10_000.0, 10_001.0, 1e6, 1e9):
        low, high = include_poisson_interval(count, 2.0, math.inf, -math.inf)
        assert 2 * low == pytest.approx(special.gammaincinv(count, 1 - UPPER_LEVEL), rel=1e-12)
        assert 2 * high == pytest.approx(special.gammaincinv(count + 1, UPPER_LEVEL), rel=1e-12)
    assert pytest.approx(special.ndtri(UPPER_LEVEL), rel=1e-15) == NORMAL_QUANTILE


def test_few_events_in_one_unit_have_the_exact_interval() -> None:
    result = estimate_ratio([0, 5, 0], [0, 100, 0], events=True)
    assert result is not None
    exact = stats.poisson  # Garwood: P(N >= 5 | low) = P(N <= 5 | high) = 2.5 %
    assert result.low is not None
    assert result.high is not None
    assert exact.sf(4, 100 * result.low) == pytest.approx(0.025)
    assert exact.cdf(5, 100 * result.high) == pytest.approx(0.025)


# Warm-up


def mser_by_definition(z: np.ndarray) -> int:
    error = [((z[d:] - z[d:].mean()) ** 2).sum() / (len(z) - d) ** 2 for d in range(len(z) - 4)]
    return int(np.argmin(error))


@pytest.mark.parametrize("seed", range(20))
def test_mser5_agrees_with_its_definition(seed: int) -> None:
    random = np.random.default_rng(seed)
    series = 1e6 + random.standard_normal(403) + 8.0 * np.exp(-np.arange(403) / 40.0)
    best = mser_by_definition(series[:400].reshape(-1, 5).mean(axis=1))
    result = mser5(series)
    assert result.is_found == (best <= 40)
    if result.is_found:
        assert result.index == 5 * best


def test_mser5_removes_only_the_transient() -> None:
    random = np.random.default_rng(SEED)
    removed, without_transient = [], []
    for _ in range(200):
        noise = random.standard_normal(2000)
        transient = 10.0 * np.exp(-np.arange(2000) / 50.0)
        removed.append(mser5(noise + transient))
        without_transient.append(mser5(noise))
    assert all(one.is_found for one in removed)
    # exp(-2) of the transient remains at 100, a bias of 1.35 with noise of 1; exp(-6) at 300.
    assert 100 <= np.median([one.index for one in removed]) <= 300
    assert np.median([one.index for one in without_transient]) <= 50


def test_mser5_reports_a_run_that_is_too_short() -> None:
    random = np.random.default_rng(SEED)
    result = mser5(np.arange(1000.0) + random.standard_normal(1000))
    assert not result.is_found
    assert result.index <= 500
    assert mser5(np.full(100, 3.25)) == Truncation(0, is_found=True)
    wrong = {"at least 50": np.ones(49), "finite": np.r_[np.ones(60), math.nan]}
    for reason, series in wrong.items():
        with pytest.raises(DomainError, match=reason):
            mser5(series)


# Correlation


def test_correlated_detects_correlation_with_few_false_positives() -> None:
    random = np.random.default_rng(SEED)
    white = random.standard_normal((4000, 32))
    assert sum(correlated(units) for units in white) / 4000 < 0.006
    walks = np.empty((1000, 32))
    walks[:, 0] = random.standard_normal(1000)
    for unit in range(1, 32):
        walks[:, unit] = 0.8 * walks[:, unit - 1] + 0.6 * random.standard_normal(1000)
    assert sum(correlated(units) for units in walks) / 1000 > 0.8
    assert not correlated(white[0], replications=32)


# Stopping


def test_one_correlated_metric_of_many_is_no_short_run() -> None:
    generator = np.random.default_rng(1)
    single, combined = 0, 0
    for _ in range(400):
        answer = {f"{n}": estimate_mean(generator.standard_normal(32)) for n in range(20)}
        single += any(e is not None and e.is_correlated for e in answer.values())
        combined += bool(find_correlated_metrics(answer))
    assert single >= 12
    assert combined <= 4
    answer = {f"{n}": estimate_mean(np.cumsum(generator.standard_normal(32))) for n in range(3)}
    metrics = {f"white {n}": estimate_mean(generator.standard_normal(32)) for n in range(17)}
    assert find_correlated_metrics(answer | metrics | {"none": None}) >= answer.keys()
    assert find_correlated_metrics({}) == frozenset()


def test_second_of_two_metrics_has_twice_the_significance_level() -> None:
    assert (
        intervals.select_significant_tests({"a": 0.009, "b": 0.019, "c": 0.9}, 0.02) == frozenset()
    )
    assert intervals.select_significant_tests({"a": 0.009, "b": 0.013, "c": 0.9}, 0.02) == {
        "a",
        "b",
    }
    assert intervals.select_significant_tests({"a": 0.006, "b": 0.9, "c": 0.9}, 0.02) == {"a"}


def test_target_bounds_the_error_in_addition_to_the_half_width() -> None:
    target = {"loss_ratio": 0.25}
    assert not unmet_precision({"loss_ratio": estimate(1.0, 0.2)}, target)
    assert unmet_precision({"loss_ratio": estimate(1.0, 0.21)}, target)


def test_all_reasons_to_continue_are_reported() -> None:
    estimates = {
        "wide": estimate(1.0, 0.5),
        "few": estimate(1.0, 0.001, has_few_events=True),
        "units": estimate(1.0, 0.001, units=8),
        "slow": estimate(1.0, 0.001, lag1=0.3),
        "none": None,
        "nothing": Estimate(1.0, None, None, math.inf, 1),
        "good": estimate(-1.0, 0.001),
        "constant": estimate(0.0, 0.0),
    }
    reasons = unmet_precision(estimates, dict.fromkeys([*estimates, "absent"], 0.01))
    assert list(reasons) == ["wide", "few", "units", "slow", "none", "nothing", "absent"]
    assert (
        reasons["wide"]
        == "the half-width is 0.5 of the value, but must be at most 0.0099 for a precision of 0.01"
    )
    assert "10 events" in reasons["few"]
    assert "8 batches" in reasons["units"]
    assert "correlated" in reasons["slow"]
    assert "no interval" in reasons["none"]
    with pytest.raises(DomainError, match="above 0"):
        unmet_precision({}, {"loss_ratio": 0.0})


def test_next_length_follows_the_half_width_within_bounds() -> None:
    target = {"loss_ratio": 0.1}
    goal = 0.1 / 1.1
    for expected, growth in [(1.01, 1.5), (1.6, 1.05 * 1.6), (50.0, 2.0)]:
        result = {"loss_ratio": estimate(1.0, goal * math.sqrt(expected))}
        assert required_run_length(100.0, result, target) == pytest.approx(100.0 * growth)
    assert required_run_length(100.0, {"loss_ratio": estimate(1.0, 0.99 * goal)}, target) is None
    assert (
        required_run_length(100.0, {"loss_ratio": estimate(1.0, 0.01, lag1=0.5)}, target) == 150.0
    )
    assert required_run_length(100.0, {"loss_ratio": None}, target) == 200.0
    assert required_run_length(100.0, {}, target) == 200.0


def test_slowest_metric_sets_the_length() -> None:
    result = {"fast": estimate(1.0, 0.001), "slow": estimate(1.0, 1.0)}
    assert required_run_length(10.0, result, {"fast": 0.01, "slow": 0.01}) == 20.0
