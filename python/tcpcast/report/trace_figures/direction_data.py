"""The data of one direction of a capture, for figures."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures import CAPTURE_SUFFIXES, STANDARD_INPUT, without_compression_suffix
from tcpcast.captures.capture_tables import rows_of_direction, tables_by_name
from tcpcast.captures.table import select_rows
from tcpcast.report.chart import Axis
from tcpcast.report.quantity import three_digit_text
from tcpcast.report.trace import worst_first_order

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tcpcast.array_types import Table
    from tcpcast.captures import Capture

    Floats = np.ndarray[Any, np.dtype[np.float64]]

MIN_PACKETS = 5
"""Directions with fewer packets are drawn only if no direction has more."""
MAX_MILLISECOND_AXIS_S = 0.2
"""Time axes up to this length are labelled in ms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Direction:
    """One direction: its row of ``connections`` and its rows of the other tables."""

    file: str
    row: dict[str, Any]
    by_table: dict[str, Table]

    @property
    def name(self) -> str:
        """Name for files: number of the connection, source and destination."""
        return f"{self.row['connection']}-{file_stem(self.row['src'])}-{file_stem(self.row['dst'])}"

    def table(self, name: str) -> Table | None:
        """Return the rows of the direction in a table, or None if there are none."""
        table = self.by_table.get(name)
        return table if table and next(iter(table.values())).size else None

    def seconds(self, moments: np.ndarray[Any, Any]) -> Floats:
        """Return times in seconds since the direction's first data packet."""
        since: Floats = (moments - self.row["start"]) / np.timedelta64(1, "ns") * 1e-9
        return since

    @property
    def subtitle(self) -> str:
        """The direction and its main results."""
        row = self.row
        facts = [
            f"{self.file}: {row['src']} > {row['dst']}",
            f"{row['data_packets']:,} data packets, {row['retransmissions']:,} retransmitted",
        ]
        for name, value, unit in (
            ("", row["throughput_bps"], "bit/s"),
            ("mean RTT ", row["rtt_mean_s"], "s"),
        ):
            facts += [name + three_digit_text(value, unit)] if np.isfinite(value) else []
        return "; ".join(facts)

    def time_axis(self, low: float, high: float) -> Axis:
        """Return the time axis with its unit and the absolute start time."""
        start = str(self.row["start"].astype("datetime64[ms]")).replace("T", " ")
        if max(-low, high) < MAX_MILLISECOND_AXIS_S:
            label = f"time (ms) since {start} UTC"
            return Axis(label, low, high, ticks=lambda value, _: f"{value * 1e3:g}")
        return Axis(f"time (s) since {start} UTC", low, high)


def file_name_prefixes(captures: Iterable[Capture]) -> list[str]:
    """Return a distinct prefix of file names for each capture, derived from its file name."""
    result: list[str] = []
    for capture in captures:
        file = without_compression_suffix(PurePath(capture.file))
        name = file.stem if file.suffix in CAPTURE_SUFFIXES else file.name
        stem = "stdin" if capture.file == STANDARD_INPUT else file_stem(name)
        number = 2
        unique = stem
        while unique in result:
            unique, number = f"{stem}-{number}", number + 1
        result.append(unique)
    return result


def file_name(capture: Capture) -> str:
    """Return the file name of a capture without its folder."""
    return PurePath(capture.file).name


def file_stem(text: str) -> str:
    """Return a text without characters that some systems forbid in file names."""
    port = re.sub(r":(\d+)$", r"_\1", text)
    return re.sub(r"[^\w.-]+", "-", port.replace("[", "").replace("]", ""))


def worst_directions(capture: Capture, max_count: int) -> list[Direction]:
    """Return the ``max_count`` worst directions, worst first, without directions of few packets."""
    order = worst_first_order(capture.connections)
    many = capture.connections["data_packets"][order] >= MIN_PACKETS
    chosen = order[many] if many.any() else order
    return [direction_of_row(capture, row) for row in chosen[:max_count].tolist()]


def direction_of_row(capture: Capture, row: int) -> Direction:
    """Return the direction in a row of ``connections``."""
    return Direction(
        file=file_name(capture),
        row=select_rows(capture.connections, row),
        by_table={
            name: rows_of_direction(table, row)
            for name, table in tables_by_name(capture).items()
            if "direction" in table
        },
    )
