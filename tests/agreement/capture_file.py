"""Reads what ``probes.pcap`` writes, from the format's definition and not from the writer."""

from __future__ import annotations

import struct
from dataclasses import dataclass

NANOSECOND_MAGIC = 0xA1B23C4D
RAW_IP = 101
FILE_HEADER, RECORD_HEADER = 24, 16
HEADERS = 40


@dataclass(frozen=True)
class Captured:
    """A packet of the capture; ``number`` counts packets from 1, as the simulator does."""

    time_ns: int
    flow: int
    connection: int
    number: int
    is_data: bool
    length: int
    header: bytes


def read_capture(content: bytes, packet_bytes: int) -> list[Captured]:
    """Return the packets of a capture; a wrong header or a cut record is an error."""
    magic, major, minor, _, _, _, link = struct.unpack_from("<IHHiIII", content)
    assert (magic, major, minor, link) == (NANOSECOND_MAGIC, 2, 4, RAW_IP)
    packets, at = [], FILE_HEADER
    while at < len(content):
        seconds, nanoseconds, kept, length = struct.unpack_from("<IIII", content, at)
        at += RECORD_HEADER
        packet = content[at : at + kept]
        assert len(packet) == kept == HEADERS
        at += kept
        packets.append(_read(packet, seconds * 10**9 + nanoseconds, length, packet_bytes))
    return packets


def _read(packet: bytes, time_ns: int, length: int, packet_bytes: int) -> Captured:
    source, destination = packet[12:16], packet[16:20]
    ports = struct.unpack_from(">HH", packet, 20)
    sequence, acknowledgement = struct.unpack_from(">II", packet, 24)
    is_data = length == packet_bytes
    assert (is_data and ports[1] == 80) or (length == HEADERS and ports[0] == 80)
    sender = source if is_data else destination
    offset = sequence if is_data else acknowledgement
    number, rest = divmod(offset - 1, packet_bytes - HEADERS)
    assert rest == 0
    return Captured(
        time_ns=time_ns,
        flow=int.from_bytes(sender[1:]) - 1,
        connection=ports[0 if is_data else 1] - 1024,
        number=number + 1,
        is_data=is_data,
        length=length,
        header=packet,
    )
