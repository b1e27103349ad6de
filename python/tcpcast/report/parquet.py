"""Tables of captures as Parquet files, one file per table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpcast import output
from tcpcast.captures.arrow_tables import to_arrow_table
from tcpcast.captures.capture_tables import TABLE_NAMES, tables_by_name
from tcpcast.errors import MachineError
from tcpcast.output import PARQUET_KIND

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from tcpcast.captures import Capture


def parquet_modules() -> tuple[ModuleType, ModuleType]:
    """Return the modules ``pyarrow`` and ``pyarrow.parquet``.

    A call before a capture is read detects a missing pyarrow early.

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
    """Raise, before a capture is read, if :func:`write_parquet` cannot write to a folder.

    Raises
    ------
    TcpcastError
        A file with the name of a table was not written by tcpcast, or the folder is a symbolic
        link.
    MachineError
        pyarrow is not installed, or the folder cannot be written.
    """
    parquet_modules()
    output.check_folder_is_writable(folder)
    for name in TABLE_NAMES:
        output.check_file_is_writable(
            Path(folder) / f"{name}.parquet", kind=PARQUET_KIND, force=force
        )


def write_parquet(
    captures: Sequence[Capture], folder: str | Path, *, force: bool = False
) -> list[Path]:
    """Write each table of captures into a separate file, for example ``connections.parquet``.

    Each table begins with the column ``file``. The table ``connections`` has one row per direction,
    numbered in the column ``direction``; join it with the other tables on ``file`` and
    ``direction``. Times are timestamps in UTC; missing values are null.

    Parameters
    ----------
    captures
        The captures; each table contains the rows of all captures.
    folder
        Folder for the files, created if it does not exist. Parquet files that tcpcast wrote are
        overwritten.
    force
        Overwrite existing files, even if tcpcast did not create them.

    Returns
    -------
    list of Path
        Paths of the files.

    Raises
    ------
    MachineError
        pyarrow is not installed, or the folder cannot be written.
    """
    arrow, parquet = parquet_modules()
    target = Path(folder)
    parts: dict[str, list[Any]] = {}
    for capture in captures:
        by_name = tables_by_name(capture)
        for name in (name for name in TABLE_NAMES if name in by_name):
            parts.setdefault(name, []).append(to_arrow_table(arrow, capture.file, by_name[name]))
    written = []
    for name, several in parts.items():
        path = target / f"{name}.parquet"
        whole = arrow.concat_tables(several).replace_schema_metadata({PARQUET_KIND.mark: name})
        with output.atomic_file(path, kind=PARQUET_KIND, force=force) as temporary:
            parquet.write_table(whole, temporary)
        written.append(path)
    return written
