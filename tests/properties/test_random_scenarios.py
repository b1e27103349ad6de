"""Random valid scenarios end in time, with an answer or a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import tcpcast
from generated_scenarios import BASES
from random_scenarios import Limits, run_once, run_random
from tcpcast.scenario import Scenario

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("runs", [8, pytest.param(2000, marks=pytest.mark.long)])
def test_random_scenarios_end_in_time(runs: int, tmp_path: Path) -> None:
    found = run_random(range(runs), seed=1, folder=tmp_path, limits=Limits())
    assert not [str(failure) for _, _, failure in found if failure is not None]


FEW = {"network": {"rtt": "50ms", "bottleneck": {"rate": "10mbit"}}}
BULK = FEW | {"traffic": {"kind": "bulk", "flows": 4}}


@pytest.mark.parametrize(
    "changes",
    [
        {"network.bottleneck.queue": {"kind": "pie", "update": "1ns"}},
        {"network.bottleneck": {"rate": "1bit", "queue": "pie"}, "network.rtt": "1e8s"},
    ],
)
def test_a_run_of_slow_events_stops_in_time(changes: dict[str, object], tmp_path: Path) -> None:
    tables = {**BULK, "run": {"duration": "1e8s", "max_wall": "1s"}}
    changed = Scenario.from_dict(tables).with_changes(changes).resolved()
    code, reason = run_once(changed, ["--engine", "packet"], folder=tmp_path, limits=Limits())
    assert reason is None
    assert code in {0, 1}


@pytest.mark.parametrize("place", ["bottleneck", "ingress"])
def test_a_queue_of_many_years_does_not_overflow(place: str) -> None:
    network = {"rtt": "1e8s", "packet": "65535B", "bottleneck": {"rate": "1kbit"}}
    tables = {
        "network": network | {place: {"rate": "1bit"}},
        "traffic": {"kind": "bulk", "flows": 4},
        "tcp": {"stack": "rfc-newreno"},
        "run": {"duration": "1e8s", "warmup": "1s", "max_wall": "1s"},
    }
    (answer,) = tcpcast.run(Scenario.from_dict(tables), ["packet"], threads=1)
    assert answer.metrics


def test_a_run_without_memory_ends_with_a_line(tmp_path: Path) -> None:
    tables = {**BULK, "run": {"duration": "1e8s", "max_wall": "10s"}}
    changes = {"traffic.flows": 100, "tcp": {"stack": "rfc-sack", "initial_window": 1_000_000}}
    changed = Scenario.from_dict(tables).with_changes(changes).resolved()
    limits = Limits(max_wall_s=10, address_space=1 << 30)
    code, reason = run_once(changed, ["--engine", "packet"], folder=tmp_path, limits=limits)
    assert reason is None
    assert code in {1, 2, 3}


def test_every_base_is_valid() -> None:
    for tables in BASES:
        Scenario.from_dict(tables)
