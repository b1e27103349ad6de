"""Reuse the rows of an earlier sweep in the folder, which had fewer values of the same keys.

Cells are identified by their values, and seeds do not depend on a cell's number. When a grid
grows, cell numbers and the contents of parts change. Therefore the old rows are stored in a
separate file with the new numbers of their cells, until all are in parts of the new sweep. The
resulting folder has the same bytes as one that was started with all values.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.errors import TcpcastError
from tcpcast.sweeps.table import (
    ANSWER_COLUMNS,
    encode_as_parquet_file,
    import_sweep_packages,
    is_metric_column,
    select_stored_rows,
)
from tcpcast.sweeps.worker import BatchResult

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tcpcast.sweeps.worker import CellReplication, SweepSpec

    Axes = Sequence[Mapping[str, Sequence[Any]]]
    """Groups of keys that vary together, each key with its values, as in a definition."""

MAX_ROWS = 100_000
"""Maximum number of rows of a sweep whose rows can be reused, because all rows are in memory."""

STORED_COLUMNS = ("cell", *ANSWER_COLUMNS)
"""Stored columns of a row; the columns of the keys follow from its cell."""


def compute_cell_moves(there: Axes, here: Axes) -> CellMoves | None:
    """Return the mapping of cell numbers to a larger grid, None if a cell is not in that grid.

    Parameters
    ----------
    there, here
        The groups of the old and of the new grid, in any order.
    """
    indices = {frozenset(group): index for index, group in enumerate(here)}
    if len(there) != len(here) or indices.keys() != {frozenset(group) for group in there}:
        return None
    offsets: list[np.ndarray[Any, Any]] = []
    strides = _cell_strides([_count_group_values(group) for group in here])
    for group in there:
        index = indices[frozenset(group)]
        keys = sorted(group)
        positions = {values: at for at, values in enumerate(_iter_group_values(here[index], keys))}
        moved = [positions.get(values) for values in _iter_group_values(group, keys)]
        if None in moved:
            return None
        offsets.append(np.array(moved, dtype=np.int64) * strides[index])
    return CellMoves(offsets)


class CellMoves:
    """Mapping of the cell numbers of a grid to those of a larger grid.

    For each group of keys, ``offsets`` has the part of the new number for each value.
    """

    def __init__(self, offsets: Sequence[np.ndarray[Any, Any]]) -> None:
        self._offsets = offsets
        self._strides = _cell_strides([len(each) for each in offsets])

    def __call__(self, cells: Any) -> Any:
        """Return the new numbers of cells, ``[cells]``."""
        old = np.asarray(cells, dtype=np.int64)
        new = np.zeros_like(old)
        for each, stride in zip(self._offsets, self._strides, strict=True):
            new += each[old // stride % len(each)]
        return new


def _count_group_values(group: Mapping[str, Sequence[Any]]) -> int:
    return len(next(iter(group.values())))


def _cell_strides(lengths: Sequence[int]) -> list[int]:
    """Return the difference in cell numbers for one step of each group; 1 for the last group."""
    return [math.prod(lengths[at + 1 :]) for at in range(len(lengths))]


def _iter_group_values(
    group: Mapping[str, Sequence[Any]], keys: Sequence[str]
) -> Iterator[tuple[str, ...]]:
    """Yield the values that belong together, as texts."""
    texts = ([json.dumps(v, sort_keys=True, default=str) for v in group[key]] for key in keys)
    return zip(*texts, strict=True)


def store_earlier_rows(
    parts: Sequence[Path],
    before: Path | None,
    moved: CellMoves,
    path: Path,
    marks: Mapping[str, str],
) -> None:
    """Write the rows of an old sweep to one file, in the order of their new cell numbers.

    Parameters
    ----------
    parts
        The parts of the old sweep.
    before
        The old sweep's file of reused rows; ``parts`` may contain some of these rows again.
    moved
        New cell number of each old one.
    path, marks
        File to write, and metadata to store in it.

    Raises
    ------
    TcpcastError
        There are more than :data:`MAX_ROWS` rows.
    """
    arrow, parquet = import_sweep_packages("pyarrow", "pyarrow.parquet")
    files = [*parts, *([] if before is None else [before])]
    count = sum(parquet.read_metadata(file).num_rows for file in files)
    if count > MAX_ROWS:
        raise TcpcastError(
            f"{path.parent} has {count:,} rows, but only sweeps of up to {MAX_ROWS:,} rows "
            "can be extended; write the new values to another --out"
        )
    rows = arrow.concat_tables(map(_stored_columns, files)).combine_chunks()
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
    path.write_bytes(encode_as_parquet_file(batch, marks))


def _stored_columns(part: Any) -> Any:
    """Return the stored columns of a file."""
    (parquet,) = import_sweep_packages("pyarrow.parquet")
    with parquet.ParquetFile(part) as file:
        names = file.schema_arrow.names
        kept = [name for name in names if name in STORED_COLUMNS or is_metric_column(name)]
        return file.read(columns=kept, use_threads=False)


def renumber_wall_times(
    lines: Sequence[str], moved: CellMoves, replications: int, batch: int
) -> Iterator[str]:
    """Yield the computing times with the new numbers of parts and cells.

    Parameters
    ----------
    lines
        Computing times as lines of JSON; a truncated line is omitted.
    moved
        New cell number of each old one.
    replications, batch
        Number of replications per cell, and of replications per part.
    """
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        parts: dict[int, list[list[Any]]] = {}
        for cell, replication, *rest in record["wall_s"]:
            now = int(moved(cell))
            part = (now * replications + replication) // batch
            parts.setdefault(part, []).append([now, replication, *rest])
        for part, rows in sorted(parts.items()):
            yield json.dumps({**record, "part": part, "wall_s": rows})


class EarlierRows:
    """Reusable rows by cell and replication.

    Parameters
    ----------
    path
        File written by :func:`store_earlier_rows`; None for no rows.
    replications
        Number of replications per cell.
    """

    def __init__(self, path: Path | None, replications: int) -> None:
        self._replications = replications
        self._rows: Any = None
        self._units = np.empty(0, dtype=np.int64)
        if path is not None:
            self._rows = _stored_columns(path)
            self._units = self._units_of(self._rows)

    def __bool__(self) -> bool:
        """Return True if there are rows."""
        return self._units.size > 0

    def has_rows_of(self, variant: CellReplication) -> bool:
        """Return True if the variant has rows."""
        unit = self._unit_of_variant(variant)
        at = int(np.searchsorted(self._units, unit))
        return at < self._units.size and int(self._units[at]) == unit

    def join_rows(
        self, spec: SweepSpec, variants: Sequence[CellReplication], fresh: BatchResult | None
    ) -> BatchResult:
        """Return the part of a batch from existing and new rows.

        Parameters
        ----------
        spec
            Common parameters of all cells.
        variants
            The complete batch.
        fresh
            The part with the new rows; None if all rows existed.
        """
        (arrow,) = import_sweep_packages("pyarrow")
        first, last = (self._unit_of_variant(variants[at]) for at in (0, -1))
        low, high = np.searchsorted(self._units, [first, last + 1]).tolist()
        tables = [self._rows.slice(low, high - low)]
        if fresh is not None:
            tables.append(_stored_columns(arrow.BufferReader(fresh.data)))
        rows = arrow.concat_tables(tables)
        order = np.argsort(self._units_of(rows), kind="stable")
        rows = rows.take(arrow.array(order)).combine_chunks()
        values = {variant.cell: variant.values for variant in variants}
        batch = select_stored_rows(rows, values, spec.kinds, spec.classes)
        statuses = dict(Counter(rows["status"].to_pylist()))
        host, wall = ("", []) if fresh is None else (fresh.host, fresh.wall)
        return BatchResult(encode_as_parquet_file(batch, spec.marks or {}), statuses, host, wall)

    def _unit_of_variant(self, variant: CellReplication) -> int:
        return variant.cell * self._replications + variant.replication

    def _units_of(self, rows: Any) -> Any:
        return rows["cell"].to_numpy() * self._replications + rows["replication"].to_numpy()
