"""What an earlier sweep in the folder has answered of this one, which has more values of a key.

Cells are known by their values: seeds do not depend on a cell's number. Where a grid grows, the
numbers move, and with them what a part holds. So the rows are put aside, with the numbers that
their cells have now, until each is in a part of the new sweep: a folder that has grown has the same
bytes as one that was begun with all values.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.errors import TcpcastError
from tcpcast.sweeps.table import AFTER_KEYS, as_file, batch_of_rows, is_metric_column, modules
from tcpcast.sweeps.worker import Part

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tcpcast.sweeps.worker import Asked, Variant

    Axes = Sequence[Mapping[str, Sequence[Any]]]
    """Groups of keys that go side by side, each key with its values, as a definition has them."""

MOST_ROWS = 100_000
"""Rows of a sweep that can grow: all of them are in memory at once."""

KEPT = ("cell", *AFTER_KEYS)
"""Columns that are kept of a row; those of the keys follow from its cell."""


def moves(there: Axes, here: Axes) -> Moves | None:
    """Return how cells of a grid are numbered in another that has all its cells, None if it lacks.

    Parameters
    ----------
    there, here
        The groups of both, with the same keys, in any order.
    """
    grown = {frozenset(group): at for at, group in enumerate(here)}
    if len(there) != len(here) or grown.keys() != {frozenset(group) for group in there}:
        return None
    places: list[np.ndarray[Any, Any]] = []
    strides = _strides([_length(group) for group in here])
    for group in there:
        at = grown[frozenset(group)]
        keys = sorted(group)
        where = {values: place for place, values in enumerate(_tuples(here[at], keys))}
        found = [where.get(values) for values in _tuples(group, keys)]
        if None in found:
            return None
        places.append(np.array(found, dtype=np.int64) * strides[at])
    return Moves(places)


class Moves:
    """The numbers that cells of a grid have in one that has grown.

    ``places`` has, for each group of keys, what each of its values adds to the number.
    """

    def __init__(self, places: Sequence[np.ndarray[Any, Any]]) -> None:
        self._places = places
        self._strides = _strides([len(each) for each in places])

    def __call__(self, cells: Any) -> Any:
        """Return the new numbers of cells, ``[cells]``."""
        old = np.asarray(cells, dtype=np.int64)
        new = np.zeros_like(old)
        for each, stride in zip(self._places, self._strides, strict=True):
            new += each[old // stride % len(each)]
        return new


def _length(group: Mapping[str, Sequence[Any]]) -> int:
    return len(next(iter(group.values())))


def _strides(lengths: Sequence[int]) -> list[int]:
    """Return how far apart cells are that differ by one value of each group; the last is next."""
    return [math.prod(lengths[at + 1 :]) for at in range(len(lengths))]


def _tuples(group: Mapping[str, Sequence[Any]], keys: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the values that go side by side, as texts."""
    texts = ([json.dumps(v, sort_keys=True, default=str) for v in group[key]] for key in keys)
    return zip(*texts, strict=True)


def put_aside(
    parts: Sequence[Path],
    before: Path | None,
    moved: Moves,
    path: Path,
    marks: Mapping[str, str],
) -> None:
    """Write the rows of parts, in the order of their new numbers.

    Parameters
    ----------
    parts
        The parts of the sweep that has grown.
    before
        What that sweep had put aside itself, of which parts may have some rows.
    moved
        How cells move.
    path, marks
        Where to, and what the file says of itself.

    Raises
    ------
    TcpcastError
        More than :data:`MOST_ROWS`.
    """
    arrow, parquet = modules("pyarrow", "pyarrow.parquet")
    files = [*parts, *([] if before is None else [before])]
    count = sum(parquet.read_metadata(file).num_rows for file in files)
    if count > MOST_ROWS:
        raise TcpcastError(
            f"{path.parent} has {count:,} rows, and a sweep of more than {MOST_ROWS:,} does not "
            "grow; sweep what is new into another --out"
        )
    rows = arrow.concat_tables(map(_kept, files)).combine_chunks()
    cells, again = (rows[name].to_numpy() for name in ("cell", "replication"))
    if before is not None:
        units = cells * (again.max() + 1) + again
        first = units.size - parquet.read_metadata(before).num_rows
        keep = np.arange(units.size) < first
        keep |= ~np.isin(units, units[:first])
        rows, cells, again = rows.filter(arrow.array(keep)), cells[keep], again[keep]
    cells = moved(cells)
    rows = rows.set_column(rows.column_names.index("cell"), "cell", arrow.array(cells))
    order = np.lexsort((again, cells))  # stable: engines stay in order
    batch = rows.take(arrow.array(order)).combine_chunks().to_batches()[0]
    path.write_bytes(as_file(batch, marks))


