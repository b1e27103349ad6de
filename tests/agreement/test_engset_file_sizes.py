"""The model with the distribution of sizes, judged by 40 simulated settings."""

import csv
from pathlib import Path as File
from typing import Any

import numpy as np
import pytest
import tcpcast
from tcpcast.answer import Answer
from tcpcast.engines import answer
from tcpcast.models.engset import Path, engset_file_sizes
from tcpcast.scenario import Scenario
from tcpcast.scenario.changes import parse_assignments

with File(__file__).with_name("engset_file_sizes.csv").open(encoding="utf-8", newline="") as _file:
    CELLS = list(csv.DictReader(_file))
"""Drawn settings with a window of at most 1.1 BDP and a loss of at most 5 %; simulated with engine
``packet``, 400,000 transfers and seed 11."""

KEYS = {
    "size": "traffic.size",
    "sources": "traffic.sources",
    "off_mean": "traffic.off.mean",
    "receiver_window": "tcp.receiver_window",
    "rtt": "network.rtt",
    "egress": "network.egress.rate",
    "rate": "network.bottleneck.rate",
    "buffer": "network.bottleneck.buffer",
}


def scenario(cell: dict[str, str], **more: object) -> Scenario:
    changes = [f"{key}={cell[name]}" for name, key in KEYS.items()]
    base = tcpcast.load("web-10mbit", changes={"tcp.stack": "engset-newreno", **more})
    return base.with_changes(parse_assignments(changes))


def run(cell: dict[str, str], engine: str, **more: object) -> Answer:
    (result,) = answer(scenario(cell, **more), [engine])
    return result


def mean_errors(engine: str) -> tuple[float, float]:
    """Return the mean errors of the rates for a loss up to 1 %, and from 1 to 5 %."""
    errors: tuple[list[float], list[float]] = [], []
    for cell in CELLS:
        own = run(cell, engine)["connection_rate_bps"] / 1e3
        errors[float(cell["loss_percent"]) > 1].append(abs(own / float(cell["rate_kbps"]) - 1))
    assert [len(each) for each in errors] == [26, 14]
    return float(np.mean(errors[0])), float(np.mean(errors[1]))


def test_mean_error_in_40_cells() -> None:
    rare, frequent = mean_errors("engset-sizes")
    assert rare < 0.03
    assert frequent < 0.10


def test_errors_are_smaller_than_without_the_distribution() -> None:
    (rare, frequent), (rare_before, frequent_before) = map(mean_errors, ("engset-sizes", "engset"))
    assert rare < rare_before
    assert frequent < 0.5 * frequent_before


@pytest.mark.parametrize("cell", CELLS[::13], ids=lambda cell: cell["sources"])
def test_error_of_trusted_values_is_within_the_stated_one(cell: dict[str, str]) -> None:
    metric = run(cell, "engset-sizes").metrics["connection_rate_bps"]
    assert metric.trusted
    assert metric.value / 1e3 == pytest.approx(float(cell["rate_kbps"]), rel=0.3)


def test_larger_windows_and_losses_are_not_trusted() -> None:
    cell = CELLS[0]
    for more in ({"receiver_window": "400"}, {"buffer": "2pkt"}):
        result = run(cell | more, "engset-sizes")
        assert not result.metrics["connection_rate_bps"].trusted


@pytest.mark.long
@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: f"{cell['sources']}-{cell['rtt']}")
def test_simulations_of_the_cells(cell: dict[str, str]) -> None:
    result = run(cell, "packet", **{"run.transfers": 400_000, "run.seed": 11})
    assert result["connection_rate_bps"] / 1e3 == pytest.approx(float(cell["rate_kbps"]), rel=1e-3)
    assert 100 * result["loss_ratio"] == pytest.approx(float(cell["loss_percent"]), abs=1e-3)


EXPONENTIAL = np.exp(-np.maximum(np.arange(400) + 0.5 - 3, 0) / 9)
MODEL: dict[str, Any] = {
    "path": Path(
        rtt0_s=0.05, packet_bytes=1500, bottleneck_bps=10e6, ingress_bps=100e6, egress_bps=2e6
    ),
    "mean_off_s": 1.0,
    "share_at_least": EXPONENTIAL,
    "mean_size_pkts": 12.0,
    "receiver_window_pkts": 44,
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("window", [44, np.inf])
@pytest.mark.parametrize("sources", [1, 82, 400])
def test_unlimited_buffer_is_that_of_a_very_large_one(sources: int, window: float) -> None:
    """Unlimited buffer and window gave nan; large buffers gave too long queues."""
    model = MODEL | {"sources": sources, "receiver_window_pkts": window}
    unlimited, large = engset_file_sizes(**model), engset_file_sizes(**model, buffer_pkts=1e6)
    assert unlimited.loss_ratio < 1e-12
    for name in ("rate_bps", "queue_mean_pkts", "utilisation"):
        assert getattr(unlimited, name) == pytest.approx(getattr(large, name), rel=1e-6)
    assert unlimited.utilisation < 1 + 1e-9


def test_full_link_is_shared_equally_and_a_single_source_has_the_idle_path() -> None:
    full = engset_file_sizes(**MODEL, sources=400)
    cycle_s = 400 * 12 * 12_000 / 10e6
    assert full.on_time_s == pytest.approx(cycle_s - 1, rel=0.01)
    alone = engset_file_sizes(**MODEL, sources=1)
    assert alone.on_time_s == pytest.approx(alone.idle_on_time_s, rel=0.01)
