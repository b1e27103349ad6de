"""Rows for programs: CSV with a head."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def encode(head: Sequence[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return a head and rows as CSV, a row a line: no value is empty, True is ``true``."""
    return "".join(f"{line(cells)}\n" for cells in (head, *rows))


def line(cells: Iterable[Any]) -> str:
    """Return one row as CSV, without the line break."""
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(map(_cell, cells))
    return out.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value
