"""Pages in headless Chromium over the emulated link, beside the simulation.

Prints tables: ``PYTHONPATH=tests python -m emulation.page_peers [HTTP [LOADS [PATHS [PAGES]]]]``.
PATHS are numbers of ``PATHS``, such as 0,2, and PAGES are numbers of objects, such as 15,25. The
server is hypercorn (``page_peer.py``), over HTTP/1.1 without TLS, HTTP/2 or HTTP/3. The simulation
has no model of Chromium's own work: the time from the first byte of the document to the request for
the first image is measured with each load. Less the simulated time in which the tag of this image
arrives, it is the delay of images in the simulation.

An error is outside the interval if the simulated median is outside the 95 % interval of the
measured one.

With curl, plain or chromium instead of HTTP, it prints the mean time of one page over HTTP/2 with
1 % loss, with 95 % intervals. curl and plain do no work of a browser.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import scipy.stats
import tcpcast
from tcpcast.answer import Metric
from tcpcast.quantity.units import parse_duration, parse_rate
from tcpcast.scenario import Scenario

from emulation.certificate import write_certificate
from emulation.page_peer import PLAIN_DELAY_MS, image_places, split
from emulation.quic_peers import interval

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
EVERY_TENTH_ACKED_FROM_BYTES = 800_000
"""Bytes of pages over HTTP/3 that are simulated with Chromium's acks after its first 100 packets:
every 10 packets, or after a quarter of the RTT, at most 25 ms. Those packets are few then."""
MAX_ACK_DELAY_S = 0.025
MEDIAN_DURATION, MEAN_DURATION = "3000s", "30000s"
"""Simulated time with random loss. Rare long pages decide the mean."""
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

TIMES = ("page", "first_image")
Load = dict[str, float]
"""Times of a load of a page in milliseconds."""


def varies(path: LinkPath, loads: list[Load]) -> bool:
    """Return whether the loads of a page vary."""
    times = [load["page"] for load in loads]
    return path.loss != "0%" or max(times) > MAX_VARIATION * min(times)


def typical(path: LinkPath, loads: list[Load]) -> Load:
    """Return the shortest load, as a busy machine only adds time; medians if loads vary."""
    if varies(path, loads):
        return {time: statistics.median(load[time] for load in loads) for time in TIMES}
    return min(loads, key=lambda load: load["page"])


def median_interval(times: list[float]) -> tuple[float, float]:
    """Return the 95 % interval of the median: order statistics by the binomial distribution."""
    ordered, count = sorted(times), len(times)
    outside = int(scipy.stats.binom.ppf(0.025, count, 0.5))
    return ordered[max(0, outside - 1)], ordered[min(count - 1, count - outside)]


def measure(http: str, path: LinkPath, loads: int, urls: list[str]) -> dict[str, list[Load]]:
    """Return the times of the loads of each page over the link, more of those that vary."""
    found = measure_pages(http, path, loads, urls, seed=1)
    varying = [url for url in found if varies(path, found[url])]
    if varying:
        further = measure_pages(http, path, MORE_LOADS * loads, varying, seed=2)
        found |= {url: found[url] + further[url] for url in varying}
    return found


def measure_pages(
    http: str, path: LinkPath, loads: int, urls: list[str], *, seed: int, client: str = "chromium"
) -> dict[str, list[Load]]:
    """Return the times of the loads of some pages over the link.

    The seed of the link decides which of its packets are lost: loads with the same one are alike.
    """
    with tempfile.TemporaryDirectory() as folder:
        write_certificate(Path(folder))
        times, peer = Path(folder) / "times.json", " ".join(PEER)
        command = [
            *(sys.executable, "-m", "tcpcast", "link", "--rtt", path.rtt, "--rate", path.rate),
            *("--buffer", path.buffer, "--loss", path.loss, "--sender", "far"),
            *("--seed", str(seed)),
            *("--server-command", f"{peer} server {http} {folder}", "--"),
            f"sleep 2; {peer} {client} {http} {folder} {','.join(urls)} {loads} > {times}",
        ]
        folders = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
        done = subprocess.run(
            command, env=folders, capture_output=True, check=False, timeout=3600, text=True
        )
        if not times.exists() or not times.read_text(encoding="utf-8"):
            raise RuntimeError(f"the link ended with status {done.returncode}: {done.stderr}")
        found: dict[str, list[Load]] = json.loads(times.read_text(encoding="utf-8"))
        return found


def simulate(http: str, path: LinkPath, page: tuple[int, int], work_ms: float) -> float:
    """Return the median simulated time of the page in milliseconds, from the first request.

    Each image is requested ``work_ms`` after its tag.
    """
    tcp = _tcp_of_page(http, path, page[1])
    listed = _objects(http, page, work_ms)
    page_s = _simulate_metric(http, path, listed, "page_time_p50_s", tcp).value
    return 1000 * (page_s - _handshake_s(http, path, "p50"))


def work_of_load(http: str, path: LinkPath, page: tuple[int, int], load: Load) -> float:
    """Return the client's own time between the first tag and the request for its image, in ms.

    The measured time to the first image contains the time in which its tag arrives.
    """
    places = image_places(page[0], split(*page)[0])
    arrival_ms = _time_to_byte(http, path, page, places[0]) if places else 0
    return max(0, load["first_image"] - arrival_ms)


def _objects(http: str, page: tuple[int, int], work_ms: float) -> list[dict[str, Any]]:
    """Return the objects of the scenario's page."""
    sizes = split(*page)
    places = image_places(page[0], sizes[0])
    requests = REQUEST_BYTES[http]
    images = [
        {
            "name": f"image{n}",
            "size": f"{bytes_}B",
            "request": f"{requests[1]}B",
            "found": place / sizes[0],
            "delay": f"{work_ms:.3f}ms",
        }
        for n, (bytes_, place) in enumerate(zip(sizes[1:], places, strict=True))
    ]
    document = {"name": "document", "size": f"{sizes[0]}B", "request": f"{requests[0]}B"}
    return [document, *images]


