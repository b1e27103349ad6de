"""CSV files that a scenario names: found, opened, and refused with what to write instead."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tcpcast import units
from tcpcast.errors import UnitError
from tcpcast.inputs import protect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")


def read_csv(
    name: object,
    folder: Path | None,
    needs: str,
    read_rows: Callable[[Iterable[list[str]], str], T],
) -> T:
    """Read a CSV file.

    Parameters
    ----------
    name
        The file's name as typed.
    folder
        Where a relative name starts; None for the current folder.
    needs
        What to write instead, for messages.
    read_rows
        Takes the rows as they come, and the name for messages of its own.

    Returns
    -------
    object
        What ``read_rows`` makes of the rows.

    Raises
    ------
    UnitError
        No such file, or it cannot be read as CSV.
    """
    if not isinstance(name, str) or not name or "\0" in name:
        raise UnitError(f"{units.show(name)} is not a file name; {needs}")
    path = (folder or Path()) / name
    try:
        # A device or a pipe may have no end, nor a line of it.
        if path.exists() and not path.is_file():
            raise UnitError(f"{path} is not a file; {needs}")
        protect(path)
        with path.open(newline="", encoding="utf-8-sig") as stream:
            return read_rows(csv.reader(stream), name)
    except FileNotFoundError:
        raise UnitError(f"there is no file {path}; {needs}") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UnitError(f"{path} cannot be read as CSV ({error}); {needs}") from None
