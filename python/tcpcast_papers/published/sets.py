"""The sets: long flows, BBR beside CUBIC, many flows, lossy paths, and time series of ``ss``."""

from __future__ import annotations

from collections import defaultdict
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
from tcpcast.scenario.modern_stacks import rules_of

from tcpcast_papers.kernel.agreement import AllowedDifference
from tcpcast_papers.kernel.cells import mean_over_runs
from tcpcast_papers.published.cells import Cell, CellSet, Lines, Value, class_reader
from tcpcast_papers.published.links import (
    ACK_BYTES,
    FRAME_BYTES,
    flows,
    link,
    network,
    packets,
    shaped_rate,
    share_percent,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcpcast.answer import Answer

_STACKS = {"bbr": "linux-bbr", "cubic": "linux-cubic"}
_MAX_RATE_MBIT = 500.0
"""At higher rates, the virtual machines were the limit in some rows."""


def _single_flows(lines: Lines) -> Iterator[Cell]:
    for line in lines:
        rate, rtt = float(line["rate_mbit"]), float(line["rtt_ms"])
        if line["cc"] not in _STACKS or rate > _MAX_RATE_MBIT:
            continue
        bottleneck = link(rate, 1024 * float(line["buffer_kb"]), bursts=True)
        delays: dict[str, Any] = {"delay": "0s", "back_delay": f"{rtt:g}ms"}
        flow = flows("flow", _STACKS[line["cc"]], kernel=line["kernel"], **delays)
        flow["tcp"] |= {"handshake": "none", "socket_buffers": "unlimited", "tso": "auto"}
        yield Cell(
            (line["kernel"], line["cc"], line["buffer_kb"], line["rate_mbit"], line["rtt_ms"]),
            f"{line['cc']}, {line['buffer_kb']} kB",
            network(bottleneck, [flow], duration_s=60),
            (
                Value(
                    "goodput",
                    "Mbit/s",
                    float(line["goodput_mbit_mean"]),
                    AllowedDifference(0.02),
                    class_reader("goodput_bps", factor=1e-6),
                    float(line["goodput_ci95"]),
                ),
            ),
            packets(rate, 60),
        )


SINGLE_FLOWS = CellSet(
    "Single flows",
    "One flow of BBR or CUBIC, IMC 2023",
    ("kernel", "control", "buffer (kB)", "rate (Mbit/s)", "RTT (ms)"),
    "cao_replication_imc2023.csv",
    _single_flows,
    (
        "Datta and Fund, Replication: When to Use and When Not to Use BBR, IMC 2023: goodput over "
        "60 s from the start, in 5 trials. The hosts ran Linux 4.15 and 5.15, and iperf3 with "
        "buffers of 100 MB. netem added the RTT to the acks; the bottleneck was htb with a bfifo "
        "of 100 or 10,000 kB of 1,024 B.",
        "Offloads were on, so htb and bfifo treated up to 64 kB as one packet. The page omits the "
        "rows of 750 and 1,000 Mbit/s, because the machines limited the rate in some of them.",
    ),
)


def _bbr_and_one_cubic(lines: Lines) -> Iterator[Cell]:
    rate, rtt = 10.0, 40
    for line in lines:
        bottleneck = link(rate, 1024 * 50 * float(line["buffer_bdp"]))
        more: dict[str, Any] = {"kernel": "5.15", "delay": "0s", "back_delay": f"{rtt}ms"}
        classes = [
            flows("bbr", "linux-bbr", int(line["n_bbr"]), **more),
            flows("cubic", "linux-cubic", **more),
        ]
        yield Cell(
            (line["n_bbr"], line["buffer_bdp"]),
            f"{line['n_bbr']} BBR",
            network(bottleneck, classes, warmup_s=600, duration_s=1000, start_s=1),
            (
                Value(
                    "share of BBR",
                    "%",
                    100 * float(line["bbr_share"]),
                    AllowedDifference(absolute=3),
                    share_percent,
                    runs=1,
                ),
            ),
            packets(rate, 1000),
        )


BBR_AND_ONE_CUBIC = CellSet(
    "N BBR and one CUBIC",
    "Share of BBR at 10 Mbit/s and 40 ms",
    ("BBR flows", "buffer (BDP)"),
    "bbr_vs_one_cubic.csv",
    _bbr_and_one_cubic,
    (
        "Fund, re-bbr-shared-bottleneck (MIT licence), after Ware et al., IMC 2019: share over the "
        "last 400 of 1,000 s, in one trial. The hosts ran Linux 5.15 without offloads. netem "
        "delayed the acks by 40 ms; the bottleneck was htb with a bfifo of n x 50 kB. The flows "
        "start within one second.",
    ),
)


def _fifty_flows(lines: Lines) -> Iterator[Cell]:
    for line in lines:
        bbr, cubic = int(line["n_bbr"]), int(line["n_cubic"])
        rate, rtt = float(line["rate_mbit"]), float(line["rtt_ms"])
        if not (bbr and cubic):
            continue
        limit = float(line["buffer_bdp"]) * rate * rtt * 1000 / 8
        more: dict[str, Any] = {"kernel": "5.4", "delay": f"{rtt / 2:g}ms", "tcp": {"tso": "auto"}}
        classes = [
            flows("bbr", "linux-bbr", bbr, **more),
            flows("cubic", "linux-cubic", cubic, **more),
        ]
        sums = float(line["bbr_sum_mbit"]), float(line["cubic_sum_mbit"])
        yield Cell(
            (line["rate_mbit"], line["rtt_ms"], line["buffer_bdp"], line["n_bbr"]),
            f"{line['rate_mbit']} Mbit/s, {line['buffer_bdp']} BDP",
            network(link(rate, limit, bursts=True), classes, duration_s=120, iperf3=True),
            (
                Value(
                    "share of BBR",
                    "%",
                    100 * sums[0] / sum(sums),
                    AllowedDifference(absolute=8),
                    share_percent,
                    runs=1,
                ),
            ),
            packets(rate, 120),
        )


FIFTY_FLOWS = CellSet(
    "50 flows",
    "Share of n BBR flows among 50",
    ("rate (Mbit/s)", "RTT (ms)", "buffer (BDP)", "BBR flows"),
    "bbr_cubic_50_flows_nash.csv",
    _fifty_flows,
    (
        "bbr-dominance-experiments (MIT licence), after Mishra et al., IMC 2022: n flows of BBR "
        "and 50 - n of CUBIC over 120 s from the start, in one trial. The hosts ran Linux 5.4 and "
        "iperf3 -P. netem added RTT/2 in each direction; the bottleneck was htb with a bfifo.",
    ),
)


def _router_buffers(lines: Lines) -> Iterator[Cell]:
    rate, bdp = 155.0, 1291
    for line in lines:
        half = f"{bdp * 1500 * 8 / rate / 1e3 / 2:.6g}ms"
        tcp = {"socket_buffers": "unlimited"}
        many = flows("flows", "rfc-sack", int(line["flows"]), delay=half, tcp=tcp)
        bottleneck = {"rate": f"{rate:g}mbit", "buffer": f"{line['packets']}pkt"}
        yield Cell(
            (line["flows"], line["buffer_times_bdp_over_root_n"], line["packets"]),
            f"{line['flows']} flows",
            network(bottleneck, [many], warmup_s=20, duration_s=60, start_s=10),
            (
                Value(
                    "utilisation",
                    "%",
                    float(line["router"]),
                    AllowedDifference(absolute=2),
                    lambda answer: 100 * answer.metrics["utilisation"].value,
                ),
            ),
            packets(rate, 60),
        )


ROUTER_BUFFERS = CellSet(
    "Router buffers",
    "Utilisation of a Cisco GSR by n long flows, SIGCOMM 2004",
    ("flows", "buffer (BDP/√n)", "buffer (packets)"),
    "appenzeller_2004_fig15.csv",
    _router_buffers,
    (
        "Appenzeller, Keslassy, McKeown, Sizing Router Buffers, SIGCOMM 2004, Figure 15: n long "
        "flows of the Reno and NewReno of 2004 with delayed acks at 155 Mbit/s. The flows are "
        "simulated with rfc-sack and equal RTTs.",
    ),
)

_QUEUES: dict[str, dict[str, Any]] = {
    "pfifo(1000)": {"buffer": "1001pkt"},
    "fq_codel": {"buffer": "10240pkt", "queue": {"kind": "fq_codel", "rules": "linux"}},
}


def _pairs(lines: Lines) -> Iterator[Cell]:
    for line in lines:
        if line["qdisc"] not in _QUEUES or {line["cc1"], line["cc2"]} != {"cubic"}:
            continue
        rate = float(line["rate_mbit"])
        classes = [
            flows(
                f"flow-{number}",
                "linux-cubic",
                kernel="5.4",
                delay=f"{float(line[f'rtt{number}_ms']) / 2:g}ms",
                tcp={"ecn": True},
            )
            for number in (1, 2)
        ]
        values = tuple(
            Value(
                f"goodput of flow {number}",
                "Mbit/s",
                float(line[f"mbps{number}"]),
                AllowedDifference(0.05),
                class_reader("goodput_bps", number - 1, 1e-6),
                runs=1,
            )
            for number in (1, 2)
        )
        bottleneck = link(rate, **_QUEUES[line["qdisc"]])
        yield Cell(
            (line["qdisc"], line["rtt1_ms"], line["rtt2_ms"]),
            line["qdisc"],
            network(bottleneck, classes, warmup_s=110, duration_s=170),
            values,
            packets(rate, 170),
        )


PAIRS = CellSet(
    "Pairs",
    "Two CUBIC flows of different RTTs",
    ("queue", "RTT 1 (ms)", "RTT 2 (ms)"),
    "l4s_heist_s1_rtt_fairness.csv",
    _pairs,
    (
        "The source is heistp/l4s-tests, 2020, set S1: two flows at 50 Mbit/s, averaged over 60 s "
        "near the end of 180 s, in one run. The hosts used kernel 5.4 of L4STeam with AccECN. The "
        "queue was below htb, and netem added the delay on ingress. The page contains only the "
        "rows with the queues pfifo and FQ-CoDel and without Prague.",
    ),
)


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
        "flows of two more senders, sampled with ss for 18 s from the start. Offloads were off, "
        "and netem added RTT/2 in each direction. The bottleneck was htb with a bfifo of 2 BDP, or "
        "with PIE without ECN.",
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
                    class_reader("rtt_p50_s", factor=1e3),
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
        "namespaces, sampled with ss. htb limited the link between two routers to 10 Mbit/s, with "
        "a delay of 10 ms; edge links had 1 Gbit/s and 1 ms. The first 10 s are left out. Because "
        "of the token bucket of htb and bursts of two packets, each probe delivers one packet more "
        "than the rate allows in a BDP of 20 packets. The flow therefore cruises 4 % above the "
        "rate until the next probe for the RTT.",
    ),
)


