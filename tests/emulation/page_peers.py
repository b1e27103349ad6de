"""Pages in headless Chromium over the emulated link, beside the simulation.

Prints a table: ``PYTHONPATH=tests python -m emulation.page_peers [LOADS [PATHS]]``. The server of
HTTP/1.1 is ``page_peer.py``; Chromium opens six connections without TLS.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tcpcast
from tcpcast.scenario import Scenario
from tcpcast.units import parse_duration

from emulation.page_peer import image_places, split

PEER = Path(__file__).with_name("page_peer.py")
PAGES = [
    (1, 50_000),
    (3, 100_000),
    (8, 200_000),
    (15, 300_000),
    (25, 500_000),
    (40, 800_000),
    (60, 1_200_000),
    (80, 2_000_000),
    (120, 3_500_000),
    (150, 5_000_000),
]
"""Objects and bytes of each page."""


@dataclass(frozen=True, slots=True)
class LinkPath:
    """A path of the emulated link."""

    rtt: str
    rate: str
    buffer: str
    loss: str = "0%"


PATHS = [
    LinkPath("20ms", "10mbit", "100pkt"),
    LinkPath("60ms", "10mbit", "100pkt"),
    LinkPath("60ms", "5mbit", "40pkt"),
    LinkPath("100ms", "20mbit", "200pkt"),
    LinkPath("150ms", "4mbit", "100pkt"),
    LinkPath("60ms", "10mbit", "100pkt", "1%"),
]


def measure(path: LinkPath, loads: int) -> dict[str, list[list[float]]]:
    """Return the times of the loads of each page in milliseconds."""
    urls = ",".join(f"/{objects}/{size}" for objects, size in PAGES)
    with tempfile.TemporaryDirectory() as folder:
        times = Path(folder) / "times.json"
        command = [
            *(sys.executable, "-m", "tcpcast", "link", "--rtt", path.rtt, "--rate", path.rate),
            *("--buffer", path.buffer, "--loss", path.loss, "--sender", "far"),
            *("--server-command", f"{sys.executable} {PEER} server", "--"),
            f"sleep 1; {sys.executable} {PEER} browse {urls} {loads} > {times}",
        ]
        done = subprocess.run(command, capture_output=True, check=False, timeout=1200, text=True)
        if not times.exists() or not times.read_text(encoding="utf-8"):
            raise RuntimeError(f"the link ended with status {done.returncode}: {done.stderr}")
        found: dict[str, list[list[float]]] = json.loads(times.read_text(encoding="utf-8"))
        return found


def simulate(path: LinkPath, objects: int, size: int) -> tuple[float, float]:
    """Return the median simulated times of the page and of the first byte in milliseconds.

    They begin with the first request, after the handshake of TCP.
    """
    sizes = split(objects, size)
    page: list[dict[str, Any]] = [{"name": "document", "size": f"{sizes[0]}B", "request": "400B"}]
    page += [
        {"name": f"image{n}", "size": f"{bytes_}B", "request": "330B", "found": place / sizes[0]}
        for n, (bytes_, place) in enumerate(
            zip(sizes[1:], image_places(objects, sizes[0]), strict=True)
        )
    ]
    bottleneck = {"rate": path.rate, "buffer": path.buffer, "loss": path.loss}
    tables = {
        "network": {"rtt": path.rtt, "bottleneck": bottleneck},
        "traffic": {"kind": "page", "sources": 1, "http": "1.1", "objects": page, "pause": "2s"},
        "tcp": {"stack": "linux-cubic", "handshake": "tcp", "socket_buffers": "linux-6.18"},
        "run": {"duration": "300s", "warmup": "0s", "seed": 1},
    }
    (answer,) = tcpcast.run(Scenario.from_dict(tables), ["packet"])
    names = ("page_time_p50_s", "first_byte_p50_s")
    handshake_s = float(parse_duration(path.rtt))
    page_ms, first_ms = (1000 * (answer.metrics[name].value - handshake_s) for name in names)
    return page_ms, first_ms


def main(loads: int, paths: int) -> None:
    """Print a row for each path and page, and the errors over all of them."""
    print("| path | page | Chromium, ms | simulation, ms | error | first byte, ms |")
    print("| --- | --- | --- | --- | --- | --- |")
    errors = []
    for path in PATHS[:paths]:
        measured = measure(path, loads)
        for objects, size in PAGES:
            times = measured[f"/{objects}/{size}"]
            real = statistics.median(each[0] for each in times)
            first = statistics.median(each[1] for each in times)
            page_ms, first_ms = simulate(path, objects, size)
            errors.append(page_ms / real - 1)
            where = f"{path.rtt}, {path.rate}, {path.buffer}, {path.loss}"
            print(
                f"| {where} | {objects} objects, {size // 1000} kB | {real:,.0f} | "
                f"{page_ms:,.0f} | "
                f"{100 * errors[-1]:+.1f} % | {first:,.0f} and {first_ms:,.0f} |",
                flush=True,
            )
    sizes = sorted(abs(error) for error in errors)
    print(
        f"\n{len(errors)} cells: the median error is {100 * statistics.median(sizes):.1f} %, "
        f"the largest {100 * sizes[-1]:.1f} %, the median signed error "
        f"{100 * statistics.median(errors):+.1f} %"
    )


if __name__ == "__main__":
    counts = [int(argument) for argument in sys.argv[1:]]
    main(*counts, *(5, len(PATHS))[len(counts) :])
