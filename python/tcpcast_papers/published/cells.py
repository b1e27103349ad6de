"""Cells of published measurements: a scenario, and the values measured under its conditions."""

from __future__ import annotations

import csv
import io
import lzma
import math
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from tcpcast.process.errors import ScenarioError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from tcpcast.answer import Answer

    from tcpcast_papers.kernel.agreement import AllowedDifference

PACKAGE = "tcpcast_papers.published"

Lines = list[dict[str, str]]
"""Lines of a table, by column."""


def class_reader(metric: str, of: int | str = 0, factor: float = 1.0) -> Callable[[Answer], float]:
    """Return a function that reads a metric of a class, by its place or name, times a factor."""

    def read(answer: Answer) -> float:
        classes = answer.tables["by_class"]
        row = of if isinstance(of, int) else classes["name"].tolist().index(of)
        return factor * float(classes[metric][row])

    return read


def share_reader(of: int | str, beside: int | str) -> Callable[[Answer], float]:
    """Return a function that reads the share of a class in the goodput of two classes, %."""
    first, second = (class_reader("goodput_bps", each) for each in (of, beside))
    return lambda answer: 100.0 * first(answer) / (first(answer) + second(answer))


@dataclass(frozen=True, slots=True)
class Value:
    """A measured value of a cell.

    Attributes
    ----------
    quantity, unit
        Name of the quantity, and the unit of all numbers; unit % for shares.
    measured
        Mean of the measurement.
    half_width
        Half-width of its 95 % interval, ``nan`` if it has none.
    allowed
        Allowed difference without intervals; None if the value is only shown.
    read
        Returns the value of one simulated run, in ``unit``.
    runs
        Number of measured runs if there is no interval but the values vary from run to run; else 0.
        The spread of these runs is taken to be that of the simulated runs.
    """

    quantity: str
    unit: str
    measured: float
    allowed: AllowedDifference | None
    read: Callable[[Answer], float] = field(compare=False)
    half_width: float = math.nan
    runs: int = 0


@dataclass(frozen=True, slots=True)
class Variant:
    """A scenario after one change, which may explain the differences of a cell.

    Attributes
    ----------
    reason
        The change in a few words.
    tables
        The changed scenario, as :attr:`Cell.tables`.
    """

    reason: str
    tables: dict[str, Any] = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Cell:
    """Conditions of a measurement and its values.

    Attributes
    ----------
    label
        One cell for each of the set's columns.
    group
        Cells with this text are tested together for differences on one side.
    tables
        Scenario with one replication, without its seed.
    values
        Measured values.
    packets
        Approximate number of packets of one run.
    variants
        The scenario after changes that may explain differences.
    """

    label: tuple[str, ...]
    group: str
    tables: dict[str, Any] = field(compare=False, repr=False)
    values: tuple[Value, ...] = field(compare=False)
    packets: float = 0.0
    variants: tuple[Variant, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class CellSet:
    """The measurements of one publication.

    Attributes
    ----------
    name, title
        Name of the set (without full stop), and rest of the title of its section.
    columns
        Names of the cells of a label.
    table
        File name of the table.
    cells
        Converts the lines of the table to cells.
    set_up
        Paragraphs: source, set-up, and what the scenarios leave out.
    package
        Package whose folder ``data`` contains the table, if it is distributed.
    complete
        Adds what other files of the folder state to a line of the table; None if none do.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    table: str
    cells: Callable[[Lines], Iterator[Cell]]
    set_up: tuple[str, ...]
    package: str = PACKAGE
    complete: Callable[[dict[str, str], Path], dict[str, str]] | None = None

    @property
    def section_title(self) -> str:
        """Title of the set's section."""
        return f"{self.name}. {self.title}"

    def read(self, folders: Sequence[Path]) -> tuple[Cell, ...]:
        """Return the cells of the set's table in folders; without folders, of the packaged table.

        Raises
        ------
        ScenarioError
            The table lacks a column, or a value is not a number.
        """
        lines: Lines = []
        if folders:
            for folder in folders:
                for path in sorted(folder.glob(self.table)):
                    own = _lines(path.read_bytes(), path.name)
                    lines += (
                        own if self.complete is None else [self.complete(x, folder) for x in own]
                    )
        else:
            packaged = files(self.package).joinpath("data", self.table)
            if packaged.is_file():
                lines = _lines(packaged.read_bytes(), self.table)
        try:
            return tuple(self.cells(lines)) if lines else ()
        except KeyError as missing:
            raise ScenarioError(f"{self.table} has no column {missing}") from None
        except ValueError as error:
            raise ScenarioError(f"{self.table}: {error}") from None


def _lines(data: bytes, name: str) -> Lines:
    text = (lzma.decompress(data) if name.endswith(".xz") else data).decode()
    return list(csv.DictReader(io.StringIO(text)))


def spread(cells: Iterable[Cell], max_packets: float) -> tuple[Cell, ...]:
    """Return cells with at most this number of packets in total, evenly from the list.

    A cell of its own that exceeds a tenth of the limit is left out.
    """
    small = [cell for cell in cells if cell.packets <= max_packets / 4]
    total = sum(cell.packets for cell in small)
    step = max(1.0, total / max_packets)
    return tuple(small[int(index * step)] for index in range(int(len(small) / step)))
