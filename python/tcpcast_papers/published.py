"""Printed tables as data: CSV files in each paper's ``data``, with the digits as printed."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

from tcpcast.errors import DomainError

from tcpcast_papers.reproduction import Printed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


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
        """Return the lines whose cells read as given: ``where(distribution="E", buffer_pkts=150)``."""
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
        result = self.where(**cells)
        if len(result) != 1:
            raise DomainError(f"{self.title}: {len(result)} lines read {cells}, not one")
        return result[0]


def printed_table(package: str, captions: Mapping[int, str], number: int) -> PublishedTable:
    """Return a table of a paper's package, whose tables of figures have these captions.

    Raises
    ------
    DomainError
        The paper has no such table of figures.
    """
    if number not in captions:
        there = ", ".join(map(str, captions))
        raise DomainError(f"the paper has no table {number} of figures; there are {there}")
    lines = read_lines(package, f"table{number:02}.csv")
    return PublishedTable(f"Table {number}. {captions[number]}", lines)


def read_lines(package: str, name: str) -> tuple[Line, ...]:
    """Return the lines of a CSV file among the ``data`` of a paper's package.

    A file without the column ``misprint`` has none.
    """
    with files(package).joinpath("data", name).open(encoding="utf-8") as stream:
        return tuple(Line({"misprint": "", **row}) for row in csv.DictReader(stream))
