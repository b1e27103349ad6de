"""Quantiles with intervals: values for counts known by hand, and coverage on known truths."""

import math

import numpy as np
import pytest
from goodput_counts import count_goodputs
from known_truths import RUNS, SHARES, coverage_of_files
from numpy.typing import ArrayLike
from tcpcast.engines.packet.file_goodputs import BUCKET_COUNT, bucket_edges_bps
from tcpcast.process.errors import DomainError
from tcpcast.statistics.quantiles import estimate_exceeded_value, tail_shares

EDGES = [0.0, 1.0, 2.0, 4.0]


def test_values_within_a_bucket_are_interpolated_linearly() -> None:
    result = {
        share: estimate_exceeded_value([[200, 0, 200]], EDGES, share) for share in (0.75, 0.5, 0.25)
    }
    values = {share: estimate.value for share, estimate in result.items() if estimate}
    assert values == {0.75: 0.5, 0.5: 1.0, 0.25: 3.0}
    one = result[0.5]
    assert one is not None
    assert (one.low, one.high) == (None, None), "a single unit has no spread"
    assert estimate_exceeded_value([[0, 0, 0]], EDGES, 0.5) is None


def test_equal_units_have_zero_width() -> None:
    equal = estimate_exceeded_value([[10, 20, 10]] * 16, EDGES, 0.5)
    assert equal is not None
    assert (equal.low, equal.value, equal.high) == (1.5, 1.5, 1.5)
    different = estimate_exceeded_value(
        [[20, 20, 0], [20, 20, 0], [0, 20, 20], [0, 20, 20]] * 4, EDGES, 0.5
    )
    assert different is not None
    assert different.low is not None
    assert different.high is not None
    assert different.value == 1.5
    assert 1.0 < different.low < 1.4
    assert different.high - 1.5 == pytest.approx(1.5 - different.low, rel=0.05)


def test_few_values_below_give_no_interval() -> None:
    result = estimate_exceeded_value([[0, 10, 0]] * 9 + [[2, 8, 0]], EDGES, 0.98)
    assert result is not None
    assert result.value == 1.0
    assert result.low is None


def test_rounding_of_the_total_is_harmless() -> None:
    """Regression: IndexError if the total exceeds the cumulative sum by a rounding error."""
    counts = np.random.default_rng(1).random((40, 12))
    assert counts.sum(axis=1).sum() > np.cumsum(counts.sum(axis=0))[-1]
    found = estimate_exceeded_value(counts, np.arange(13.0), 0.9)
    assert found is not None
    assert found.low is not None
    assert found.low < found.value < 2


def test_tail_counts_start_at_each_bucket() -> None:
    assert tail_shares([1, 0, 3]).tolist() == [1.0, 0.75, 0.75]
    with pytest.raises(DomainError, match="sum above 0"):
        tail_shares([0, 0])


@pytest.mark.parametrize(
    ("counts", "share"),
    [
        ([[1, 2, 3]], 0.0),
        ([[1, 2, 3]], 1.0),
        ([1, 2, 3], 0.5),
        ([[1, 2]], 0.5),
        ([[1, -1, 1]], 0.5),
    ],
)
def test_invalid_arguments_are_rejected(counts: ArrayLike, share: float) -> None:
    with pytest.raises(DomainError):
        estimate_exceeded_value(counts, EDGES, share)


def test_buckets_have_the_stated_width_and_range() -> None:
    edges = bucket_edges_bps()
    assert (edges[0], edges[-1], len(edges)) == (1.0, 2.0**40, BUCKET_COUNT + 1)
    steps = edges[1:] / edges[:-1] - 1
    assert 0.0039 < steps.min() < steps.max() < 0.0079
    ends = count_goodputs([[0.1, 1.0, 1e15]])
    assert np.flatnonzero(ends.counts[0]).tolist() == [0, BUCKET_COUNT - 1]


@pytest.mark.parametrize(("correlated_files", "runs"), [(False, RUNS // 20), (True, RUNS // 40)])
def test_quantile_interval_coverage_is_nominal(correlated_files: bool, runs: int) -> None:
    """Tolerance of four standard errors; the long tests are more precise."""
    off = 4 * math.sqrt(0.95 * 0.05 / runs)
    for share, covered in coverage_of_files(
        (0.95, 0.5), correlated_files=correlated_files, runs=runs
    ).items():
        # Intervals that are too wide contain every truth.
        assert 0.95 - off <= covered < 1, share


@pytest.mark.long
def test_quantile_intervals_cover_for_independent_files() -> None:
    for share, covered in coverage_of_files(SHARES, correlated_files=False).items():
        assert 0.93 <= covered <= 0.97, share


@pytest.mark.long
def test_quantile_intervals_cover_for_correlated_files() -> None:
    for share, covered in coverage_of_files(SHARES, correlated_files=True, runs=RUNS // 2).items():
        assert 0.92 <= covered <= 0.98, share
