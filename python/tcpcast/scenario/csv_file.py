"""Opens CSV files of a scenario; the error messages state what to write instead."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tcpcast import units
from tcpcast.errors import UnitError
from tcpcast.protected_inputs import protect_inputs

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
        Base folder of a relative name; None for the current folder.
    needs
        Advice at the end of messages.
    read_rows
        Function that reads the rows, with the file's name for messages.

    Returns
    -------
    object
        The result of ``read_rows``.

    Raises
    ------
    UnitError
        The file does not exist or cannot be read as CSV.
    """
    if not isinstance(name, str) or not name or "\0" in name:
        raise UnitError(f"{units.quote(name)} is not a file name; {needs}")
    path = (folder or Path()) / name
    protect_inputs(path)
    try:
        # Reading a device or a pipe may never end.
        if path.exists() and not path.is_file():
            raise UnitError(f"{path} is not a file; {needs}")
        with path.open(newline="", encoding="utf-8-sig") as stream:
            return read_rows(csv.reader(stream), name)
    except FileNotFoundError:
        raise UnitError(f"the file {path} does not exist; {needs}") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UnitError(f"{path} cannot be read as CSV ({error}); {needs}") from None
