"""Generated captures for speed tests: many connections with the same traffic, interleaved.

Each connection is a transfer with a fixed window, captured at its sender: delayed acks for two
packets, rare losses that are repaired after three duplicates, timestamps in every segment. The
connections alternate in random order, the worst case for readers. A turn is three
packets: an ack and the two packets that it releases.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Iterator

Counts = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

SEGMENT = 1448
WINDOW = 20
"""Packets in flight."""
TURN_NS = 3_000_000
"""Time between two packets of a connection: about 30 fit into a round trip."""
HANDSHAKE = 3
PORTS = 50_000
CYCLE = 100
"""Data packets; one of them is lost."""
SNAPLEN = 96
MAGIC_NANOSECONDS = 0xA1B23C4D
ETHERNET = 1
BLOCK_BYTES = 1 << 24
"""Number of packets generated per part."""
START_S = 1_700_000_000
SCANNED_TOGETHER = 1 << 16
SCAN_NS = 10_000
"""Time between two packets of a scan."""
HEADERS = 66
"""Length of Ethernet, IP and TCP headers with timestamps."""

RECORD = [
    ("second", "<u4"), ("nanosecond", "<u4"), ("kept", "<u4"), ("length", "<u4"),
    ("ethernet", "V12"), ("kind", ">u2"),
    ("version", "u1"), ("service", "u1"), ("ip_length", ">u2"), ("identification", ">u2"),
    ("fragment", ">u2"), ("ttl", "u1"), ("protocol", "u1"), ("ip_sum", ">u2"),
    ("source", ">u4"), ("destination", ">u4"),
    ("source_port", ">u2"), ("destination_port", ">u2"), ("sequence", ">u4"),
    ("acknowledgement", ">u4"), ("offset", "u1"), ("flags", "u1"), ("window", ">u2"),
    ("sum", ">u2"), ("urgent", ">u2"),
    ("option", ">u4"), ("value", ">u4"), ("echo", ">u4"),
]  # fmt: skip
TIMESTAMPS = 0x0101080A
SYN, ACK = 0x02, 0x10


@dataclass(frozen=True, slots=True)
class Script:
    """Packets of a connection: an initial part once, then an endless cycle."""

    from_sender: Flags
    packet: Counts
    """Number of the data packet, or of the packet that an ack expects."""
    age: Counts
    """Number of packets since the packet whose timestamp this one echoes."""
    first: int
    """Start of the cycle; it ends at the end of the script, ``CYCLE`` packets later."""

    def at(self, step: Counts) -> tuple[Counts, Counts]:
        """Return the positions in the script of steps of a connection, and the packets to add."""
        length = len(self.packet) - self.first
        cycle = np.maximum(step - self.first, 0) // length
        return step - cycle * length, cycle * CYCLE


class Transfer:
    """A sender with a fixed window and its receiver; time is counted in packets."""

    def __init__(self) -> None:
        self.packets: list[tuple[bool, int, int]] = []
        self.under_way: list[int] = []
        self.next = self.expected = self.acknowledged = self.duplicates = self.waiting = 0
        self.held: set[int] = set()
        self.lost: set[int] = set()
        self.under_way_since: list[int] = []
        self.answered = self.recent = self.last_answer = 0

    def send(self, number: int) -> None:
        """Send a data packet."""
        self.under_way_since.append(len(self.packets))
        self.packets.append((True, number, len(self.packets) - self.last_answer))
        self.under_way.append(number)

    def fill(self) -> None:
        """Send what the window allows."""
        while self.next < self.acknowledged + WINDOW:
            self.send(self.next)
            self.next += 1

    def deliver(self) -> None:
        """Deliver or lose the oldest packet in flight."""
        number, since = self.under_way.pop(0), self.under_way_since.pop(0)
        if number % CYCLE == CYCLE // 2 and number not in self.lost:
            self.lost.add(number)
            return
        if number <= self.answered:  # RFC 7323, section 4.3
            self.recent = since
        ordered = not self.held and number == self.expected
        self.held.add(number)
        while self.expected in self.held:
            self.held.remove(self.expected)
            self.expected += 1
        self.waiting += 1
        if not ordered or self.waiting == 2:
            self.acknowledge()

    def acknowledge(self) -> None:
        """Send an ack, and deliver it."""
        self.waiting = 0
        self.answered, self.last_answer = self.expected, len(self.packets)
        self.packets.append((False, self.expected, len(self.packets) - self.recent))
        advances = self.expected > self.acknowledged
        self.duplicates = 0 if advances else self.duplicates + 1
        self.acknowledged = self.expected
        if self.duplicates == 3:
            self.send(self.expected)
        self.fill()


def script() -> Script:
    """Run a transfer until its traffic is periodic, and return its script."""
    transfer = Transfer()
    transfer.fill()
    starts = []
    for cycle in (2, 3):
        while transfer.acknowledged < cycle * CYCLE:
            transfer.deliver()
        starts.append(len(transfer.packets))
    from_sender, packet, age = zip(*transfer.packets[: starts[1]], strict=True)
    return Script(np.array(from_sender), np.array(packet), np.array(age), starts[0])


def capture(
    *, packets: int, connections: int, turn: int = 3, snaplen: int = SNAPLEN
) -> Iterator[bytes]:
    """Yield a nanosecond pcap capture in parts, with ``turn`` packets of a connection at a time."""
    header = np.array([MAGIC_NANOSECONDS, 4 << 16 | 2, 0, 0, snaplen, ETHERNET], "<u4")
    yield header.tobytes()
    writer = Writer(connections, snaplen)
    turns = Turns(connections, turn)
    block = BLOCK_BYTES // writer.record.itemsize
    for start in range(0, packets, block):
        numbers = np.arange(start, min(start + block, packets))
        yield writer.records(numbers, *turns.at(numbers))


def scan(flows: int) -> Iterator[bytes]:
    """Yield a capture of flows of one packet each; every second one carries data."""
    yield np.array([MAGIC_NANOSECONDS, 4 << 16 | 2, 0, 0, SNAPLEN, ETHERNET], "<u4").tobytes()
    record = np.dtype(RECORD)
    for start in range(0, flows, SCANNED_TOGETHER):
        number = np.arange(start, min(start + SCANNED_TOGETHER, flows))
        made = np.zeros(number.size, record)
        data = number % 2
        second, nanosecond = np.divmod(number * SCAN_NS, 1_000_000_000)
        made["second"], made["nanosecond"] = START_S + second, nanosecond
        made["kept"], made["length"] = HEADERS, HEADERS + SEGMENT * data
        made["kind"], made["version"], made["ttl"], made["protocol"] = 0x0800, 0x45, 64, 6
        made["ip_length"], made["identification"] = made["length"] - 14, number & 0xFFFF
        made["source"], made["destination"] = 0x0A000000 + number // PORTS, 0x0A800001
        made["source_port"], made["destination_port"] = 1024 + number % PORTS, 80
        made["sequence"], made["offset"], made["window"] = 1, 8 << 4, 65_535
        made["flags"] = np.where(data, ACK, SYN)
        made["option"], made["value"] = TIMESTAMPS, 1000
        yield made.tobytes()


class Turns:
    """Order of the connections: each once, in random order, then all again."""

    def __init__(self, connections: int, packets: int) -> None:
        self.packets = packets
        self.orders = np.array(
            [np.random.default_rng(seed).permutation(connections) for seed in range(8)]
        )

    def at(self, numbers: Counts) -> tuple[Counts, Counts]:
        """Return the connection of each packet, and its position within the connection."""
        turn, within = np.divmod(numbers, self.packets)
        lap, place = np.divmod(turn, self.orders.shape[1])
        return self.orders[lap % len(self.orders), place], lap * self.packets + within


class Writer:
    """Generates packets of connections that all follow one script."""

    def __init__(self, connections: int, snaplen: int) -> None:
        self.played = script()
        self.connections = connections
        self.snaplen = snaplen
        self.record = np.dtype([*RECORD, ("rest", f"V{snaplen - HEADERS}")])

    def records(self, numbers: Counts, connection: Counts, step: Counts) -> bytes:
        """Return the records of packets, concatenated."""
        made = np.zeros(len(step), self.record)
        opening = step < HANDSHAKE
        place, more = self.played.at(np.maximum(step - HANDSHAKE, 0))
        from_sender = np.where(opening, step != 1, self.played.from_sender[place])
        length = HEADERS + SEGMENT * (from_sender & ~opening)
        second, nanosecond = np.divmod(numbers * (TURN_NS // self.connections), 1_000_000_000)
        made["second"], made["nanosecond"] = START_S + second, nanosecond
        made["kept"], made["length"] = np.minimum(length, self.snaplen), length
        made["kind"], made["version"], made["ttl"], made["protocol"] = 0x0800, 0x45, 64, 6
        made["ip_length"], made["identification"] = length - 14, step & 0xFFFF
        client, server = 0x0A000000 + connection // PORTS, 0x0A800001
        made["source"] = np.where(from_sender, client, server)
        made["destination"] = np.where(from_sender, server, client)
        port = 1024 + connection % PORTS
        made["source_port"] = np.where(from_sender, port, 80)
        made["destination_port"] = np.where(from_sender, 80, port)
        number = np.where(opening, 0, self.played.packet[place] + more)
        self.say(made, step, from_sender, number)
        age = np.where(opening, 1, self.played.age[place])
        made["option"], made["value"] = TIMESTAMPS, ticks(step)
        made["echo"] = ticks(step - age) * (step > 0)
        content = made.view(np.uint8).data
        starts = np.arange(len(made)) * self.record.itemsize
        ends = starts + 16 + made["kept"]
        spans = zip(starts.tolist(), ends.tolist(), strict=True)
        return b"".join([content[start:end] for start, end in spans])

    def say(
        self, made: npt.NDArray[np.void], step: Counts, from_sender: Flags, number: Counts
    ) -> None:
        """Fill in the TCP header except for options; both sequence numbers start at 0."""
        syn = step < HANDSHAKE - 1
        byte = np.where(syn, 0, 1 + SEGMENT * number) & 0xFFFFFFFF
        made["sequence"] = np.where(from_sender, byte, ~syn)
        made["acknowledgement"] = np.where(from_sender, step > 0, byte + (step == 1))
        made["offset"], made["window"] = 8 << 4, 65_535
        made["flags"] = SYN * syn + ACK * (step > 0)


def ticks(step: Counts) -> Counts:
    """Return the timestamp of a step, in milliseconds."""
    return 1000 + step * TURN_NS // 1_000_000
