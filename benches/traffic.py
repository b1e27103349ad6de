"""Captures made on the spot, to read for speed: connections that all do the same, one after the other.

Each is a transfer with a fixed window, captured at its sender: a delayed acknowledgement for two
packets, a loss now and then, repaired after three duplicates, timestamps in every segment. The connections
take turns in random order, which is hardest for who reads them, and a turn is three packets: an
acknowledgement and the two that it lets go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

SEGMENT = 1448
WINDOW = 20
"""Packets in flight."""
ROUND_TRIP_S = 0.1
CYCLE = 100
"""Data packets, of which one is lost."""
SNAPLEN = 96
MAGIC_NANOSECONDS = 0xA1B23C4D
ETHERNET = 1
BLOCK = 1 << 17
"""Packets made at a time."""
START_S = 1_700_000_000

RECORD = np.dtype(
    [
        ("second", "<u4"), ("nanosecond", "<u4"), ("kept", "<u4"), ("length", "<u4"),
        ("ethernet", "V12"), ("kind", ">u2"),
        ("version", "u1"), ("service", "u1"), ("ip_length", ">u2"), ("identification", ">u2"),
        ("fragment", ">u2"), ("ttl", "u1"), ("protocol", "u1"), ("ip_sum", ">u2"),
        ("source", ">u4"), ("destination", ">u4"),
        ("source_port", ">u2"), ("destination_port", ">u2"), ("sequence", ">u4"),
        ("acknowledgement", ">u4"), ("offset", "u1"), ("flags", "u1"), ("window", ">u2"),
        ("sum", ">u2"), ("urgent", ">u2"),
        ("option", ">u4"), ("value", ">u4"), ("echo", ">u4"), ("rest", f"V{SNAPLEN - 66}"),
    ]
)  # fmt: skip
TIMESTAMPS = 0x0101080A
SYN_OPTIONS = bytes([2, 4, 5, 0xB4, 3, 3, 7, 1])
"""What a SYN has besides timestamps: MSS 1460, window scale 7."""
HEADERS = 66
"""Ethernet, IP and TCP with timestamps."""
SYN, ACK = 0x02, 0x10


@dataclass(frozen=True, slots=True)
class Script:
    """What a connection sends, packet by packet: the beginning once, then the cycle for ever."""

    from_sender: npt.NDArray[np.bool_]
    packet: npt.NDArray[np.int64]
    """Number of a data packet; of an acknowledgement, of the packet that it waits for."""
    age: npt.NDArray[np.int64]
    """Packets since the one was sent whose timestamp this one echoes."""
    first: int
    """Where the cycle begins; it ends where the script ends, ``CYCLE`` packets later."""

    def at(self, step: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], ...]:
        """Return the place in the script of steps of a connection, and packets to add."""
        length = len(self.packet) - self.first
        cycle = np.maximum(step - self.first, 0) // length
        return step - cycle * length, cycle * CYCLE


class Transfer:
    """A sender with a fixed window and its receiver, no time passing but in packets."""

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
        """Let the oldest packet under way arrive, or be lost."""
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
        """Send an acknowledgement, and let it arrive."""
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
    """Play a transfer until what it does repeats itself."""
    transfer = Transfer()
    transfer.fill()
    starts = []
    for cycle in (2, 3):
        while transfer.acknowledged < cycle * CYCLE:
            transfer.deliver()
        starts.append(len(transfer.packets))
    from_sender, packet, age = zip(*transfer.packets[: starts[1]], strict=True)
    return Script(np.array(from_sender), np.array(packet), np.array(age), starts[0])


def capture(packets: int, connections: int, turn: int = 3) -> Iterator[bytes]:
    """Yield a capture in nanosecond pcap, in parts; ``turn`` packets of a connection at a time."""
    header = np.array([MAGIC_NANOSECONDS, 4 << 16 | 2, 0, 0, SNAPLEN, ETHERNET], "<u4")
    yield header.tobytes()
    played = script()
    turn_s = ROUND_TRIP_S / (1.5 * WINDOW)
    order = Turns(connections, turn)
    for start in range(0, packets, BLOCK):
        numbers = np.arange(start, min(start + BLOCK, packets))
        connection, step = order.at(numbers)
        yield records(played, numbers * (turn_s / connections), connection, step, turn_s)


class Turns:
    """Which connection has its turn: each once, in random order, then all again."""

    def __init__(self, connections: int, packets: int) -> None:
        self.packets = packets
        self.orders = np.array(
            [np.random.default_rng(seed).permutation(connections) for seed in range(8)]
        )

    def at(self, numbers: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], ...]:
        """Return the connection of each packet, and which of its packets it is."""
        turn, within = np.divmod(numbers, self.packets)
        lap, place = np.divmod(turn, self.orders.shape[1])
        return self.orders[lap % len(self.orders), place], lap * self.packets + within


HANDSHAKE = 3


def records(
    played: Script,
    time_s: npt.NDArray[np.float64],
    connection: npt.NDArray[np.int64],
    step: npt.NDArray[np.int64],
    turn_s: float,
) -> bytes:
    """Return the records of packets, one after the other; turns come ``turn_s`` apart."""
    place, more = played.at(np.maximum(step - HANDSHAKE, 0))
    opening = step < HANDSHAKE
    from_sender = np.where(opening, step != 1, played.from_sender[place])
    number = np.where(opening, 0, played.packet[place] + more)
    age = np.where(opening, 1, played.age[place])
    syn = opening & (step < HANDSHAKE - 1)
    data = from_sender & ~opening

    made = np.zeros(len(step), RECORD)
    length = HEADERS + SEGMENT * data
    second = np.floor(time_s).astype(np.int64)
    made["second"] = START_S + second
    made["nanosecond"] = ((time_s - second) * 1e9).astype(np.int64)
    made["kept"] = np.minimum(length, SNAPLEN)
    made["length"] = length
    made["kind"], made["version"], made["ttl"], made["protocol"] = 0x0800, 0x45, 64, 6
    made["ip_length"] = length - 14
    made["identification"] = step & 0xFFFF
    client, server = 0x0A000000 + connection // 50_000, 0x0A800001
    made["source"] = np.where(from_sender, client, server)
    made["destination"] = np.where(from_sender, server, client)
    port = 1024 + connection % 50_000
    made["source_port"] = np.where(from_sender, port, 80)
    made["destination_port"] = np.where(from_sender, 80, port)
    begun = np.where(syn, 0, 1 + SEGMENT * number)
    made["sequence"] = np.where(data, begun, ~syn) & 0xFFFFFFFF
    made["acknowledgement"] = np.where(from_sender, step > 0, begun + (step == 1)) & 0xFFFFFFFF
    made["offset"] = 8 << 4
    made["flags"] = SYN * syn + ACK * (step > 0)
    made["window"] = 65_535
    made["option"] = TIMESTAMPS
    made["value"], made["echo"] = ticks(step, turn_s), ticks(step - age, turn_s) * (step > 0)
    rows = made.view(np.uint8).reshape(len(step), RECORD.itemsize)
    keep = np.arange(RECORD.itemsize) < 16 + made["kept"].astype(np.int64)[:, None]
    return rows[keep].tobytes()


def ticks(step: npt.NDArray[np.int64], turn_s: float) -> npt.NDArray[np.int64]:
    """Return the timestamp of a step, in milliseconds."""
    return 1000 + np.floor(step * (1000 * turn_s)).astype(np.int64)