def _handshake_s(http: str, path: LinkPath, statistic: str) -> float:
    """Return the simulated time of the handshake: p50 or mean."""
    # A document of one byte takes the handshake and a round trip of small packets.
    small = [{"name": "document", "size": "1B", "request": "1B"}]
    small_s = _simulate_metric(http, path, small, f"page_time_{statistic}_s").value
    packet_s = 8 * 1500 / float(parse_rate(path.rate))
    return small_s - (float(parse_duration(path.rtt)) - packet_s)


def _tcp_of_page(http: str, path: LinkPath, size: int) -> dict[str, Any]:
    if http != "3" or size < EVERY_TENTH_ACKED_FROM_BYTES:
        return {}
    delay_s = min(float(parse_duration(path.rtt)) / 4, MAX_ACK_DELAY_S)
    return {"ack_packets": 10, "ack_timeout": f"{delay_s}s"}


def _time_to_byte(http: str, path: LinkPath, page: tuple[int, int], place: int) -> float:
    """Return the simulated time from the first byte of a document to another, in milliseconds."""
    start = [_objects(http, page, 0)[0] | {"size": f"{place}B"}]
    times_s = [
        _simulate_metric(http, path, start, f"{time}_p50_s").value
        for time in ("page_time", "first_byte")
    ]
    return 1000 * (times_s[0] - times_s[1])


def _simulate_metric(
    http: str,
    path: LinkPath,
    objects: list[dict[str, Any]],
    metric: str,
    tcp: dict[str, Any] | None = None,
) -> Metric:
    duration = MEAN_DURATION if "_mean_" in metric else MEDIAN_DURATION
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
        "tcp": TCP_BY_HTTP[http] | (tcp or {}),
        "run": {
            "duration": "300s" if path.loss == "0%" else duration,
            "warmup": "0s",
            "seed": 1,
        },
    }
    (answer,) = tcpcast.run(Scenario.from_dict(tables), ["packet"])
    return answer.metrics[metric]


@dataclass(frozen=True, slots=True)
class Compared:
    """Error of the simulated time of a page, and whether the interval of the loads excludes it."""

    error: float
    is_outside: bool


def compare(path: LinkPath, loads: list[Load], simulated: float) -> Compared:
    """Compare the simulated time of a page with its loads."""
    times = [load["page"] for load in loads]
    low, high = median_interval(times)
    is_inside = varies(path, loads) and low <= simulated <= high
    return Compared(simulated / typical(path, loads)["page"] - 1, not is_inside)


def summary(compared: list[Compared]) -> str:
    """Return the median and the largest absolute error, and the median error with its sign.

    A third number is the largest error outside the interval of the loads.
    """
    errors = [each.error for each in compared]
    outside = max((abs(each.error) for each in compared if each.is_outside), default=0.0)
    sizes = sorted(abs(error) for error in errors)
    shares = (statistics.median(sizes), sizes[-1], outside)
    absolute = " | ".join(f"{100 * share:.1f} %" for share in shares)
    return f"{absolute} | {100 * statistics.median(errors):+.1f} %"


ALL_PATHS = ",".join(map(str, range(len(PATHS))))


