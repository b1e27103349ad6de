"""The tables of measurements: their cells, quantities and tolerances."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from tcpcast.measurements.flent_file import read_flent, read_series_rates
from tcpcast.measurements.line_test import (
    DOWN,
    STAND_INS,
    UP,
    FlowGroup,
    class_tables,
    count_flows,
    group_of_series,
    network_tables,
)
from tcpcast.measurements.traffic_shaping import ETHERNET_BYTES, HTB_BURST, ip_bytes
from tcpcast.process.errors import CaptureError, ScenarioError

from tcpcast_papers.kernel.agreement import AllowedDifference
from tcpcast_papers.published.cells import (
    Cell,
    CellSet,
    Lines,
    Value,
    Variant,
    class_reader,
    share_reader,
)
from tcpcast_papers.published.links import packets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from tcpcast.answer import Answer

HOSTS_DELAY_MS = 0.5
"""Round-trip delay of hosts and router, ms: the ping through an idle queue beside load."""

KERNEL = "4.14"
"""Rules of the hosts, Linux 4.3 to 4.14."""

SOCKET_BUFFERS = "linux-5.15"
"""Third values of tcp_rmem and tcp_wmem at all hosts, 6 and 4 MiB: those of Linux 5.15."""

FLOW = re.compile(r"TCP (?P<direction>download|upload)(?P<words>[^=]*)=(?P<mbit>[\d.]+)", re.ASCII)

LIMITS = {"fq_codel": "10240pkt", "codel": "10000pkt", "pie": "10000pkt"}
"""Limits that tc showed."""


def read_flows(text: str) -> dict[FlowGroup, list[float]]:
    """Return the rates of the flows in Mbit/s by group, from flent's names of the flows.

    Parameters
    ----------
    text
        Such as ``TCP upload Cubic BE=4.2;TCP download BE2=31.5``; CUBIC without a name.
    """
    groups: dict[FlowGroup, list[float]] = {}
    for match in FLOW.finditer(text):
        group = group_of_series(match["direction"], match["words"])
        groups.setdefault(group, []).append(float(match["mbit"]))
    return groups


def flent_classes(
    flows: Iterable[tuple[FlowGroup, int]],
    *,
    rtt_ms: float,
    ecn: bool = False,
    paced: Iterable[str] = (),
    bursts: bool = False,
    **own: Any,
) -> list[dict[str, Any]]:
    """Return the classes of flows, with a ping.

    Parameters
    ----------
    flows
        Groups and the number of flows of each.
    rtt_ms
        Delay of netem in both directions together, ms.
    ecn
        Whether both ends negotiate ECN.
    paced
        Directions whose senders have ``fq`` on their interface, which paces all flows.
    bursts
        Whether the queues of the router hold bursts of segmentation offload.
    own
        Further keys of all flows.
    """
    tcp = {"kernel": KERNEL, "socket_buffers": SOCKET_BUFFERS} | own
    if bursts:
        tcp["tso"] = "auto"
    rtt_ms += HOSTS_DELAY_MS
    return class_tables(flows, rtt_ms=rtt_ms, ecn=ecn, paced=tuple(paced), **tcp)


def shaped_link(rate_mbit: float, kind: str, settings: str = "") -> dict[str, Any]:
    """Return a link behind a router's shaper.

    Parameters
    ----------
    rate_mbit
        Rate of the shaper, Mbit/s.
    kind
        Discipline: ``cake`` with or without a suffix, ``fq_codel``, ``codel``, ``pie``,
        ``pfifo_N`` (packets) or ``bfifo_Nk`` (KiB).
    settings
        Settings of CAKE that tc printed.

    Raises
    ------
    ScenarioError
        The discipline is not known.
    """
    if kind.startswith("cake"):
        cake = {
            "kind": "cake",
            "rate": f"{rate_mbit:g}mbit",
            "flows": "flowblind" if "flowblind" in kind + settings else "flows",
            "tins": "diffserv4" if "diffserv4" in settings else "besteffort",
        }
        return {"rate": "1gbit", "buffer": "unlimited", "queue": cake}
    rate = {"bucket": f"{rate_mbit:g}mbit", "burst": HTB_BURST, "overhead": ETHERNET_BYTES}
    name, _, size = kind.partition("_") if kind[1:].startswith("fifo") else (kind, "", "")
    if name == "pfifo":
        return {"rate": rate, "buffer": f"{size}pkt"}
    if name == "bfifo":
        return {"rate": rate, "buffer": ip_bytes(1024 * int(size.removesuffix("k")))}
    if name not in LIMITS:
        raise ScenarioError(f"unknown queue discipline {kind} of a router")
    queue: dict[str, Any] = {"kind": name, "rules": "linux"}
    if name == "pie":
        # Defaults of Linux 4, whose burst allowance is 100 ms.
        queue |= {"rules": "linux-4", "target": "16ms", "update": "32ms", "burst": "100ms"}
    return {"rate": rate, "buffer": LIMITS[name], "queue": queue}


PACKAGE = "tcpcast_papers.homes"

PING_P95, PING_MEDIAN = "ping p95", "ping median"
PING_RELATIVE, PING_MS = 0.1, 2.0
RATE_RELATIVE = 0.05
SHARE_POINTS = 8.0
ACK_FILTER_RELATIVE = 0.15

_SECONDS, _WARMUP_S = 60.0, 20.0
"""Length of a run, and of its beginning, from which no value comes."""

_SOURCE = "dtaht/blog-cerowrt at cc25396a, content/flent"
_PAIRS = ("reno", "dctcp", "bbr")
"""Congestion controls whose shares beside CUBIC are compared; the others have stand-ins."""


def read_samples(line: dict[str, str], folder: Path) -> dict[str, str]:
    """Return a line with the rates and RTTs of its file of flent, if the folder has this file.

    The complete tables have means of the series that flent plots, which count each sample once,
    however long it lasted.
    """
    path = folder / line.get("file", "")
    if not path.is_file():
        return line
    try:
        rates = {name: 1e-6 * rate for name, rate in read_series_rates(path).items()}
        pings = read_flent(path).ping_s
    except CaptureError:
        return line
    changed = dict(line)
    text = ";".join(f"{name}={rate:.6g}" for name, rate in sorted(rates.items()))
    for column in ("flows", "per_flow"):
        if "TCP " in line.get(column, ""):
            changed[column] = text
    for direction, column in ((DOWN, "down_sum_mean"), (UP, "up_sum_mean")):
        if line.get(column):
            own = [rate for name, rate in rates.items() if name.startswith(f"TCP {direction}")]
            changed[column] = f"{math.fsum(own):.6g}"
    if len(pings):
        for percent, column in ((50, "ping_median_ms"), (95, "ping_p95_ms")):
            changed[column] = f"{1e3 * np.percentile(pings, percent):.6g}"
    return changed


def _sum_mbit(answer: Answer, direction: str) -> float:
    classes = answer.tables["by_class"]
    rates = zip(classes["name"].tolist(), classes["goodput_bps"].tolist(), strict=True)
    return 1e-6 * float(sum(rate for name, rate in rates if name.startswith(direction)))


def _value(
    quantity: str, unit: str, text: str, allowed: float, read: Callable[[Answer], float]
) -> Iterator[Value]:
    """Yield a measured value, unless its cell of the table is empty."""
    if text:
        yield Value(quantity, unit, float(text), AllowedDifference(absolute=allowed), read)


def _ping_values(line: dict[str, str]) -> Iterator[Value]:
    for quantity, column, own in (
        (PING_P95, "ping_p95_ms", "delay_p95_s"),
        (PING_MEDIAN, "ping_median_ms", "delay_p50_s"),
    ):
        allowed = max(PING_MS, PING_RELATIVE * float(line[column]))
        for value in _value(quantity, "ms", line[column], allowed, class_reader(own, "ping", 1e3)):
            # Medians are shown only.
            yield value if quantity == PING_P95 else replace(value, allowed=None)


def _sum_values(line: dict[str, str], sums: dict[str, str]) -> Iterator[Value]:
    for direction, column in sums.items():
        text = line.get(column) or ""
        allowed = RATE_RELATIVE * float(text or 0)
        read = partial(_sum_mbit, direction=direction)
        yield from _value(direction, "Mbit/s", text, allowed, read)


def _share_values(groups: dict[FlowGroup, list[float]]) -> Iterator[Value]:
    """Yield the share of CUBIC in each pair of flows with the same direction and codepoint."""
    for cubic, rates in groups.items():
        if cubic.control != "cubic":
            continue
        for control in _PAIRS:
            other = replace(cubic, control=control)
            total = sum(rates) + sum(groups.get(other, ()))
            if other not in groups or not total:
                continue
            yield Value(
                f"CUBIC beside {control}, {cubic.direction} {cubic.mark}",
                "%",
                100.0 * sum(rates) / total,
                AllowedDifference(absolute=SHARE_POINTS),
                share_reader(cubic.name, other.name),
            )


def _variants(
    line: dict[str, str], groups: dict[FlowGroup, list[float]], tables: dict[str, Any]
) -> Iterator[Variant]:
    """Yield the scenario after each change that may explain a difference."""
    if line["router_queue"] == "cake_flowblind":
        rates = {"down": float(line["down_mbit"]), "up": float(line["up_mbit"])}
        links = {name: shaped_link(rate, "codel") for name, rate in rates.items()}
        yield Variant(
            "CoDel instead of COBALT, which CAKE uses since 2017", tables | {"link": links}
        )
    if any(group.control in STAND_INS for group in groups):
        classes = [
            entry | {"tcp": entry["tcp"] | {"stack": "linux-cubic"}}
            if entry["name"].split("-")[1:2] in ([name] for name in STAND_INS)
            else entry
            for entry in tables["class"]
        ]
        yield Variant("CUBIC in place of CDG and Westwood, not Reno", tables | {"class": classes})


def _home_cells(lines: Lines, *, series: str) -> Iterator[Cell]:
    for line in lines:
        if line["set"] != series or line["suspect"]:
            continue
        groups = read_flows(line["flows"])
        if line["swap"]:
            groups = {replace(each, direction=DOWN): rates for each, rates in groups.items()}
        rates = {"down": float(line["down_mbit"]), "up": float(line["up_mbit"])}
        links = {
            name: shaped_link(rate, line["router_queue"], line["qdisc_in_force"])
            for name, rate in rates.items()
        }
        classes = flent_classes(
            count_flows(groups),
            rtt_ms=float(line["rtt_ms"]),
            ecn=line["ecn"] == "ecn",
            paced=(DOWN,) if line["server_qdisc"] == "sch_fq" else (),
            bursts=line["offloads"] == "on",
        )
        tables = network_tables(links, classes, _SECONDS, _WARMUP_S)
        up, down = ("up_sum_mean", "down_sum_mean")
        sums = {DOWN: up} if line["swap"] else {DOWN: down, UP: up}
        yield Cell(
            (
                line["test"] + (" swapped" if line["swap"] else ""),
                line["rtt_ms"],
                line["router_queue"],
                line["ecn"],
                line["offloads"],
                _time_of(line["file"]),
            ),
            line["router_queue"],
            tables,
            (*_ping_values(line), *_sum_values(line, sums), *_share_values(groups)),
            packets(sum(rates.values()), _SECONDS),
            tuple(_variants(line, groups, tables)),
        )


def _time_of(file: str) -> str:
    """Return day and time of a run from the name of its file."""
    stamp = next(part for part in file.replace("-", ".").split(".") if part[2:3] == "T")
    month = file.partition("-20")[2].split("-")[1]
    return f"{month}-{stamp[:2]} {stamp[3:5]}:{stamp[5:7]}:{stamp[7:9]}"


_SQUARE_WAVE = {"bbr": (0.0, 15.0), "cubic": (5.0, 25.0)}
"""Start times of the flows of ``tcp_4up_squarewave``, in seconds; each sends for a minute."""


def _upload_cells(lines: Lines) -> Iterator[Cell]:
    for line in lines:
        down, _, up = line["bw"].replace("Mbit", "").rpartition("_")
        rates = {"down": float(down or up), "up": float(up)}
        queue = line["queue"]
        # bfifo_1024k_256k: the upload has 1024 KiB, as the measured delays show.
        kinds = {"down": queue, "up": queue}
        if queue.count("k") == 2 and queue.startswith("bfifo"):
            _, far, near = queue.split("_")
            kinds = {"down": f"bfifo_{near}", "up": f"bfifo_{far}"}
        links = {name: shaped_link(rates[name], kinds[name]) for name in rates}
        groups = _without_bbr_downloads(read_flows(line["per_flow"]))
        if line["test"] == "tcp_nup":
            rate_of = [rate for rates in groups.values() for rate in rates]
            groups = {FlowGroup(UP, line["cc"], "BE"): rate_of}
        is_wave = line["test"] == "tcp_4up_squarewave"
        if is_wave:
            groups = {FlowGroup(UP, control, "BE"): [0.0, 0.0] for control in _SQUARE_WAVE}
        classes = flent_classes(
            count_flows(groups),
            rtt_ms=float(line["rtt_ms"]),
            ecn=line["ecn"] == "ecn",
            paced=(UP,),
            bursts=line["router_offloads"] == "on",
        )
        length = (85.0, 0.0) if is_wave else (_SECONDS, _WARMUP_S)
        tables = network_tables(links, classes, *length)
        if is_wave:
            tables |= {
                "traffic": {"kind": "bulk"},
                "class": list(_square_wave(tables["class"])),
            }
        values = (*_ping_values(line), *_sum_values(line, {UP: "up_sum_mean"}))
        yield Cell(
            (
                line["test"],
                line["flows"],
                line["cc"] if line["test"] == "tcp_nup" else "",
                queue,
                line["bw"],
                line["ecn"],
                line["router_offloads"],
            ),
            queue,
            tables,
            (*values, *(() if is_wave else _share_values(groups))),
            packets(sum(rates.values()), _SECONDS),
        )


def _without_bbr_downloads(
    groups: dict[FlowGroup, list[float]],
) -> dict[FlowGroup, list[float]]:
    """Return the groups with CUBIC for all downloads: the server's kernel, 4.4, had no BBR."""
    result: defaultdict[FlowGroup, list[float]] = defaultdict(list)
    for group, rates in groups.items():
        result[replace(group, control="cubic") if group.direction == DOWN else group] += rates
    return dict(result)


