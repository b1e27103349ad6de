"""Tables of captures as Parquet files, one a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast import output
from tcpcast.captures.selection import DIRECTION, TABLES, tables
from tcpcast.errors import MachineError
from tcpcast.output import PARQUET

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from tcpcast.captures import Capture, Table

KEY = "file"


def parquet_modules() -> tuple[ModuleType, ModuleType]:
    """Return what makes Arrow tables and what writes them; asked before a capture is read.

    Raises
    ------
    MachineError
        pyarrow is not installed.
    """
    try:
        import pyarrow  # noqa: PLC0415 - optional, and large
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError as missing:
        raise MachineError(
            "Parquet files need pyarrow, which is not installed: pip install pyarrow"
        ) from missing
    return pyarrow, pyarrow.parquet


def check_parquet(folder: str | Path, *, force: bool = False) -> None:
    """Refuse, before a capture is read, a folder that :func:`write_parquet` cannot write to.

    Raises
    ------
    TcpcastError
        A file of a table's name is none of tcpcast's, or the folder is a symbolic link.
    MachineError
        pyarrow is not installed, or the folder cannot be written.
    """
    parquet_modules()
    output.check_folder(folder)
    for name in TABLES:
        output.check_file(Path(folder) / f"{name}.parquet", kind=PARQUET, force=force)


def write_parquet(
    captures: Sequence[Capture], folder: str | Path, *, force: bool = False
) -> list[Path]:
    """Write each table of captures into a file of its own, such as ``connections.parquet``.

    Each table begins with the column ``file``; ``connections`` numbers its rows in ``direction``,
    so that the two join it with the others. Times are timestamps in UTC, missing figures null.

    Parameters
    ----------
    captures
        What was read; a table holds the rows of all.
    folder
        Where the files go; made if it does not exist. Parquet files that tcpcast wrote are
        replaced.
    force
        Whether any other file of the same name is replaced, too.

    Returns
    -------
    list of Path
        The files written.

    Raises
    ------
    MachineError
        pyarrow is not installed, or the folder cannot be written.
    """
    arrow, parquet = parquet_modules()
    target = Path(folder)
    parts: dict[str, list[Any]] = {}
    for capture in captures:
        found = tables(capture)
        for name in (name for name in TABLES if name in found):
            parts.setdefault(name, []).append(_arrow_table(arrow, capture.file, found[name]))
    written = []
    for name, several in parts.items():
        path = target / f"{name}.parquet"
        whole = arrow.concat_tables(several).replace_schema_metadata({PARQUET.mark: name})
        with output.atomic_file(path, kind=PARQUET, force=force) as temporary:
            parquet.write_table(whole, temporary)
        written.append(path)
    return written


def _arrow_table(arrow: ModuleType, file: str, table: Table) -> Any:
    length = next(iter(table.values())).size
    named = file.encode("utf-8", "replace").decode()  # the system takes names that are no UTF-8
    columns = {KEY: arrow.array([named] * length, arrow.string())}
    if "src" in table and DIRECTION not in table:
        columns[DIRECTION] = arrow.array(np.arange(length))
    for name, values in table.items():
        columns[name] = _arrow_column(arrow, values)
    return arrow.table(columns)


def _arrow_column(arrow: ModuleType, values: np.ndarray[Any, Any]) -> Any:
    """Return a column with the same type whether it has rows or not."""
    if values.dtype.kind == "M":
        return arrow.array(values).cast(arrow.timestamp("ns", tz="UTC"))
    if values.dtype.kind == "U":
        return arrow.array(values.tolist(), arrow.string())
    # Among floats, what is unknown is NaN; nothing else is.
    return arrow.array(values, from_pandas=True)
