"""Correlated file sizes and OFF times, read from a traced source."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.stats import ks_2samp, spearmanr
from tcpcast.scenario import Scenario
from test_many_sources import simulate

RTT_S = 0.1


def make_scenario(correlation: float | None, **traffic: Any) -> Scenario:
    tables: dict[str, Any] = {
        "network": {"rtt": "100ms", "bottleneck": {"rate": "1gbit"}},
        "traffic": {
            "kind": "on-off",
            "sources": 1,
            "off": {"distribution": "lognormal", "mean": "3s", "sd": "3s"},
            "size": {"distribution": "lognormal", "mean": "50pkt", "sd": "50pkt"},
            **traffic,
        },
        "tcp": {"stack": "rfc-newreno", "receiver_window": 1000},
        "run": {"transfers": 4000, "warmup": "0s"},
        "probes": {"flows": [0]},
    }
    if correlation is not None:
        tables["traffic"]["correlation"] = correlation
    return Scenario.from_dict(tables)


@cache
def sizes_and_off_times(correlation: float | None) -> tuple[Any, Any]:
    """Return each file's size and the OFF time after it, to within the time of a file's end."""
    table = simulate(make_scenario(correlation)).tables["sequences"]
    begins = np.flatnonzero(table["sequence"] == 1)
    sizes = table["sequence"][begins[1:] - 1]
    off_times = table["time_s"][begins[1:]] - table["time_s"][begins[1:] - 1] - RTT_S
    return sizes, off_times


@pytest.mark.parametrize("correlation", [-0.3, 0.8])
def test_rank_correlation_is_as_specified_for_same_distributions(correlation: float) -> None:
    sizes, off_times = sizes_and_off_times(correlation)
    assert len(sizes) > 3000
    # Sizes in whole packets have few ties.
    assert spearmanr(sizes, off_times).statistic == pytest.approx(correlation, abs=0.05)
    for drawn, alone in zip((sizes, off_times), sizes_and_off_times(None), strict=True):
        assert ks_2samp(drawn, alone).pvalue > 0.001
    # The next file is independent of the OFF time before it.
    assert abs(spearmanr(sizes[1:], off_times[:-1]).statistic) < 0.05


def test_zero_correlation_keeps_the_random_draws() -> None:
    uncorrelated, zero = simulate(make_scenario(None)), simulate(make_scenario(0.0))
    assert uncorrelated.metrics == zero.metrics
    sizes, off_times = sizes_and_off_times(None)
    assert abs(spearmanr(sizes, off_times).statistic) < 0.05
    assert simulate(make_scenario(0.1)).metrics != zero.metrics
