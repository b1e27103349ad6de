"""The loss model rest-of-round in captures, with rounds identified by their definition only."""

import math
from collections import deque
from typing import Any

import pytest
from capture_file import Captured, CaptureFiles
from tcpcast import _native
from tcpcast.engines.packet.configuration import make_configuration
from tcpcast.scenario import Scenario

RATE, SECONDS = 0.02, 120
TAPS = ["sender", "bottleneck-in", "bottleneck-out"]
QUEUE_AT_MOST_NS = 10_000_000
# For each packet that reached the bottleneck: True if it was lost there.
Fates = list[bool]


def capture_packets(changes: dict[str, Any], flows: int) -> dict[str, list[Captured]]:
    """Run flows over a fast path; packets have gaps, and no queue lasts for a round trip."""
    pcap = [{"link": tap, "file": tap, "packets": 10**6} for tap in TAPS]
    scenario = Scenario.from_dict(
        {
            "network": {
                "rtt": "50ms",
                "bottleneck": {"rate": "1gbit", "loss": {"model": "rest-of-round", "rate": RATE}},
            },
            "traffic": {"kind": "bulk", "flows": flows},
            "tcp": {"stack": "rfc-newreno"},
            "run": {"duration": f"{SECONDS}s", "seed": 3},
            "probes": {"pcap": pcap},
        }
    ).with_changes(changes)
    run = _native.Simulation(make_configuration(scenario, 0.0), 1)
    files = CaptureFiles(run, len(TAPS))
    assert run.advance(transfers=None, until_ns=SECONDS * 10**9, threads=1) == "done"
    return dict(zip(TAPS, files.read(1500), strict=True))


def rounds_of(at_sender: list[Captured]) -> list[list[Captured]]:
    """Split one flow's packets into rounds as defined in docs/reference/scenario.md."""
    rounds: list[list[Captured]] = []
    is_complete, last = True, 0
    for packet in at_sender:
        if not packet.is_data:
            is_complete = is_complete or packet.number > rounds[-1][0].number
            continue
        if is_complete or packet.number <= last:
            rounds.append([])
            is_complete = False
        rounds[-1].append(packet)
        last = packet.number
    return rounds


def has_passed(later: list[Captured], packets: list[Captured]) -> list[bool]:
    """Return for each packet of a flow whether it passes a later tap within a round trip."""
    coming = deque((p.time_ns, p.number) for p in later if p.is_data)
    result = []
    for packet in packets:
        reached = bool(coming) and coming[0][1] == packet.number
        reached = reached and coming[0][0] - packet.time_ns < QUEUE_AT_MOST_NS
        result.append(reached)
        if reached:
            coming.popleft()
    assert not coming or coming[0][0] > packets[-1].time_ns
    return result


def fates(changes: dict[str, Any], flows: int) -> list[Fates]:
    """Return the losses at the bottleneck by round, in order."""
    captured = capture_packets(changes, flows)
    result = []
    for flow in range(flows):
        sender, before, after = ([p for p in captured[tap] if p.flow == flow] for tap in TAPS)
        rounds = rounds_of(sender)
        packets = [packet for one_round in rounds for packet in one_round]
        arrived = iter(has_passed(before, packets))
        passed = iter(has_passed(after, packets))
        for one_round in rounds:
            marks = [(next(arrived), next(passed)) for _ in one_round]
            result.append([not passed_link for reached, passed_link in marks if reached])
    return result


CASES: dict[str, dict[str, Any]] = {
    "newreno": {},
    "reno": {"tcp.stack": "rfc-reno"},
    "patient": {"tcp.stack": "rfc-newreno-patient", "tcp.min_rto": "200ms"},
    "delayed acks": {"tcp.delayed_acks": True},
    "a window of 8": {"tcp.receiver_window": 8},
    "lost before as well": {"network.ingress.loss": "1%"},
    "three flows": {},
}


@pytest.mark.parametrize("name", CASES)
def test_loss_continues_to_the_end_of_the_round(name: str) -> None:
    rounds = fates(CASES[name], 3 if name == "three flows" else 1)
    assert len(rounds) > 600
    for round_fates in rounds:
        assert round_fates == sorted(round_fates), "losses are not the end of a round"
    # A packet without a loss before it in its round is lost with the rate, whatever came before the
    # round.
    hit = sum(any(round_fates) for round_fates in rounds)
    at_risk = sum(round_fates.count(False) for round_fates in rounds) + hit
    deviation = math.sqrt(at_risk * RATE * (1 - RATE))
    assert abs(hit - at_risk * RATE) < 4 * deviation
    # Therefore a round of n packets has a loss with probability 1 - (1 - rate)^n.
    with_loss = [1 - (1 - RATE) ** len(round_fates) for round_fates in rounds]
    deviation = math.sqrt(sum(share * (1 - share) for share in with_loss))
    assert abs(hit - sum(with_loss)) < 4 * deviation
    lost = sum(round_fates.count(True) for round_fates in rounds)
    assert lost > 1.5 * hit


def test_window_of_one_gives_rounds_of_one_packet() -> None:
    rounds = fates({"tcp.receiver_window": 1}, 1)
    assert {len(round_fates) for round_fates in rounds} == {1}
    lost = sum(round_fates[0] for round_fates in rounds)
    assert lost == pytest.approx(len(rounds) * RATE, rel=0.3)
