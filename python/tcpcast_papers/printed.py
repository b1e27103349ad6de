"""Printed tables as data: CSV files in ``data`` of each paper, with the digits as printed."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

from tcpcast.process.errors import DomainError

from tcpcast_papers.reproduction import Printed, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


WHOLE, QUICK, BOTH = "whole", "quick", "both"
"""Values of the column ``runs`` of a file: the reproductions to which a line applies."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a printed table. Its cells are texts with the digits as printed."""

    cells: dict[str, str]

    def __getitem__(self, column: str) -> str:
        """Return the cell as text; "" if the paper prints nothing."""
        return self.cells[column]

    def printed(self, column: str) -> Printed | None:
        """Return the cell as a printed value, or None if it is empty."""
        text = self.cells[column]
        return Printed(text) if text else None

    def value(self, column: str) -> float:
        """Return the cell as a number.

        Raises
        ------
        DomainError
            The paper prints no value in this column.
        """
        if not self.cells[column]:
            raise DomainError(f"the paper prints no {column} in this line: {self.cells}")
        return float(self.cells[column])

    def integer(self, column: str) -> int | None:
        """Return the cell as a whole number, or None if it is empty (an open interval)."""
        text = self.cells[column]
        return int(text) if text else None

    @property
    def misprint(self) -> str:
        """The kind of misprint, or "" if there is none or the file has no such column."""
        return self.cells.get("misprint", "")

    @property
    def fixed_verdict(self) -> Verdict | None:
        """Verdict of a misprinted cell that is not compared."""
        return Verdict.INCONSISTENT if self.misprint else None

    @property
    def note(self) -> str:
        """Evidence of a misprint, or a remark of the paper on the value."""
        return self.cells["note"]


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """A printed table, or the values in the text."""

    title: str
    lines: tuple[Line, ...]

    def __iter__(self) -> Iterator[Line]:
        """Iterate over the lines in the paper's order."""
        return iter(self.lines)

    def __len__(self) -> int:
        """Return the number of lines."""
        return len(self.lines)

    def lines_with(self, **cells: object) -> tuple[Line, ...]:
        """Return lines with these cells, e.g. ``lines_with(distribution="E", buffer_pkts=150)``."""
        return tuple(
            line
            for line in self.lines
            if all(line[column] == str(text) for column, text in cells.items())
        )

    def line_with(self, **cells: object) -> Line:
        """Return the only line with these cells.

        Raises
        ------
        DomainError
            The number of matching lines is not one.
        """
        result = self.lines_with(**cells)
        if len(result) != 1:
            raise DomainError(f"{self.title}: {len(result)} lines have {cells}, expected one")
        return result[0]


def printed_table(package: str, captions: Mapping[int, str], number: int) -> PublishedTable:
    """Return a table of a paper, whose numeric tables have these captions.

    Raises
    ------
    DomainError
        The paper has no such numeric table.
    """
    if number not in captions:
        there = ", ".join(map(str, captions))
        raise DomainError(f"the paper has no numeric table {number}; it has {there}")
    lines = read_lines(package, f"table{number:02}.csv")
    return PublishedTable(f"Table {number}. {captions[number]}", lines)


def lines_of_runs(package: str, name: str, runs: str) -> tuple[Line, ...]:
    """Return the lines of a file whose column ``runs`` includes these reproductions.

    The result is () if the paper does not have the file.
    """
    if not files(package).joinpath("data", name).is_file():
        return ()
    return tuple(line for line in read_lines(package, name) if line["runs"] in {runs, BOTH})


def read_lines(package: str, name: str) -> tuple[Line, ...]:
    """Return the lines of a CSV file in ``data`` of a paper's package."""
    with files(package).joinpath("data", name).open(encoding="utf-8") as stream:
        return tuple(Line(row) for row in csv.DictReader(stream))
