"""Speed and size of the packet engine and the formulas, compared with their targets.

``make bench`` prints a table and never fails because of a value, as machines differ. Rows that
need ns-2, valgrind, tcptrace or tshark are skipped if the program is missing. The engine runs
without Python, in the Rust example ``peers``, with the probes of ``tcpcast run``.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import tcpcast
from tcpcast.engines.formula.engset import engset_inputs
from tcpcast.models.pftk import throughput, window_chain
from tcpcast.models.short import ShortTransfer, expected_latency_s

from benches import captures, local_loop, networks, sweeps, todays
from benches.peers import ns2
from benches.row import Row, engine_figures, peak_bytes, with_stack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[1]
W134 = ("w134", "800000", "1")
LONG = ("long", "10", "100", "500", "0", "300", "1")
EVEN = ("even", "60000", "1")
"""W134 at 90 % of its load, with the same windows for every stack."""
MANY_SOURCES, FEW_SOURCES = 100_000, 1_000
MANY = ("w134", "400000", "1", str(MANY_SOURCES))
FEW = ("w134", "400000", "1", str(FEW_SOURCES))
COUNTED = (2_000, 12_000)
"""Transfers of the two runs whose difference is counted, so that the start cancels."""
QUIC_TIMES = 1.2
"""Maximum instructions of a packet of QUIC relative to one of TCP."""
EVALUATIONS = 1_000_000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5, help="runs per median")
    runs = max(1, parser.parse_args().runs)
    example = build_example()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; medians of {runs} runs\n")
    print_head()
    sections: list[Callable[[], Iterator[Row]]] = [
        lambda: speeds(example, runs),
        lambda: instructions(example),
        lambda: memory(example),
        lambda: local_loop.rows(example, runs),
        lambda: todays.rows(example, {"EVEN": EVEN, "W134": W134, "LONG": LONG}, min(runs, 3)),
        lambda: formulas(runs),
        lambda: predictions(runs),
        lambda: homes(runs),
        lambda: pages(min(runs, 3)),
        sweeps.rows,
        lambda: networks.rows(min(runs, 3)),
        lambda: peers(example, runs),
        lambda: captures.rows(runs),
    ]
    for section in sections:
        for row in section():
            print_row(row)


def build_example() -> Path:
    """Compile the engine's example and return the program."""
    subprocess.run(
        ["cargo", "build", "--quiet", "--locked", "--release", "--package", "tcpcast-sim",
         "--example", "peers"],
        cwd=ROOT, check=True,
    )  # fmt: skip
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / "release" / "examples" / "peers"


def speeds(example: Path, runs: int) -> Iterator[Row]:
    """Yield seconds per million delivered data packets, and packets per second."""
    for what, workload, target in (
        ("134 on/off sources (W134)", W134, 0.12),
        ("10 bulk flows (LONG)", LONG, 0.08),
        (f"{MANY_SOURCES:,} on/off sources", MANY, 0.35),
    ):
        seconds = seconds_per_million(example, workload, runs)
        note = f"{1 / seconds:.2f} million packets/s"
        yield Row(what, "s per million packets", seconds, target, note)


def seconds_per_million(example: Path, workload: tuple[str, ...], runs: int) -> float:
    """Return the median over several runs of the same workload."""
    return statistics.median(
        engine_figures(example, workload)["wall_per_million_s"] for _ in range(runs)
    )


def instructions(example: Path) -> Iterator[Row]:
    """Yield instructions per data packet: the difference of two run lengths under callgrind."""
    unit = "instructions per packet"
    if shutil.which("valgrind") is None:
        yield Row("under callgrind", unit, None, None, "valgrind is missing: make peers")
        return
    for workload, target in (("w134", 750.0), ("even", None)):
        classic = _instructions_a_packet(example, workload, None)
        yield Row(f"{workload.upper()} under callgrind", unit, classic, target)
        for stack, times in todays.TIMES.items():
            count = _instructions_a_packet(example, workload, stack)
            note = f"{count / classic:.1f} times a classic packet"
            yield Row(f"{stack}, same test", unit, count, times * classic, note)
            quic = _instructions_a_packet(example, workload, stack, quic=True)
            note = f"{quic / count:.2f} times a packet of TCP"
            yield Row(f"{stack} over QUIC, same test", unit, quic, QUIC_TIMES * count, note)


def _instructions_a_packet(
    example: Path, workload: str, stack: str | None, *, quic: bool = False
) -> float:
    (few, few_packets), (many, many_packets) = (
        _callgrind(example, (workload, str(count), "1"), with_stack(stack, quic=quic))
        for count in COUNTED
    )
    return (many - few) / (many_packets - few_packets)


