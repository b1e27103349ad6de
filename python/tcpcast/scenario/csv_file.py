"""Opens CSV files of a scenario; the error messages state what to write instead."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tcpcast.process.errors import UnitError
from tcpcast.process.protected_inputs import protect_inputs
from tcpcast.quantity import units
from tcpcast.scenario.table import get_validation_context, make_key_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from pydantic import ValidationError, ValidationInfo

T = TypeVar("T")


def read_file_of_table(
    data: Mapping[str, Any],
    keys: Sequence[str],
    info: ValidationInfo,
    advice: str,
    read_rows: Callable[[Iterable[list[str]], str], T],
) -> T:
    """Return the contents of the CSV file that a key of a table names.

    Parameters
    ----------
    data
        The table as typed.
    keys
        Key of the file name, and keys of the values that replace a file.
    info
        Validation of the table, whose context contains the base folder of relative names.
    advice
        Advice at the end of messages.
    read_rows
        Function that reads the rows, with the file's name for messages.

    Raises
    ------
    ValidationError
        Both a file and values are given, the file does not exist or cannot be read as CSV, or its
        rows are wrong.
    """
    key, *inline = keys
    if any(name in data for name in inline):
        raise make_key_error(f"both {key} and {inline[0]} are given; use only one of them", key)
    name = data[key]

    def refuse(text: str) -> ValidationError:
        return make_key_error(f"{text}; {advice}", key, value=name)

    if not isinstance(name, str) or not name or "\0" in name:
        raise refuse(f"{units.quote(name)} is not a file name")
    path = (get_validation_context(info).folder or Path()) / name
    protect_inputs(path)
    try:
        # Reading a device or a pipe may never end.
        if path.exists() and not path.is_file():
            raise refuse(f"{path} is not a file")
        with path.open(newline="", encoding="utf-8-sig") as stream:
            return read_rows(csv.reader(stream), name)
    except FileNotFoundError:
        raise refuse(f"the file {path} does not exist") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise refuse(f"{path} cannot be read as CSV ({error})") from None
    except UnitError as error:
        raise make_key_error(str(error), key, value=name) from None


def data_rows(rows: Iterable[list[str]]) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the cells of each row, except for empty rows and comments."""
    for number, row in enumerate(rows, start=1):
        cells = [cell.strip() for cell in row]
        if any(cells) and not cells[0].startswith("#"):
            yield number, cells


def read_number_cell(cell: str, where: str, advice: str) -> float:
    """Return the number in a cell, from 0 to 1e12; ``advice`` names the units in the message."""
    try:
        number = float(cell)
    except ValueError:
        number = math.nan
    if not 0 <= number < 1e12:
        raise UnitError(f"{where}: {units.quote(cell)} is not a number from 0 to 1e12; {advice}")
    return number
