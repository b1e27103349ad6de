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

EXCLUDED = {("tcptrace", "duplicate acks"), ("tshark", "RTT, ms")}
"""Quantities that a tool counts by a different rule, which the documentation explains."""

RTT_SHARE, RTT_MS = 0.03, 0.2
"""Tolerances of mean round trips: tcptrace also includes SYNs and FINs."""

Direction = tuple[str, str, int]
"""Sender and receiver of the data, and the index of the connection between them."""


@dataclass
class Counted:
    """Values of each tool for one direction, as written in a table; empty if unknown."""

    values: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))

    def has_data(self) -> bool:
        return any(value not in ("", "0") for value in self.values["data packets"].values())

    def merge_row(self, other: Counted) -> bool:
        """Merge a row of another tool, if it has the same direction."""
        mine, others = self.values["packets"], other.values["packets"]
        if any(mine[tool] and others[tool] for tool in TOOLS):
            return False
        for quantity, values in other.values.items():
            self.values[quantity] |= {tool: value for tool, value in values.items() if value}
        return True


def captures() -> Path | None:
    """Return the folder of the reference captures, or None."""
    folder = os.environ.get("TCPCAST_CAPTURES")
    defaults = [parent / "shared" / "captures" for parent in HERE.parents]
    folders = [Path(folder)] if folder else defaults
    return next((path for path in folders if path.is_dir()), None)


def endpoint(address: str, port: str | int) -> str:
    """Return an endpoint in tcpcast's notation."""
    whole = address if not address.startswith(":") else "::" + address.lstrip(":")
    parsed = ip_address(whole)  # tcptrace omits a colon of ::1
    return f"[{parsed}]:{port}" if parsed.version == 6 else f"{parsed}:{port}"


def retransmission_text(retransmitted: str, out_of_order: str) -> str:
    """Return retransmitted packets and, after a plus sign, packets that a tool calls reordered."""
    late = out_of_order not in ("", "0") and retransmitted != ""
    return f"{retransmitted}+{out_of_order}" if late else retransmitted


def reference(path: Path) -> dict[str, dict[Direction, Counted]]:
    """Return ``reference.csv``: values per capture and direction."""
    files: dict[str, dict[Direction, Counted]] = defaultdict(dict)
    with path.open(encoding="utf-8", newline="") as table:
        for row in csv.DictReader(table):
            ends = endpoint(row["src"], row["sport"]), endpoint(row["dst"], row["dport"])
            directions = files[row["file"]]
            number = sum(direction[:2] == ends for direction in directions)
            before = directions.get((*ends, number - 1))
            counted = _reference_row(row)
            if before is None or not before.merge_row(counted):
                directions[*ends, number] = counted
    return files


def _reference_row(row: Mapping[str, str]) -> Counted:
    counted = Counted()
    for quantity, (pattern, _) in QUANTITIES.items():
        for tool in TOOLS:
            column = pattern.format({"third": "own"}.get(tool, tool))
            if quantity == "RTT, ms" and tool == "third":
                column += "_karn"
            counted.values[quantity][tool] = row.get(column, "")
    counted.values["retransmitted"]["tcptrace"] = retransmission_text(
        row["rexmt_tcptrace"], row["ooo_tcptrace"]
    )
    counted.values["retransmitted"]["tshark"] = retransmission_text(
        row["rexmt_all_tshark"], row["ooo_tshark"]
    )
    return counted


def tcpcast_values(capture: Capture) -> dict[Direction, dict[str, float]]:
    """Return tcpcast's values for each direction that carries data."""
    table = capture.connections
    result: dict[Direction, dict[str, float]] = {}
    for index in range(table["src"].size):
        ends = str(table["src"][index]), str(table["dst"][index])
        number = sum(direction[:2] == ends for direction in result)
        values = {name: table[column][index] for name, (_, column) in QUANTITIES.items()}
        values["RTT, ms"] = round(1e3 * float(values["RTT, ms"]), 3)
        result[*ends, number] = values
    return result


