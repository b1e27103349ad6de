"""The same seed gives the same bytes in every process and on any threads; other seeds differ."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import tcpcast
from tcpcast import _native
from tcpcast.engines.packet.config_types import Config
from tcpcast.engines.packet.configuration import make_configuration
from tcpcast.report.json import encode
from tcpcast.scenario.aqm import AQM_TABLES

SECOND = 10**9
CHANGES = {
    "run.transfers": 1500,
    "run.replications": 2,
    "network.bottleneck.loss": "0.5%",
    "probes.flows": [0, 5],
}
SCENARIOS = ["web-10mbit", "two-classes"]


def without_wall_time(text: str) -> str:
    document = json.loads(text)
    for answer in document["answers"]:
        assert answer.pop("wall_s") > 0
    return json.dumps(document)


def document(scenario: tcpcast.Scenario, threads: int | None = None) -> str:
    answers = tcpcast.run(scenario, ["packet"], threads=threads)
    return without_wall_time(encode(answers.to_json()))


def command(name: str, hash_seed: str) -> str:
    settings = [f"--set={key}={json.dumps(value)}" for key, value in CHANGES.items()]
    run = subprocess.run(
        [sys.executable, "-m", "tcpcast", "run", name, "--engine=packet", "--json", *settings],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
    )
    return without_wall_time(run.stdout)


@pytest.mark.parametrize("queue", ["droptail", "red"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_repeated_and_threaded_runs_are_equal(name: str, queue: str) -> None:
    scenario = tcpcast.load(name).with_changes(CHANGES | {"network.bottleneck.queue": queue})
    once = document(scenario, threads=1)
    assert document(scenario, threads=1) == once
    assert document(scenario, threads=2) == once
    assert document(scenario) == once


@pytest.mark.parametrize(
    ("name", "length", "changes"),
    [
        ("home", "8s", {"link.down.loss": "1%", "link.down.at": {"4s": {"rate": "5mbit"}}}),
        ("incast", "1s", {}),
        ("page-load", "8s", {}),
        ("parking-lot", "8s", {}),
    ],
)
def test_networks_of_links_are_equal_on_two_threads(
    name: str, length: str, changes: dict[str, Any]
) -> None:
    run = {"run.duration": length, "run.warmup": "500ms", "run.replications": 3}
    scenario = tcpcast.load(name).with_changes(changes | run)
    assert document(scenario, threads=2) == document(scenario, threads=1)


@pytest.mark.parametrize("queue", [n for n, t in AQM_TABLES.items() if "ecn" in t.model_fields])
def test_runs_with_ecn_marks_are_equal_on_two_threads(queue: str) -> None:
    changes = {
        "network.bottleneck": {"rate": "20mbit", "buffer": "500pkt", "queue": queue},
        "tcp": {"stack": "linux-cubic", "ecn": True},
        "run.duration": "30s",
        "run.warmup": "5s",
        "run.replications": 2,
    }
    scenario = tcpcast.load("lossy-path", changes=changes)
    once = document(scenario, threads=1)
    assert document(scenario, threads=2) == once
    assert run_metrics(scenario)["ecn_mark_ratio"].value > 0


def run_metrics(scenario: tcpcast.Scenario) -> dict[str, Any]:
    return dict(tcpcast.run(scenario, ["packet"])[0].metrics)


def test_two_simultaneous_processes_give_same_output() -> None:
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(command, ["web-10mbit"] * 2, ["1", "2"])
    assert one == other
    assert one == document(tcpcast.load("web-10mbit").with_changes(CHANGES))


def test_other_seed_gives_other_results() -> None:
    scenario = tcpcast.load("web-10mbit").with_changes(CHANGES)
    rates = [
        tcpcast.run(scenario.with_changes({"run.seed": seed}), ["packet"])[0]["on_time_s"]
        for seed in (1, 2, 2**63 - 1)
    ]
    assert len(set(rates)) == 3
    assert max(rates) < 1.3 * min(rates)


def run_config(**changes: Any) -> Config:
    return make_configuration(tcpcast.load("web-10mbit").with_changes(changes), 2.0)


def all_results(run: _native.Simulation) -> dict[str, Any]:
    """Return all results of a run, as lists."""
    traces = {f"trace {name}": value for name, value in run.traces().items()}
    result = {**run.totals(), **traces, "counters": [rows.tolist() for rows in run.counters()]}
    result["clocks"] = run.clocks()
    result["goodputs"] = [
        [slots, *(column.tolist() for column in columns)] for slots, *columns in run.file_goodputs()
    ]
    return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in result.items()}


def test_replication_does_not_depend_on_number_of_replications() -> None:
    counters = []
    for replications, threads in ((1, 1), (2, 1), (5, 2)):
        run = _native.Simulation(run_config(), replications)
        run.advance(transfers=1000, until_ns=1000 * SECOND, threads=threads)
        counters.append([rows.tolist() for rows in run.counters()])
    one, two, five = counters
    assert two[0] == five[0] == one[0]
    assert two[1] == five[1]
    assert len({str(rows) for rows in five}) == 5


@pytest.mark.parametrize("looks", [2, 7])
def test_reading_metrics_during_a_run_changes_nothing(looks: int) -> None:
    # `run.precision` continues a run after it has read its metrics. With senders 20 ms away
    # from the bottleneck, many packets in flight are only partly counted at that time.
    network = {
        "ingress": {"rate": "100mbit", "delay": "20ms"},
        "bottleneck": {"rate": "10mbit", "buffer": "150pkt", "delay": "1ms"},
        "egress": {"rate": "2mbit", "delay": "1ms"},
    }
    changes = {"network": network, "probes.flows": [3]}
    in_one_go, in_pieces = (_native.Simulation(run_config(**changes), 1) for _ in "12")
    in_one_go.advance(transfers=None, until_ns=10 * SECOND, threads=1)
    for look in range(1, looks + 1):
        in_pieces.advance(transfers=None, until_ns=look * 10 * SECOND // looks, threads=1)
        all_results(in_pieces)
    expected, result = all_results(in_one_go), all_results(in_pieces)
    # Sizes without transfers have no percentiles: NaN.
    assert {name for name in expected if str(expected[name]) != str(result[name])} == set()
