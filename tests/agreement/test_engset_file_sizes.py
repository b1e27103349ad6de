"""The model with the distribution of sizes, judged by 40 simulated settings."""

import csv
from pathlib import Path

import numpy as np
import pytest
import tcpcast
from tcpcast.answer import Answer
from tcpcast.engines import answer
from tcpcast.scenario import Scenario
from tcpcast.scenario.changes import parse_assignments

with Path(__file__).with_name("engset_file_sizes.csv").open(encoding="utf-8", newline="") as _file:
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
