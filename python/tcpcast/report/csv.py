"""CSV output with a header row."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def encode_csv(head: Sequence[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return a header and rows as CSV text; None becomes an empty cell, True becomes ``true``."""
    return "".join(f"{csv_line(cells)}\n" for cells in (head, *rows))


def csv_line(cells: Iterable[Any]) -> str:
    """Return one row as CSV without a line break at its end."""
    out = io.StringIO()
    # Before Python 3.13, only cells with a character of the line terminator are quoted.
    csv.writer(out, lineterminator="\r\n").writerow(map(_csv_cell, cells))
    return out.getvalue().removesuffix("\r\n")


def _csv_cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value
