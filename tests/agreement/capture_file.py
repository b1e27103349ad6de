"""Reads what ``probes.pcap`` writes, from the format's definition and not from the writer."""

from __future__ import annotations

import struct
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tcpcast import _native

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


class Written:
    """The captures of a run of the native module, which writes them as it goes on."""

    def __init__(self, run: _native.Simulation, captures: int) -> None:
        self._run, self._folder = run, tempfile.TemporaryDirectory()
        self._files = [Path(self._folder.name) / str(at) for at in range(captures)]
        for at, file in enumerate(self._files):
            run.begin_capture(at, file)

    def read(self, packet_bytes: int) -> list[list[Captured]]:
        """Return the packets of each, of which none was left out."""
        assert not any(self._run.end_capture(at) for at in range(len(self._files)))
        found = [read_capture(file.read_bytes(), packet_bytes) for file in self._files]
        self._folder.cleanup()
        return found


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
