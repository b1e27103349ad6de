"""Misleading captures: values are withheld or counted once, with a warning."""

import gzip
import math
import struct
from pathlib import Path

import pytest
import tcpcast

ROOT = Path(__file__).parents[2]
TRANSFER = ROOT / "crates" / "trace" / "tests" / "data" / "transfer.pcap.gz"
WHOLE = gzip.decompress(TRANSFER.read_bytes())
"""240 packets of one transfer: 136 of data, 9 of them retransmitted."""

RAW = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)
SYN, ACK = 2, 16
ENDS = (b"\x0a\0\0\1", b"\x0a\0\0\2")
PORTS = (5001, 80)


def packet(back: int, number: int, acked: int, flags: int, size: int) -> bytes:
    """Return headers of an IPv4 packet with ``size`` payload bytes; ``back``: sent by host 2."""
    numbers = (number & 0xFFFFFFFF, acked & 0xFFFFFFFF)
    tcp = struct.pack(
        ">HHIIBBHHH", PORTS[back], PORTS[1 - back], *numbers, 5 << 4, flags, 8192, 0, 0
    )
    head = struct.pack(">BBHHHBBH", 0x45, 0, 40 + size, number & 0xFFFF, 0, 64, 6, 0)
    return head + ENDS[back] + ENDS[1 - back] + tcp


def record(time_s: float, headers: bytes, size: int) -> bytes:
    """Return a pcap record of a packet without its payload."""
    stamp = struct.pack("<II", int(time_s), round(time_s % 1 * 1e6))
    return stamp + struct.pack("<II", len(headers), len(headers) + size) + headers


def capture(*sent: tuple[float, int, int, int, int, int]) -> bytes:
    """Return a pcap of packets, each a time and the arguments of :func:`packet`."""
    return RAW + b"".join(record(time, packet(*rest), rest[-1]) for time, *rest in sent)


@pytest.mark.parametrize("times", [2, 3])
def test_repeated_capture_is_counted_once_with_one_warning(times: int) -> None:
    once, joined = tcpcast.trace(WHOLE), tcpcast.trace(WHOLE + (times - 1) * WHOLE[24:])
    for column in ("data_packets", "retransmissions", "duplicate_acks", "timeouts"):
        assert joined.connections[column].tolist() == once.connections[column].tolist()
    (warning,) = set(joined.warnings) - set(once.warnings)
    assert warning.startswith(f"{240 * (times - 1)} segments repeated in the same order")


def test_capture_without_acks_has_no_mean_flight() -> None:
    sent = [(2.0 + 0.001 * n, 0, 100 + 1000 * n, 500, ACK, 1000) for n in range(100)]
    row = {name: column[0] for name, column in tcpcast.trace(capture(*sent)).connections.items()}
    assert row["flight_max_bytes"] == 0
    assert math.isnan(row["flight_mean_bytes"])


def test_tunnels_are_decapsulated_with_a_warning() -> None:
    inner = b"\2" * 12 + b"\x08\0" + packet(0, 100, 500, ACK, 1000)
    vxlan = struct.pack(">B3xI", 8, 7 << 8) + inner
    udp = struct.pack(">HHHH", 50_000, 4789, 8 + len(vxlan) + 1000, 0) + vxlan
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp) + 1000, 1, 0, 64, 17, 0)
    outer = head + b"\xc0\0\2\1" + b"\xc0\0\2\2" + udp
    result = tcpcast.trace(RAW + record(1.0, outer, 1000))
    assert result.connections["src"].tolist() == ["10.0.0.1:5001"]
    assert result.connections["bytes"].tolist() == [1000]
    assert "1 segment inside tunnels (VXLAN); tcpcast used the inner addresses" in result.warnings