_LOSSY_STACKS = {
    "CUBIC": ("linux-cubic", "5.15"),
    "BBRv1": ("linux-bbr", "5.15"),
    "BBRv3": ("bbr3", "6.4"),
}
"""Stack and version of Linux by control."""
_RATE_MBIT = 10.0
_BODY_BYTES = 12_500_000
_TRANSFERS = 20
_TC_PACKET_BYTES = 1000
"""Mean packet that examples of ``tc red`` give as ``avpkt``."""


def _goodput_over_rate(answer: Answer) -> float:
    """Return the goodput of a file of the mean duration, in % of the link's rate."""
    seconds = answer.metrics["on_time_s"].value
    return 100 * 8 * _BODY_BYTES / seconds / (_RATE_MBIT * 1e6)


def _adaptive_red(limit: float) -> dict[str, Any]:
    """Return ``red limit LIMIT avpkt 1000 adaptive``, with the values that ``tc`` computes.

    The weight is the largest power of 1/2 at which an average from 0 stays below the lower
    threshold during a burst of (2 min + max) / 3 bytes (``tc_red_eval_ewma``).
    """
    maximum = limit / 4
    minimum = maximum / 3
    burst = (2 * minimum + maximum) // (3 * _TC_PACKET_BYTES)
    rest = burst + 1 - minimum / _TC_PACKET_BYTES
    weight = 0.5
    while rest > (1 - (1 - weight) ** burst) / weight:
        weight /= 2
    return {
        "kind": "red",
        "rules": "linux",
        "adaptive": True,
        "min_threshold": f"{minimum / FRAME_BYTES:.3f}pkt",
        "max_threshold": f"{maximum / FRAME_BYTES:.3f}pkt",
        "max_probability": "2%",  # the default of tc
        "weight": weight,
        "gentle": False,
    }


