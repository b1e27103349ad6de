"""The RTT at a receiver's tap: that of the path without its queue, and never more than the truth.

The simulator captures the same transfer at both ends. It has no handshake, by which the side of a
tap is known; one is laid before each capture, as it would have been seen there.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import pytest
import tcpcast
from capture_file import FILE_HEADER, RECORD_HEADER

if TYPE_CHECKING:
    from pathlib import Path

RTT_NS = 60_000_000
BEGIN_NS = 10**9
HOSTS = bytes([10, 0, 0, 1]), bytes([10, 128, 0, 1])
SYN, ACK = 2, 16
PATHS: dict[str, dict[str, Any]] = {
    "a queue": {},
    "random loss": {"rate": "20mbit", "loss": "3%"},
    "both": {"loss": "2%"},
}


def packet(*, opens: bool, flags: int) -> bytes:
    """Return a segment of the handshake, without options."""
    hosts, ports = (HOSTS, (1025, 80)) if opens else (HOSTS[::-1], (80, 1025))
    sequence = int(flags == ACK)
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 40, 0, 0, 64, 6, 0) + hosts[0] + hosts[1]
    answered = int(flags != SYN)
    return ip + struct.pack(">HHIIHHHH", *ports, sequence, answered, 5 << 12 | flags, 65535, 0, 0)


def with_handshake(path: Path, away_ns: int) -> bytes:
    """Return a capture later by ``BEGIN_NS``, behind a handshake seen so far from the sender."""
    content = path.read_bytes()
    whole = bytearray(content[:FILE_HEADER])

    def add(time_ns: int, rest: bytes) -> None:
        whole.extend(struct.pack("<II", *divmod(time_ns, 10**9)) + rest)

    for time_ns, opens, flags in (
        (BEGIN_NS - RTT_NS + away_ns, True, SYN),
        (BEGIN_NS - 2000 - away_ns, False, SYN | ACK),
        (BEGIN_NS - 1000 + away_ns, True, ACK),
    ):
        add(time_ns, struct.pack("<II", 40, 40) + packet(opens=opens, flags=flags))
    at = FILE_HEADER
    while at < len(content):
        seconds, nanos, kept, _ = struct.unpack_from("<IIII", content, at)
        end = at + RECORD_HEADER + kept
        add(BEGIN_NS + seconds * 10**9 + nanos, content[at + 8 : end])
        at = end
    return bytes(whole)


@pytest.mark.parametrize("path", PATHS)
def test_a_receiver_s_tap_gives_a_lower_estimate(path: str, tmp_path: Path) -> None:
    taps = ("sender", "receiver")
    bottleneck = {"rate": "4mbit", "buffer": "20pkt", **PATHS[path]}
    question = tcpcast.Scenario.from_dict(
        {
            "network": {"rtt": f"{RTT_NS}ns", "bottleneck": bottleneck},
            "traffic": {"kind": "bulk", "flows": 1},
            "tcp": {"stack": "rfc-newreno"},
            "run": {"duration": "60s", "warmup": "0s"},
            "probes": {"pcap": [{"link": t, "file": str(tmp_path / t)} for t in taps]},
        }
    )
    tcpcast.run(question, ["packet"])
    near, far = (
        tcpcast.trace(with_handshake(tmp_path / tap, away_ns)).connections
        for tap, away_ns in zip(taps, (0, RTT_NS // 2), strict=True)
    )
    assert [near["tap_side"][0], far["tap_side"][0]] == ["sender", "receiver"]
    empty_s = RTT_NS / 1e9
    assert [table["handshake_rtt_s"][0] for table in (near, far)] == pytest.approx(
        [empty_s] * 2, rel=1e-3
    )
    truth = near["rtt_mean_s"][0]
    assert 0.99 * empty_s < far["rtt_mean_s"][0] < truth
