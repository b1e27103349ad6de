"""Captures whose clock runs at another rate than the sender's, as in a paused virtual machine."""

import struct
from pathlib import Path

import pytest
from replays import simulated
from tcpcast.captures import Capture, trace

LOSSY = {
    "network": {"rtt": "50ms", "bottleneck": {"rate": "50mbit", "loss": 0.01}},
    "traffic": {"kind": "bulk", "flows": 1},
    "tcp": {"stack": "linux-cubic"},
    "run": {"duration": "15s", "seed": 4},
}
QUEUED = {
    "network": {"rtt": "50ms", "bottleneck": {"rate": "10mbit", "buffer": "2bdp"}},
    "traffic": {"kind": "bulk", "flows": 1},
    "tcp": {"stack": "linux-cubic"},
    "run": {"duration": "15s", "seed": 4},
}


def with_clock_rate(capture: bytes, rate: float) -> bytes:
    """Return a capture with nanoseconds or microseconds whose clock has another rate."""
    (magic,) = struct.unpack_from("<I", capture)
    second = 10**9 if magic == 0xA1B23C4D else 10**6
    changed, at = bytearray(capture), 24
    first = None
    while at < len(capture):
        whole, part, kept, _ = struct.unpack_from("<IIII", capture, at)
        time = whole * second + part
        first = time if first is None else first
        time = first + round(rate * (time - first))
        struct.pack_into("<II", changed, at, time // second, time % second)
        at += 16 + kept
    return bytes(changed)


def values(capture: Capture) -> tuple[float, str, bool]:
    """Return the RTT and cause of the data, and whether a check names the clock."""
    row = int(capture.connections["bytes"].argmax())
    table = capture.connections
    named = any("unsteady clock" in line for line in capture.warnings)
    return float(table["rtt_mean_s"][row]), str(table["cause"][row]), named


@pytest.mark.parametrize(("scenario", "cause"), [(LOSSY, "loss"), (QUEUED, "link")])
def test_the_rate_of_the_clock_changes_no_verdict(
    scenario: dict[str, object], cause: str, tmp_path: Path
) -> None:
    _, _, capture = simulated(scenario, tmp_path, {}, "receiver")
    rtt, found, named = values(capture)
    assert (found, named) == (cause, False)
    data = (tmp_path / "receiver.pcap").read_bytes()
    for rate in (0.984, 1.016):
        changed, found, named = values(trace(with_clock_rate(data, rate)))
        assert changed == pytest.approx(rate * rtt, rel=0.06)
        assert found == cause
        assert named or cause == "link"  # the error may be less than the queue
