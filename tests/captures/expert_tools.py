"""Counts of tcpcast, tshark's expert information and tcptrace on the same captures, side by side.

``python tests/captures/expert_tools.py CAPTURE...`` prints one row per count that differs
between the programs.
"""

import csv
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import tcpcast

FIGURES = ("zero windows", "window full", "resets", "retransmissions", "out of order")

TSHARK = {
    "zero windows": ("tcp.analysis.zero_window",),
    "window full": ("tcp.analysis.window_full",),
    "resets": ("tcp.connection.rst",),
    "retransmissions": ("tcp.analysis.retransmission",),
    "out of order": ("tcp.analysis.out_of_order",),
}
"""Expert information of tshark for each figure: packets with one of these fields."""

TCPTRACE = {
    "zero windows": "zero_win_adv",
    "resets": "resets_sent",
    "retransmissions": "rexmt_data_pkts",
    "out of order": "outoforder_pkts",
}
"""Columns of tcptrace, for each direction; it does not count segments that fill the window."""


class Row(NamedTuple):
    """One figure of a capture, by each program; empty if the program does not have it."""

    capture: str
    figure: str
    tcpcast: str
    tshark: str
    tcptrace: str


def of_tcpcast(capture: Path) -> dict[str, int]:
    """Return the sums over all directions with data."""
    capture_stats = tcpcast.trace(capture)
    table = capture_stats.connections
    return {
        "zero windows": int(table["zero_windows"].sum()),
        "resets": capture_stats.rest.get("reset", 0) + capture_stats.rest.get("refused", 0),
        "retransmissions": int(table["retransmissions"].sum()),
        "out of order": int(table["out_of_order"].sum()),
    }


def of_tshark(capture: Path) -> dict[str, int]:
    """Return the number of packets with each kind of expert information."""
    names = [name for fields in TSHARK.values() for name in fields]
    fields = [argument for name in names for argument in ("-e", name)]
    command = ["tshark", "-n", "-r", str(capture), "-Y", "tcp", "-T", "fields", *fields]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    counts: Counter[str] = Counter()
    for line in run.stdout.splitlines():
        counts.update(name for name, cell in zip(names, line.split("\t"), strict=True) if cell)
    return {figure: sum(counts[name] for name in fields) for figure, fields in TSHARK.items()}


def of_tcptrace(capture: Path, folder: Path) -> dict[str, int]:
    """Return the sums over all directions; ``folder`` is for the files that it writes."""
    command = ["tcptrace", "-lnr", "--csv", str(capture.resolve())]
    run = subprocess.run(command, capture_output=True, cwd=folder, check=False)
    lines = run.stdout.decode(errors="replace").splitlines()
    table = [line for line in lines if line.strip() and not line.startswith("#")]
    counts = dict.fromkeys(TCPTRACE, 0)
    for row in csv.DictReader(table, skipinitialspace=True):
        for figure, column in TCPTRACE.items():
            counts[figure] += sum(int(row[f"{column}_{way}"]) for way in ("a2b", "b2a"))
    return counts


def compared(capture: Path, folder: Path) -> Iterator[Row]:
    """Yield a row per figure."""
    own, wireshark = of_tcpcast(capture), of_tshark(capture)
    trace = of_tcptrace(capture, folder)
    for figure in FIGURES:
        cells = (str(counts.get(figure, "")) for counts in (own, wireshark, trace))
        yield Row(capture.name, figure, *cells)


def differs(row: Row) -> bool:
    """Return true if two programs count differently."""
    return len({cell for cell in row[2:] if cell}) > 1


def main(captures: Iterable[str]) -> None:
    """Print the rows that differ."""
    table = csv.writer(sys.stdout, lineterminator="\n")
    for capture in map(Path, captures):
        table.writerows(row for row in compared(capture, Path.cwd()) if differs(row))


if __name__ == "__main__":
    main(sys.argv[1:])
