"""How fast captures are read, beside tcptrace and tshark, and in how much memory.

The captures are made here, and removed: five million packets of one connection and of 50,000, kept
to 96 bytes each. Programs read files that are in the page cache, and print what they print by
themselves to nowhere.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benches.row import Row, peak_bytes
from benches.traffic import capture, scan

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
PACKETS = 5_000_000
FEW_PACKETS = 200_000
"""For tshark."""
MANY = 50_000
ROOM = 3 << 30
"""Bytes of disk wanted before two files of half a gigabyte are written."""
SCANNED = 2_000_000
STREAM_BYTES = 10_000_000_000
STREAM_CONNECTIONS = 1000
SNAPLEN_WHOLE = 1514
ANALYSIS = ("retransmission", "fast_retransmission", "out_of_order", "duplicate_ack", "ack_rtt")
UNIT = "ns a packet"


def rows(runs: int) -> Iterator[Row]:
    """Yield speed, the peers' speed, and memory."""
    with tempfile.TemporaryDirectory() as folder:
        if shutil.disk_usage(folder).free < ROOM:
            yield Row("captures", UNIT, None, None, f"less than {ROOM >> 30} GiB free in {folder}")
            return
        one, many = Path(folder) / "one.pcap", Path(folder) / "many.pcap"
        write(one, PACKETS, 1)
        write(many, PACKETS, MANY)
        command = [*tcpcast(), "trace", str(one)]
        ours = seconds(command, min(runs, 3)) / PACKETS * 1e9
        yield from beside_tcptrace(one, ours, min(runs, 3))
        yield from beside_tshark(Path(folder), ours)
        yield from library(one, many, min(runs, 3))
    yield memory()
    yield scanned()


def write(path: Path, packets: int, connections: int) -> None:
    """Write a capture into a file."""
    with path.open("wb") as file:
        file.writelines(capture(packets=packets, connections=connections))


def beside_tcptrace(path: Path, ours: float, runs: int) -> Iterator[Row]:
    """Yield what the whole command takes, and tcptrace."""
    theirs = None
    if shutil.which("tcptrace"):
        theirs = seconds(["tcptrace", "-n", str(path)], runs) / PACKETS * 1e9
        yield Row("tcptrace", UNIT, theirs, None, rate(theirs))
    else:
        yield Row("tcptrace", UNIT, None, None, "no tcptrace here: make peers")
    yield Row("tcpcast trace, 5 M packets", UNIT, ours, theirs, rate(ours))


def library(one: Path, many: Path, runs: int) -> Iterator[Row]:
    """Yield what reading takes without Python, for one and for many connections."""
    example = build_example()
    reading = [seconds([str(example), str(path)], runs) / PACKETS * 1e9 for path in (one, many)]
    names = "its library", f"the same, {MANY:,} connections"
    for what, value in zip(names, reading, strict=True):
        yield Row(what, UNIT, value, None, rate(value))
    yield Row(f"{MANY:,} connections : one", "times as long", reading[1] / reading[0], 2.0)


def beside_tshark(folder: Path, ours: float) -> Iterator[Row]:
    """Yield what tshark takes with its analysis of TCP, and what share of it the command takes."""
    if shutil.which("tshark") is None:
        yield Row("tshark", UNIT, None, None, "no tshark here: make peers")
        return
    path = folder / "small.pcap"
    write(path, FEW_PACKETS, 1)
    fields = [word for name in ANALYSIS for word in ("-e", f"tcp.analysis.{name}")]
    command = ["tshark", "-n", "-r", str(path), "-T", "fields", *fields]
    theirs = seconds(command, 1) / FEW_PACKETS * 1e9
    yield Row("tshark", UNIT, theirs, None, f"tcp.analysis of {FEW_PACKETS:,} packets")
    yield Row("tcpcast trace : tshark", "of its time a packet", ours / theirs, 0.05)


def memory() -> Row:
    """Return the peak while ten gigabytes come in by a pipe."""
    packets = STREAM_BYTES // 990
    parts = capture(packets=packets, connections=STREAM_CONNECTIONS, snaplen=SNAPLEN_WHOLE)
    peak = peak_bytes([*tcpcast(), "trace", "-"], within(parts, STREAM_BYTES))
    note = f"{STREAM_CONNECTIONS:,} connections, packets whole"
    return Row("10 GB by a pipe", "MB", peak / 1e6, 300.0, note)


def scanned() -> Row:
    """Return the peak while a scan comes in by a pipe: flows of one packet, half of them data."""
    peak = peak_bytes([*tcpcast(), "trace", "-"], scan(SCANNED))
    return Row(
        f"{SCANNED:,} flows of one packet", "MB", peak / 1e6, 500.0, "every second with data"
    )


def within(parts: Iterator[bytes], most: int) -> Iterator[bytes]:
    """Yield parts until there are so many bytes of them."""
    sent = 0
    for part in parts:
        yield part
        sent += len(part)
        if sent >= most:
            return


def seconds(command: list[str], runs: int) -> float:
    """Return the median time that a program takes; QUIET silences our example."""
    environment = {**os.environ, "QUIET": "1"}
    taken = []
    for _ in range(runs):
        started = time.perf_counter()
        subprocess.run(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=environment, check=True,
        )  # fmt: skip
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


def tcpcast() -> list[str]:
    """Return the command as it is installed."""
    return [str(Path(sys.executable).with_name("tcpcast"))]


def build_example() -> Path:
    """Compile the reader's example and return the program."""
    subprocess.run(
        ["cargo", "build", "--quiet", "--locked", "--release", "--package", "tcpcast-trace",
         "--example", "flows"],
        cwd=ROOT, check=True,
    )  # fmt: skip
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / "release" / "examples" / "flows"


def rate(nanoseconds: float) -> str:
    """Return how many packets a second that is."""
    return f"{1e3 / nanoseconds:.2f} million packets/s"
