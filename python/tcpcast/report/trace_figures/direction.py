"""What is drawn of one direction of a capture."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.selection import rows_of, tables
from tcpcast.report.chart import REFERENCE
from tcpcast.report.quantity import amount
from tcpcast.report.trace import worst_first

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tcpcast.captures import Capture, Table

    Floats = np.ndarray[Any, np.dtype[np.float64]]

FEWEST_PACKETS = 5
"""Fewer packets have nothing to show; they are drawn only where no direction sent more."""
SHORT_S = 0.2
"""Up to this, times are shown in ms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Direction:
    """One direction: its row of ``connections``, and its rows of the other tables."""

    file: str
    row: dict[str, Any]
    by_table: dict[str, Table]

    @property
    def name(self) -> str:
        """A name for files: number of the connection and both ends."""
        return f"{self.row['connection']}-{in_file(self.row['src'])}-{in_file(self.row['dst'])}"

    def table(self, name: str) -> Table | None:
        """Return what a table has of the direction; None where it has nothing."""
        found = self.by_table.get(name)
        return found if found and next(iter(found.values())).size else None

    def seconds(self, moments: np.ndarray[Any, Any]) -> Floats:
        """Return times as seconds since the direction's first data packet."""
        since: Floats = (moments - self.row["start"]) / np.timedelta64(1, "ns") * 1e-9
        return since

    def entitle(self, figure: Figure, axes: Axes, pad: float = 6.0) -> None:
        """Write the direction and its main results above a figure."""
        row = self.row
        figure.suptitle(f"{self.file}: {row['src']} > {row['dst']}", fontsize=11)
        said = [
            f"{row['data_packets']:,} data packets, {row['retransmissions']:,} retransmitted",
            f"{row['td']} TD, {row['to']} TO",
            *_amount("", row["throughput_bps"], "bit/s"),
            *_amount("mean RTT ", row["rtt_mean_s"], "s"),
        ]
        axes.set_title("; ".join(said), fontsize=8, color=REFERENCE, pad=pad)

    def label_time(self, axes: Axes) -> None:
        """Say on the axis where time begins."""
        start = str(self.row["start"].astype("datetime64[ms]")).replace("T", " ")
        short = max(map(abs, axes.get_xlim())) < SHORT_S
        if short:
            axes.xaxis.set_major_formatter(lambda value, _: f"{value * 1e3:g}")
        axes.set_xlabel(f"time ({'ms' if short else 's'}) since {start} UTC")


def _amount(name: str, value: float, unit: str) -> list[str]:
    return [name + amount(float(f"{value:.3g}"), unit)] if np.isfinite(value) else []


def stems(captures: Iterable[Capture]) -> list[str]:
    """Return what names of files begin with: the capture's own, each another."""
    found: list[str] = []
    for capture in captures:
        stem = "stdin" if capture.file == "-" else PurePath(capture.file).name
        stem = in_file(re.sub(r"\.(gz|pcapng|pcap|cap)$", "", re.sub(r"\.gz$", "", stem)))
        number = 2
        unique = stem
        while unique in found:
            unique, number = f"{stem}-{number}", number + 1
        found.append(unique)
    return found


def shown_name(capture: Capture) -> str:
    """Return the capture's name without its folder."""
    return PurePath(capture.file).name


def in_file(text: str) -> str:
    """Return a text as part of a file's name that every system takes."""
    port = re.sub(r":(\d+)$", r"_\1", text)
    return re.sub(r"[^\w.-]+", "-", port.replace("[", "").replace("]", ""))


def worst_directions(capture: Capture, most: int) -> list[Direction]:
    """Return the directions that the report has first, without those of a few packets."""
    order = worst_first(capture.connections)
    many = capture.connections["data_packets"][order] >= FEWEST_PACKETS
    chosen = order[many] if many.any() else order
    return [direction(capture, at) for at in chosen[:most].tolist()]


def direction(capture: Capture, at: int) -> Direction:
    """Return the direction in a row of ``connections``."""
    return Direction(
        file=shown_name(capture),
        row={name: column[at] for name, column in capture.connections.items()},
        by_table={
            name: rows_of(table, at)
            for name, table in tables(capture).items()
            if "direction" in table
        },
    )


def spread(values: Floats) -> Sequence[float]:
    """Return the smallest and the largest of the known values; 0 and 1 where none is."""
    known = values[np.isfinite(values)]
    return (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
