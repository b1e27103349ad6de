"""The results of a sweep: one table, for Arrow, pandas, polars and SQL."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcpcast.process.extras import TabularResult, import_dataframe_package

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import ModuleType

    from tcpcast.sweeps.prepared import PreparedSweep


@dataclass(slots=True)
class SweepResults(TabularResult):
    """Rows per cell, replication and engine, in the order of the cells.

    ``sweep`` is the sweep, and ``table`` a ``pyarrow.Table`` without empty metric columns.
    ``done`` is the number of finished runs: one per cell and replication. ``folder`` contains the
    results, or is None if they are only in memory.
    """

    sweep: PreparedSweep
    table: Any
    done: int
    folder: Path | None = None

    @property
    def runs(self) -> int:
        """Number of runs of the complete sweep."""
        return self.sweep.runs

    @property
    def interrupted(self) -> bool:
        """True if runs are missing."""
        return self.done < self.runs

    @property
    def keys(self) -> Mapping[str, str]:
        """The varied keys with the units of their columns."""
        return self.sweep.keys

    @property
    def statuses(self) -> dict[str, int]:
        """Number of rows by status, in descending order.

        A status is ``answered``, ``partial``, ``not applicable`` or ``failed``.
        """
        return dict(Counter(self.table["status"].to_pylist()).most_common())

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self.table.num_rows)

    def __repr__(self) -> str:
        where = "" if self.folder is None else f" in {self.folder}"
        return f"<Results of a sweep{where}: {self.counts()}>"

    def _make_arrow_table(self, arrow: ModuleType) -> Any:  # noqa: ARG002 - as in other results
        """Return the rows."""
        return self.table

    def counts(self) -> str:
        """Return the number of rows by status as text."""
        text = ", ".join(f"{count:,} {status}" for status, count in self.statuses.items())
        return text or "no rows"

    def summary(self) -> dict[str, Any]:
        """Return the summary of a sweep in a folder as JSON values."""
        return {
            "folder": str(self.folder),
            "rows": self.statuses,
            "done": self.done,
            "runs": self.runs,
            "interrupted": self.interrupted,
        }

    def to_arrow(self) -> Any:
        """Return a ``pyarrow.Table`` without empty metric columns."""
        return self.table

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
