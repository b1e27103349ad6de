"""Transfers by implementations of QUIC over the emulated link, beside the simulation.

Prints tables: ``PYTHONPATH=tests python -m emulation.quic_peers quinn|quiche|aioquic [COUNT]``.
``make peers`` installs aioquic and builds quinn and quiche.
"""

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import tcpcast
from tcpcast.quantity.units import parse_duration, parse_rate
from tcpcast.scenario import Scenario

from emulation.certificate import write_certificate

HERE = Path(__file__).parent
PROGRAMS = HERE.parents[1] / "target/peers/release"
TOLERANCE = {"quinn": 0.05, "quiche": 0.1, "aioquic": 0.1}
"""Share by which times may differ, by implementation."""
CERTIFICATE = "500B"
"""Size of the self-signed certificate of the peers, with its chain of one."""
PACKET_BYTES = 1228
"""Bytes of an IP packet of the peers, without path MTU discovery."""
BUSY = 3
"""Exit code of the link if the machine was too busy for exact times."""
SIMULATED_TRANSFERS = 400


@dataclass(frozen=True, slots=True)
class Cell:
    """A path, and the size of its transfers in bytes."""

    rate: str
    rtt: str
    buffer: str
    loss: str
    size: int

    @property
    def is_random(self) -> bool:
        """Whether the transfers differ."""
        return self.loss != "0%"


_PATHS = [
    ("100mbit", "20ms", "200pkt"),
    ("20mbit", "60ms", "100pkt"),
    ("10mbit", "200ms", "200pkt"),
]
_TRANSFERS = [
    *(("0%", size) for size in (10_000, 200_000, 2_000_000, 20_000_000)),
    *(("1%", size) for size in (200_000, 2_000_000)),
    *(("3%", 200_000), ("5%", 200_000)),
]
_SLOW_PATHS = [("2mbit", rtt, "50pkt") for rtt in ("40ms", "100ms", "200ms")]
_SLOW_TRANSFERS = list(product(("0%", "1%", "3%"), (50_000, 200_000)))
_CELLS = [Cell(*path, *transfer) for path in _PATHS for transfer in _TRANSFERS]
CELLS = {
    "quinn": _CELLS,
    "quiche": _CELLS,
    # Python is too slow for higher rates.
    "aioquic": [Cell(*path, *transfer) for path in _SLOW_PATHS for transfer in _SLOW_TRANSFERS],
}
"""Cells by implementation."""


@dataclass(frozen=True, slots=True)
class Packets:
    """Packets that a server sent per transfer, and shares that it declared lost and that were."""

    sent: float
    lost: float
    dropped: float

    @property
    def spurious(self) -> float:
        """Share of packets that were declared lost, and arrived."""
        return max(self.lost - self.dropped, 0)


@dataclass(frozen=True, slots=True)
class Transfers:
    """Times of transfers in seconds, and packets of the server."""

    handshake_s: Sequence[float]
    transfer_s: Sequence[float]
    total_s: Sequence[float]
    packets: Packets


def find_peer(name: str) -> list[str] | None:
    """Return the command of a peer, or None if it is not installed."""
    if name == "aioquic":
        return [sys.executable, str(HERE / "aioquic_peer.py")] if find_spec(name) else None
    program = PROGRAMS / f"{name}-peer"
    return [str(program)] if program.exists() else None


def measure(peer: list[str], cell: Cell, count: int, handshake: str = "tls13") -> Transfers:
    """Return the times of transfers over the emulated link."""
    with tempfile.TemporaryDirectory() as folder:
        write_certificate(Path(folder))
        times, packets, link = (Path(folder) / name for name in ("times", "packets", "link.json"))
        program = " ".join(peer)
        # The server of aioquic ends a connection three probe timeouts after the client.
        command = [
            *(sys.executable, "-m", "tcpcast", "link", "--rtt", cell.rtt, "--rate", cell.rate),
            *("--buffer", cell.buffer, "--loss", cell.loss, "--sender", "far"),
            *("--out", str(link)),
            *("--server-command", f"{program} server {folder}", "--"),
            f"sleep 1.5; {program} client {folder} {handshake} {cell.size} {count} > {times}; "
            "sleep 3",
        ]
        done = subprocess.run(command, capture_output=True, check=False, timeout=3600, text=True)
        if done.returncode not in (0, BUSY) or not times.read_text(encoding="utf-8"):
            raise RuntimeError(f"the link ended with status {done.returncode}: {done.stderr}")
        rows = json.loads(times.read_text(encoding="utf-8"))
        times_s = {
            key: [row[key] for row in rows] for key in ("handshake_s", "transfer_s", "total_s")
        }
        lines = packets.read_text(encoding="utf-8").splitlines()
        sent, lost = np.array([[int(cell) for cell in line.split()] for line in lines]).sum(0)
        path = json.loads(link.read_text(encoding="utf-8"))["far_to_near"]
        dropped = path["full_drops"] + path["random_drops"]
        return Transfers(
            **times_s, packets=Packets(sent / len(lines), lost / sent, dropped / path["entered"])
        )


@dataclass(frozen=True, slots=True)
class Simulated:
    """Mean simulated times in seconds, and packets of the server."""

    handshake_s: float
    transfer_s: float
    total_s: float
    packets: Packets


