"""Reads recorded cross traffic: a CSV file of times and bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast.errors import UnitError
from tcpcast.scenario.csv_file import data_rows, read_csv, read_number_cell

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

MAX_ROWS = 100_000
_COLUMNS = ["time_s", "bytes"]
FILE_ADVICE = 'write file = "cross.csv" (columns time_s and bytes)'


def read_recording(name: object, folder: Path | None) -> tuple[list[float], list[float]]:
    """Read times and bytes from a CSV file.

    Parameters
    ----------
    name
        The file's name as typed.
    folder
        Base folder of a relative name; None for the current folder.

    Returns
    -------
    times_s, sizes
        Times in seconds and sizes in bytes: two lists of equal length, 1 to 100,000.

    Raises
    ------
    UnitError
        The file does not exist, contains no or too many rows, or a cell is not a number or is
        negative.
    """
    return read_csv(name, folder, FILE_ADVICE, _read_times_and_bytes)


def _read_times_and_bytes(rows: Iterable[list[str]], name: str) -> tuple[list[float], list[float]]:
    times: list[float] = []
    sizes: list[float] = []
    for number, cells in data_rows(rows):
        if not times and [cell.lower() for cell in cells] == _COLUMNS:
            continue
        if len(cells) != len(_COLUMNS):
            raise UnitError(
                f"{name}, line {number}: {len(cells)} columns; write two columns: time_s and bytes"
            )
        where = f"{name}, line {number}"
        time, size = (read_number_cell(cell, where, "write seconds and bytes") for cell in cells)
        times.append(time)
        sizes.append(size)
        if len(times) > MAX_ROWS:
            raise UnitError(
                f"{name} has more than {MAX_ROWS} rows; add up the bytes of each interval of 10 ms"
            )
    if not times:
        raise UnitError(
            f'{name} contains no rows; write the header line "time_s,bytes", and rows of numbers'
        )
    return times, sizes