def differences(capture: Path, counted: Mapping[Direction, Counted]) -> Iterator[tuple[str, ...]]:
    """Yield each value that differs: direction, quantity, tcpcast's value, the tools' values."""
    own_directions = tcpcast_values(tcpcast.trace(capture))
    for direction, tools in counted.items():
        if not tools.has_data():
            continue
        source, to, number = direction
        values = own_directions.get(direction)
        for quantity, texts in tools.values.items():
            own_value = "absent" if values is None else f"{values[quantity]:g}"
            if values is not None and quantity != "RTT, ms":
                own_value = str(int(values[quantity]))
            cells = {tool: "" if (tool, quantity) in EXCLUDED else texts[tool] for tool in TOOLS}
            if any(cell and not agree(quantity, own_value, cell) for cell in cells.values()):
                yield capture.name, source, to, str(number), quantity, own_value, *cells.values()


def agree(quantity: str, own_value: str, other_value: str) -> bool:
    """Return True if two values agree."""
    if quantity != "RTT, ms":
        return own_value == other_value.partition("+")[0]
    if own_value == "nan":
        return float(other_value) == 0
    return abs(float(own_value) - float(other_value)) <= max(RTT_MS, RTT_SHARE * float(own_value))


def run_tools(capture: Path, folder: Path) -> dict[Direction, Counted]:
    """Run the installed tools on a capture; ``folder`` is for their output."""
    result: dict[Direction, Counted] = defaultdict(Counted)
    for tool, run in (("tcptrace", run_tcptrace), ("tshark", run_tshark)):
        for direction, values in run(capture, folder).items():
            for quantity, value in values.items():
                result[direction].values[quantity][tool] = value
    for counted in result.values():
        for quantity in QUANTITIES:
            values = counted.values[quantity]
            counted.values[quantity] = {tool: values.get(tool, "") for tool in TOOLS}
    return dict(result)


def installed(*programs: str) -> bool:
    return all(shutil.which(program) for program in programs)


def run_tcptrace(capture: Path, folder: Path) -> dict[Direction, dict[str, str]]:
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
            result[ends[0], ends[1], number] = _tcptrace_row(row, f"_{one}2{other}")
    return result


def _tcptrace_row(row: Mapping[str, Any], suffix: str) -> dict[str, str]:
    cells = {str(name).removesuffix(suffix): str(value).strip() for name, value in row.items()}
    return {
        "packets": cells["total_packets"],
        "data packets": cells["actual_data_pkts"],
        "bytes": cells["actual_data_bytes"],
        "unique bytes": cells["unique_bytes_sent"],
        "retransmitted": retransmission_text(cells["rexmt_data_pkts"], cells["outoforder_pkts"]),
        "RTT, ms": cells["RTT_avg"] if cells["RTT_samples"] != "0" else "",
    }


FIELDS = [
    "tcp.stream", "ip.src", "ipv6.src", "tcp.srcport", "ip.dst", "ipv6.dst", "tcp.dstport",
    "tcp.len", "tcp.analysis.retransmission", "tcp.analysis.out_of_order",
    "tcp.analysis.duplicate_ack",
]  # fmt: skip


def run_tshark(capture: Path, folder: Path) -> dict[Direction, dict[str, str]]:
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
        sent, received = sums[stream, source, to], sums[stream, to, source]
        for index, increment in enumerate((1, int(length) > 0, int(length), retransmitted, late)):
            sent[index] += increment
        received[5] += duplicate
    result: dict[Direction, dict[str, str]] = {}
    for (_, source, to), counts in sums.items():
        number = sum(direction[:2] == (source, to) for direction in result)
        packets, data, octets, retransmissions, reordered, duplicates = map(str, counts)
        result[source, to, number] = {
            "packets": packets, "data packets": data, "bytes": octets,
            "retransmitted": retransmission_text(retransmissions, reordered),
            "duplicate acks": duplicates,
        }  # fmt: skip
    return result