def memory(example: Path) -> Iterator[Row]:
    """Yield bytes per source: the difference between 100,000 and 1,000 sources."""
    what, unit, target = "memory", "bytes per source", 600.0
    if not Path("/proc/self/status").exists():
        yield Row(what, unit, None, target, "/proc is missing")
        return
    most, few = (peak_bytes([str(example), *workload]) for workload in (MANY, FEW))
    note = f"{most / 2**20:.1f} MiB with {MANY_SOURCES:,}, {few / 2**20:.1f} with {FEW_SOURCES:,}"
    yield Row(what, unit, (most - few) / (MANY_SOURCES - FEW_SOURCES), target, note)


def formulas(runs: int) -> Iterator[Row]:
    """Yield the run times of models: of N sources, of one path, of short transfers."""
    yield from engset_model(runs)
    yield from path_models(runs)


def engset_model(runs: int) -> Iterator[Row]:
    """Yield microseconds per evaluation of the Engset model."""
    inputs = engset_inputs(tcpcast.load("web-10mbit"))
    for sources, target_us, times in ((134, 200.0, 500), (1_000_000, 500_000.0, 5)):
        scale = sources / inputs.sources
        path = replace(inputs.path, bottleneck_bps=inputs.path.bottleneck_bps * scale)
        question = replace(inputs, sources=sources, path=path)
        seconds = _seconds_a_call(question.solve, times, runs)
        yield Row(f"Engset model, {sources:,} sources", "us", seconds * 1e6, target_us)


def path_models(runs: int) -> Iterator[Row]:
    """Yield run times of PFTK over arrays of all inputs, its chain, and a curve of ``short``."""
    random = np.random.default_rng(1)
    rtt = random.uniform(0.01, 0.3, EVALUATIONS)
    model = partial(
        throughput,
        rtt_s=rtt,
        t0_s=4 * rtt,
        loss_indication_ratio=np.exp(random.uniform(-9.0, -1.0, EVALUATIONS)),
        receiver_window_pkts=random.uniform(4, 200, EVALUATIONS),
    )
    seconds = _seconds_a_call(model, 3, runs) / EVALUATIONS
    note = f"{1e-6 / seconds:.1f} million/s over {EVALUATIONS:,} points"
    yield Row("PFTK, full model", "ns per evaluation", seconds * 1e9, 100.0, note)

    for p in (0.0005, 0.1):
        chain = partial(window_chain, loss_probability=p, packets_per_ack=1)
        seconds = _seconds_a_call(chain, 20, runs)
        note = f"{len(chain().window_pkts)} windows"
        yield Row(
            f"PFTK's chain, {100 * p:g} % loss", "ms per evaluation", seconds * 1e3, 50.0, note
        )

    curve = partial(expected_latency_s, ShortTransfer(rtt_s=0.1), np.arange(1, 101), loss=0.1)
    seconds = _seconds_a_call(curve, 1, runs)
    yield Row("short, 10 % loss", "s per curve", seconds, 0.2, "1 to 100 packets")


def predictions(runs: int) -> Iterator[Row]:
    """Yield seconds per prediction, including the start of the command."""
    path = ["predict", "--rtt", "60ms", "--rate", "20mbit", "--loss", "1%"]
    for size in ((), ("--size", "100kB"), ("--size", "1MB"), ("--size", "10GB")):
        command = [sys.executable, "-m", "tcpcast", *path, *size]
        run = partial(subprocess.run, command, stdout=subprocess.DEVNULL, check=True)
        seconds = _seconds_a_call(run, 1, runs)
        yield Row(" ".join(["predict", *size]), "s per command", seconds, 0.4)


def homes(runs: int) -> Iterator[Row]:
    """Yield the time of one core for a home line with four flows per direction and a ping."""
    fair = 0.0
    for queue in ("droptail", "fq_codel", "cake"):
        scenario = home(queue)
        seconds = []
        for _ in range(runs):
            before = time.process_time()
            tcpcast.run(scenario, ["packet"], threads=1)
            seconds.append(time.process_time() - before)
        median = statistics.median(seconds)
        if queue == "fq_codel":
            fair = median
        note = f"{median / fair:.2f} times FQ-CoDel" if queue == "cake" else ""
        yield Row(f"home, 4 + 4 flows, {queue}", "s for 60 s", median, 1.0, note)


