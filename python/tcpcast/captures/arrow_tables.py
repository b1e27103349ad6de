"""Tables of captures as Arrow tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.capture_tables import DIRECTION_COLUMN

if TYPE_CHECKING:
    from types import ModuleType

    from tcpcast.array_types import Table

FILE_COLUMN = "file"


def to_arrow_table(arrow: ModuleType, file: str, table: Table) -> Any:
    """Return a table of a capture as a ``pyarrow.Table``.

    The first column is the name of the file. A table of directions has a column with their numbers.
    Times are timestamps in UTC; missing values are null.
    """
    length = next(iter(table.values())).size
    named = file.encode("utf-8", "replace").decode()  # file names need not be valid UTF-8
    columns = {FILE_COLUMN: arrow.array([named] * length, arrow.string())}
    if "src" in table and DIRECTION_COLUMN not in table:
        columns[DIRECTION_COLUMN] = arrow.array(np.arange(length))
    for name, values in table.items():
        columns[name] = _to_arrow_column(arrow, values)
    return arrow.table(columns)


def _to_arrow_column(arrow: ModuleType, values: np.ndarray[Any, Any]) -> Any:
    """Return values as an Arrow array; the type is the same for an empty array."""
    if values.dtype.kind == "M":
        return arrow.array(values).cast(arrow.timestamp("ns", tz="UTC"))
    if values.dtype.kind == "U":
        return arrow.array(values.tolist(), arrow.string())
    # NaN means unknown; only float columns contain it.
    return arrow.array(values, from_pandas=True)
