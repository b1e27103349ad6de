"""Exact file-size distributions after rounding."""

import math

import numpy as np
import pytest
from tcpcast.errors import DomainError
from tcpcast_papers.engset.published import INTERVALS
from tcpcast_papers.engset.rounded_size_distributions import SizeDistribution
from tcpcast_papers.engset.settings import read_setting

NAMES = [
    (5, "E"),
    (12, "E"),
    (120, "E"),
    (5, "EP"),
    (12, "EP"),
    (120, "EP"),
    (5, "EE(3.9)"),
    (12, "EE(7)"),
]


def distribution(size: int, name: str) -> SizeDistribution:
    return SizeDistribution.from_setting(read_setting(f"F{size}-N1-10M1G-R50-{name}"))


@pytest.mark.parametrize(("size", "name"), NAMES)
def test_size_intervals_cover_all_files_and_the_mean(size: int, name: str) -> None:
    sizes = distribution(size, name)
    shares = [sizes.share(low, high) for low, high in INTERVALS]
    assert sum(shares) == pytest.approx(1)
    parts = [
        share * sizes.mean(low, high)
        for share, (low, high) in zip(shares, INTERVALS, strict=True)
        if share > 0
    ]
    assert sum(parts) == pytest.approx(sizes.mean())


@pytest.mark.parametrize(("size", "name"), NAMES)
def test_closed_form_tail_equals_sum_over_packets(size: int, name: str) -> None:
    sizes = distribution(size, name)
    counts = np.arange(63, 129)
    shares = np.array([sizes.share(int(n), int(n)) for n in counts])
    if shares.sum() > 1e-12:
        mean = float(counts @ shares / shares.sum())
        assert sizes.mean(63, 128) == pytest.approx(mean)


def test_rounding_reduces_the_mean_of_ee_7() -> None:
    assert distribution(12, "EE(7)").mean() == pytest.approx(11.934, abs=5e-4)
    assert distribution(12, "E").mean() == pytest.approx(11.995, abs=5e-4)


@pytest.mark.parametrize(("name", "mean"), [("E", 33), ("EP", 52), ("EE(7)", 89)])
def test_mean_size_above_k_equals_section_3_2(name: str, mean: int) -> None:
    assert round(distribution(12, name).mean_above_k()) == mean


def test_survival_function_is_continuous_at_k_and_1_at_minimum() -> None:
    for name in ("EP", "EE(7)"):
        sizes = distribution(12, name)
        before, after = sizes.exceedance([sizes.k * (1 - 1e-12), sizes.k])
        assert before == pytest.approx(after)
        assert after == pytest.approx(0.1)
    assert distribution(12, "E").k == math.inf
    assert distribution(12, "EP").exceedance(3) == 1


def test_files_of_one_size_have_no_distribution() -> None:
    with pytest.raises(DomainError, match="not E, EP or EE"):
        distribution(54, "C")
