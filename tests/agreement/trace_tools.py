"""Results of tcpcast, tcptrace, tshark and an independent count for a capture, per direction.

The reference captures are not part of the project. Their values by tcptrace 6.6.7, tshark 4.0 and
an independent count are in ``reference.csv`` in the same folder. For captures that it omits, the
installed tools are run.
"""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
from collections import defaultdict
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tcpcast

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tcpcast.captures import Capture

HERE = Path(__file__).parent
TOOLS = ("tcptrace", "tshark", "third")
QUANTITIES = {
    "packets": ("packets_{}", "packets"),
    "data packets": ("data_pkts_{}", "data_packets"),
    "bytes": ("bytes_{}", "bytes"),
    "unique bytes": ("unique_bytes_{}", "unique_bytes"),
    "retransmitted": ("rexmt_{}", "retransmissions"),
    "duplicate acks": ("dupacks_{}", "duplicate_acks"),
    "RTT, ms": ("rtt_avg_ms_{}", "rtt_karn_mean_s"),
}
"""Compared columns of ``reference.csv`` and of tcpcast's table."""

LEFT_OUT = {("tcptrace", "duplicate acks"), ("tshark", "RTT, ms")}
"""Quantities that a tool counts by a different rule, which the documentation explains."""

RTT_SHARE, RTT_MS = 0.03, 0.2
"""Tolerances of mean round trips: tcptrace also includes SYNs and FINs."""

Direction = tuple[str, str, int]
"""Sender and receiver of the data, and the index of the connection between them."""


@dataclass
class Counted:
    """Values of each tool for one direction, as written in a table; empty if unknown."""

    figures: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))

    def has_data(self) -> bool:
        return any(figure not in ("", "0") for figure in self.figures["data packets"].values())

    def completed_by(self, other: Counted) -> bool:
        """Merge a row of another tool, if it has the same direction."""
        mine, others = self.figures["packets"], other.figures["packets"]
        if any(mine[tool] and others[tool] for tool in TOOLS):
            return False
        for quantity, figures in other.figures.items():
            self.figures[quantity] |= {tool: figure for tool, figure in figures.items() if figure}
        return True


def captures() -> Path | None:
    """Return the folder of the reference captures, or None."""
    told = os.environ.get("TCPCAST_CAPTURES")
    beside = [parent / "shared" / "captures" for parent in HERE.parents]
    places = [Path(told)] if told else beside
    return next((place for place in places if place.is_dir()), None)


def endpoint(address: str, port: str | int) -> str:
    """Return an endpoint in tcpcast's notation."""
    whole = address if not address.startswith(":") else "::" + address.lstrip(":")
    listed_lines = ip_address(whole)  # tcptrace omits a colon of ::1
    return f"[{listed_lines}]:{port}" if listed_lines.version == 6 else f"{listed_lines}:{port}"


def again(retransmitted: str, out_of_order: str) -> str:
    """Return retransmitted packets and, after a plus sign, packets that a tool calls reordered."""
    late = out_of_order not in ("", "0") and retransmitted != ""
    return f"{retransmitted}+{out_of_order}" if late else retransmitted


def reference(path: Path) -> dict[str, dict[Direction, Counted]]:
    """Return ``reference.csv``: values per capture and direction."""
    files: dict[str, dict[Direction, Counted]] = defaultdict(dict)
    with path.open(encoding="utf-8", newline="") as table:
        for row in csv.DictReader(table):
            ends = endpoint(row["src"], row["sport"]), endpoint(row["dst"], row["dport"])
            listed_lines = files[row["file"]]
            number = sum(direction[:2] == ends for direction in listed_lines)
            before = listed_lines.get((*ends, number - 1))
            counted = _of_row(row)
            if before is None or not before.completed_by(counted):
                listed_lines[*ends, number] = counted
    return files


def _of_row(row: Mapping[str, str]) -> Counted:
    counted = Counted()
    for quantity, (pattern, _) in QUANTITIES.items():
        for tool in TOOLS:
            column = pattern.format({"third": "own"}.get(tool, tool))
            if quantity == "RTT, ms" and tool == "third":
                column += "_karn"
            counted.figures[quantity][tool] = row.get(column, "")
    counted.figures["retransmitted"]["tcptrace"] = again(row["rexmt_tcptrace"], row["ooo_tcptrace"])
    counted.figures["retransmitted"]["tshark"] = again(row["rexmt_all_tshark"], row["ooo_tshark"])
    return counted


def own(capture: Capture) -> dict[Direction, dict[str, float]]:
    """Return tcpcast's values for each direction that carries data."""
    table = capture.connections
    result: dict[Direction, dict[str, float]] = {}
    for place in range(table["src"].size):
        ends = str(table["src"][place]), str(table["dst"][place])
        number = sum(direction[:2] == ends for direction in result)
        figures = {name: table[column][place] for name, (_, column) in QUANTITIES.items()}
        figures["RTT, ms"] = round(1e3 * float(figures["RTT, ms"]), 3)
        result[*ends, number] = figures
    return result