def simulate(stack: str, cell: Cell, handshake: str = "tls13") -> Simulated:
    """Return the simulated times.

    A request takes half of a round trip of small packets. A transfer of one byte without loss takes
    the handshake and one round trip of small packets.
    """
    packet_s = 8 * PACKET_BYTES / float(parse_rate(cell.rate))
    small_rtt_s = float(parse_duration(cell.rtt)) - packet_s
    one = _simulate_metrics(stack, replace(cell, loss="0%", size=1), handshake)
    metrics = _simulate_metrics(stack, cell, handshake)
    lost = metrics["retransmit_ratio"]
    return Simulated(
        handshake_s=one["total_time_s"] - small_rtt_s,
        transfer_s=small_rtt_s / 2 + metrics["delivery_time_s"],
        total_s=metrics["total_time_s"],
        packets=Packets(metrics["mean_size_pkts"] / (1 - lost), lost, metrics["loss_ratio"]),
    )


def _simulate_metrics(stack: str, cell: Cell, handshake: str) -> dict[str, float]:
    tables: dict[str, Any] = {
        "network": {
            "rtt": cell.rtt,
            "packet": f"{PACKET_BYTES}B",
            "ack": "63B",
            "bottleneck": {"rate": cell.rate, "buffer": cell.buffer, "loss": cell.loss},
        },
        "traffic": {
            "kind": "transfers",
            "size": f"{cell.size}B",
            "count": SIMULATED_TRANSFERS if cell.is_random else 1,
        },
        "tcp": {
            "stack": stack,
            "handshake": handshake,
            **({"certificate": CERTIFICATE} if handshake == "tls13" else {}),
        },
    }
    (answer,) = tcpcast.run(Scenario.from_dict(tables), ["packet"])
    return {name: float(estimate.value) for name, estimate in answer.metrics.items()}


def interval(times: Sequence[float]) -> float:
    """Return half the 95 % confidence interval of the mean."""
    return 1.96 * float(np.std(times, ddof=1)) / math.sqrt(len(times))


def typical(cell: Cell, times: Sequence[float]) -> float:
    """Return the mean time; without random loss the shortest, as a busy machine only adds time."""
    return statistics.fmean(times) if cell.is_random else min(times)


def is_within(cell: Cell, real: Transfers, simulated: Simulated, share: float) -> bool:
    """Return True if the simulated time differs by at most a share, or the interval."""
    time, half = typical(cell, real.transfer_s), interval(real.transfer_s) if cell.is_random else 0
    return abs(simulated.transfer_s - time) <= max(share * time, half)


def packet_cells(real: Packets, simulated: Packets) -> str:
    """Return the cells of a table with the packets of a server."""
    pairs = [
        f"{pair.sent:.0f} | {100 * pair.lost:.1f} % | {100 * pair.spurious:.1f} %".split(" | ")
        for pair in (real, simulated)
    ]
    return "".join(f"{one} | {other} | " for one, other in zip(*pairs, strict=True)).rstrip()


def print_handshakes(name: str, peer: list[str], count: int) -> None:
    """Print the times of handshakes, and the time of a file with early data."""
    print("\n| RTT | handshake | simulated | 1 kB with 0-RTT | simulated | saved | simulated |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for path in dict.fromkeys((cell.rate, cell.rtt, cell.buffer) for cell in CELLS[name]):
        cell = Cell(*path, "0%", 1_000)
        full, early = (measure(peer, cell, count, h) for h in ("tls13", "tls13-0rtt"))
        expected, expected_early = (simulate(name, cell, h) for h in ("tls13", "tls13-0rtt"))
        pairs = [
            (min(full.handshake_s), expected.handshake_s),
            (min(early.total_s), expected_early.total_s),
            (min(full.total_s) - min(early.total_s), expected.total_s - expected_early.total_s),
        ]
        times = [f"{1e3 * time:.1f} ms" for pair in pairs for time in pair]
        print(f"| {cell.rtt} | {' | '.join(times)} |", flush=True)


def main(name: str, count: int) -> None:
    """Print the tables of an implementation."""
    peer = find_peer(name)
    if peer is None:
        sys.exit(f"{name} is not installed; run `make peers`")
    print("| path | loss | size | measured | simulated | difference | load |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    within, packets = 0, []
    for cell in CELLS[name]:
        # Losses of small files differ most.
        times = 4 if cell.is_random and cell.size <= 200_000 else 1
        real, simulated = measure(peer, cell, count * times), simulate(name, cell)
        within += is_within(cell, real, simulated, TOLERANCE[name])
        time, expected = typical(cell, real.transfer_s), simulated.transfer_s
        half = f" (± {1e3 * interval(real.transfer_s):.0f})" if cell.is_random else ""
        row = f"| {cell.rate}, {cell.rtt} | {cell.loss} | {cell.size // 1000} kB |"
        packets.append(f"{row} {packet_cells(real.packets, simulated.packets)}")
        print(
            f"{row} {1e3 * time:.0f} ms{half} | {1e3 * expected:.0f} ms "
            f"| {100 * (expected / time - 1):+.0f} % | {os.getloadavg()[0]:.0f} |",
            flush=True,
        )
    share = f"{100 * TOLERANCE[name]:.0f} %"
    print(f"\n{within} of {len(CELLS[name])} within {share} or the interval\n")
    columns = "".join(f" {name} | simulated |" for name in ("sent", "lost", "spurious"))
    print(f"| path | loss | size |{columns}")
    print("| --- |" + " --- |" * 8)
    print(*packets, sep="\n")
    print_handshakes(name, peer, count)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10)
