"""The packet engine against other programs with the same scenario.

ns-2 simulates the scenario; tshark and tcptrace read the captures. Each test is skipped with the
name of the program if it is not installed (``make peers``). A queue-limit of B in ns-2 allows B - 1
waiting packets in addition to the packet in service, so both hold B.
"""

import math
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest
import tcpcast
from scipy.stats import t as student_t

from benches.peers import ns2

needs_ns2 = pytest.mark.skipif(not ns2.is_installed(), reason="no ns-2 here: make peers")
needs_tshark = pytest.mark.skipif(
    shutil.which("tshark") is None, reason="no tshark here: make peers"
)
needs_tcptrace = pytest.mark.skipif(
    shutil.which("tcptrace") is None, reason="no tcptrace here: make peers"
)

LONG: dict[str, Any] = {
    "name": "long",
    "network": {
        "rtt": "60ms",
        "ingress": {"rate": "10gbit"},
        "bottleneck": {"rate": "100mbit", "buffer": "500pkt"},
        "egress": {"rate": "10gbit"},
    },
    "traffic": {
        "kind": "bulk",
        "flows": 10,
        "start": {"distribution": "uniform", "low": "0s", "high": "1s"},
    },
    "tcp": {"stack": "rfc-newreno-patient", "initial_window": 10},
    "run": {"duration": "300s", "warmup": "0s"},
}


def mean(results: list[dict[str, float]]) -> dict[str, float]:
    return {name: fmean(result[name] for result in results) for name in results[0]}


def assert_agreement(
    own: tcpcast.Answer, expected: dict[str, float], tolerances: dict[str, float]
) -> None:
    for metric, relative in tolerances.items():
        difference = own[metric] / expected[metric] - 1
        assert abs(difference) <= relative, f"{metric}: {own[metric]} against {expected[metric]}"


@needs_ns2
def test_ns2_agrees_on_one_bulk_flow_from_its_start() -> None:
    """From 0 s: NewReno repairs the overshoot of slow start packet by packet."""
    expected = ns2.long(flows=1, mbit=10, buffer=40, seconds=600, seed=1, patient=True)
    changes = {
        "network.bottleneck": {"rate": "10mbit", "buffer": "40pkt"},
        "traffic.flows": 1,
        "run.duration": "600s",
    }
    (own,) = tcpcast.run(tcpcast.Scenario.from_dict(LONG).with_changes(changes), ["packet"])
    assert_agreement(own, expected, {"goodput_pps": 0.002, "loss_ratio": 0.08})


@pytest.mark.long
@needs_ns2
@pytest.mark.parametrize("flows", [1, 2, 5, 10, 20, 50])
@pytest.mark.parametrize(
    ("mbit", "buffer", "seconds"), [(10, 40, 600), (50, 250, 200), (100, 500, 200)]
)
def test_ns2_agrees_from_the_start(flows: int, mbit: int, buffer: int, seconds: int) -> None:
    """Losses of the first slow starts and of some cycles, which vary from run to run in ns-2."""
    network = {"flows": flows, "mbit": mbit, "buffer": buffer, "seconds": seconds}
    expected = mean([ns2.long(seed=seed, patient=True, **network) for seed in (1, 2, 3)])
    changes = {
        "network.bottleneck": {"rate": f"{mbit}mbit", "buffer": f"{buffer}pkt"},
        "traffic.flows": flows,
        "run": {"duration": f"{seconds}s", "warmup": "0s", "replications": 8},
    }
    (own,) = tcpcast.run(tcpcast.Scenario.from_dict(LONG).with_changes(changes), ["packet"])
    assert_agreement(own, expected, {"goodput_pps": 0.03, "loss_ratio": 0.25})


@pytest.mark.long
@needs_ns2
def test_ns2_agrees_on_web_users() -> None:
    expected = mean([ns2.w134(connections=102_000, warmup=2_000, seed=s) for s in range(1, 5)])
    scenario = tcpcast.load("web-10mbit", changes={"run.transfers": 2_000_000})
    (own,) = tcpcast.run(scenario, ["packet"])
    tolerances = {"goodput_pps": 0.01, "connection_rate_bps": 0.01, "loss_ratio": 0.08}
    assert_agreement(own, expected, tolerances)