ALL_PAGES = ",".join(str(objects) for objects, _ in PAGES)
MEAN_PAGES = {"curl": (1, 800_000), "plain": (40, 800_000), "chromium": (40, 800_000)}
"""Page by client, for means. curl requests no images."""
MEAN_PATH = PATHS[2]


def missing_program(client: str) -> str | None:
    """Return a program or package that is not installed, of those that a client needs."""
    programs = {"curl": ["curl"], "plain": [], "chromium": ["chromium", "chromium-browser"]}[client]
    if programs and not any(map(shutil.which, programs)):
        return programs[0]
    return next((name for name in ("hypercorn", "h2") if find_spec(name) is None), None)


def print_means(client: str, loads: int) -> None:
    """Print means with half-widths of 95 % intervals, and the median time of the middle request."""
    missing = missing_program(client)
    if missing:
        sys.exit(f"{missing} is not installed; run `make peers`")
    page, path = MEAN_PAGES[client], MEAN_PATH
    objects, size = page
    url = f"/{objects}/{size}"
    found = measure_pages("2", path, loads, [url], seed=1, client=client)[url]
    times_s = [load["page"] / 1000 for load in found]
    work_ms: float = PLAIN_DELAY_MS
    if client == "chromium":
        work_ms = work_of_load("2", path, page, typical(path, found))
    metric = _simulate_metric("2", path, _objects("2", page, work_ms), "page_time_mean_s")
    if metric.low is None or metric.high is None:
        raise RuntimeError("the simulation is too short for an interval")
    simulated_s = metric.value - _handshake_s("2", path, "mean")
    half_s = (metric.high - metric.low) / 2
    print(f"{client}: {loads} loads of {objects} objects, {size // 1000} kB, over HTTP/2")
    print(f"mean: {statistics.fmean(times_s):.2f} ± {interval(times_s):.2f} s")
    print(f"simulated: {simulated_s:.2f} ± {half_s:.2f} s")
    if objects > 1:
        middle_ms = statistics.median(load["middle_image"] for load in found)
        print(f"half of the images requested: {middle_ms:.0f} ms after the first byte")


def main(
    http: str = "1.1", loads: str = "3", paths: str = ALL_PATHS, pages: str = ALL_PAGES
) -> None:
    """Print a row for each path and page, and a table of the errors, or the means of a client."""
    if http in MEAN_PAGES:
        print_means(http, int(loads))
        return
    if http not in TCP_BY_HTTP:
        sys.exit(f"{http} must be one of {', '.join([*TCP_BY_HTTP, *MEAN_PAGES])}")
    if not set(pages.split(",")) <= set(ALL_PAGES.split(",")):
        sys.exit(f"no page has {pages} objects; use numbers of {ALL_PAGES}")
    chosen = [page for page in PAGES if str(page[0]) in pages.split(",")]
    urls = [f"/{objects}/{size}" for objects, size in chosen]
    print(f"HTTP/{http}, {loads} loads of each page\n")
    titles = ["path", "page", "first image", "Chromium", "interval", "simulation", "error", "busy"]
    print(f"| {' | '.join(titles)} |\n|{' --- |' * len(titles)}")
    rows, every = [], []
    for path in (PATHS[int(number)] for number in paths.split(",")):
        measured = measure(http, path, int(loads), urls)
        busy, errors = os.getloadavg()[0], list[Compared]()
        where = f"{path.rtt}, {path.rate}, {path.buffer}, {path.loss}"
        for page in chosen:
            objects, size = page
            found = measured[f"/{objects}/{size}"]
            load = typical(path, found)
            simulated = simulate(http, path, page, work_of_load(http, path, page, load))
            errors.append(compare(path, found, simulated))
            low, high = median_interval([each["page"] for each in found])
            cells = [
                *(f"{number:,.0f}" for number in (load["first_image"], load["page"])),
                f"{low:,.0f} to {high:,.0f}" if varies(path, found) else "",
                f"{simulated:,.0f} ms",
                f"{100 * errors[-1].error:+.1f} %",
            ]
            print(
                f"| {where} | {objects} objects, {size // 1000} kB | {' | '.join(cells)} | "
                f"{busy:.1f} |",
                flush=True,
            )
        rows.append(f"| {where} | {summary(errors)} |")
        every += errors
    titles = ["path", "median error", "largest", "largest outside interval", "median with sign"]
    print(f"\n| {' | '.join(titles)} |\n|{' --- |' * len(titles)}")
    print("\n".join([*rows, f"| all {len(every)} | {summary(every)} |"]))


if __name__ == "__main__":
    main(*sys.argv[1:])
