"""Applications that read or write in steps: rates, closed windows, Nagle, and the send buffer."""

from pathlib import Path
from typing import Any

import pytest
import tcpcast
from tcpcast.captures.capture_tables import restrict_to_directions
from tcpcast.captures.direction_selection import select_directions
from tcpcast.captures.replay import make_replay_scenario
from tcpcast.comparison.verdict import limit_of_answer
from tcpcast.scenario import Scenario
from tcpcast.scenario.traffic import Bulk

LINUX_BUFFERS = {"socket_buffers": "linux-6.18"}


def make_scenario(
    traffic: dict[str, Any], tcp: dict[str, Any] | None = None, /, **changed: Any
) -> Scenario:
    tables: dict[str, Any] = {
        "network": {"rtt": "20ms", "bottleneck": {"rate": "100mbit", "buffer": "200pkt"}},
        "traffic": {"kind": "bulk", "flows": 1, **traffic},
        "tcp": tcp or {},
        "run": {"duration": "12s", "seed": 1, "warmup": "2s"},
    }
    return Scenario.from_dict(tables).with_changes(changed)


def metrics(scenario: Scenario) -> dict[str, float]:
    (answer,) = tcpcast.run(scenario, ["packet"])
    assert not answer.withheld
    return {name: metric.value for name, metric in answer.metrics.items()}


@pytest.mark.parametrize("stack", ["linux-cubic", "linux-reno", "linux-bbr", "bbr3", "rfc-sack"])
def test_reader_limits_the_rate(stack: str) -> None:
    tcp = {"stack": stack, "receiver_window": 100}
    scenario = make_scenario({"reads": "10mbit"}, tcp)
    (answer,) = tcpcast.run(scenario, ["packet"])
    assert answer.metrics["goodput_bps"].value == pytest.approx(10e6, rel=0.01)
    assert answer.metrics["timeouts"].value == 0
    assert limit_of_answer(answer, scenario) == "reader"


def test_fast_reader_changes_nothing_but_the_time_of_reading() -> None:
    rates = [
        metrics(make_scenario(reads, LINUX_BUFFERS))["goodput_bps"]
        for reads in ({"reads": "10gbit"}, {})
    ]
    assert rates[0] == pytest.approx(rates[1], rel=0.005)


def test_pauses_limit_the_rate() -> None:
    reads = {"size": "50KB", "pause": "100ms"}
    scenario = make_scenario({"reads": reads}, {"receiver_window": 70})
    assert metrics(scenario)["goodput_bps"] == pytest.approx(8 * 50_000 / 0.1, rel=0.01)
    # The buffer has space for 70 packets, and a reader that never pauses would leave 40 Mbit/s.
    assert metrics(make_scenario({}, {"receiver_window": 70}))["goodput_bps"] > 35e6


@pytest.mark.parametrize("rtt", ["20ms", "40ms"])
def test_trace_finds_the_slow_reader_and_writes_it_into_the_scenario(
    rtt: str, tmp_path: Path
) -> None:
    scenario = make_scenario(
        {"reads": "5mbit"},
        LINUX_BUFFERS,
        **{
            "network.rtt": rtt,
            "probes.pcap": [{"link": "sender", "file": str(tmp_path / "reader.pcap")}],
        },
    )
    tcpcast.run(scenario, ["packet"])
    capture = tcpcast.trace(tmp_path / "reader.pcap")
    kept = restrict_to_directions(capture, select_directions(capture))
    assert list(kept.connections["cause"]) == ["receiver"]
    replay = Scenario.from_dict(make_replay_scenario(kept).tables)
    assert isinstance(replay.traffic, Bulk)
    assert replay.traffic.reads == pytest.approx(5e6, rel=0.05)
    # Both begin with an empty buffer, which takes data at the rate of the link.
    captured_bps = float(kept.connections["throughput_bps"][0])
    assert metrics(replay)["goodput_bps"] == pytest.approx(captured_bps, rel=0.03)


