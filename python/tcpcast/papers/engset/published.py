"""The paper's printed figures, as data.

"The paper" throughout this package is *The TCP-modified Engset Model Revisited*, arXiv:1403.1381
(2014). Each of its tables 1 to 10 is a CSV file in ``data``, a line for each printed row or cell,
with the digits as printed; ``text.csv`` holds figures that stand in the running text. The column
``misprint`` names what is wrong in print, ``note`` says how that is known, and columns that end in
``_corrected`` (in Table 1 the row's place) give what must be meant.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from tcpcast.errors import DomainError
from tcpcast.papers.reproduction import Printed

if TYPE_CHECKING:
    from collections.abc import Iterator

CITATION = "The TCP-modified Engset Model Revisited, arXiv:1403.1381 (2014)"

TABLES: dict[int, str] = {
    1: "Measured proportion of file sizes per size intervals",
    2: "Saturation data for different simulation scenarios",
    3: "Data for the calculation of ON0",
    4: "Measured ratios for WR=44 and WR=12",
    5: "Buffer size in packets for RTT=300 ms and P=1500B",
    6: "Comparison of results for different loads",
    7: "Drop analysis for a high load/loss setting",
    8: "Statistics per size interval for a high losses setting",
    9: "Connection rate and proportion of TO in ON time per size interval",
    10: "Measured averages for different buffer sizes",
}
"""The tables that hold figures, with the paper's captions (Table 11 is a summary in words)."""

INTERVALS: tuple[tuple[int, int | None], ...] = (
    (3, 6),
    (7, 14),
    (15, 30),
    (31, 62),
    (63, 128),
    (129, 256),
    (257, 512),
    (513, 1024),
    (1025, 2048),
    (2049, 4096),
    (4097, None),
)
"""The size intervals of Table 1 in packets, both ends included; the last one is open."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a printed table; cells keep the digits as printed."""

    cells: dict[str, str]

    def __getitem__(self, column: str) -> str:
        """Return the cell as text; "" where the paper prints nothing."""
        return self.cells[column]

    def printed(self, column: str) -> Printed | None:
        """Return the cell as a printed figure, None where there is none."""
        text = self.cells[column]
        return Printed(text) if text else None

    def value(self, column: str) -> float:
        """Return the cell as a number.

        Raises
        ------
        DomainError
            The paper prints no figure there.
        """
        if not self.cells[column]:
            raise DomainError(f"the paper prints no {column} in this line: {self.cells}")
        return float(self.cells[column])

    def whole(self, column: str) -> int | None:
        """Return the cell as a whole number, None where there is none (an open interval)."""
        text = self.cells[column]
        return int(text) if text else None

    @property
    def misprint(self) -> str:
        """What is wrong in print, "" for nothing."""
        return self.cells["misprint"]

    @property
    def note(self) -> str:
        """How a misprint is known, or what the paper adds to the figure."""
        return self.cells["note"]


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """A printed table, or the figures of the text."""

    title: str
    lines: tuple[Line, ...]

    def __iter__(self) -> Iterator[Line]:
        """Go through the lines in the paper's order."""
        return iter(self.lines)

    def __len__(self) -> int:
        """Return the number of lines."""
        return len(self.lines)

    def where(self, **cells: object) -> tuple[Line, ...]:
        """Return the lines whose cells read as given: ``where(law="E", buffer_pkts=150)``."""
        return tuple(
            line
            for line in self.lines
            if all(line[column] == str(text) for column, text in cells.items())
        )

    def one(self, **cells: object) -> Line:
        """Return the only line whose cells read as given.

        Raises
        ------
        DomainError
            No line, or more than one, reads so.
        """
        found = self.where(**cells)
        if len(found) != 1:
            raise DomainError(f"{self.title}: {len(found)} lines read {cells}, not one")
        return found[0]


@cache
def table(number: int) -> PublishedTable:
    """Return a table of the paper.

    Raises
    ------
    DomainError
        The paper has no such table of figures.
    """
    if number not in TABLES:
        raise DomainError(
            f"the paper has no table {number} of figures; there are 1 to {len(TABLES)}"
        )
    return PublishedTable(f"Table {number}. {TABLES[number]}", _read(f"table{number:02}.csv"))


@cache
def text() -> PublishedTable:
    """Return the figures of the running text, a ``key`` each."""
    return PublishedTable("Figures of the text", _read("text.csv"))


def _read(name: str) -> tuple[Line, ...]:
    source = files("tcpcast.papers.engset").joinpath("data", name)
    with source.open(encoding="utf-8") as stream:
        return tuple(Line(dict(row)) for row in csv.DictReader(stream))
