"""Misleading captures: values are withheld or counted once, with a warning."""

import gzip
import json
import math
import struct
from pathlib import Path

import pytest
import tcpcast
from tcpcast.captures.replay import make_replay_scenario
from tcpcast.report.text import plain_text
from tcpcast.report.trace import capture_parts, json_lines

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


HANDSHAKE = (
    (1.0, 0, 99, 0, SYN, 0),
    (1.02, 1, 499, 100, SYN | ACK, 0),
    (1.021, 0, 100, 500, ACK, 0),
)


@pytest.mark.parametrize("times", [2, 3])
def test_repeated_capture_is_counted_once_with_one_warning(times: int) -> None:
    once, joined = tcpcast.trace(WHOLE), tcpcast.trace(WHOLE + (times - 1) * WHOLE[24:])
    for column in ("data_packets", "retransmissions", "duplicate_acks", "timeouts"):
        assert joined.connections[column].tolist() == once.connections[column].tolist()
    (warning,) = set(joined.warnings) - set(once.warnings)
    assert warning.startswith(f"{240 * (times - 1)} segments repeated in the same order")


def test_single_packet_has_no_rate() -> None:
    one = (*HANDSHAKE, (1.03, 0, 100, 500, ACK, 237), (1.030008, 1, 500, 337, ACK, 0))
    two = (*one, (1.05, 0, 337, 500, ACK, 237))
    rates = ("throughput_bps", "goodput_bps", "send_rate_pps")
    result = tcpcast.trace(capture(*one))
    (reported,) = json.loads("".join(json_lines([result])))["captures"]
    (row,) = reported["connections"]
    assert [row[name] for name in rates] == [None] * 3
    output = plain_text(capture_parts(result))
    assert "1 data packet, 237 B" in output
    assert "bit/s" not in output.split("sent")[1]
    with pytest.raises(tcpcast.CaptureError, match="no scenario can be derived"):
        make_replay_scenario(result)
    connections = tcpcast.trace(capture(*two)).connections
    assert [round(float(connections[name][0])) for name in rates] == [189_600, 189_600, 100]


def test_sequence_numbers_outside_the_window_are_excluded() -> None:
    far = 100 + 2_000_000_000
    result = tcpcast.trace(
        capture(
            *HANDSHAKE,
            (1.03, 0, 100, 500, ACK, 1000),
            (1.031, 0, far, 500, ACK, 1000),
            (1.05, 1, 500, 1100, ACK, 0),
            (1.051, 0, 1100, 500, ACK, 1000),
            (1.07, 1, 500, 2100, ACK, 0),
        )
    )
    row = {name: column[0] for name, column in result.connections.items()}
    assert (row["out_of_window"], row["data_packets"], row["unique_bytes"]) == (1, 3, 2000)
    assert row["flight_max_bytes"] == 1000
    assert any("outside the window" in warning for warning in result.warnings)


def test_missing_pure_acks_withhold_the_rtt() -> None:
    """A capture filter removed pure acks; the remaining acks arrive 6.4 s late with requests."""
    sent = [*HANDSHAKE]
    for number in range(4):
        since = 2.0 + 6.5 * number
        sent.append((since, 0, 100 + 1000 * number, 500 + 50 * number, ACK, 1000))
        sent.append((since + 6.4, 1, 500 + 50 * number, 1100 + 1000 * number, ACK, 50))
    result = tcpcast.trace(capture(*sent))
    row = {name: column[0] for name, column in result.connections.items()}
    assert row["rtt_withheld"]
    assert math.isnan(row["rtt_mean_s"])
    assert any("the capture lacks pure acks" in warning for warning in result.warnings)
    output = " ".join(plain_text(capture_parts(result)).split())
    assert "RTT: the capture lacks pure acks" in output


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
    assert "1 segment inside tunnels (VXLAN): the inner addresses are used" in result.warnings