def _lossy_paths(lines: Lines) -> Iterator[Cell]:
    for line in lines:
        if line["control"] not in _LOSSY_STACKS:
            continue
        stack, version = _LOSSY_STACKS[line["control"]]
        delay, loss = float(line["one_way_ms"]), line["loss_percent"]
        limit = max(4 * _RATE_MBIT * 1e6 * 2 * delay / 1000 / 8, 48_000)
        tables = {
            "network": {"packet": "1500B", "ack": f"{ACK_BYTES}B"},
            "link": {
                "bottleneck": link(
                    _RATE_MBIT, limit, bursts=True, queue=_adaptive_red(limit), loss=f"{loss}%"
                ),
                "acks": {"loss": f"{loss}%"},
            },
            "class": [
                {
                    "name": "client",
                    "sources": 1,
                    "route": ["bottleneck"],
                    "back": ["acks"],
                    "delay": f"{delay:g}ms",
                    "tcp": {
                        "stack": stack,
                        "kernel": rules_of(version),
                        "handshake": "none",
                        "socket_buffers": "linux-5.15",
                        "tso": "auto",
                    },
                }
            ],
            "traffic": {
                "kind": "on-off",
                "size": {"distribution": "constant", "value": f"{_BODY_BYTES}B"},
                "off": {"distribution": "constant", "value": "1s"},
            },
            "run": {"warmup": "0s", "transfers": _TRANSFERS},
        }
        yield Cell(
            (line["control"], line["one_way_ms"], line["loss_percent"]),
            line["control"],
            tables,
            (
                Value(
                    "goodput / rate",
                    "%",
                    100 * float(line["goodput_over_rate"]),
                    AllowedDifference(0.1),
                    _goodput_over_rate,
                    runs=1,  # 20 transfers, as a simulated run has
                ),
            ),
            packets(_RATE_MBIT, 10) * _TRANSFERS,
        )


LOSSY_PATHS = CellSet(
    "Lossy paths",
    "Goodput of one GET as a share of 10 Mbit/s, ATC 2025",
    ("control", "one-way delay (ms)", "loss (%)"),
    "lossy_paths_atc2025.csv",
    _lossy_paths,
    (
        "Yuan, Rossman, Winstein, Internet Connection Splitting, ATC 2025: the size of the body, "
        "12.5 MB, divided by the time from the request to the end of the body, as the median of "
        "20. The hosts ran Linux 5.15, and 6.4 of google/bbr. netem delayed and dropped packets in "
        "both directions, above an adaptive RED. Offloads were on, so netem dropped each burst as "
        "one packet.",
    ),
)