def _kept(part: Any) -> Any:
    """Return the columns that are kept of a file, or of an open one."""
    (parquet,) = modules("pyarrow.parquet")
    with parquet.ParquetFile(part) as file:
        names = file.schema_arrow.names
        kept = [name for name in names if name in KEPT or is_metric_column(name)]
        return file.read(columns=kept, use_threads=False)


def moved_notes(lines: Sequence[str], moved: Moves, replications: int, batch: int) -> Iterator[str]:
    """Yield the lines of the side file with the numbers that parts and cells have now.

    Parameters
    ----------
    lines
        As the folder has them; one that was cut short is left out.
    moved
        How cells move.
    replications, batch
        How often each cell is simulated, and how many of these a part has.
    """
    for line in lines:
        try:
            told = json.loads(line)
        except ValueError:
            continue
        parts: dict[int, list[list[Any]]] = {}
        for cell, again, *rest in told["wall_s"]:
            now = int(moved(cell))
            part = (now * replications + again) // batch
            parts.setdefault(part, []).append([now, again, *rest])
        for part, rows in sorted(parts.items()):
            yield json.dumps({**told, "part": part, "wall_s": rows})


class Earlier:
    """Rows that need not be answered again, by cell and replication.

    Parameters
    ----------
    path
        Where :func:`put_aside` wrote them; None for none.
    replications
        How often each cell is simulated.
    """

    def __init__(self, path: Path | None, replications: int) -> None:
        self._replications = replications
        self._rows: Any = None
        self._units = np.empty(0, dtype=np.int64)
        if path is not None:
            self._rows = _kept(path)
            self._units = self._units_of(self._rows)

    def __bool__(self) -> bool:
        """Say whether there are any."""
        return self._units.size > 0

    def has(self, variant: Variant) -> bool:
        """Say whether it is answered."""
        unit = self._unit(variant)
        at = int(np.searchsorted(self._units, unit))
        return at < self._units.size and int(self._units[at]) == unit

    def joined(self, asked: Asked, variants: Sequence[Variant], fresh: Part | None) -> Part:
        """Return the part of a batch, made of what was there and of what was answered now.

        Parameters
        ----------
        asked
            What all cells have in common.
        variants
            The whole batch.
        fresh
            The part with those of them that were not there; None where all were.
        """
        (arrow,) = modules("pyarrow")
        first, last = (self._unit(variants[at]) for at in (0, -1))
        low, high = np.searchsorted(self._units, [first, last + 1]).tolist()
        found = [self._rows.slice(low, high - low)]
        if fresh is not None:
            found.append(_kept(arrow.BufferReader(fresh.data)))
        rows = arrow.concat_tables(found)
        order = np.argsort(self._units_of(rows), kind="stable")
        rows = rows.take(arrow.array(order)).combine_chunks()
        values = {variant.cell: variant.values for variant in variants}
        batch = batch_of_rows(rows, values, asked.kinds, asked.classes)
        statuses = dict(Counter(rows["status"].to_pylist()))
        host, wall = ("", []) if fresh is None else (fresh.host, fresh.wall)
        return Part(as_file(batch, asked.marks or {}), statuses, host, wall)

    def _unit(self, variant: Variant) -> int:
        return variant.cell * self._replications + variant.replication

    def _units_of(self, rows: Any) -> Any:
        return rows["cell"].to_numpy() * self._replications + rows["replication"].to_numpy()
