"""Loss indications and loss events recounted from captures and traces, and intervals of a run."""

import dataclasses
from collections import Counter
from typing import Any

import pytest
import tcpcast
from capture_file import Captured, CaptureFiles
from hypothesis import given, settings
from hypothesis import strategies as st
from tcpcast import _native
from tcpcast.engines.packet import metric_estimates, notes
from tcpcast.engines.packet.config_types import Config
from tcpcast.engines.packet.configuration import make_configuration
from tcpcast.engines.packet.counters import read_snapshot
from tcpcast.scenario import Scenario

SECOND = 10**9
FLOWS = 5
CELLS = {name: len(_native.LINK_CELLS) + index for index, name in enumerate(_native.CLASS_CELLS)}


def make_scenario(changes: dict[str, Any]) -> Scenario:
    return Scenario.from_dict(
        {
            "network": {
                "rtt": "50ms",
                "bottleneck": {"rate": "5mbit", "buffer": "15pkt", "loss": "3%"},
            },
            "traffic": {
                "kind": "bulk",
                "flows": FLOWS,
                "start": {"distribution": "uniform", "low": "0s", "high": "2s"},
            },
            "tcp": {"stack": "rfc-newreno"},
            "run": {"duration": "100s"},
            "probes": {
                "flows": list(range(FLOWS)),
                "pcap": [{"link": "sender", "file": "sender.pcap"}],
            },
        }
    ).with_changes(changes)


def advance_simulation(
    numbers: Config, seconds: float, replications: int = 1
) -> _native.Simulation:
    run = _native.Simulation(numbers, replications)
    until_ns = round(seconds * SECOND)
    assert run.advance(transfers=None, until_ns=until_ns, threads=1) == "done"
    return run


def list_timeouts(run: _native.Simulation) -> list[tuple[int, int, int]]:
    """Return time, source and depth (preceding timeouts of the same packet) of each timeout."""
    traces = run.traces()
    columns = (traces[name].tolist() for name in ("mark_time_ns", "mark_flow", "mark_number"))
    result, last, depth = [], dict.fromkeys(range(FLOWS), 0), dict.fromkeys(range(FLOWS), 0)
    for time, flow, number, mark in zip(*columns, traces["mark"], strict=True):
        if mark == "timeout":
            depth[flow] = depth[flow] + 1 if last[flow] == number else 0
            last[flow] = number
            result.append((time, flow, depth[flow]))
    return result


def list_fast_retransmits(captured: list[Captured]) -> list[tuple[int, int]]:
    """Return the packets retransmitted at the time of a duplicate acknowledgement for them."""
    result, last_acks = [], dict.fromkeys(range(FLOWS), (0, 0, 0))
    for packet in captured:
        time, number, times = last_acks[packet.flow]
        if not packet.is_data:
            is_retransmission = packet.number == number
            last_acks[packet.flow] = (
                packet.time_ns,
                packet.number,
                times + 1 if is_retransmission else 0,
            )
        elif (packet.time_ns, packet.number) == (time, number) and times == 3:
            result.append((packet.time_ns, packet.flow))
    return result


def loss_events(times: list[int], min_gap: int) -> list[int]:
    """Keep the first time, and each time at least a round trip after the last one kept."""
    times_kept: list[int] = []
    for time in sorted(times):
        if not times_kept or time - times_kept[-1] >= min_gap:
            times_kept.append(time)
    return times_kept


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"network.bottleneck.queue": "red", "network.bottleneck.loss": "0%"},
        {"network.bottleneck.loss": {"model": "rest-of-round", "rate": "2%"}},
        {"tcp.stack": "rfc-newreno-patient", "tcp.min_rto": "300ms"},
    ],
    ids=["lossy", "RED", "rounds", "patient"],
)
def test_indications_and_events_equal_captures_and_traces(changes: dict[str, Any]) -> None:
    run = _native.Simulation(make_configuration(make_scenario(changes), 0.0), 1)
    files = CaptureFiles(run, 1)
    assert run.advance(transfers=None, until_ns=100 * SECOND, threads=1) == "done"
    (captured,) = files.read(1500)
    timeouts, fast = list_timeouts(run), list_fast_retransmits(captured)
    last = run.counters()[0][-1]
    assert last[CELLS["fast_retransmits"]] == len(fast) > 50
    assert last[CELLS["timeouts"]] == len(timeouts) > 50
    depths = Counter(depth for _, _, depth in timeouts)
    assert last[CELLS["timeout_sequences"]] == depths[0]
    for timeouts_in_all in range(2, 7):
        assert last[CELLS[f"sequences_of_{timeouts_in_all}"]] == depths[timeouts_in_all - 1]
    times = sorted([t for t, _ in fast] + [t for t, _, depth in timeouts if depth == 0])
    for min_gap in (0, 1, 5_000_000, 61_234_567, 500_000_000, 400 * SECOND):
        result = run.loss_events(min_gap)
        assert result is not None
        assert result[0].tolist() == loss_events(times, min_gap)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 3), st.sampled_from([0.0, 7.3]))
def test_metric_is_events_per_packet_sent(seed: int, replications: int, warmup: float) -> None:
    changes = {"run.seed": seed, "run.replications": replications, "run.warmup": f"{warmup}s"}
    scenario = make_scenario(
        {**changes, "run.duration": "40s", "probes.flows": [], "probes.pcap": []}
    )
    (answer,) = tcpcast.run(scenario, ["packet"])
    run = advance_simulation(make_configuration(scenario, warmup), 40, replications)
    rows = [rows[-1] for rows in run.counters()]
    rtt_ns = sum(int(row[CELLS["rtt_sum_ns"]]) for row in rows) / sum(
        int(row[CELLS["rtt_samples"]]) for row in rows
    )
    all_times = run.loss_events(0)
    assert all_times is not None
    events = sum(len(loss_events(times.tolist(), round(rtt_ns))) for times in all_times)
    sent = sum(int(row[CELLS["sent"]]) for row in rows)
    result = answer.metrics["loss_event_ratio_cumulative"]
    assert result.value == pytest.approx(events / sent, rel=1e-12)
    if result.low is None or result.high is None:
        assert result.interval_warning is not None
        assert "too few loss" in result.interval_warning
    else:
        assert result.low < result.value < result.high
    assert result.value < answer["loss_indication_ratio"]


def test_single_flow_has_almost_one_event_per_indication() -> None:
    scenario = make_scenario({"traffic.flows": 1, "probes.flows": [], "probes.pcap": []})
    (answer,) = tcpcast.run(scenario, ["packet"])
    both = answer["loss_event_ratio_cumulative"], answer["loss_indication_ratio"]
    assert both[0] == pytest.approx(both[1], rel=0.02)


def test_excess_of_indications_has_a_warning() -> None:
    scenario = make_scenario({"run.duration": "10s", "probes.flows": [], "probes.pcap": []})
    counters = read_snapshot(scenario, advance_simulation(make_configuration(scenario, 0.0), 10))
    assert (
        metric_estimates.estimate_metrics(scenario, counters)["loss_event_ratio_cumulative"]
        is not None
    )
    assert not [
        text for text in notes.make_interval_notes({}, counters, {}) if "loss_event" in str(text)
    ]
    reduced = dataclasses.replace(counters, loss_events=None)
    assert (
        metric_estimates.estimate_metrics(scenario, reduced)["loss_event_ratio_cumulative"] is None
    )
    (warning,) = notes.make_interval_notes({}, reduced, {})
    assert str(warning).startswith("loss_event_ratio_cumulative is omitted")
