"""Scenario values with comments, as nested tables and as TOML."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcpcast import units
from tcpcast.scenario.toml import write_value

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_LINE_LENGTH = 100
MIN_COMMENT_COLUMN = 30
"""Minimum column at which comments begin."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A value of a scenario; ``table`` is a dotted name, ``""`` for the top level."""

    table: str
    key: str
    value: Any
    comment: str = ""


def entries_as_tables(entries: Sequence[Entry]) -> dict[str, Any]:
    """Return entries as nested dicts, like ``tomllib``."""
    tables: dict[str, Any] = {}
    for entry in entries:
        nested = tables
        for part in entry.table.split(".") if entry.table else ():
            nested = nested.setdefault(part, {})
        nested[entry.key] = entry.value
    return tables


def toml_document(heading: Sequence[str], entries: Sequence[Entry]) -> str:
    """Return a TOML document with a heading comment and a comment per entry."""
    lines = [line for text in heading for line in _comment_lines(text)]
    table = ""
    for entry in entries:
        if entry.table != table:
            table = entry.table
            lines += ["", f"[{table}]"]
        lines += _entry_lines(entry)
    return "\n".join(lines) + "\n"


def _comment_lines(text: str) -> list[str]:
    return textwrap.wrap(
        text, MAX_LINE_LENGTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False
    )


def _entry_lines(entry: Entry) -> list[str]:
    assignment = f"{entry.key} = {write_value(entry.value)}"
    if not entry.comment:
        return [assignment]
    one_line = f"{assignment:<{MIN_COMMENT_COLUMN}} # {entry.comment}"
    return (
        [one_line]
        if len(one_line) <= MAX_LINE_LENGTH
        else [*_comment_lines(entry.comment), assignment]
    )


def time_in_scenario_syntax(seconds: float) -> str:
    """Return a time in scenario syntax, round_to_digits."""
    return units.format_duration(round_to_digits(seconds))


def round_to_digits(value: float, digits: int = 4) -> float:
    """Return a number round_to_digits to the precision of a measurement."""
    return float(f"{value:.{digits}g}")
