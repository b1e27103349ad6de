"""Fair queueing against the event-by-event reference simulator and ns-2's DRR."""

from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import tcpcast
from tcpcast.scenario import Scenario
from test_reference import SECOND, assert_equal_events, bulk, file_each, native_input

from benches.peers import ns2

pytestmark = pytest.mark.usefixtures("punctual_hosts")

SCRIPT = Path(__file__).with_name("ns2_queues.tcl")
WARMUP_S, SECONDS = 20, 220

needs_ns2 = pytest.mark.skipif(not ns2.is_installed(), reason="no ns-2 here: make peers")

QUEUES: dict[str, dict[str, Any]] = {
    "round robin": {},
    "a quantum of one packet and two thirds": {"scheduler": "drr", "quantum": "2500B"},
    "a quantum of five packets": {"scheduler": "drr", "quantum": "7500B"},
    "a buffer each": {"buffers": "individual"},
    "the tail of the longest queue": {"drop": "longest"},
    "the head of the longest queue": {"drop": "longest-head"},
}


@pytest.mark.parametrize("name", QUEUES)
def test_fair_queue_equals_the_reference_simulator(name: str) -> None:
    queue = {"kind": "fq", **QUEUES[name]}
    individual = queue.get("buffers") == "individual"
    bottleneck = {"rate": "6.3171mbit", "buffer": "5pkt" if individual else "19pkt", "queue": queue}
    links = {"ingress": {"rate": "97mbit"}, "egress": {"rate": "16.7713mbit"}}
    files = [file_each(size, f"{0.1 + 0.00137 * size:.5f}s") for size in (31, 77, 152)]
    classes: list[dict[str, Any]] = [
        {"name": f"n{index}", "rtt": f"{57.3173 + 3.317391 * index:.6f}ms", "traffic": traffic}
        for index, traffic in enumerate(files)
    ]
    classes.append({"name": "far", "rtt": "203.728519ms", "traffic": bulk(2, 0.0137, 0.3117)})
    classes.append({"name": "near", "rtt": "13.177431ms", "traffic": bulk(1, 0.0737, 0.3117)})
    scenario = {
        "network": {"rtt": "61.3ms", "bottleneck": bottleneck, **links},
        "traffic": files[0],
        "class": classes,
        "tcp": {"stack": "rfc-newreno", "receiver_window": 40},
    }
    network, native = assert_equal_events(native_input(scenario), 8.0)
    # With long turns, packets of different flows sooner or later arrive at the same time.
    assert network.first_tie > 6 * SECOND
    assert len([drop for drop in native.log["dropped"] if drop[0] < network.first_tie]) > 30
    assert native.total("transfers") > 10


def ns2_drr(*, seed: int, flows: int, buffer: int, quantum: int) -> dict[str, float]:
    """Run flows through ns-2's DRR at 10 Mbit/s and return its results from 20 s onwards."""
    return ns2.run(SCRIPT, seed, flows, 10, buffer, quantum, SECONDS, WARMUP_S)


def scenario(*, flows: int, buffer: int, quantum: int, replications: int) -> Scenario:
    """Scenario of the ns-2 run for tcpcast; ns-2's DRR drops the packet that has waited longest."""
    queue = {"kind": "fq", "scheduler": "drr", "quantum": f"{quantum}B", "drop": "longest-head"}
    times = {"duration": f"{SECONDS}s", "warmup": f"{WARMUP_S}s"}
    run: dict[str, Any] = {**times, "replications": replications}
    return Scenario.from_dict(
        {
            "network": {
                "rtt": "60ms",
                "ingress": {"rate": "10gbit"},
                "bottleneck": {"rate": "10mbit", "buffer": f"{buffer}pkt", "queue": queue},
                "egress": {"rate": "10gbit"},
            },
            "traffic": {
                "kind": "bulk",
                "start": {"distribution": "uniform", "low": "0s", "high": "1s"},
            },
            "class": [
                {"name": f"flow{index}", "flows": 1, "rtt": f"{60 + 20 * index / flows:.6f}ms"}
                for index in range(flows)
            ],
            "tcp": {"stack": "rfc-newreno-patient"},
            "run": run,
        }
    )


@needs_ns2
@pytest.mark.parametrize(
    ("flows", "buffer", "quantum", "runs"),
    [
        pytest.param(20, 100, 1500, 2, id="packet by packet"),
        pytest.param(20, 100, 4500, 2, id="three packets a turn"),
        pytest.param(40, 300, 1500, 4, id="more flows", marks=pytest.mark.long),
    ],
)
def test_drr_agrees_with_ns2(flows: int, buffer: int, quantum: int, runs: int) -> None:
    question = {"flows": flows, "buffer": buffer, "quantum": quantum}
    references = [ns2_drr(seed=seed, **question) for seed in range(1, runs + 1)]
    (own,) = tcpcast.run(scenario(**question, replications=runs), ["packet"])
    # ns-2 does not count the packet in transmission.
    values = {
        "goodput_pps": (own["goodput_pps"], 0.005),
        "loss_ratio": (own["loss_ratio"], 0.05),
        "waiting_mean_pkts": (own["queue_mean_pkts"] - own["utilisation"], 0.05),
    }
    for name, (value, tolerance) in values.items():
        mean = fmean(run[name] for run in references)
        assert abs(value / mean - 1) <= tolerance, f"{name}: {value} against {mean}"
