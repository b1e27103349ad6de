"""Sets of flows with and without L4S: columns of the tables, and the scenarios of their rows."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast_papers.kernel.agreement import AllowedDifference
from tcpcast_papers.published.cells import Cell, CellSet, Lines, Value, Variant, class_reader
from tcpcast_papers.published.links import (
    flows,
    link,
    network,
    packets,
    share_percent,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tcpcast.answer import Answer

_PACKAGE = "tcpcast_papers.l4s"

_FQ_CODEL = {"kind": "fq_codel", "rules": "linux"}
_ONE_QUEUE = {"kind": "codel", "rules": "linux"}
_PIE = {"kind": "pie", "rules": "linux"}


def _queue(buffer_packets: int, queue: dict[str, Any] | None = None) -> dict[str, Any]:
    table: dict[str, Any] = {"buffer": f"{buffer_packets}pkt"}
    return table if queue is None else table | {"queue": queue}


_DUALPI2 = _queue(10000, {"kind": "dualpi2"})

_HEIST_QUEUES = {
    "dualpi2": _DUALPI2,
    "pfifo(1000)": _queue(1001),
    "fq_codel": _queue(10240, _FQ_CODEL),
    "fq_codel(1q)": _queue(10240, _ONE_QUEUE),
    "pie": _queue(1001, _PIE),
}


def _heist_stack(control: str) -> tuple[str, bool]:
    """Return the stack of a control as "cubic-noecn", and whether it uses ECN."""
    name, _, ecn = control.partition("-")
    stack = "prague-2020" if name == "prague" else f"linux-{name}"
    return stack, ecn != "noecn"


def _heist(warmup_s: float, duration_s: float) -> Callable[[Lines], Iterator[Cell]]:
    def cells(lines: Lines) -> Iterator[Cell]:
        for line in lines:
            if line["qdisc"] not in _HEIST_QUEUES:
                continue
            classes = []
            for number in (1, 2):
                stack, ecn = _heist_stack(line[f"cc{number}"])
                half = f"{float(line[f'rtt{number}_ms']) / 2:g}ms"
                tcp = {"ecn": ecn}
                classes.append(flows(f"flow-{number}", stack, kernel="5.4", delay=half, tcp=tcp))
            first, second = float(line["mbps1"]), float(line["mbps2"])
            rate = float(line["rate_mbit"])
            bottleneck = link(rate, **_HEIST_QUEUES[line["qdisc"]])
            label = (line["qdisc"], line["cc1"], line["rtt1_ms"], line["cc2"], line["rtt2_ms"])
            controls = sorted({line["cc1"].partition("-")[0], line["cc2"].partition("-")[0]})
            yield Cell(
                label,
                f"{line['qdisc']}, {' and '.join(controls)}",
                network(bottleneck, classes, warmup_s=warmup_s, duration_s=duration_s),
                (
                    Value(
                        "share of flow 1",
                        "%",
                        100 * first / (first + second),
                        AllowedDifference(absolute=8),
                        share_percent,
                    ),
                ),
                packets(rate, duration_s),
            )

    return cells


_HEIST_COLUMNS = ("queue", "control 1", "RTT 1 (ms)", "control 2", "RTT 2 (ms)")

RTT_FAIRNESS = CellSet(
    "RTT fairness",
    "Two flows of Prague and CUBIC with different RTTs",
    _HEIST_COLUMNS,
    "l4s_heist_s1_rtt_fairness.csv",
    _heist(110, 170),
    (
        "The source is heistp/l4s-tests, 2020, set S1: two flows at 50 Mbit/s, averaged over 60 s "
        "near the end of 180 s, in one run. The hosts used kernel 5.4 of L4STeam with the Prague "
        "of August 2020. The queue was below htb, and netem added the delay on ingress. Accurate "
        "ECN is simulated as the echo of each mark.",
    ),
    _PACKAGE,
)

CLASSIC_QUEUES = CellSet(
    "Classic queues",
    "Prague beside classic flows in one queue without L4S",
    _HEIST_COLUMNS,
    "l4s_heist_s6_classic_aqm.csv",
    _heist(20, 60),
    (
        "The source is heistp/l4s-tests, 2020, set S6: means over 40 s of 60 s, behind queues with "
        "classic ECN. These queues treat Prague's ECT(1) as classic ECN (the concern of RFC 9331, "
        "section 5). FQ-CoDel with one queue is simulated as CoDel.",
    ),
    _PACKAGE,
)

_SIMULA_STACKS = {
    "prague": ("prague", True),
    "cubic-ecn": ("linux-cubic", True),
    "cubic": ("linux-cubic", False),
    "reno": ("linux-reno", False),
}
_SIMULA_QUEUES = {
    "dualpi2": _queue(40000, {"kind": "dualpi2", "classify": "any_ect"}),
    "pie": _queue(1001, _PIE | {"target": "15ms", "update": "16ms"}),
    "fqcodel": _queue(10240, _FQ_CODEL),
}


def _queue_delay_ms(name: str, statistic: str) -> Callable[[Answer], float]:
    """Return a function that reads a queueing delay of a class at the bottleneck, ms."""

    def read(answer: Answer) -> float:
        table = answer.tables["by_link_class"]
        (row,) = np.flatnonzero((table["class"] == name) & (table["link"] == "bottleneck"))
        return 1e3 * float(table[f"queue_delay_{statistic}_s"][row])

    return read


def _queue_delays(line: dict[str, str], side: str, name: str) -> list[Value]:
    """Return mean and p99 of the queueing delay of a side, measured for the class ``name``."""
    return [
        Value(
            f"{statistic} queueing delay of class {name}",
            "ms",
            float(line[f"qdelay_ms_{side}_{statistic}"]),
            AllowedDifference(0.15, absolute=0.3),
            _queue_delay_ms(name, statistic),
        )
        for statistic in ("mean", "p99")
    ]


def _rate_ratio(answer: Answer) -> float:
    first, second = answer.tables["by_class"]["goodput_bps"][:2]
    return float(first) / float(second)


def _rate_ratio_value(line: dict[str, str]) -> Value:
    ratio = float(line["rate_ratio_d_over_r"])
    return Value("rate ratio", "", ratio, AllowedDifference(0.1), _rate_ratio)


def _simula_flows(line: dict[str, str], side: str) -> dict[str, Any]:
    stack, ecn = _SIMULA_STACKS[line[f"flow_{side}"]]
    half = f"{float(line[f'rtt_{side}_ms']) / 2:g}ms"
    tcp = {"ecn": ecn, "pacing": "fq"}
    return flows(side, stack, int(line[f"n_{side}"]), kernel="5.10", delay=half, tcp=tcp)


def _active_flows(line: dict[str, str], side: str) -> int:
    """Return how many flows of a side had a rate above 0, by percentiles over flows and times.

    A share of 20 % per idle flow is 0. Starved flows are also idle at times, so all count as active
    if they have less than 1 Mbit/s.
    """
    count = int(line[f"n_{side}"])
    rates = {
        name: float(line.get(f"rate_per_flow_mbps_{side}_{name}") or math.nan)
        for name in ("p1", "p25", "p75", "mean")
    }
    if not rates["mean"] > 1.0:
        return count
    zero = max(
        (int(name[1:]) for name, rate in rates.items() if name[0] == "p" and not rate), default=0
    )
    return count - math.ceil(count * zero / 100)


def _variants_with_active_flows(
    line: dict[str, str], classes: list[dict[str, Any]], tables: dict[str, Any]
) -> tuple[Variant, ...]:
    """Return the scenario without flows whose measured rate was 0, if there are any."""
    active = [_active_flows(line, side) for side in "dr"]
    if active == [entry["flows"] for entry in classes]:
        return ()
    reason = f"{active[0]} and {active[1]} flows, as many as had a rate above 0"
    changed = [entry | {"flows": flows} for entry, flows in zip(classes, active, strict=True)]
    others = tables["class"][len(classes) :]
    return (Variant(reason, tables | {"class": [*changed, *others]}),)


def _mixed_rtts(lines: Lines) -> Iterator[Cell]:
    for line in lines:
        sides = [side for side in "dr" if int(line[f"n_{side}"] or 0) and line[f"rtt_{side}_ms"]]
        if line["set"] != "mixed_rtt" or not sides:
            continue
        rate = float(line["link_mbps"])
        classes = [_simula_flows(line, side) for side in sides]
        values = [value for side in sides for value in _queue_delays(line, side, side)]
        if len(sides) == 2:
            values.insert(0, _rate_ratio_value(line))
        rtts = tuple(line[f"rtt_{side}_ms"] if side in sides else "-" for side in "dr")
        yield Cell(
            (line["aqm"], line["flow_d"], rtts[0], line["flow_r"], rtts[1]),
            f"{line['aqm']}, {line['flow_d']} and {line['flow_r']}",
            network(
                link(rate, **_SIMULA_QUEUES[line["aqm"]]), classes, warmup_s=20, duration_s=120
            ),
            tuple(values),
            packets(rate, 120),
        )


SIMULA = CellSet(
    "DualPI2",
    "Prague and CUBIC with ECN beside CUBIC and Reno, mixed RTTs",
    ("queue", "class d", "RTT d (ms)", "class r", "RTT r (ms)"),
    "dualpi2_simula.csv",
    _mixed_rtts,
    (
        "De Schepper, Albisser, Tilmans, Briscoe, Dual queue coupled AQM, arXiv 2209.01078: one "
        "flow of each class at 40 Mbit/s. The hosts used kernel 5.10 of L4STeam with Prague v0.6 "
        "of June 2021, and fq. The queue was below htb.",
    ),
    _PACKAGE,
)

_UDP_PAYLOAD = 1472


def _overload(lines: Lines) -> Iterator[Cell]:
    # A line has the delays of the TCP packets or of the UDP packets of the same run.
    runs: defaultdict[tuple[str, ...], dict[str, dict[str, str]]] = defaultdict(dict)
    for line in lines:
        if line["set"] == "overload":
            keys = ("aqm", "flow_d", "flow_r", "udp_d_mbps", "udp_r_mbps")
            runs[tuple(line[key] for key in keys)][line["probe"]] = line
    for (aqm, flow_d, flow_r, *udp), of_probe in runs.items():
        if "tcp" not in of_probe:
            continue
        line = of_probe["tcp"]
        rate = float(line["link_mbps"])
        side = "d" if float(udp[0]) else "r"
        offered = max(map(float, udp))
        datagrams: dict[str, Any] = {
            "kind": "messages",
            "size": "1500B",
            "interval": f"{8 * _UDP_PAYLOAD / offered:.6g}us",
        }
        if side == "d":
            datagrams["ecn"] = "ect1"
        half = f"{float(line['rtt_d_ms']) / 2:g}ms"
        classes = [_simula_flows(line, side) for side in "dr"]
        unresponsive = {"name": "udp", "flows": 1, "route": ["bottleneck"], "delay": half}
        values = [_rate_ratio_value(line)]
        values += [value for of in "dr" for value in _queue_delays(line, of, of)]
        if "udp" in of_probe:
            values += _queue_delays(of_probe["udp"], side, "udp")
        tables = network(
            link(rate, **_SIMULA_QUEUES[aqm]),
            [*classes, unresponsive | {"traffic": datagrams}],
            warmup_s=20,
            duration_s=60,
        )
        yield Cell(
            (aqm, flow_d, flow_r, side, f"{offered:g}"),
            f"{aqm}, UDP in class {side}",
            tables,
            tuple(values),
            packets(max(rate, offered), 60),
            _variants_with_active_flows(line, classes, tables),
        )


OVERLOAD = CellSet(
    "Overload",
    "Five flows of each class beside unresponsive UDP, DualPI2",
    ("queue", "class d", "class r", "UDP in class", "UDP (Mbit/s)"),
    "dualpi2_simula.csv",
    _overload,
    (
        "The same source measured five flows of each class at 100 Mbit/s with an RTT of 10 ms "
        "beside unresponsive UDP of 50 to 200 Mbit/s. The UDP packets carry ECT(1) in class d and "
        "no ECN in class r. DualPI2 uses drop_on_overload, drop_dequeue and a classic_protection "
        "of 10 %. In most runs, some flows had no rate at all (first quartile 0); the change omits "
        "these flows.",
    ),
    _PACKAGE,
)

_PAM_FAMILIES = {
    "cubic_ecn": ("linux-cubic", True),
    "cubic_ECN_Prague_1_vs_N_N_vs_1_N_vs_N": ("linux-cubic", True),
    "cubic_noecn": ("linux-cubic", False),
    "bbrv1_noecn": ("linux-bbr", False),
    "bbrv3_noecn": ("bbr3", False),
}
"""Stack of the classic flow, and whether it uses ECN."""

_BBR3_FAMILIES = {"ecnlow-bbrv3_2ms": ("bbr3", True)}
"""The same, for routes with the feature ``ecn_low``."""

_FALLBACK_FAMILIES = {"cubic_ecn_fallback": ("linux-cubic", True)}
"""The same, for Prague with ``prague_ecn_fallback = 1``."""

_FLOWS_WITH_SMALL_WINDOWS = 20
"""Flows that share 100 Mbit/s with windows of at most four packets each at 10 ms."""

# The column threshold_ms has the target of PIE and DualPI2, and of CoDel.
_PAM_QUEUES: dict[str, dict[str, Any]] = {
    "FIFO": {},
    "Codel": {"queue": _ONE_QUEUE},
    "Codel_drop": {"queue": _ONE_QUEUE | {"ecn": False}},
    "FQ_Codel": {"queue": _FQ_CODEL},
    "FQ_Codel_L4S": {"queue": _FQ_CODEL | {"ce_threshold": "1ms", "ce_threshold_selector": "ect1"}},
    "pie_drop": {"queue": _PIE | {"ecn": False}},
    "DualPI2": {"queue": {"kind": "dualpi2"}},
}


def _pam_queue(aqm: str, threshold_ms: str) -> dict[str, Any]:
    """Return the table of a queue whose target is the threshold, in ms, or ``none``."""
    tables = _PAM_QUEUES[aqm]
    return {name: queue | {"target": f"{threshold_ms}ms"} for name, queue in tables.items()}


def _pam(lines: Lines, *, families: dict[str, tuple[str, bool]], fallback: bool) -> Iterator[Cell]:
    pairs: defaultdict[tuple[str, ...], dict[str, dict[str, str]]] = defaultdict(dict)
    for line in lines:
        is_simulated = line["family"] in families and line["aqm"] in _PAM_QUEUES
        if is_simulated and line["group"] != "L4S-Compatible BBRv2 vs Classic":
            flow_counts = (line["n_l4s"], line["n_classic"])
            key = (line["family"], line["aqm"], line["buffer_bdp"], line["rtt_ms"], *flow_counts)
            pairs[key]["prague" if line["flow_cc"] == "prague" else "classic"] = line
    rate = 100.0
    for (family, aqm, buffer, rtt, *numbers), pair in pairs.items():
        if len(pair) != 2:
            continue
        queue = _pam_queue(aqm, pair["prague"]["threshold_ms"])
        stack, ecn = families[family]
        limit = float(buffer) * rate * float(rtt) * 1000 / 8
        prague = {"kernel": "5.15", "delay": f"{float(rtt) / 2:g}ms"}
        classic = prague | ({"kernel": "6.4"} if stack == "bbr3" else {})
        classes = [
            flows("prague", "prague", int(numbers[0]), **prague, tcp={"ecn_fallback": fallback}),
            flows("classic", stack, int(numbers[1]), **classic, tcp={"ecn": ecn}),
        ]
        values = []
        for index, flow in enumerate(("prague", "classic")):
            line = pair[flow]
            values += [
                Value(
                    f"goodput of {flow}",
                    "Mbit/s",
                    float(line["tput_mbps_mean"]),
                    AllowedDifference(0.1, absolute=5),
                    class_reader("goodput_bps", index, 1e-6),
                    float(line["tput_ci95"]),
                ),
                Value(
                    f"smoothed RTT of {flow}",
                    "ms",
                    float(line["srtt_mean_ms"]),
                    AllowedDifference(0.15, absolute=1),
                    class_reader("rtt_mean_s", index, 1e3),
                    float(line["srtt_ci95"]),
                ),
            ]
        tables = network(link(rate, limit, **queue), classes, duration_s=60)
        variants = []
        if sum(map(int, numbers)) >= _FLOWS_WITH_SMALL_WINDOWS:
            newer = [flows("prague", "prague-2024", int(numbers[0]), **prague), classes[1]]
            reason = "fractional windows, as of Prague of 2024"
            variants.append(Variant(reason, tables | {"class": newer}))
        if fallback:
            noisy = [entry | {"tcp": entry["tcp"] | {"host_noise": "1ms"}} for entry in classes]
            reason = "host noise of 1 ms, as of virtual machines"
            variants.append(Variant(reason, tables | {"class": noisy}))
        yield Cell(
            (family.partition("_Prague")[0].lower(), aqm, buffer, rtt, *numbers),
            f"{family}, {aqm}",
            tables,
            tuple(values),
            packets(rate, 60),
            tuple(variants),
        )


PAM = CellSet(
    "Pairs with Prague",
    "Prague beside CUBIC, BBRv1 and BBRv3 behind seven queues, PAM 2025",
    ("classic flow", "queue", "buffer (BDP)", "RTT (ms)", "Prague flows", "classic flows"),
    "l4s_pam2025.csv",
    partial(_pam, families=_PAM_FAMILIES, fallback=False),
    (
        "The source is PAM 2025, A Deployment of L4S: goodput and smoothed RTT at 100 Mbit/s over "
        "10 trials, as sums of up to 25 flows of each kind. The hosts used kernel 5.15 of L4STeam, "
        "and kernel 6.4 for BBRv3. The page omits BBRv2, the queue FQ, and BBRv3 with ECN at 10 "
        "ms, where it ignores marks.",
    ),
    _PACKAGE,
)

FALLBACK = CellSet(
    "Fallback",
    "Prague that detects classic ECN beside CUBIC, PAM 2025",
    PAM.columns,
    PAM.table,
    partial(_pam, families=_FALLBACK_FAMILIES, fallback=True),
    (
        "The same source, with prague_ecn_fallback = 1. The detection depends on the variation of "
        "the RTT, which virtual machines increase; the change is a host noise of 1 ms.",
    ),
    _PACKAGE,
)

BBR3 = CellSet(
    "BBRv3 with ECN",
    "BBRv3 that responds to marks beside Prague, RTT 2 ms, PAM 2025",
    PAM.columns,
    PAM.table,
    partial(_pam, families=_BBR3_FAMILIES, fallback=False),
    (
        "The same source, with BBRv3 of kernel 6.4 and ECT(0) on a route with the feature ecn_low. "
        "At 100 Mbit/s, 2 ms are the transmission time of 17 packets.",
    ),
    _PACKAGE,
)


@dataclass(frozen=True, slots=True)
class SituationSet(CellSet):
    """Cells of several sets that measured the same situation, with each version of Prague.

    Attributes
    ----------
    situations
        Per situation, the sets and the labels of their cells. Prague is the first class of each.
    """

    situations: tuple[tuple[str, tuple[tuple[CellSet, tuple[str, ...]], ...]], ...] = ()

    def read(self, folders: Sequence[Path]) -> tuple[Cell, ...]:
        """Return the cells of the situations that at least two tables contain."""
        known = {
            (each.name, cell.label): cell
            for each in dict.fromkeys(of for _, cells in self.situations for of, _ in cells)
            for cell in each.read(folders)
        }
        result: list[Cell] = []
        for situation, cells in self.situations:
            found = [
                (of, known[of.name, label]) for of, label in cells if (of.name, label) in known
            ]
            if len({of.table for of, _ in found}) > 1:
                result += (each for of, cell in found for each in _versions(situation, of, cell))
        return tuple(result)


def _versions(situation: str, cell_set: CellSet, cell: Cell) -> Iterator[Cell]:
    prague, *others = cell.tables["class"]
    detects = prague["tcp"].get("ecn_fallback", False)
    share = Value("share of Prague", "%", _share_of_first(cell), None, share_percent)
    for stack in ("prague",) if detects else ("prague-2020", "prague", "prague-2024"):
        tcp = {name: value for name, value in prague["tcp"].items() if name != "ecn_fallback"}
        own = prague | {"tcp": tcp | {"stack": stack} | ({"ecn_fallback": True} if detects else {})}
        yield Cell(
            (situation, cell_set.name, stack + " with detection" * detects),
            situation,
            cell.tables | {"class": [own, *others]},
            (share,),
            cell.packets,
        )


def _share_of_first(cell: Cell) -> float:
    """Return the measured share of the first class in the goodput, %."""
    measured = {value.quantity: value.measured for value in cell.values}
    if "share of flow 1" in measured:
        return measured["share of flow 1"]
    first = measured["goodput of prague"]
    return 100 * first / (first + measured["goodput of classic"])


SITUATIONS = SituationSet(
    "Contradictions",
    "One flow of Prague beside one of CUBIC, in several sets",
    ("situation", "set", "simulated version"),
    PAM.table,
    PAM.cells,
    (
        "Several sets measured this situation. It is simulated under the conditions of each set "
        "with every version of Prague. The sets are RTT fairness (50 Mbit/s, a pfifo of 24 BDP, "
        "Prague of August 2020), pairs with Prague and fallback (100 Mbit/s, a FIFO of 8 BDP, "
        "Prague of 2021) and classic queues (50 Mbit/s, RTT 20 ms, Prague of August 2020).",
    ),
    _PACKAGE,
    situations=(
        (
            "DualPI2, 10 ms",
            (
                (RTT_FAIRNESS, ("dualpi2", "prague", "10", "cubic", "10")),
                (PAM, ("cubic_ecn", "DualPI2", "2.0", "10", "1", "1")),
                (FALLBACK, ("cubic_ecn_fallback", "DualPI2", "2.0", "10", "1", "1")),
            ),
        ),
        (
            "Deep FIFO, 10 ms",
            (
                (RTT_FAIRNESS, ("pfifo(1000)", "prague", "10", "cubic", "10")),
                (PAM, ("cubic_ecn", "FIFO", "8.0", "10", "1", "1")),
            ),
        ),
        (
            "CoDel with classic ECN, one queue",
            (
                (CLASSIC_QUEUES, ("fq_codel(1q)", "prague", "20", "cubic-ecn", "20")),
                (FALLBACK, ("cubic_ecn_fallback", "Codel", "8.0", "10", "1", "1")),
            ),
        ),
    ),
)

SETS: tuple[CellSet, ...] = (
    *(RTT_FAIRNESS, CLASSIC_QUEUES, SIMULA, OVERLOAD, PAM, FALLBACK, BBR3),
    SITUATIONS,
)
"""All sets, in the order of the page."""