def random_loss(loss: float, *, seeds: int, own_runs: int) -> tuple[list[float], tcpcast.Answer]:
    """Ten flows over an uncongested path with random loss: ns-2's goodputs, and our answer."""
    length = {"seconds": 200, "warmup": 20}
    expected = [
        ns2.long(mbit=1000, buffer=100_000, loss=loss, seed=seed, patient=True, **length)
        for seed in range(1, seeds + 1)
    ]
    changes = {
        "network.bottleneck": {"rate": "1gbit", "loss": loss},
        "run": {"duration": "200s", "warmup": "20s", "replications": own_runs},
    }
    (own,) = tcpcast.run(tcpcast.Scenario.from_dict(LONG).with_changes(changes), ["packet"])
    return [result["goodput_pps"] for result in expected], own


@needs_ns2
@pytest.mark.parametrize(
    "loss",
    [0.02, *(pytest.param(p, marks=pytest.mark.long) for p in (0.001, 0.002, 0.005, 0.01, 0.05))],
)
def test_ns2_agrees_on_random_loss(loss: float) -> None:
    """Within 3 % and the half-width of the mean of four ns-2 seeds."""
    expected, own = random_loss(loss, seeds=4, own_runs=8)
    half_width = (
        student_t.ppf(0.975, len(expected) - 1) * stdev(expected) / math.sqrt(len(expected))
    )
    difference = abs(own["goodput_pps"] - fmean(expected))
    assert difference <= 0.03 * fmean(expected) + half_width, f"{own['goodput_pps']} {expected}"


def capture(folder: Path, link: str) -> tuple[Path, tcpcast.Answer]:
    """Capture three flows over a lossy path for ten seconds at one tap."""
    file = folder / f"{link}.pcap"
    scenario = tcpcast.Scenario.from_dict(
        {
            "network": {
                "rtt": "40ms",
                "bottleneck": {"rate": "2mbit", "buffer": "20pkt", "loss": "1%"},
            },
            "traffic": {"kind": "bulk", "flows": 3},
            "tcp": {"stack": "rfc-newreno", "receiver_window": 30},
            "run": {"duration": "10s", "warmup": "0s"},
            "probes": {"pcap": [{"link": link, "file": str(file)}]},
        }
    )
    (answer,) = tcpcast.run(scenario, ["packet"])
    return file, answer


def tshark(file: Path, *arguments: str) -> list[str]:
    run = subprocess.run(
        ["tshark", "-n", "-r", file, *arguments], capture_output=True, text=True, check=True
    )
    return run.stdout.splitlines()


@needs_tshark
@pytest.mark.parametrize("link", ["sender", "bottleneck-in", "bottleneck-out", "receiver"])
def test_tshark_reads_every_packet(tmp_path: Path, link: str) -> None:
    file, answer = capture(tmp_path, link)
    fields = ["frame.time_relative", "ip.len", "tcp.len", "ip.src", "tcp.flags.ack"]
    checks = ["-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE"]
    rows = [
        line.split("\t")
        for line in tshark(file, *checks, "-T", "fields", *(f"-e{name}" for name in fields))
    ]
    assert not tshark(file, *checks, "-Y", "_ws.malformed || ip.checksum.status == 0")
    times = [float(row[0]) for row in rows]
    assert times == sorted(times)
    data = [row for row in rows if int(row[2]) > 0]
    assert {(row[1], row[2]) for row in data} == {("1500", "1460")}
    # SYN and SYN-ACK have options.
    assert Counter(row[1] for row in rows if int(row[2]) == 0)["48"] == 2 * 3
    assert {row[1] for row in rows if int(row[2]) == 0} == {"40", "48"}
    assert len({row[3] for row in data}) == 3
    if link == "sender":
        assert len(data) == pytest.approx(answer["send_rate_pps"] * 10, abs=1)
    if link == "bottleneck-out":
        passed = answer["send_rate_pps"] * 10 * (1 - answer["loss_ratio"])
        assert len(data) == pytest.approx(passed, abs=60)  # packets in flight at the end


@needs_tcptrace
def test_tcptrace_counts_the_retransmissions(tmp_path: Path) -> None:
    file, answer = capture(tmp_path, "sender")
    run = subprocess.run(["tcptrace", "-l", file], capture_output=True, text=True, check=True)
    assert len(re.findall(r"TCP connection \d+:", run.stdout)) == 3
    result = re.findall(r"rexmt data pkts:\s+(\d+)\s+rexmt data pkts:\s+(\d+)", run.stdout)
    expected = sum(int(count) for pair in result for count in pair)
    own = answer["retransmit_ratio"] * answer["send_rate_pps"] * 10
    assert own > 20
    assert math.isclose(expected, own, abs_tol=0.5)