def differences(capture: Path, counted: Mapping[Direction, Counted]) -> Iterator[tuple[str, ...]]:
    """Yield each value that differs: direction, quantity, tcpcast's value, the tools' values."""
    listed_lines = own(tcpcast.trace(capture))
    for direction, tools in counted.items():
        if not tools.has_data():
            continue
        source, to, number = direction
        figures = listed_lines.get(direction)
        for quantity, output in tools.figures.items():
            here = "absent" if figures is None else f"{figures[quantity]:g}"
            if figures is not None and quantity != "RTT, ms":
                here = str(int(figures[quantity]))
            cells = {tool: "" if (tool, quantity) in LEFT_OUT else output[tool] for tool in TOOLS}
            if any(cell and not alike(quantity, here, cell) for cell in cells.values()):
                yield capture.name, source, to, str(number), quantity, here, *cells.values()


def alike(quantity: str, here: str, there: str) -> bool:
    """Return True if two values agree."""
    if quantity != "RTT, ms":
        return here == there.partition("+")[0]
    if here == "nan":
        return float(there) == 0
    return abs(float(here) - float(there)) <= max(RTT_MS, RTT_SHARE * float(here))


def asked(capture: Path, folder: Path) -> dict[Direction, Counted]:
    """Run the installed tools on a capture; ``folder`` is for their output."""
    result: dict[Direction, Counted] = defaultdict(Counted)
    for tool, ask in (("tcptrace", ask_tcptrace), ("tshark", ask_tshark)):
        for direction, figures in ask(capture, folder).items():
            for quantity, figure in figures.items():
                result[direction].figures[quantity][tool] = figure
    for counted in result.values():
        for quantity in QUANTITIES:
            figures = counted.figures[quantity]
            counted.figures[quantity] = {tool: figures.get(tool, "") for tool in TOOLS}
    return dict(result)


def installed(*programs: str) -> bool:
    return all(shutil.which(program) for program in programs)


def ask_tcptrace(capture: Path, folder: Path) -> dict[Direction, dict[str, str]]:
    """Return tcptrace's values per direction; empty if it cannot read the capture."""
    command = ["tcptrace", "-lnr", "--csv", str(capture.resolve())]
    run = subprocess.run(command, capture_output=True, cwd=folder, check=False)
    lines = run.stdout.decode(errors="replace").splitlines()
    table = [line for line in lines if line.strip() and not line.startswith("#")]
    result: dict[Direction, dict[str, str]] = {}
    for row in csv.DictReader(table, skipinitialspace=True):
        for one, other in ("ab", "ba"):
            ends = [endpoint(row[f"host_{end}"], row[f"port_{end}"]) for end in (one, other)]
            number = sum(list(direction[:2]) == ends for direction in result)
            result[ends[0], ends[1], number] = _of_tcptrace(row, f"_{one}2{other}")
    return result


def _of_tcptrace(row: Mapping[str, Any], way: str) -> dict[str, str]:
    figure = {str(name).removesuffix(way): str(value).strip() for name, value in row.items()}
    return {
        "packets": figure["total_packets"],
        "data packets": figure["actual_data_pkts"],
        "bytes": figure["actual_data_bytes"],
        "unique bytes": figure["unique_bytes_sent"],
        "retransmitted": again(figure["rexmt_data_pkts"], figure["outoforder_pkts"]),
        "RTT, ms": figure["RTT_avg"] if figure["RTT_samples"] != "0" else "",
    }


FIELDS = [
    "tcp.stream", "ip.src", "ipv6.src", "tcp.srcport", "ip.dst", "ipv6.dst", "tcp.dstport",
    "tcp.len", "tcp.analysis.retransmission", "tcp.analysis.out_of_order",
    "tcp.analysis.duplicate_ack",
]  # fmt: skip


def ask_tshark(capture: Path, folder: Path) -> dict[Direction, dict[str, str]]:
    """Return tshark's values per direction."""
    fields = [argument for name in FIELDS for argument in ("-e", name)]
    options = ["-Y", "tcp", "-T", "fields", "-E", "occurrence=l"]
    command = ["tshark", "-r", str(capture.resolve()), *options, *fields]
    run = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    sums: dict[tuple[str, str, str], list[int]] = defaultdict(lambda: [0] * 6)
    for line in run.stdout.splitlines():
        stream, four, six, port, four_to, six_to, port_to, length, *flags = line.split("\t")
        source, to = endpoint(four or six, port), endpoint(four_to or six_to, port_to)
        retransmitted, late, duplicate = (flag != "" for flag in flags)
        sent, heard = sums[stream, source, to], sums[stream, to, source]
        for place, one in enumerate((1, int(length) > 0, int(length), retransmitted, late)):
            sent[place] += one
        heard[5] += duplicate
    result: dict[Direction, dict[str, str]] = {}
    for (_, source, to), counts in sums.items():
        number = sum(direction[:2] == (source, to) for direction in result)
        packets, data, octets, twice, reordered, duplicates = map(str, counts)
        result[source, to, number] = {
            "packets": packets, "data packets": data, "bytes": octets,
            "retransmitted": again(twice, reordered), "duplicate acks": duplicates,
        }  # fmt: skip
    return result
