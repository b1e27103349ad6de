"""Correlated file sizes and OFF times, read from a traced source."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.stats import ks_2samp, spearmanr
from tcpcast.errors import ScenarioError
from tcpcast.scenario import Scenario
from test_many_sources import simulated

RTT_S = 0.1


def scenario(correlation: float | None, **traffic: Any) -> Scenario:
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
def sizes_and_silences(correlation: float | None) -> tuple[Any, Any]:
    """Return each file's size and the OFF time after it, accurate to the duration of a file's
    end."""
    table = simulated(scenario(correlation)).tables["sequences"]
    begins = np.flatnonzero(table["sequence"] == 1)
    sizes = table["sequence"][begins[1:] - 1]
    silences = table["time_s"][begins[1:]] - table["time_s"][begins[1:] - 1] - RTT_S
    return sizes, silences


@pytest.mark.parametrize("asked", [-0.3, 0.8])
def test_rank_correlation_is_as_specified_and_distributions_are_unchanged(asked: float) -> None:
    sizes, silences = sizes_and_silences(asked)
    assert len(sizes) > 3000
    # Sizes in whole packets have few ties.
    assert spearmanr(sizes, silences).statistic == pytest.approx(asked, abs=0.05)
    for drawn, alone in zip((sizes, silences), sizes_and_silences(None), strict=True):
        assert ks_2samp(drawn, alone).pvalue > 0.001
    # The next file is independent of the OFF time before it.
    assert abs(spearmanr(sizes[1:], silences[:-1]).statistic) < 0.05


def test_zero_correlation_keeps_the_random_draws() -> None:
    without, none = simulated(scenario(None)), simulated(scenario(0.0))
    assert without.metrics == none.metrics
    sizes, silences = sizes_and_silences(None)
    assert abs(spearmanr(sizes, silences).statistic) < 0.05
    assert simulated(scenario(0.1)).metrics != none.metrics


@pytest.mark.parametrize(
    "size",
    [
        {"distribution": "constant", "value": "3pkt"},
        {"distribution": "empirical", "values": ["3pkt", "3pkt"]},
        {"distribution": "empirical", "values": ["3pkt", "5pkt"], "weights": [1, 0]},
    ],
)
def test_constant_is_uncorrelated(size: dict[str, Any]) -> None:
    with pytest.raises(ScenarioError) as refused:
        scenario(0.5, size=size)
    expected = "traffic.correlation: nothing goes with size, which is constant; leave it out"
    assert str(refused.value) == expected
    assert scenario(0.0, size=size)
    assert scenario(0.5, size={"distribution": "empirical", "values": ["3pkt", "5pkt"]})
