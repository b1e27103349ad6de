"""Sets of long flows: one flow, BBR beside CUBIC, many flows, a large router, and pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcpcast_papers.kernel.agreement import AllowedDifference
from tcpcast_papers.published.cells import Cell, CellSet, Lines, Value
from tcpcast_papers.published.links import (
    flows,
    goodput_mbit,
    link,
    network,
    packets,
    share_percent,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

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
                    goodput_mbit(),
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
        "60 s from the start, 5 trials. Linux 4.15 and 5.15, iperf3 with buffers of 100 MB; netem "
        "adds the RTT on the side of the acks; htb with bfifo of 100 or 10,000 kB of 1,024 B.",
        "Offloads were on, so htb and bfifo treated up to 64 kB as one packet. Rows of 750 and "
        "1,000 Mbit/s are left out, because the machines were the limit in some of them.",
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
                    share_percent(),
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
        "last 400 of 1,000 s, one trial. Linux 5.15, offloads off; netem 40 ms on the side of the "
        "acks; htb with bfifo of n x 50 kB; flows start within one second.",
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
                    share_percent(),
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
        "and 50 - n of CUBIC over 120 s from the start, one trial. Linux 5.4, iperf3 -P; netem "
        "RTT/2 in each direction; htb with bfifo.",
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
        "flows of the Reno and NewReno of 2004 with delayed acks at 155 Mbit/s; simulated with "
        "rfc-sack, and with equal RTTs.",
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
                goodput_mbit(number - 1),
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
        "heistp/l4s-tests, 2020, set S1: two flows at 50 Mbit/s, mean of 60 s late in 180 s, one "
        "run. Kernel 5.4 of L4STeam, htb with the queue below it, delay by netem on ingress, "
        "AccECN. Only the rows without Prague and DualPI2, with the queues pfifo and FQ-CoDel.",
    ),
)