def _square_wave(classes: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the classes with one class for each start time."""
    for entry in classes:
        starts = next(
            (times for control, times in _SQUARE_WAVE.items() if f"-{control}-" in entry["name"]),
            None,
        )
        if starts is None:
            yield entry
            continue
        for start in starts:
            own = {"name": f"{entry['name']}-{start:g}", "flows": 1, "start": f"{start:g}s"}
            yield entry | own | {"stop": f"{start + _SECONDS:g}s"}


_NO_NOISE = {"host_noise": "0s"}
_ACK_FILTERS = {"no-ack-filter": "off", "ack-filter": "on", "ack-filter-aggressive": "aggressive"}


def _ack_filter_cells(lines: Lines) -> Iterator[Cell]:
    by_title: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for line in lines:
        by_title[line["title"]] = line
    for title, line in by_title.items():
        up, _, name = title.removeprefix("1Gbit-").partition("-")
        up_mbit = 100.0 if up == "wtf" else float(up.removesuffix("Mbit"))
        links = {"down": shaped_link(1000.0, "cake"), "up": shaped_link(up_mbit, "cake")}
        links["up"]["queue"]["ack_filter"] = _ACK_FILTERS[name]
        # Namespaces: no line below the shaper.
        links["down"]["rate"] = "10gbit"
        flows = [(FlowGroup(direction, "cubic", "BE"), 4) for direction in (DOWN, UP)]
        # The upload of 100 Mbit/s shows it: beside the data, a full line carries an ack per packet.
        classes = flent_classes(flows, rtt_ms=99.5, paced=(UP,), delayed_acks=False)
        sums = {DOWN: "down_sum_mean", UP: "up_sum_mean"}
        values = [
            replace(value, allowed=AllowedDifference(ACK_FILTER_RELATIVE))
            if value.quantity == DOWN
            else replace(value, allowed=None)
            for value in _sum_values(line, sums)
        ]
        tables = network_tables(links, classes, _SECONDS, _WARMUP_S)
        exact = Variant(
            "hosts without noise, as for network namespaces", tables | {"tcp": _NO_NOISE}
        )
        yield Cell(
            (f"{up_mbit:g}", name),
            "ack filter",
            tables,
            tuple(values),
            packets(1000.0 + up_mbit, _SECONDS),
            (exact,),
        )


_HOME_COLUMNS = ("test", "RTT (ms)", "queue", "ECN", "offloads", "run")
_OFFLOADS = (
    "With offloads, netem, HTB and its queue treat a burst of up to 64 kB as one packet. CAKE "
    "splits bursts, as its source code of April and September 2016 shows."
)

SETS: tuple[CellSet, ...] = (
    CellSet(
        "Home line",
        "Ping and rates beside 4+4 flows and more, 110/10 Mbit/s",
        _HOME_COLUMNS,
        "home_under_load.csv",
        partial(_home_cells, series="cake_vs_everything"),
        (
            f"The source is {_SOURCE}, April 2016. The client ran Linux 4.5, the router used CAKE "
            "or HTB, and netem added half of the RTT on each side. Each case was measured once. "
            "Runs with contradictory metadata are left out. CAKE of 2016 used CoDel instead of "
            "COBALT; Reno is simulated in place of CDG and Westwood.",
            _OFFLOADS,
        ),
        PACKAGE,
        read_samples,
    ),
    CellSet(
        "Fast line",
        "Ping and rates at 100 to 900 Mbit/s in both directions",
        _HOME_COLUMNS,
        "home_under_load.csv",
        partial(_home_cells, series="900mbit"),
        (
            f"The source is {_SOURCE}, April 2016, with the set-up described above. Without "
            "offloads and at 900 Mbit/s, the router forwarded 635 Mbit/s through HTB and 800 to "
            "850 Mbit/s through CAKE: its processor was the limit.",
        ),
        PACKAGE,
        read_samples,
    ),
    CellSet(
        "Upload",
        "CUBIC and BBR at 20 Mbit/s behind seven queues",
        ("test", "flows", "control", "queue", "rate", "ECN", "offloads"),
        "bbr_cubic_20mbit.csv",
        _upload_cells,
        (
            f"The source is {_SOURCE}, September 2016. The client ran Linux 4.8 with the first "
            "release of BBR and sch_fq. HTB with the queue limited both directions, and netem "
            "added 24 ms in each direction. Each case was measured once. The server ran Linux 4.4 "
            "without BBR, so all downloads use CUBIC.",
            _OFFLOADS,
        ),
        PACKAGE,
        read_samples,
    ),
    CellSet(
        "Ack filter",
        "4+4 flows at 1 Gbit/s down, 100 ms, with CAKE's ack filter",
        ("up (Mbit/s)", "filter"),
        "ack_filter.csv",
        _ack_filter_cells,
        (
            f"The source is {_SOURCE}, November 2017, with Linux 4.14, network namespaces and CAKE "
            "in both directions. Each case was measured once. The receivers sent an ack for each "
            "packet; the reason is unknown. The run at 100 Mbit/s without a filter shows these "
            "acks: beside its upload of 54.8 Mbit/s, a full line carries 81,000 acks per second, "
            "and its download had 76,000 packets per second.",
        ),
        PACKAGE,
        read_samples,
    ),
)
"""All sets, in the order of the page."""