def pages(runs: int) -> Iterator[Row]:
    """Yield the time of one core for about 1,000 loads of the packaged page with 71 objects."""
    path = {"route": ["down"], "back": ["up"], "rtt": "60ms"}
    browsers, pause_s, duration_s = 20, 1.0, 135.0
    for http, stack in (("2", "linux-cubic"), ("3", "quic")):
        page = {"kind": "page", "objects": "median", "http": http, "pause": f"{pause_s}s"}
        tables = {
            "link": {
                "down": {"rate": "200mbit", "buffer": "100ms"},
                "up": {"rate": "50mbit", "buffer": "100ms"},
            },
            "tcp": {"stack": stack, "handshake": "tls13"},
            "class": [{"name": "web", "sources": browsers, "traffic": page, **path}],
            "run": {"duration": f"{duration_s}s", "warmup": "5s"},
        }
        scenario = tcpcast.Scenario.from_dict(tables)
        seconds, loads = [], 1.0
        for _ in range(runs):
            before = time.process_time()
            (answer,) = tcpcast.run(scenario, ["packet"], threads=1)
            seconds.append(time.process_time() - before)
            one = answer.metrics["page_time_mean_s"].value + pause_s
            loads = browsers * duration_s / one
        median = 1000 / loads * statistics.median(seconds)
        yield Row(f"1,000 pages of 71 objects, HTTP/{http}", "s", median, 1.0, "2.6 MB each")


def home(queue: str) -> tcpcast.Scenario:
    """Return a line of 110 and 10 Mbit/s with four bulk flows per direction and a ping."""
    line = {"buffer": "1000pkt", "queue": queue}
    path = {"route": ["down"], "back": ["up"], "delay": "10ms"}
    bulk = {"flows": 4, "traffic": {"kind": "bulk"}, **path}
    tables = {
        "link": {"down": {"rate": "110mbit", **line}, "up": {"rate": "10mbit", **line}},
        "class": [
            {"name": "download", **bulk},
            {"name": "upload", "sends": "client", **bulk},
            {"name": "ping", "flows": 1, "traffic": {"kind": "ping", "interval": "200ms"}, **path},
        ],
        "run": {"duration": "60s", "warmup": "10s", "seed": 1},
    }
    return tcpcast.Scenario.from_dict(tables)


def peers(example: Path, runs: int) -> Iterator[Row]:
    """Yield ns-2's time on the same workloads in the same minutes, and its ratio to tcpcast's."""
    if not ns2.is_installed():
        yield Row("ns-2", "s per million packets", None, None, "ns-2 is missing: make peers")
        return
    workloads: dict[str, tuple[tuple[str, ...], Callable[[int], dict[str, float]]]] = {
        "W134": (W134, lambda seed: ns2.w134(connections=60_000, warmup=2_000, seed=seed)),
        "LONG": (LONG, lambda seed: ns2.long(seed=seed)),
    }
    for name, (workload, run) in workloads.items():
        results = [run(seed) for seed in range(1, min(runs, 3) + 1)]
        theirs = statistics.median(r["wall_s"] / r["delivered"] * 1e6 for r in results)
        ours = seconds_per_million(example, workload, min(runs, 3))
        note = f"{theirs / ours:.0f} times tcpcast's {ours:.3f}"
        yield Row(f"ns-2 on {name}", "s per million packets", theirs, None, note)


def _callgrind(
    example: Path, workload: tuple[str, ...], environment: dict[str, str]
) -> tuple[float, float]:
    """Return the instructions of a run and the data packets it delivered."""
    run = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", example, *workload],
        capture_output=True, text=True, check=True, env=environment,
    )  # fmt: skip
    collected = re.search(r"Collected : (\d+)", run.stderr)
    delivered = re.search(r"delivered=(\d+)", run.stdout)
    if collected is None or delivered is None:
        raise RuntimeError(f"unexpected output of callgrind: {run.stderr}")
    return float(collected[1]), float(delivered[1])


def _seconds_a_call(call: Callable[[], object], times: int, runs: int) -> float:
    call()
    medians = []
    for _ in range(runs):
        started = time.perf_counter()
        for _ in range(times):
            call()
        medians.append((time.perf_counter() - started) / times)
    return statistics.median(medians)


def print_head() -> None:
    """Print the names of the columns."""
    print(f"{'what':<30}{'measured':>12}{'target':>12}  {'unit':<24}")
    print("-" * 100)


def print_row(row: Row) -> None:
    """Print a value, its target, and a mark if it misses the target."""
    value = "-" if row.value is None else _number(row.value)
    target = "" if row.target is None else f"<= {_number(row.target)}"
    missed = row.target is not None and row.value is not None and row.value > row.target
    print(
        f"{row.what:<30}{value:>12}{target:>12}{' !' if missed else '  '}{row.unit:<24}{row.note}"
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    main()