@pytest.mark.parametrize("stack", ["linux-cubic", "linux-bbr", "rfc-sack"])
def test_chunks_with_gaps_limit_the_rate(stack: str) -> None:
    writes = {"size": "100KB", "gap": "100ms"}
    scenario = make_scenario({"writes": writes}, {"stack": stack})
    (answer,) = tcpcast.run(scenario, ["packet"])
    assert answer.metrics["goodput_bps"].value == pytest.approx(8e6, rel=0.02)
    assert limit_of_answer(answer, scenario) == "application"
    # 70 packets at 100 Mbit/s, and half of the RTT.
    latency = answer.metrics["latency_p50_s"].value
    assert 0.0183 < latency < 0.04


def test_nagle_waits_for_the_ack_of_a_small_packet() -> None:
    """Minshall's rule of Linux, which acks a pushed packet at once if all data has been read."""
    writes = {"size": "100B", "gap": "5ms"}
    waits = metrics(make_scenario({"writes": writes}))
    at_once = metrics(make_scenario({"writes": writes}, {"nodelay": True}))
    assert at_once["latency_p95_s"] == pytest.approx(0.0101, rel=0.05)
    # A chunk waits up to a round-trip time for the ack of the chunk before.
    assert 0.025 < waits["latency_p95_s"] < 0.031
    assert waits["send_rate_pps"] == pytest.approx(at_once["send_rate_pps"] / 4, rel=0.05)
    assert waits["goodput_bps"] == pytest.approx(at_once["goodput_bps"], rel=0.01)


def test_nagle_waits_for_delayed_acks_of_rfc_receivers() -> None:
    writes = {"size": "100B", "gap": "10ms"}
    tcp = {"stack": "rfc-sack", "ack_timeout": "200ms"}
    rtt = {"network.rtt": "1ms"}
    waits = metrics(make_scenario({"writes": writes}, tcp, **rtt))
    at_once = metrics(make_scenario({"writes": writes}, tcp | {"delayed_acks": False}, **rtt))
    # Nagle's algorithm collects 1460 B in 146 ms, which are sent as a full packet.
    assert 0.12 < waits["latency_p95_s"] < 0.21
    assert at_once["latency_p95_s"] < 0.0012


def test_notsent_lowat_shortens_the_wait_in_the_send_buffer() -> None:
    writes = {"size": "16KB", "gap": "0s"}
    link = {"network.bottleneck.rate": "10mbit", "network.bottleneck.buffer": "30pkt"}
    full = metrics(make_scenario({"writes": writes}, **link))
    short = metrics(make_scenario({"writes": writes}, {"notsent_lowat": "16KB"}, **link))
    assert short["latency_p50_s"] < 0.7 * full["latency_p50_s"]
    assert short["goodput_bps"] == pytest.approx(full["goodput_bps"], rel=0.02)


def test_writes_end_at_the_reader() -> None:
    """The time of a chunk includes its time in the receive buffer."""
    traffic = {"writes": {"size": "10KB", "gap": "100ms"}}
    pause = {"reads": {"size": "1MB", "pause": "50ms"}}
    at_once = metrics(make_scenario(traffic, LINUX_BUFFERS))["latency_p50_s"]
    paused = metrics(make_scenario(traffic | pause, LINUX_BUFFERS))["latency_p50_s"]
    assert at_once < paused < at_once + 0.06


def test_many_small_chunks_need_bounded_memory() -> None:
    """A writer of single bytes on a slow link waits; the link stays full."""
    scenario = make_scenario(
        {"writes": {"size": "1B", "gap": "0s"}}, **{"network.bottleneck.rate": "1mbit"}
    )
    values = metrics(scenario)
    assert values["utilisation"] > 0.9


def test_other_engines_refuse_steps() -> None:
    scenario = make_scenario({"reads": "10mbit"}, {"stack": "linux-reno", "receiver_window": 100})
    pftk, kernel = tcpcast.run(scenario, ["pftk", "kernel"])
    for answer in (pftk, kernel):
        assert "traffic.reads: in this engine, applications" in str(answer.not_applicable)
