"""Captures written segment by segment: raw IPv4 in pcap. Times are milliseconds."""

import struct
from dataclasses import dataclass, field

SYN, FIN, RST, ACK = 0x02, 0x01, 0x04, 0x10
ECE, CWR = 0x40, 0x80
MSS = 1460
_RAW_IP = 101


@dataclass
class Written:
    """Frames of a capture, in any order."""

    frames: list[tuple[float, bytes]] = field(default_factory=list)

    def to_bytes(self) -> bytes:
        """Return the pcap file."""
        head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, _RAW_IP)
        body = b""
        for ms, frame in sorted(self.frames, key=lambda item: item[0]):
            us = 1_000_000_000 + round(ms * 1e3)
            size = len(frame)
            body += struct.pack("<IIII", us // 1_000_000, us % 1_000_000, size, size) + frame
        return head + body


@dataclass
class Connection:
    """A connection from 10.0.0.1:``port`` to 10.0.0.2:``server_port``, as a tap sees it.

    ``away`` are the round trips between the tap and the client, and the server.
    """

    written: Written
    port: int
    away: tuple[float, float] = (0.0, 30.0)
    server_port: int = 80
    numbers: list[int] = field(default_factory=lambda: [1000, 5000])

    def open(self, ms: float) -> float:
        """Write the handshake, and return its end."""
        answered = ms + self.away[1]
        self.send(ms, 0, SYN)
        self.send(answered, 1, SYN | ACK)
        self.send(answered + self.away[0], 0, ACK)
        return answered + self.away[0]

    def send(
        self,
        ms: float,
        end: int,
        flags: int = ACK,
        size: int = 0,
        at: int | None = None,
        *,
        window: int = 60000,
    ) -> None:
        """Write a segment of client (0) or server (1), with new data or with number ``at``."""
        new = at is None
        number = self.numbers[end] if at is None else at
        ports = (self.port, self.server_port) if end == 0 else (self.server_port, self.port)
        options = struct.pack(">BBH", 2, 4, MSS) if flags & SYN else b""
        acknowledged = self.numbers[1 - end] if flags & ACK else 0
        words = (5 + len(options) // 4) << 4
        tcp = struct.pack(">HHIIBBHHH", *ports, number, acknowledged, words, flags, window, 0, 0)
        hosts = (b"\x0a\0\0\1", b"\x0a\0\0\2") if end == 0 else (b"\x0a\0\0\2", b"\x0a\0\0\1")
        whole = 20 + len(tcp) + len(options) + size
        head = struct.pack(">BBHHHBBH", 0x45, 0, whole, 0, 0x4000, 64, 6, 0)
        frame = head + hosts[0] + hosts[1] + tcp + options + bytes(size)
        self.written.frames.append((ms, frame))
        if new:
            self.numbers[end] += size + bool(flags & (SYN | FIN))

    def request(self, ms: float, *, server_ms: float, segments: int = 3, size: int = 200) -> float:
        """Write a request and its response, and return when the response is complete."""
        self.send(ms, 0, size=size)
        answered = ms + self.away[1] + server_ms
        for _ in range(segments - 1):
            self.send(answered, 1, size=MSS)
        self.send(answered, 1, size=100)
        self.send(answered + self.away[0], 0)
        return answered + self.away[0]
