"""The results of a sweep: one table, for Arrow, pandas, polars and SQL."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tcpcast.errors import MachineError
from tcpcast.extras import TabularResult, import_dataframe_package
from tcpcast.sweeps.table import (
    import_sweep_packages,
    is_metric_column,
    read_intact_metadata,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path
    from types import ModuleType


@dataclass(slots=True)
class SweepResults(TabularResult):
    """Rows per cell, replication and engine, in the order of the cells.

    ``parts`` are files, or Arrow streams in memory. ``statuses`` has the number of rows by status:
    ``answered``, ``partial``, ``not applicable`` or ``failed``. ``interrupted`` is True if only
    ``done`` of ``batches`` batches ran. ``folder`` contains the parts, or is None if they are in
    memory. ``keys`` are the varied keys with the units of their columns.
    """

    parts: Sequence[bytes | Path]
    statuses: dict[str, int] = field(default_factory=dict)
    batches: int = 0
    interrupted: bool = False
    folder: Path | None = None
    keys: Mapping[str, str] = field(default_factory=dict)

    @property
    def done(self) -> int:
        """Number of finished batches."""
        return len(self.parts)

    def __len__(self) -> int:
        """Return the number of rows."""
        return sum(self.statuses.values())

    def __repr__(self) -> str:
        where = "" if self.folder is None else f" in {self.folder}"
        return f"<Results of a sweep{where}: {self.counts()}>"

    def _make_arrow_table(self, arrow: ModuleType) -> Any:  # noqa: ARG002 - as in other results
        """Return the rows."""
        return self.to_arrow()

    def counts(self) -> str:
        """Return the number of rows by status as text."""
        text = ", ".join(f"{count:,} {status}" for status, count in self.statuses.items())
        return text or "no rows"

    def summary(self) -> dict[str, Any]:
        """Return the summary of a sweep in a folder as JSON values."""
        return {
            "folder": str(self.folder),
            "rows": self.statuses,
            "parts": self.done,
            "batches": self.batches,
            "interrupted": self.interrupted,
        }

    def to_arrow(self, columns: Collection[str] | None = None) -> Any:
        """Return a ``pyarrow.Table`` without empty metric columns.

        Parameters
        ----------
        columns
            Names of the columns to read; absent ones are ignored, and a metric includes its values
            per class. None reads all columns.
        """
        return read_parts(self.parts, columns)

    def to_pandas(self) -> Any:
        """Return a ``pandas.DataFrame``.

        Raises
        ------
        MachineError
            pandas is not installed.
        """
        import_dataframe_package("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """Return a ``polars.DataFrame``.

        Raises
        ------
        MachineError
            polars is not installed.
        """
        return import_dataframe_package("polars").from_arrow(self.to_arrow())


def count_statuses(
    parts: Sequence[bytes | Path], known: Mapping[bytes | Path, Mapping[str, int]] | None = None
) -> dict[str, int]:
    """Return the number of rows by status, in descending order; parts not in ``known`` are read."""
    counts: Counter[str] = Counter()
    for part in parts:
        counts.update((known or {}).get(part) or _read_part(part, ["status"])["status"].to_pylist())
    return dict(counts.most_common())


def read_parts(parts: Sequence[bytes | Path], columns: Collection[str] | None = None) -> Any:
    """Return parts as one table in order, without empty metric columns.

    ``columns`` are the names of the columns to read; None reads all.

    Raises
    ------
    MachineError
        pyarrow is not installed, or a file is not an intact part.
    """
    (arrow,) = import_sweep_packages("pyarrow")
    tables = [_read_part(part, columns) for part in parts]
    table = arrow.concat_tables(tables) if tables else arrow.table({})
    names = filter(is_metric_column, table.column_names)
    empty = [name for name in names if table[name].null_count == table.num_rows]
    return table.drop_columns(empty).replace_schema_metadata(None)


def _read_part(part: bytes | Path, names: Collection[str] | None = None) -> Any:
    """Return a part, or some of its columns.

    Raises
    ------
    MachineError
        A file cannot be read, or is not an intact part.
    """
    arrow, parquet = import_sweep_packages("pyarrow", "pyarrow.parquet")
    if isinstance(part, bytes):
        table = arrow.ipc.open_stream(part).read_all()
        return table.select(_select_column_names(table.column_names, names))
    try:
        is_intact = bool(read_intact_metadata(part.read_bytes()))
    except OSError as error:
        raise MachineError(f"cannot read {part}: {error.strerror or error}") from error
    if not is_intact:
        raise MachineError(
            f"{part} is damaged, or not part of a sweep; repeat the sweep with the same --out, "
            "which computes this part again"
        )
    # read_table would import pyarrow.dataset and pandas; one thread per column would be slower.
    with parquet.ParquetFile(part) as file:
        return file.read(
            columns=_select_column_names(file.schema_arrow.names, names), use_threads=False
        )


def _select_column_names(present: Sequence[str], names: Collection[str] | None) -> list[str]:
    """Return the columns to read: those with a name, and the same metrics of single classes."""
    return [n for n in present if names is None or n in names or n.partition(".")[0] in names]
