"""Sets of time series, sampled with ``ss``: compared by their medians."""

from __future__ import annotations

from collections import defaultdict
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast_papers.kernel.agreement import AllowedDifference
from tcpcast_papers.kernel.cells import mean_over_runs
from tcpcast_papers.published.cells import Cell, CellSet, Lines, Value
from tcpcast_papers.published.links import (
    flows,
    link,
    network,
    packets,
    rtt_median_ms,
    shaped_rate,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcpcast.answer import Answer

_SECONDS = 18


def _cwnd_median(answer: Answer) -> float:
    """Return the median over time of the window of the recorded flow, packets."""
    windows = answer.tables["windows"]
    times = np.append(windows["time_s"], _SECONDS)
    order = np.argsort(windows["cwnd_pkts"], kind="stable")
    shares = np.cumsum(np.diff(times)[order])
    return float(windows["cwnd_pkts"][order][np.searchsorted(shares, shares[-1] / 2)])


def _aqm_series(lines: Lines) -> Iterator[Cell]:
    trials: defaultdict[str, list[float]] = defaultdict(list)
    for name in lines[0]:
        samples = [float(line[name]) for line in lines if line[name]]
        if samples:
            trials[name.rpartition("_")[0]].append(median(samples))
    for name, medians in trials.items():
        controls, aqm, numbers = _split_name(name)
        buffer, rate, rtt, target, *counts = numbers
        limit = buffer * rate * rtt * 1000 / 8
        queue: dict[str, Any] = {}
        if aqm == "pie":
            rules = {"kind": "pie", "target": f"{target:g}ms", "ecn": False, "rules": "linux"}
            queue = {"queue": rules}
        stacks = (f"linux-{control}" for control in controls)
        classes = [
            flows(f"sender-{index}", stack, int(count), kernel="5.15", delay=f"{rtt / 2:g}ms")
            for index, (stack, count) in enumerate(zip(stacks, counts, strict=True), 1)
        ]
        tables = network(link(rate, limit, **queue), classes, duration_s=_SECONDS, iperf3=True)
        tables["probes"] = {"flows": [0]}
        measured = mean_over_runs(medians)
        yield Cell(
            (aqm, f"{rate:g}", f"{rtt:g}", " + ".join(f"{count:g}" for count in counts)),
            aqm,
            tables,
            (
                Value(
                    "median cwnd",
                    "packets",
                    measured.mean,
                    # Medians of whole numbers: each may be half a packet off.
                    AllowedDifference(0.05, absolute=1),
                    _cwnd_median,
                    measured.half_width,
                    len(medians),
                ),
            ),
            packets(rate, _SECONDS),
        )


def _split_name(name: str) -> tuple[list[str], str, list[float]]:
    """Return controls, queue, and buffer (BDP), rate (Mbit/s), RTT (ms), target (ms), numbers."""
    words = name.split("_")
    aqm = "pie" if "pie" in words else "FIFO"
    numbers = [word for word in words[3:] if word not in {"pie", "drop", "FIFO"}]
    return words[:3], aqm, [0.0 if word == "none" else float(word) for word in numbers]


CWND_SERIES = CellSet(
    "Window among many flows",
    "Median window of one CUBIC flow",
    ("queue", "rate (Mbit/s)", "RTT (ms)", "flows"),
    "aqm_series_cwnd_main.csv.xz",
    _aqm_series,
    (
        "fatihsarpkaya/bottleneck-prediction, 2024: cwnd of one CUBIC flow beside CUBIC and Reno "
        "flows of two more senders, sampled with ss for 18 s from the start. Offloads off, netem "
        "RTT/2 in each direction, htb with bfifo of 2 BDP or PIE without ECN.",
    ),
)

_NEST_QUEUES: dict[str, dict[str, Any]] = {
    "codel": {"buffer": "1001pkt", "queue": {"kind": "codel", "rules": "linux"}},
    "fq_codel": {"buffer": "10240pkt", "queue": {"kind": "fq_codel", "rules": "linux"}},
    "pie": {"buffer": "1001pkt", "queue": {"kind": "pie", "rules": "linux"}},
    "pfifo": {"buffer": "1001pkt"},
}
_NEST_UNIT = 2
"""Packets of a burst of segmentation offload at this rate: ``tcp_min_tso_segs``."""
_START_S = 10.0
"""Samples before this time are left out: the start of the flow."""


def _nest(lines: Lines) -> Iterator[Cell]:
    experiments: defaultdict[str, list[dict[str, str]]] = defaultdict(list)
    for line in lines:
        experiments[line["experiment"]].append(line)
    for experiment, samples in experiments.items():
        name = experiment.partition("(")[0]
        words = name.split("-")
        queue = words[2] if name.startswith("bbrv3-qdisc") else ""
        if queue not in _NEST_QUEUES:
            continue
        first = float(samples[0]["timestamp_s"])
        steady = [line for line in samples if float(line["timestamp_s"]) - first > _START_S]
        # Namespaces of one machine: rttvar is 4 to 14 us while the queue is empty.
        hosts = {"tso": "auto", "host_noise": "10us"}
        flow = flows("flow", "bbr3", kernel="6.4", delay="12ms", tcp=hosts)
        bottleneck = {"rate": shaped_rate(10, _NEST_UNIT)} | _NEST_QUEUES[queue]
        yield Cell(
            (queue,),
            queue,
            network(bottleneck, [flow], warmup_s=_START_S, duration_s=120),
            (
                Value(
                    "median smoothed RTT",
                    "ms",
                    median(float(line["srtt_ms"]) for line in steady),
                    AllowedDifference(0.05),
                    rtt_median_ms(),
                    runs=1,
                ),
            ),
            packets(10, 120),
        )


NEST = CellSet(
    "BBRv3",
    "Median smoothed RTT of one flow behind several queues, NeST",
    ("queue",),
    "bbr3_nest_ss_series.csv.xz",
    _nest,
    (
        "arunmm8335/bbrv1-vs-bbrv3-analysis, 2025: one BBRv3 flow of google/bbr in NeST "
        "namespaces, 10 Mbit/s by htb and 10 ms between two routers, edges of 1 Gbit/s and 1 ms, "
        "sampled with ss. The first 10 s are left out. The token bucket of htb and bursts of two "
        "packets give each probe one packet more in a BDP of 20 than the rate, so that the flow "
        "cruises 4 % above it until the next probe for the RTT.",
    ),
)
