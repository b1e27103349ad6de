"""Exact file-size distributions after rounding."""

import numpy as np
import pytest
from tcpcast.process.errors import DomainError
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


def test_files_of_one_size_have_no_distribution() -> None:
    with pytest.raises(DomainError, match="not E, EP or EE"):
        distribution(54, "C")
