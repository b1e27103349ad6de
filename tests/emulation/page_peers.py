"""Pages in headless Chromium over the emulated link, beside the simulation.

Prints a table: ``PYTHONPATH=tests python -m emulation.page_peers [HTTP [LOADS [PATHS]]]``. The
server is hypercorn (``page_peer.py``), over HTTP/1.1 without TLS, HTTP/2 or HTTP/3. The simulation
has no model of Chromium's own work: the time from the first byte of the document to the request for
the first image is measured with each load, and is the delay of images in the simulation.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tcpcast
from tcpcast.scenario import Scenario
from tcpcast.units import parse_duration, parse_rate

from emulation.certificate import write_certificate
from emulation.page_peer import image_places, split

PEER = [sys.executable, "-m", "emulation.page_peer"]
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
URLS = [f"/{objects}/{size}" for objects, size in PAGES]
TCP_BY_HTTP: dict[str, dict[str, str]] = {
    "1.1": {"stack": "linux-cubic", "handshake": "tcp", "socket_buffers": "linux-6.18"},
    "2": {
        "stack": "linux-cubic",
        "handshake": "tls13",
        "certificate": "500B",
        "socket_buffers": "linux-6.18",
    },
    "3": {"stack": "aioquic", "certificate": "500B"},
}
"""TCP or QUIC of the server by version of HTTP; its certificate signs itself."""
REQUEST_BYTES = {"1.1": (400, 330), "2": (350, 90), "3": (350, 90)}
"""Bytes of the requests for the document and for an image, with compressed headers after 1.1."""


@dataclass(frozen=True, slots=True)
class LinkPath:
    """A path of the emulated link."""

    rtt: str
    rate: str
    buffer: str
    loss: str = "0%"


PATHS = [
    LinkPath("60ms", "10mbit", "100pkt"),
    LinkPath("150ms", "4mbit", "100pkt"),
    LinkPath("60ms", "10mbit", "100pkt", "1%"),
    LinkPath("100ms", "20mbit", "200pkt"),
    LinkPath("40ms", "2mbit", "50pkt"),
    LinkPath("60ms", "5mbit", "40pkt"),
    LinkPath("300ms", "8mbit", "200pkt"),
    LinkPath("20ms", "10mbit", "100pkt"),
]


MAX_VARIATION = 1.25
"""Ratio of the longest load to the shortest, above which losses decide, or the busy machine."""
MORE_LOADS = 4
"""Further loads of a page whose loads vary, per load."""

Load = dict[str, float]
"""Times of a load of a page in milliseconds."""


def varies(path: LinkPath, loads: list[Load]) -> bool:
    """Return whether the loads of a page vary."""
    times = [load["page"] for load in loads]
    return path.loss != "0%" or max(times) > MAX_VARIATION * min(times)


def typical(path: LinkPath, loads: list[Load]) -> Load:
    """Return the shortest load, as a busy machine only adds time; the median if loads vary."""
    ordered = sorted(loads, key=lambda load: load["page"])
    return ordered[len(ordered) // 2 if varies(path, loads) else 0]


def measure(http: str, path: LinkPath, loads: int) -> dict[str, list[Load]]:
    """Return the times of the loads of each page over the link, more of those that vary."""
    found = measure_pages(http, path, loads, URLS)
    varying = [url for url in found if varies(path, found[url])]
    if varying:
        further = measure_pages(http, path, MORE_LOADS * loads, varying)
        found |= {url: found[url] + further[url] for url in varying}
    return found


def measure_pages(http: str, path: LinkPath, loads: int, urls: list[str]) -> dict[str, list[Load]]:
    """Return the times of the loads of some pages over the link."""
    with tempfile.TemporaryDirectory() as folder:
        write_certificate(Path(folder))
        times, peer = Path(folder) / "times.json", " ".join(PEER)
        command = [
            *(sys.executable, "-m", "tcpcast", "link", "--rtt", path.rtt, "--rate", path.rate),
            *("--buffer", path.buffer, "--loss", path.loss, "--sender", "far"),
            *("--server-command", f"{peer} server {http} {folder}", "--"),
            f"sleep 2; {peer} browse {http} {folder} {','.join(urls)} {loads} > {times}",
        ]
        done = subprocess.run(command, capture_output=True, check=False, timeout=3600, text=True)
        if not times.exists() or not times.read_text(encoding="utf-8"):
            raise RuntimeError(f"the link ended with status {done.returncode}: {done.stderr}")
        found: dict[str, list[Load]] = json.loads(times.read_text(encoding="utf-8"))
        return found


def simulate(http: str, path: LinkPath, page: tuple[int, int], load: Load) -> float:
    """Return the median simulated time of the page in milliseconds, from the first request."""
    objects, size = page
    sizes = split(objects, size)
    requests = REQUEST_BYTES[http]
    listed: list[dict[str, Any]] = [
        {"name": "document", "size": f"{sizes[0]}B", "request": f"{requests[0]}B"}
    ]
    listed += [
        {
            "name": f"image{n}",
            "size": f"{bytes_}B",
            "request": f"{requests[1]}B",
            "found": place / sizes[0],
            "delay": f"{load['first_image']:.3f}ms",
        }
        for n, (bytes_, place) in enumerate(
            zip(sizes[1:], image_places(objects, sizes[0]), strict=True)
        )
    ]
    page_s = _simulate_metric(http, path, listed, "page_time_p50_s")
    # A document of one byte takes the handshake and a round trip of small packets.
    small = [{"name": "document", "size": "1B", "request": "1B"}]
    small_s = _simulate_metric(http, path, small, "first_byte_p50_s")
    packet_s = 8 * 1500 / float(parse_rate(path.rate))
    handshake_s = small_s - (float(parse_duration(path.rtt)) - packet_s)
    return 1000 * (page_s - handshake_s)


def _simulate_metric(
    http: str, path: LinkPath, objects: list[dict[str, Any]], metric: str
) -> float:
    bottleneck = {"rate": path.rate, "buffer": path.buffer, "loss": path.loss}
    network: dict[str, Any] = {"rtt": path.rtt, "bottleneck": bottleneck}
    if http == "3":
        network["packet"] = "1228B"
    traffic = {
        "kind": "page",
        "sources": 1,
        "http": http,
        "order": "in-turn",
        "objects": objects,
        "pause": "2s",
    }
    tables = {
        "network": network,
        "traffic": traffic,
        "tcp": TCP_BY_HTTP[http],
        "run": {
            "duration": "300s" if path.loss == "0%" else "3000s",
            "warmup": "0s",
            "seed": 1,
        },
    }
    (answer,) = tcpcast.run(Scenario.from_dict(tables), ["packet"])
    return float(answer.metrics[metric].value)


def summary(errors: list[float]) -> str:
    """Return the median and the largest absolute error, and the median error with its sign."""
    sizes = sorted(abs(error) for error in errors)
    return (
        f"{100 * statistics.median(sizes):.1f} % | {100 * sizes[-1]:.1f} % | "
        f"{100 * statistics.median(errors):+.1f} %"
    )


def main(http: str = "1.1", loads: str = "3", paths: str = str(len(PATHS))) -> None:
    """Print a row for each path and page, and a table of the errors."""
    print(f"HTTP/{http}, {loads} loads of each page\n")
    print("| path | page | first image, ms | Chromium, ms | simulation, ms | error | busy |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    rows, every = [], []
    for path in PATHS[: int(paths)]:
        measured = measure(http, path, int(loads))
        busy, errors = os.getloadavg()[0], list[float]()
        where = f"{path.rtt}, {path.rate}, {path.buffer}, {path.loss}"
        for objects, size in PAGES:
            load = typical(path, measured[f"/{objects}/{size}"])
            simulated = simulate(http, path, (objects, size), load)
            errors.append(simulated / load["page"] - 1)
            cells = [f"{number:,.0f}" for number in (load["first_image"], load["page"], simulated)]
            print(
                f"| {where} | {objects} objects, {size // 1000} kB | {' | '.join(cells)} | "
                f"{100 * errors[-1]:+.1f} % | {busy:.1f} |",
                flush=True,
            )
        rows.append(f"| {where} | {summary(errors)} |")
        every += errors
    print("\n| path | median error | largest | median with sign |\n| --- | --- | --- | --- |")
    print("\n".join([*rows, f"| all {len(every)} | {summary(every)} |"]))


if __name__ == "__main__":
    main(*sys.argv[1:])
