"""The original files of the measurements, read from folders into cells."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

from tcpcast.process.errors import ScenarioError

from benches.kernel_series import first_series, second_series

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tcpcast_papers.kernel.cells import Cell

READERS = first_series.READERS | second_series.READERS


def read_original_files(folders: Sequence[Path]) -> tuple[Cell, ...]:
    """Return the cells of all measurement files in folders, or in their direct subfolders.

    Parameters
    ----------
    folders
        Folders with any of the files, under their original names (:data:`READERS`).

    Raises
    ------
    ScenarioError
        A folder has no such file, or a file lacks a column or has a value that is not a number.
    """
    result: list[Cell] = []
    for folder in folders:
        paths = [
            path for name in READERS for path in (*folder.glob(name), *folder.glob(f"*/{name}"))
        ]
        if not paths:
            names = ", ".join(READERS)
            raise ScenarioError(f"{folder}: no measurement files; use a folder with any of {names}")
        for path in paths:
            result += _read_file(path)
    return tuple(result)


def _read_file(path: Path) -> list[Cell]:
    series, cells = READERS[path.name]
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            return list(cells(series, list(csv.DictReader(stream))))
    except KeyError as missing:
        raise ScenarioError(f"{path} has no column or value {missing}") from None
    except ValueError as error:
        raise ScenarioError(f"{path}: {error}") from None
