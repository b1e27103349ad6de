"""Reader for files of ``probes.pcap``, written independently from the format's definition."""

import struct
import tempfile
from pathlib import Path
from typing import NamedTuple

from tcpcast import _native

NANOSECOND_MAGIC = 0xA1B23C4D
RAW_IP = 101
FILE_HEADER, RECORD_HEADER = 24, 16
HEADERS = 40
ADDRESSES_PORTS_NUMBERS = struct.Struct(">12xIIHHII8x")
RECORD_START = struct.Struct("<IIII")
SYN = 2
OFFSET_NS = 10**9
"""Added to times by captures of classic stacks whose round trips take at most 500 ms."""
ADDRESS_BITS = 0xFFFFFF
"""Bits of an address that identify the source, without the network part."""


class Captured(NamedTuple):
    """One captured packet; ``number`` counts packets from 1, like the simulator."""

    time_ns: int
    flow: int
    connection: int
    number: int
    is_data: bool
    length: int
    header: bytes


class CaptureFiles:
    """Captures of a run of the native module, which writes them during the run."""

    def __init__(self, run: _native.Simulation, captures: int) -> None:
        self._run, self._folder = run, tempfile.TemporaryDirectory()
        self._files = [Path(self._folder.name) / str(index) for index in range(captures)]
        for index, file in enumerate(self._files):
            run.begin_capture(index, file)

    def read(self, packet_bytes: int) -> list[list[Captured]]:
        """Return the packets of each capture; fail if the writer omitted any."""
        assert not any(self._run.end_capture(index) for index in range(len(self._files)))
        result = [read_capture(file.read_bytes(), packet_bytes) for file in self._files]
        self._folder.cleanup()
        return result


def read_capture(content: bytes, packet_bytes: int) -> list[Captured]:
    """Return the packets of a capture without the handshakes that the writer adds.

    Raise an error for a wrong header or a truncated record.
    """
    magic, major, minor, _, _, _, link = struct.unpack_from("<IHHiIII", content)
    assert (magic, major, minor, link) == (NANOSECOND_MAGIC, 2, 4, RAW_IP)
    result, opened, offset = [], set(), FILE_HEADER
    while offset < len(content):
        seconds, nanoseconds, captured_bytes, length = RECORD_START.unpack_from(content, offset)
        header = content[offset + RECORD_HEADER : offset + RECORD_HEADER + captured_bytes]
        offset += RECORD_HEADER + captured_bytes
        assert len(header) == captured_bytes
        if header[33] & SYN:
            continue
        assert captured_bytes == HEADERS
        time_ns = seconds * 10**9 + nanoseconds - OFFSET_NS
        packet = _read(header, time_ns, length, packet_bytes)
        if (packet.flow, packet.connection) in opened:
            result.append(packet)
        else:  # acknowledgement of the SYN-ACK
            assert not packet.is_data
            opened.add((packet.flow, packet.connection))
    return result


def _read(header: bytes, time_ns: int, length: int, packet_bytes: int) -> Captured:
    source, destination, from_port, to_port, sequence, acknowledgement = (
        ADDRESSES_PORTS_NUMBERS.unpack(header)
    )
    is_data = length == packet_bytes
    if is_data:
        assert to_port == 80
        sender, port, offset = source, from_port, sequence
    else:
        assert (length, from_port) == (HEADERS, 80)
        sender, port, offset = destination, to_port, acknowledgement
    number, rest = divmod(offset - 1, packet_bytes - HEADERS)
    assert rest == 0
    flow = (sender & ADDRESS_BITS) - 1
    return Captured(time_ns, flow, port - 1024, number + 1, is_data, length, header)
