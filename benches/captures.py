"""Speed and memory of reading captures, compared with tcptrace and tshark.

The captures are generated and removed: five million packets of one connection and of 50,000, with
96 bytes per packet. All programs read from the page cache, and their normal output is
discarded.
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
"""Number of packets for tshark."""
MANY = 50_000
ROOM = 3 << 30
"""Minimum free disk space, in bytes, to write two files of half a gigabyte."""
SCANNED = 2_000_000
STREAM_BYTES = 10_000_000_000
STREAM_CONNECTIONS = 1000
SNAPLEN_WHOLE = 1514
ANALYSIS = ("retransmission", "fast_retransmission", "out_of_order", "duplicate_ack", "ack_rtt")
UNIT = "ns per packet"


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
        yield from against_tcptrace(one, ours, min(runs, 3))
        yield from against_tshark(Path(folder), ours)
        yield from library(one, many, min(runs, 3))
    yield memory()
    yield scanned()


def write(path: Path, packets: int, connections: int) -> None:
    """Write a capture into a file."""
    with path.open("wb") as file:
        file.writelines(capture(packets=packets, connections=connections))


def against_tcptrace(path: Path, ours: float, runs: int) -> Iterator[Row]:
    """Yield the time of the whole command, and of tcptrace."""
    theirs = None
    if shutil.which("tcptrace"):
        theirs = seconds(["tcptrace", "-n", str(path)], runs) / PACKETS * 1e9
        yield Row("tcptrace", UNIT, theirs, None, rate(theirs))
    else:
        yield Row("tcptrace", UNIT, None, None, "tcptrace is missing: make peers")
    yield Row("tcpcast trace, 5 M packets", UNIT, ours, theirs, rate(ours))


def library(one: Path, many: Path, runs: int) -> Iterator[Row]:
    """Yield the time of reading without Python, for one and for many connections."""
    example = build_example()
    reading = [seconds([str(example), str(path)], runs) / PACKETS * 1e9 for path in (one, many)]
    names = "its library", f"library, {MANY:,} connections"
    for what, value in zip(names, reading, strict=True):
        yield Row(what, UNIT, value, None, rate(value))
    yield Row(f"{MANY:,} connections : one", "ratio", reading[1] / reading[0], 2.0)


def against_tshark(folder: Path, ours: float) -> Iterator[Row]:
    """Yield the time of tshark with its TCP analysis, and the command's share of it."""
    if shutil.which("tshark") is None:
        yield Row("tshark", UNIT, None, None, "tshark is missing: make peers")
        return
    path = folder / "small.pcap"
    write(path, FEW_PACKETS, 1)
    fields = [word for name in ANALYSIS for word in ("-e", f"tcp.analysis.{name}")]
    command = ["tshark", "-n", "-r", str(path), "-T", "fields", *fields]
    theirs = seconds(command, 1) / FEW_PACKETS * 1e9
    yield Row("tshark", UNIT, theirs, None, f"tcp.analysis of {FEW_PACKETS:,} packets")
    yield Row("tcpcast trace : tshark", "ratio per packet", ours / theirs, 0.05)


def memory() -> Row:
    """Return the peak memory while reading ten gigabytes from a pipe."""
    packets = STREAM_BYTES // 990
    parts = capture(packets=packets, connections=STREAM_CONNECTIONS, snaplen=SNAPLEN_WHOLE)
    peak = peak_bytes([*tcpcast(), "trace", "-"], within(parts, STREAM_BYTES))
    note = f"{STREAM_CONNECTIONS:,} connections, complete packets"
    return Row("10 GB from a pipe", "MB", peak / 1e6, 300.0, note)


def scanned() -> Row:
    """Return the peak memory for a scan from a pipe: flows of one packet, half with data."""
    peak = peak_bytes([*tcpcast(), "trace", "-"], scan(SCANNED))
    return Row(f"{SCANNED:,} flows of one packet", "MB", peak / 1e6, 500.0, "half with data")


def within(parts: Iterator[bytes], maximum: int) -> Iterator[bytes]:
    """Yield parts until they exceed this number of bytes in total."""
    sent = 0
    for part in parts:
        yield part
        sent += len(part)
        if sent >= maximum:
            return


def seconds(command: list[str], runs: int) -> float:
    """Return the median run time of a program; QUIET silences the example."""
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
    """Return the installed command."""
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
    """Return a time per packet as packets per second."""
    return f"{1e3 / nanoseconds:.2f} million packets/s"
